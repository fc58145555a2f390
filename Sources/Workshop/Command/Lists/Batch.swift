import ArgumentParser
import Dispatch
import Foundation
import ReelCore
import ReelFFmpeg
import ReelFiles
import ReelPlayback
import ReelTransport

/// Works through a list of sources: reads it, keeps to the limits of hosts, records results, and counts.
///
/// What is done with a source is up to the closure that `run(_:)` gets.
final class Batch: Sendable {
  struct Configuration: Sendable {
    /// The sources, if there is no list.
    var sources: [String]
    /// A file, or `-`.
    var input: String?
    /// The list's name in errors; nil without one.
    var inputName: String? { input.map { $0 == "-" ? "standard input" : $0 } }
    /// The output folder.
    var output: String
    var template: NameTemplate
    /// The extension of the files.
    var format: String
    /// Nil decides by the number of sources.
    var fansOut: Bool?
    var results: String
    var resumes: Bool
    var overwrites: Bool
    var perHost: Int?
    var interval: Duration?
    var shard: Shard?
    /// Sources that are open at once.
    var jobs: Int
    /// Prints each result line to standard output.
    var printsResults: Bool
    var isQuiet: Bool
    /// The fields of the command's results. Fields of a list with these names go into `input`.
    var resultKeys: Set<String>

    init(
      _ options: BatchOptions, sources: [String], output: String, format: String, overwrites: Bool, jobs: Int,
      printsResults: Bool, isQuiet: Bool, resultKeys: Set<String>
    ) throws {
      self.sources = sources
      input = options.input
      self.output = output
      template = try options.template()
      self.format = format
      fansOut = options.fanOut
      results = options.resultsPath(output: output)
      resumes = options.resume
      self.overwrites = overwrites
      perHost = options.perHost
      interval = try options.interval()
      shard = try options.shardSpec()
      self.jobs = jobs
      self.printsResults = printsResults
      self.isQuiet = isQuiet
      self.resultKeys = resultKeys
    }
  }

  /// A source to work on.
  struct Item: Sendable {
    let source: MediaSource
    /// The source as the list has it.
    let text: String
    let names: BatchNames
    /// How long the limits of its host have held it.
    var held = Duration.zero
    /// True if an earlier attempt, or the run that is continued, may have written some of its files.
    var mayHaveFiles = false
  }

  /// What became of a source.
  struct Outcome: Sendable {
    /// The command's own fields, as a JSON object.
    var body = "{}"
    /// Nil if all went well.
    var error: ReelError?
  }

  /// No more sources than this wait for their hosts; the list is read no further until some are begun.
  static let waitingLimit = 10_000
  /// Nor do these need more bytes than this.
  static let waitingByteLimit = 64 << 20

  enum Event: Sendable {
    case entries([SourceListParser.Entry])
    case listEnded(ReelError?)
    case finished(Running, Outcome)
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

    /// What it holds in memory, roughly.
    var byteCount: Int {
      fields.reduce(text.utf8.count + 200) { $0 + $1.key.utf8.count + $1.value.count + 64 }
    }
  }

  struct Running: Sendable {
    let listed: Listed
    let ticket: HostLimiter<Listed>.Ticket
    let start: ContinuousClock.Instant
  }

  private let configuration: Configuration
  private let progress = BatchProgress()
  private let events = AsyncStream<Event>.makeStream()
  private let start = ContinuousClock.now
  private let processorUse = ProcessorUse()

  init(_ configuration: Configuration) { self.configuration = configuration }

  /// Tells that a server has asked to be left alone for a while. No source of its host is begun in that time.
  func recordRetryAfter(_ url: URL, _ delay: Duration) {
    events.continuation.yield(.held(host: Self.host(of: .url(url)), delay))
  }

  /// Works through the list. Returns the exit code.
  func run(_ work: @escaping @Sendable (Item) async -> Outcome) async -> Int32 {
    var failure: ReelError?
    // Caches are safe here: commands with lists have no players, whose memory a cache would keep.
    TransportFetcher.onEachThread { Allocator.cacheOnThread() }
    do throws(ReelError) {
      let reader =
        try configuration.input.map { path throws(ReelError) in try SourceListReader(path: path) }
        ?? SourceListReader(arguments: configuration.sources)
      let total = try reader.count()
      try OutputFolder.make(configuration.output)
      let (file, finished) = try ResultsFile.open(
        path: configuration.results, resumes: configuration.resumes, overwrites: configuration.overwrites)
      progress.setTotal(total)
      let fansOut = configuration.fansOut ?? ((total ?? .max) > BatchOptions.fanOutLimit)
      let loop = BatchLoop(
        configuration: configuration, progress: progress, results: file,
        admission: BatchAdmission(configuration, finished: finished, fansOut: fansOut),
        events: events.continuation, feeder: ListFeeder(reader), start: start)
      failure = await WorkProgress.showing(
        when: !configuration.isQuiet, { [progress] in progress.text(after: $0) }
      ) {
        await loop.run(events.stream, work)
      }
    } catch {
      failure = error
    }
    return finish(failure)
  }

  /// The host of a source in lower case; empty for a file.
  static func host(of source: MediaSource) -> String {
    guard case .url(let url) = source, !url.isFileURL else { return "" }
    return url.host?.lowercased() ?? ""
  }

  // MARK: - Private

  /// What to say if other processes have taken so much of the machine that percentiles of start-up times mean little.
  private func busyLine(_ counts: BatchProgress.Counts) -> String? {
    guard counts.written >= Self.percentileCount, let processorUse, let now = ProcessorUse() else {
      return nil
    }
    let share = processorUse.othersShare(until: now)
    guard share > 0.25 else { return nil }
    return "other processes used \(Int(share * 100)) % of the processors: start-up times may be too long"
  }

  /// Percentiles of fewer sources than this tell little anyway.
  private static let percentileCount = 100

  private func finish(_ failure: ReelError?) -> Int32 {
    if let failure { Console.report(failure) }
    let counts = progress.counts
    if !configuration.isQuiet, counts.done > 0 || failure == nil {
      for line in counts.lines { Console.printError(line) }
      if let line = busyLine(counts) { Console.printError(line) }
      if Task.isCancelled { Console.printError("interrupted; use --resume to continue") }
    }
    if Task.isCancelled { return Interruption.resumableExitCode }
    return failure.map { ExitStatus.code(of: $0) } ?? counts.exitCode
  }
}

/// The events of a run, one after the other.
private struct BatchLoop {
  let configuration: Batch.Configuration
  let progress: BatchProgress
  let results: ResultsFile
  let events: AsyncStream<Batch.Event>.Continuation
  let feeder: ListFeeder
  let start: ContinuousClock.Instant

  private var admission: BatchAdmission
  private var limiter: HostLimiter<Batch.Listed>
  private var isReading = false
  private var hasListEnded = false
  private var listFailure: ReelError?
  private var runningCount = 0
  private var waitingByteCount = 0
  private var wakesAt: Duration?
  private let leftovers: LeftoverFiles?
  /// The hosts that are not tried any more, as far as that was said.
  private var givenUp: Set<String> = []

  init(
    configuration: Batch.Configuration, progress: BatchProgress, results: ResultsFile,
    admission: BatchAdmission, events: AsyncStream<Batch.Event>.Continuation, feeder: ListFeeder,
    start: ContinuousClock.Instant
  ) {
    self.configuration = configuration
    self.progress = progress
    self.results = results
    self.admission = admission
    self.events = events
    self.feeder = feeder
    self.start = start
    limiter = HostLimiter(
      limits: .init(perHost: configuration.perHost, interval: configuration.interval))
    leftovers = configuration.resumes ? LeftoverFiles() : nil
  }

  /// Returns the error that ended the run early.
  consuming func run(
    _ stream: AsyncStream<Batch.Event>, _ work: @escaping @Sendable (Batch.Item) async -> Batch.Outcome
  ) async -> ReelError? {
    var loop = self
    return await withTaskGroup(of: Void.self) { group in
      let failure = await loop.loop(stream, work, &group)
      group.cancelAll()
      return failure
    }
  }

  // MARK: - Private

  private var now: Duration { ContinuousClock.now - start }

  private mutating func loop(
    _ stream: AsyncStream<Batch.Event>, _ work: @escaping @Sendable (Batch.Item) async -> Batch.Outcome,
    _ group: inout TaskGroup<Void>
  ) async -> ReelError? {
    do throws(ReelError) {
      try begin(work, &group)
      if isDone { return listFailure }
      for await event in stream {
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
          // Its task ends right after the event.
          await group.next()
          try finish(running, outcome)
        case .held(let host, let delay): limiter.hold(host, for: delay, at: now)
        case .tick: wakesAt = nil
        }
        if Task.isCancelled { return nil }
        try begin(work, &group)
        if isDone { return listFailure }
      }
      return nil
    } catch {
      return error
    }
  }

  /// Whether no more of the list is read for now.
  private var isFull: Bool {
    limiter.waitingCount >= Batch.waitingLimit || waitingByteCount >= Batch.waitingByteLimit
  }

  private var isDone: Bool { hasListEnded && runningCount == 0 && limiter.waitingCount == 0 }

  /// Begins as many sources as can be, and reads on in the list where that is of use.
  private mutating func begin(
    _ work: @escaping @Sendable (Batch.Item) async -> Batch.Outcome, _ group: inout TaskGroup<Void>
  ) throws(ReelError) {
    steps: while true {
      let isDrained = hasListEnded || isFull
      guard runningCount < configuration.jobs else { break }
      switch limiter.next(at: now, isDrained: isDrained) {
      case .start(let listed, let ticket):
        waitingByteCount -= listed.byteCount
        start(listed, ticket, work, &group)
      case .giveUp(let listed, let host):
        waitingByteCount -= listed.byteCount
        if givenUp.insert(host).inserted {
          Console.fault("\(host.printable): keeps failing; its other sources are left for a later run")
        }
        let error = ReelError(.network, "not tried, because its host kept failing", at: listed.text)
        try record(listed, .init(error: error), seconds: 0, isReported: false)
      case .wait(let time):
        wake(at: time)
        break steps
      case .none: break steps
      }
    }
    let wants = !isFull && (limiter.waitingCount < configuration.jobs || runningCount < configuration.jobs)
    if wants, !isReading, !hasListEnded {
      isReading = true
      feeder.read(events)
    }
  }

  /// Sends an event at a time, unless one is sent before.
  private mutating func wake(at time: Duration) {
    if let wakesAt, wakesAt <= time { return }
    wakesAt = time
    let delay = max(.milliseconds(1), time - now)
    Task { [events] in
      try? await Task.sleep(for: delay)
      events.yield(.tick)
    }
  }

  private mutating func start(
    _ listed: Batch.Listed, _ ticket: HostLimiter<Batch.Listed>.Ticket,
    _ work: @escaping @Sendable (Batch.Item) async -> Batch.Outcome, _ group: inout TaskGroup<Void>
  ) {
    runningCount += 1
    let running = Batch.Running(listed: listed, ticket: ticket, start: .now)
    progress.begin(listed.index, listed.text)
    let (events, leftovers) = (events, leftovers)
    let item = Result { () throws(ReelError) in
      var item = try admission.item(listed)
      item.held = ticket.held
      item.mayHaveFiles = configuration.resumes || listed.attempt > 1
      return item
    }
    group.addTask {
      Allocator.cacheOnThread()
      do throws(ReelError) {
        let item = try item.get()
        leftovers?.remove(item.names)
        events.yield(.finished(running, await work(item)))
      } catch {
        events.yield(.finished(running, .init(error: error)))
      }
    }
  }

  private mutating func finish(_ running: Batch.Running, _ outcome: Batch.Outcome) throws(ReelError) {
    var listed = running.listed
    runningCount -= 1
    progress.end(listed.index)
    // A source that was cut off has no result: the next run tries it.
    if outcome.error?.kind == .cancelled, Task.isCancelled { return }
    // The disk is full, or standard output is closed: the same would happen to all others.
    if let error = outcome.error, error.kind == .cannotWriteOutput {
      var error = error
      error.advice = error.advice ?? "use --resume to continue the run"
      throw error
    }
    let isTemporary = outcome.error?.isTemporary ?? false
    // A source that a redirect leads to another host, or whose segments are there, waits for that host too.
    if isTemporary, !listed.host.isEmpty, let location = outcome.error?.location,
      let host = URL(string: location)?.host?.lowercased(), host != listed.host,
      let time = limiter.heldUntil(host, at: now)
    {
      limiter.hold(listed.host, for: time - now, at: now)
    }
    limiter.finished(running.ticket, isTemporary ? .failedTemporarily : .answered, at: now)
    if isTemporary, listed.attempt == 1, limiter.isHeld(listed.host, at: now) {
      // The server has said when to come back.
      listed.attempt = 2
      add(listed)
      return
    }
    try record(listed, outcome, seconds: (ContinuousClock.now - running.start) / .seconds(1))
  }

  private mutating func admit(_ entry: SourceListParser.Entry) throws(ReelError) {
    switch admission.admit(entry) {
    case .source(let listed): add(listed)
    case .failure(let listed, let error): try record(listed, .init(error: error), seconds: 0)
    case .elsewhere: progress.addElsewhere()
    case .repeated: progress.add { $0.repeated += 1 }
    case .finished(hasFailed: false): progress.add { $0.skippedWritten += 1 }
    case .finished(hasFailed: true): progress.add { $0.skippedFailed += 1 }
    }
  }

  private mutating func add(_ listed: Batch.Listed) {
    waitingByteCount += listed.byteCount
    limiter.add(listed, host: listed.host)
  }

  private func record(
    _ listed: Batch.Listed, _ outcome: Batch.Outcome, seconds: Double, isReported: Bool = true
  ) throws(ReelError) {
    let own = ResultLine.keys.union(configuration.resultKeys)
    let isOwn = { (field: SourceListParser.Field) in own.contains(field.key) }
    let line = ResultLine.text(
      url: listed.text.isEmpty ? nil : listed.text, index: listed.index, line: listed.line, host: listed.host,
      finishedAt: .now, seconds: seconds, attempts: listed.attempt, error: outcome.error, body: outcome.body,
      fields: listed.fields.filter { !isOwn($0) }, hiddenFields: listed.fields.filter(isOwn))
    try results.append(line)
    if configuration.printsResults { try Console.write(line) }
    if let error = outcome.error {
      progress.addFailure(error)
      if isReported { Console.report(error) }
    } else {
      progress.add { $0.written += 1 }
    }
  }
}

extension Batch {
  /// Runs a command over its list. Throws the exit code unless that is 0.
  ///
  /// - Parameter prepare: Makes the closure that works on a source.
  static func run(
    _ configuration: Configuration,
    _ prepare: @escaping @Sendable (Batch) throws -> @Sendable (Item) async -> Outcome
  ) async throws {
    // Engines wait 5 s or longer after SIGTERM before they kill a process.
    let status = try await Interruption.cancelling(within: .seconds(4), isResumable: true) {
      let batch = Batch(configuration)
      return await batch.run(try prepare(batch))
    }
    PartialFiles.removeAll()
    if status != 0 { throw ExitCode(status) }
  }
}

extension Batch.Item {
  /// The line of one of its files, with the source at its end: on a terminal, as much of it as fits.
  func line(_ file: String) -> String {
    let source = text.printable
    guard let width = Terminal.layout.width else { return "\(file)\t\(source)" }
    // A tab leads to the next multiple of eight columns.
    let used = "\(file)\t".reduce(0) { column, character in
      character == "\t" ? (column / 8 + 1) * 8 : column + 1
    }
    return "\(file)\t\(TextLayout.shortened(source, to: max(24, width - used)))"
  }

  /// What becomes of existing files that have the names of its files. No other source of the list has these names.
  func existingFiles(overwrites: Bool) -> ExistingFiles {
    ExistingFiles(areReplaced: overwrites || mayHaveFiles, of: source)
  }
}
