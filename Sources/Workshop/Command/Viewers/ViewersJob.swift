import Foundation
import Logging
import ReelCore
import ReelLab
import ReelModels
import ReelPlayback
import ReelPool
import ReelSimulation
import ReelSources
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
    try Self.raiseFileLimit(for: crowd.tally.summary.viewers)
    let outputs = try ViewersOutputs(command)
    let metrics = try await command.metricsPlace()?.open(logger: logger)
    let failure = await watch(crowd, plan, outputs, metrics)
    var summary = crowd.tally.summary
    summary.isInterrupted = Task.isCancelled
    await metrics?.close()
    summary.assertions = assertions.map { $0.evaluate(summary) }
    let isEmpty =
      failure == nil && summary.viewers > 0 && summary.counts.starts.isEmpty && !summary.isInterrupted
    let error = isEmpty ? crowd.firstError ?? Self.nothingStarted : nil
    do { try report(summary, error, crowd.tally.rows, outputs) } catch { throw failure ?? error.asReelError }
    if let failure { throw failure }
    for outcome in summary.assertions where !outcome.isMet {
      Console.fault(outcome.text(in: Terminal.errorLayout))
    }
    if summary.isInterrupted { return ExitStatus.interrupted }
    if let error {
      Console.report(error)
      return ExitStatus.code(of: error)
    }
    return summary.assertions.allSatisfy(\.isMet) ? 0 : ExitStatus.failedSource
  }

  // MARK: - Private

  private static let nothingStarted = ReelError(
    .timedOut, "no viewer had a first frame", advice: "allow more time with --duration")

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

  /// Runs the viewers, and reports each second. Returns why the run ended before its time; nil if it did not.
  private func watch(
    _ crowd: ViewerCrowd, _ plan: ViewerPlan, _ outputs: ViewersOutputs, _ metrics: MetricsOutput?
  ) async -> ReelError? {
    let (clock, tally) = (crowd.settings.player.clock, crowd.tally)
    let start = clock.now
    let progress = command.options.quiet || command.options.json ? nil : PlayProgress()
    Console.setProgress(progress)
    let run = ViewerRun(
      plan, settings: crowd.settings, logger: logger, access: crowd.access(of:), report: crowd.record)
    var failure = await withTaskGroup(of: ReelError?.self) { group in
      group.addTask {
        await run.run()
        return nil
      }
      group.addTask {
        // Ends when the viewers have left, or with the error that ends the run.
        do {
          var (due, meter) = (start + .seconds(1), MachineMeter())
          while true {
            try await clock.sleep(for: max(.zero, due - clock.now))
            let load = meter.load(lateness: clock.now - due)
            let row = tally.row(at: clock.now - start, machine: load)
            due = max(due + .seconds(1), clock.now)
            crowd.note(load)
            try outputs.add(crowd.takeLines())
            if command.options.json { try Console.print(JSONLine.string(row)) }
            progress?.show(ViewersText.progress(row, tally.summary))
            try metrics?.publish(row, total: tally.summary.counts)
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
      return first ?? crowd.refusal
    }
    progress?.clear()
    Console.setProgress(nil)
    let row = tally.row(at: clock.now - start, machine: nil)
    do {
      if failure == nil { try outputs.add(crowd.takeLines()) }
      try metrics?.publish(row, total: tally.summary.counts)
      if command.options.json { try Console.print(JSONLine.string(row)) }
    } catch {
      failure = failure ?? error.asReelError
    }
    return failure
  }

  /// - Parameter error: Why nothing started; nil if something did.
  private func report(
    _ summary: ViewersSummary, _ error: ReelError?, _ rows: [ViewersRow], _ outputs: ViewersOutputs
  ) throws {
    // Files are written also if nobody reads standard output any more.
    let printing = Result {
      if command.options.json {
        try Console.print(JSONLine.string(summary))
      } else if !command.options.quiet {
        try Console.printText(ViewersText.lines(summary).joined(separator: "\n"))
      }
    }
    try outputs.page?.complete(
      with: ViewersPage(summary: summary, rows: rows, run: RunDescription(), facts: command.facts).html)
    var cases = summary.assertions.map { JUnitXML.Case($0) }
    if let error { cases.append(JUnitXML.Case("a view starts", failure: ("\(error)", "error"))) }
    try outputs.junit?.complete(
      with: JUnitXML(
        command: "viewers",
        suites: [.init(name: "viewers", cases: cases, duration: summary.duration)]
      ).text)
    try printing.get()
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
      try ResultsFile.open(path: path, canResume: false, resumes: false, overwrites: command.overwrite).file
    }
  }

  /// Adds the lines of views that are over.
  func add(_ lines: [UInt8]) throws(ReelError) { if !lines.isEmpty { try results?.append(lines) } }
}
