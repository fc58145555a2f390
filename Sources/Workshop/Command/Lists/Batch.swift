import Dispatch
import Foundation
import ReelCore
import ReelSources
import ReelTransport

/// Works through a list of sources: reads it, keeps to the limits of hosts, records results, and counts.
final class Batch: Sendable {
  struct Configuration: Sendable {
    let style: RunStyle
    let run: RunOptions
    let options: SourceOptions
    let template: NameTemplate
    /// The time between two sources of a host.
    let interval: Duration?
    let shard: Shard?

    init(_ style: RunStyle, _ run: RunOptions, _ options: SourceOptions) throws {
      (self.style, self.run, self.options) = (style, run, options)
      template = try style.naming?.template() ?? NameTemplate(parsing: NameOptions.usual)
      interval = try run.list.interval()
      shard = try run.list.shardSpec()
    }

    /// The list's name in errors; nil without one.
    var inputName: String? { run.list.input.map { $0 == "-" ? "standard input" : $0 } }
    var resultsPath: String { run.list.resultsPath(output: style.folder ?? ".") }
    /// Sources that are open at once.
    var jobs: Int { run.jobs ?? style.listJobs }
  }

  /// No more sources than this wait for their hosts; the list is read no further until some are begun.
  static let waitingLimit = 10_000
  /// The maximum memory of these in bytes.
  static let waitingByteLimit = 64 << 20

  enum Event: Sendable {
    case entries([SourceListParser.Entry])
    case listEnded(ReelError?)
    case finished(Running, SourceRun.Outcome)
    case held(host: String, Duration)
    case tick
  }

  /// An entry of the list that is a source to work on.
  struct Listed: Sendable {
    let text: String
    let index: Int
    let line: Int
    let hash: SourceHash
    let host: String
    let fields: [SourceListParser.Field]
    /// Whether another source has the same name without the hash.
    var isMarked: Bool
    var attempt = 1

    /// The approximate memory of the entry in bytes.
    var byteCount: Int {
      fields.reduce(text.utf8.count + 200) { $0 + $1.key.utf8.count + $1.value.count + 64 }
    }
  }

  struct Running: Sendable {
    let listed: Listed
    let ticket: HostLimiter<Listed>.Ticket
    let start: ContinuousClock.Instant
  }

  fileprivate let configuration: Configuration
  fileprivate let progress = BatchProgress()
  fileprivate let events = AsyncStream<Event>.makeStream()
  fileprivate let start = ContinuousClock.now
  private let processorUse = ProcessorUse()

  init(_ configuration: Configuration) { self.configuration = configuration }

  /// Returns the host of a source in lower case; empty for a file.
  static func host(of source: MediaSource) -> String {
    guard case .url(let url) = source, !url.isFileURL else { return "" }
    return url.host?.lowercased() ?? ""
  }

  /// Begins no source of a host for a time, because its server asks for it.
  func hold(_ url: URL, for delay: Duration) {
    events.continuation.yield(.held(host: Self.host(of: .url(url)), delay))
  }

  /// Works through the list. Returns the exit code.
  func run(_ worker: SourceRun.Worker) async -> Int32 {
    let style = configuration.style
    // Caches would keep the memory of players.
    if !style.plays { TransportFetcher.onEachThread { Allocator.cacheOnThread() } }
    var failures: [ReelError] = []
    func fail(_ error: ReelError) {
      failures.append(error)
      if error.kind != .cancelled { Console.report(error) }
    }
    do throws(ReelError) {
      var (feeder, total): (ListFeeder?, Int?) = (nil, configuration.run.sources.count)
      if let path = configuration.run.list.input {
        let reader = try SourceListReader(path: path)
        total = try reader.count()
        feeder = ListFeeder(reader)
      }
      if let folder = style.folder { try OutputFolder.make(folder) }
      let (results, finished) = try ResultsFile.open(
        path: configuration.resultsPath, resumes: configuration.run.list.resume,
        overwrites: configuration.run.overwrite)
      progress.setTotal(total)
      let fansOut = (total ?? .max) > NameOptions.folderLimit
      let loop = BatchLoop(
        self, admission: BatchAdmission(configuration, finished: finished, fansOut: fansOut),
        results: results, feeder: feeder
      ) { job in
        var outcome = await worker.outcome(of: job, style.record)
        outcome.error = outcome.error?.located(at: job.text)
        return outcome
      }
      let failure = await WorkProgress.showing(
        when: !configuration.options.quiet && !style.plays, progress.text
      ) { await loop.run() }
      if let failure { fail(failure) }
      worker.end().forEach(fail)
    } catch {
      fail(error)
    }
    return finish(failures.first)
  }

  // MARK: - Private

  /// The note to print if other processes took so much of the machine that percentiles of start-up times mean little.
  private func busyLine(_ counts: BatchProgress.Counts) -> String? {
    guard counts.written >= Self.percentileCount, let processorUse, let now = ProcessorUse() else {
      return nil
    }
    let share = processorUse.othersShare(until: now)
    guard share > 0.25 else { return nil }
    return "other processes used \(Int(share * 100)) % of the processors: start-up times may be too long"
  }

  /// The number of sources below which percentiles are unreliable anyway.
  private static let percentileCount = 100

  /// Prints the counts. Returns the exit code.
  ///
  /// - Parameter failure: The first error of the run as a whole.
  private func finish(_ failure: ReelError?) -> Int32 {
    let counts = progress.counts
    if !configuration.options.quiet, counts.done > 0 || failure == nil {
      for line in counts.lines(configuration.style.success) { Console.printError(line) }
      if let line = busyLine(counts) { Console.printError(line) }
      if Task.isCancelled {
        let path = configuration.resultsPath.printable
        Console.printError(
          "interrupted: \(progress.doneText), results in \(path); use --resume to continue")
      }
    }
    if Task.isCancelled { return Interruption.resumableExitCode }
    return failure.map { ExitStatus.code(of: $0) } ?? counts.exitCode
  }
}

/// The processing of a run's events, one after the other.
private struct BatchLoop {
  private let batch: Batch
  private let results: ResultsFile
  /// Nil for sources that the command line names.
  private let feeder: ListFeeder?
  private let work: @Sendable (SourceRun.Job) async -> SourceRun.Outcome

  private var admission: BatchAdmission
  private var limiter: HostLimiter<Batch.Listed>
  private var isReading = false
  private var hasListEnded = false
  private var listFailure: ReelError?
  private var runningCount = 0
  private var waitingByteCount = 0
  private var wakesAt: Duration?
  private let leftovers: LeftoverFiles?
  /// The fields of results. Fields of a list with these names go into `input`.
  private let ownKeys: Set<String>
  /// The hosts that are not tried any more, as far as that was said.
  private var givenUp: Set<String> = []

  init(
    _ batch: Batch, admission: BatchAdmission, results: ResultsFile, feeder: ListFeeder?,
    _ work: @escaping @Sendable (SourceRun.Job) async -> SourceRun.Outcome
  ) {
    (self.batch, self.admission, self.results, self.feeder) = (batch, admission, results, feeder)
    self.work = work
    let configuration = batch.configuration
    limiter = HostLimiter(
      limits: .init(perHost: configuration.run.list.perHost, interval: configuration.interval))
    leftovers = configuration.run.list.resume ? LeftoverFiles() : nil
    ownKeys = ResultLine.keys.union(ResultLine.reportedKeys).union(configuration.style.record.keys)
  }

  /// Returns the error that ended the run early.
  consuming func run() async -> ReelError? {
    var loop = self
    return await withTaskGroup(of: Void.self) { group in
      let failure = await loop.loop(&group)
      group.cancelAll()
      return failure
    }
  }

  // MARK: - Private

  private var configuration: Batch.Configuration { batch.configuration }
  private var now: Duration { ContinuousClock.now - batch.start }

  private mutating func loop(_ group: inout TaskGroup<Void>) async -> ReelError? {
    do throws(ReelError) {
      if feeder == nil {
        for text in configuration.run.sources {
          try admit(SourceListParser.Entry(line: 0, content: .source(text, fields: [])))
        }
        hasListEnded = true
      }
      try begin(&group)
      if isDone { return listFailure }
      for await event in batch.events.stream {
        switch event {
        case .entries(let entries):
          isReading = false
          for entry in entries { try admit(entry) }
        case .listEnded(let error):
          isReading = false
          hasListEnded = true
          listFailure = error
          if error == nil, admission.count == 0 {
            listFailure = ReelError(.badManifest, "the list has no sources", at: configuration.inputName)
          }
        case .finished(let running, let outcome):
          // The task of the event ends right after it.
          await group.next()
          try finish(running, outcome)
        case .held(let host, let delay): limiter.hold(host, for: delay, at: now)
        case .tick: wakesAt = nil
        }
        if Task.isCancelled { return nil }
        try begin(&group)
        if isDone { return listFailure }
      }
      return nil
    } catch {
      return error
    }
  }

  /// True if reading the list pauses for now.
  private var isFull: Bool {
    limiter.waitingCount >= Batch.waitingLimit || waitingByteCount >= Batch.waitingByteLimit
  }

  private var isDone: Bool {
    runningCount == 0 && hasListEnded && limiter.waitingCount == 0
  }

  /// Begins as many sources as possible, and reads more of the list if that helps.
  private mutating func begin(_ group: inout TaskGroup<Void>) throws(ReelError) {
    steps: while true {
      let isDrained = hasListEnded || isFull
      guard runningCount < configuration.jobs else { break }
      switch limiter.next(at: now, isDrained: isDrained) {
      case .start(let listed, let ticket):
        waitingByteCount -= listed.byteCount
        start(listed, ticket, &group)
      case .giveUp(let listed, let host):
        waitingByteCount -= listed.byteCount
        if givenUp.insert(host).inserted {
          Console.fault("\(host): keeps failing; its other sources are left for a later run")
        }
        let error = ReelError(.network, "not tried, because its host kept failing", at: listed.text)
        try record(listed, SourceRun.Outcome(nil, error: error), seconds: 0, isReported: false)
      case .wait(let time):
        wake(at: time)
        break steps
      case .none: break steps
      }
    }
    let wants = !isFull && (limiter.waitingCount < configuration.jobs || runningCount < configuration.jobs)
    if wants, !isReading, !hasListEnded {
      isReading = true
      feeder?.read(batch.events.continuation)
    }
  }

  /// Sends an event at a time, unless an earlier one is scheduled.
  private mutating func wake(at time: Duration) {
    if let wakesAt, wakesAt <= time { return }
    wakesAt = time
    let delay = max(.milliseconds(1), time - now)
    Task { [events = batch.events.continuation] in
      try? await Task.sleep(for: delay)
      events.yield(.tick)
    }
  }

  private mutating func start(
    _ listed: Batch.Listed, _ ticket: HostLimiter<Batch.Listed>.Ticket, _ group: inout TaskGroup<Void>
  ) {
    runningCount += 1
    let running = Batch.Running(listed: listed, ticket: ticket, start: .now)
    batch.progress.begin(listed.index, listed.text)
    let (events, leftovers, work) = (batch.events.continuation, leftovers, work)
    let plays = configuration.style.plays
    var job = admission.job(listed)
    job.held = ticket.held
    job.mayHaveFiles = configuration.run.list.resume || listed.attempt > 1
    group.addTask { [job] in
      if !plays { Allocator.cacheOnThread() }
      if let names = job.names { leftovers?.remove(names) }
      events.yield(.finished(running, await work(job)))
    }
  }

  private mutating func finish(_ running: Batch.Running, _ outcome: SourceRun.Outcome) throws(ReelError) {
    var listed = running.listed
    runningCount -= 1
    batch.progress.end(listed.index)
    // A source that was cut off has no result: the next run tries it.
    if outcome.error?.kind == .cancelled, Task.isCancelled { return }
    // The disk is full, or standard output is closed: all other sources would fail in the same way.
    if let error = outcome.error, error.kind == .cannotWriteOutput { throw ResultsFile.advised(error) }
    let isTemporary = outcome.error?.isTemporary ?? false
    // If a redirect leads to another host, or the segments are on one, the source waits for that host too.
    if isTemporary, !listed.host.isEmpty, let location = outcome.error?.location,
      let host = URL(string: location)?.host?.lowercased(), host != listed.host,
      let time = limiter.heldUntil(host, at: now)
    {
      limiter.hold(listed.host, for: time - now, at: now)
    }
    limiter.finished(running.ticket, isTemporary ? .failedTemporarily : .answered)
    if isTemporary, listed.attempt == 1, limiter.isHeld(listed.host, at: now) {
      // The server has stated when to retry.
      listed.attempt = 2
      add(listed)
      return
    }
    try record(listed, outcome, seconds: (ContinuousClock.now - running.start) / .seconds(1))
  }

  private mutating func admit(_ entry: SourceListParser.Entry) throws(ReelError) {
    switch admission.admit(entry) {
    case .source(let listed): add(listed)
    case .failure(let listed, let error): try record(listed, SourceRun.Outcome(nil, error: error), seconds: 0)
    case .elsewhere: batch.progress.addElsewhere()
    case .repeated: batch.progress.add { $0.repeated += 1 }
    case .finished(hasFailed: false): batch.progress.add { $0.skippedWritten += 1 }
    case .finished(hasFailed: true): batch.progress.add { $0.skippedFailed += 1 }
    }
  }

  private mutating func add(_ listed: Batch.Listed) {
    waitingByteCount += listed.byteCount
    limiter.add(listed, host: listed.host)
  }

  private func record(
    _ listed: Batch.Listed, _ outcome: SourceRun.Outcome, seconds: Double, isReported: Bool = true
  ) throws(ReelError) {
    let isOwn = { (field: SourceListParser.Field) in ownKeys.contains(field.key) }
    let line = ResultLine.text(
      url: listed.text.isEmpty ? nil : listed.text, index: listed.index, line: listed.line, host: listed.host,
      finishedAt: .now, seconds: seconds, attempts: listed.attempt,
      success: configuration.style.success, error: outcome.error, body: outcome.body,
      fields: listed.fields.filter { !isOwn($0) }, hiddenFields: listed.fields.filter(isOwn))
    try results.append(line)
    if configuration.options.json, !outcome.isPrinted { try Console.write(line) }
    if let error = outcome.error {
      batch.progress.addFailure(error)
      if isReported, !outcome.isReported { Console.report(error) }
    } else {
      batch.progress.add { $0.written += 1 }
    }
  }
}
