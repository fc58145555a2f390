import Foundation
import Logging
import ReelCore
import ReelLab
import ReelModels
import ReelPlayback
import ReelPool
import ReelSimulation
import ReelSources
import ReelTesting
import ReelTransport

/// A run of `reel viewers`.
struct ViewersJob {
  private let command: ViewersCommand
  private let logger: Logger
  private let assertions: [ViewersAssertion]

  init(_ command: ViewersCommand, logger: Logger) throws(ReelError) {
    (self.command, self.logger) = (command, logger)
    assertions = try command.assertions.map { text throws(ReelError) in try ViewersFigures.assertion(text) }
  }

  /// Runs the viewers, and reports. Returns the exit code.
  func run() async throws -> Int32 {
    let sources = try await readSources()
    let plan = try makePlan(sources)
    let crowd = try ViewerCrowd(command, sources, plan, logger: logger)
    try Self.raiseFileLimit(for: Array(plan.viewers).count)
    let outputs = try ViewersOutputs(command)
    let metrics = try await MetricsServer.start(command, logger: logger)
    let outcome = await watch(crowd, plan, sources, outputs, metrics)
    await metrics?.stop()
    if let failure = outcome.failure { throw failure }
    var summary = outcome.summary
    summary.assertions = assertions.map { $0.evaluate(summary) }
    try report(summary, outcome.rows, outputs)
    if summary.isInterrupted { return ExitStatus.interrupted }
    if summary.counts.starts.isEmpty, let error = outcome.firstError {
      Console.report(error)
      return ExitStatus.code(of: error)
    }
    return summary.assertions.allSatisfy(\.isMet) ? 0 : ExitStatus.failedSource
  }

  // MARK: - Private

  /// What became of the viewers.
  private struct Outcome {
    var summary: ViewersSummary
    var rows: [ViewersRow]
    /// Why the run ended before its time.
    var failure: ReelError?
    /// The first error, whatever followed it.
    var firstError: ReelError?
  }

  private func readSources() async throws -> ViewerSources {
    guard let dwell = command.dwell else {
      guard let path = command.input else { return try ViewerSources(command.sources) }
      return try ViewerSources(listAt: path)
    }
    let swipes = try SwipeSpec(parsing: dwell)
    guard let path = command.input else {
      let urls = try ViewerSources(command.sources).entries.compactMap(\.source.url)
      return ViewerSources(Feed(urls: urls), swipes: swipes)
    }
    let reading = try FeedReading(
      command.options, try command.options.transport(logger: logger), readsStandardInput: true)
    let (bytes, location) = try await reading.read(path)
    return ViewerSources(try FeedFile(bytes: bytes, at: location).feed(named: nil), swipes: swipes)
  }

  private func makePlan(_ sources: ViewerSources) throws -> ViewerPlan {
    try ViewerPlan(
      viewerCount: command.viewers, ramp: .seconds(command.ramp), duration: .seconds(command.duration),
      stay: try command.staySpec(), choice: sources.choice, decodeShare: try command.decodeShare(),
      seed: command.seed, shard: try command.shardSpec().map { ($0.index, $0.count) } ?? (0, 1))
  }

  /// Throws `ReelError` of kind `usage` if the system allows fewer open files than viewers may have connections.
  private static func raiseFileLimit(for viewers: Int) throws(ReelError) {
    // A viewer has a connection for each of its tracks, and another one ahead. The rest is for the process.
    let (each, rest) = (2, 100)
    let needed = viewers * each + rest
    guard let limit = ProcessSettings.raiseFileLimit(to: needed * 2), limit < needed else { return }
    throw ReelError(
      .usage,
      "\(viewers.counted("viewer")) may open \(needed) connections and files, and this process \(limit): "
        + "\(max(0, (limit - rest) / each)) viewers fit",
      advice: "raise the limit (ulimit -n), or divide the viewers over machines with --shard")
  }

  private func watch(
    _ crowd: ViewerCrowd, _ plan: ViewerPlan, _ sources: ViewerSources, _ outputs: ViewersOutputs,
    _ metrics: MetricsServer?
  ) async -> Outcome {
    let clock = crowd.settings.player.clock
    let viewers = Array(plan.viewers).count
    let progress = command.options.quiet || command.options.json ? nil : PlayProgress()
    Console.setProgress(progress)
    let clerk = ViewersClerk(
      ViewersSummary(viewers: viewers, sources: sources.entries.count), crowd.tally, start: clock.now)
    let run = ViewerRun(
      plan, settings: crowd.settings, logger: logger, access: crowd.access(of:), report: crowd.record)
    let failure = await withTaskGroup(of: ReelError?.self) { group in
      group.addTask {
        await run.run()
        return nil
      }
      group.addTask {
        // Ends when the viewers have left, or with the error that ends the run.
        do {
          var due = clock.now + .seconds(1)
          while true {
            try await clock.sleep(for: max(.zero, due - clock.now))
            let row = clerk.row(at: clock.now, lateness: clock.now - due)
            due = max(due + .seconds(1), clock.now)
            crowd.note(row.machine)
            try outputs.add(crowd.takeLines())
            if command.options.json { try Console.print(JSONLine.string(row)) }
            progress?.show(ViewersText.progress(row, of: viewers, total: clerk.summary.counts))
            try metrics?.publisher.publish(row, total: clerk.summary.counts)
            if let refusal = crowd.refusal { throw refusal }
          }
        } catch {
          let error = error.asReelError
          return error.kind == .cancelled ? nil : error
        }
      }
      let first = await group.next() ?? nil
      group.cancelAll()
      await group.waitForAll()
      return first
    }
    progress?.clear()
    Console.setProgress(nil)
    let row = clerk.row(at: clock.now, lateness: nil)
    var outcome = Outcome(summary: clerk.summary, rows: clerk.rows, failure: failure ?? crowd.refusal)
    outcome.firstError = crowd.firstError
    outcome.summary.isInterrupted = Task.isCancelled
    do {
      try outputs.add(crowd.takeLines())
      try metrics?.publisher.publish(row, total: clerk.summary.counts)
      if command.options.json, outcome.failure == nil { try Console.print(JSONLine.string(row)) }
    } catch {
      outcome.failure = outcome.failure ?? error.asReelError
    }
    return outcome
  }

  private func report(_ summary: ViewersSummary, _ rows: [ViewersRow], _ outputs: ViewersOutputs) throws {
    if command.options.json {
      try Console.print(JSONLine.string(summary))
    } else if !command.options.quiet {
      try Console.printText(ViewersText.lines(summary).joined(separator: "\n"))
    }
    try outputs.page?.complete(
      with: ViewersPage(summary: summary, rows: rows, run: RunDescription(), facts: command.facts).html)
    let cases = summary.assertions.map { JUnitXML.Case($0) }
    try outputs.junit?.complete(
      with: JUnitXML(
        command: "viewers",
        suites: [.init(name: "viewers", cases: cases, duration: summary.duration)]
      ).text)
  }
}

/// The files of a run. They are begun before it: what can't be made is known then.
struct ViewersOutputs {
  let page: ResultFile?
  let junit: ResultFile?
  private let results: ResultsFile?

  init(_ command: ViewersCommand) throws {
    page = try ResultFile.open(command.reportFile)
    junit = try ResultFile.open(command.junit)
    results = try command.resultsPath().map { path in
      try ResultsFile.open(path: path, resumes: false, overwrites: command.overwrite).file
    }
  }

  /// Adds the lines of views that are over.
  func add(_ lines: [UInt8]) throws(ReelError) { if !lines.isEmpty { try results?.append(lines) } }
}

/// The page of `--metrics`, or its file.
struct MetricsServer {
  let publisher: MetricsPublisher
  private let origin: Origin?

  /// Nil without the option. Throws `ReelError` if the port is taken.
  static func start(_ command: ViewersCommand, logger: Logger) async throws -> MetricsServer? {
    switch try command.metricsPlace() {
    case nil: return nil
    case .file(let path): return MetricsServer(publisher: MetricsPublisher(path: path), origin: nil)
    case .server(let host, let port):
      let publisher = MetricsPublisher(path: nil)
      let origin = try await Origin.start(
        Origin.Configuration(resources: [publisher], host: host, port: port), logger: logger)
      Console.remark("metrics at \(origin.url("metrics").absoluteString)")
      return MetricsServer(publisher: publisher, origin: origin)
    }
  }

  func stop() async { await origin?.stop() }
}

/// Makes the rows of a run, and its summary.
final class ViewersClerk: Sendable {
  private struct State {
    var summary: ViewersSummary
    var rows: [ViewersRow] = []
    var time = Duration.zero
    var meter = MachineMeter()
  }

  /// With more rows, each two become one.
  private static let rowLimit = 1_200
  /// The rest of a run that is shorter belongs to the row before.
  private static let leastLength = Duration.milliseconds(500)

  private let tally: ViewersTally
  private let start: Duration
  private let state: Locked<State>

  /// - Parameter start: The time of the clock at which the first viewer comes.
  init(_ summary: ViewersSummary, _ tally: ViewersTally, start: Duration) {
    (self.tally, self.start) = (tally, start)
    state = Locked(State(summary: summary), rank: .transfer)
  }

  /// The whole run so far.
  var summary: ViewersSummary { state.withLock { $0.summary } }

  /// The rows for a page.
  var rows: [ViewersRow] {
    var rows = state.withLock { $0.rows }
    if rows.count > 1, let last = rows.last, last.length < Self.leastLength {
      rows.removeLast()
      rows[rows.count - 1] = rows[rows.count - 1].joined(with: last)
    }
    return rows
  }

  /// Returns the row of the time since the last one.
  ///
  /// - Parameter lateness: How late it is made; nil for the rest of the run, which is no whole second.
  func row(at now: Duration, lateness: Duration?) -> ViewersRow {
    let time = now - start
    let (counts, present) = tally.take(at: time)
    let (mostPresent, latencies) = tally.extremes
    return state.withLock { state in
      let load = lateness.map { state.meter.load(lateness: $0) }
      let row = ViewersRow(
        time: time, length: time - state.time, counts: counts, present: present,
        machine: load ?? MachineLoad())
      state.time = time
      if let load { state.summary.machine.add(load) }
      state.summary.duration = time
      state.summary.counts.add(counts)
      state.summary.mostPresent = mostPresent
      state.summary.liveLatency = LatencySummary(latencies)
      state.rows.append(row)
      if state.rows.count > Self.rowLimit {
        state.rows = stride(from: 0, to: state.rows.count, by: 2).map { index in
          let next = index + 1
          let row = state.rows[index]
          return next < state.rows.count ? row.joined(with: state.rows[next]) : row
        }
      }
      return row
    }
  }
}
