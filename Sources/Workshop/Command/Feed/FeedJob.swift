import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelPool
import ReelLab
import ReelModels
import ReelSimulation
internal import ReelSources

/// One run of `reel feed`.
struct FeedJob: Sendable {
  private let command: FeedCommand
  private let logger: Logger

  init(_ command: FeedCommand, logger: Logger) {
    self.command = command
    self.logger = logger
  }

  /// Walks with each pool over each link, and prints the reports. Returns whether all assertions are met for
  /// all of them.
  ///
  /// Errors of the files besides the report are reported after the report has been printed: the first one is
  /// thrown.
  func run() async throws -> Bool {
    let outputs = try FeedOutputs(command)
    let progress = WalkProgress()
    let result = try await WorkProgress.showing(when: !command.options.quiet, { _ in progress.text }) {
      try await walkAll(outputs, progress)
    }
    let reports = result.walks.map(\.report)
    if let failure = result.failure {
      // The measurements until Ctrl-C.
      if failure is CancellationError, !reports.isEmpty {
        Console.report(write(result, warnings(result.walks), to: outputs))
        try printReports(reports, result.answer)
      }
      throw failure
    }
    let warnings = warnings(result.walks)
    let failures = write(result, warnings, to: outputs)
    let isMet = try finish(reports, result.answer, warnings)
    guard let failure = failures.first else { return isMet }
    Console.report(Array(failures.dropFirst()))
    throw failure
  }

  // MARK: - Private

  /// The walks that were performed, some perhaps in part, and the error that ended them early.
  private struct Outcome: Sendable {
    var feed: Feed
    var walks: [RecordedWalk] = []
    /// The number of walks with those that were not performed.
    var plannedCount: Int
    var failure: (any Error)?

    /// The first line of a comparison.
    var answer: String {
      let links = walks.compactMap(\.link)
      let names = Dictionary(links.map { ($0.text, $0.name) }) { first, _ in first }
      let text = walks.map(\.report).answer(
        links: links.first?.spec.modelledWords, names: names, plannedCount: plannedCount)
      return Redaction.clean(text)
    }
  }

  private func walkAll(_ outputs: FeedOutputs, _ progress: WalkProgress) async throws -> Outcome {
    // Broken recordings are reported before anything is fetched.
    var links: [LinkArgument.Link?] = [nil]
    if let argument = try command.linkArgument() { links = try argument.links(seed: command.seed) }
    // A simulated clock stops during real pauses.
    let fetcher = try command.options.transport(logger: logger, limitsWaits: true, pauses: !command.virtual)
    progress.prepare("reading the feed")
    let (bytes, location) = try await FeedReading(command.options, fetcher, readsStandardInput: true).read(
      command.feed)
    let feed: Feed
    do {
      feed = try FeedFile(bytes: bytes, at: location).feed(named: command.feedName)
    } catch {
      throw error.located(at: location.name)
    }
    let spec = try command.swipeSpec()
    let plan = try WalkPlan(
      feed, swipeCount: command.swipes, spec: spec, settle: try command.settleTime(), seed: command.seed)
    let assertions = try command.assertions.map { text throws(ReelError) in try WalkAssertion(parsing: text) }
    let device = try command.device.map { text throws(ReelError) in try DeviceModel(argument: text) }
    let cost = try command.cost()
    let models = try command.models()
    let pools =
      try models?.map { FeedCommand.Pool(size: $0.preload.players, policy: NoPreload(), name: $0.policyName) }
      ?? command.pools()
    let count = links.count * pools.count
    var walks: [RecordedWalk] = []
    for link in links {
      for (place, pool) in pools.enumerated() {
        let label = (links.count > 1 ? link.map { $0.name + " " } ?? "" : "") + pool.label
        var settings = WalkSettings(
          feed: command.feed, itemCount: feed.items.count, slotCount: pool.size,
          policy: pool.name, link: link?.text, dwell: command.dwell,
          shares: spec.reportedShares, seed: command.seed)
        settings.linkSpec = link?.spec
        settings.device = command.device
        settings.firstRung = command.firstRung?.firstRung ?? .adapted
        let walk = Walk(
          feed, plan: plan, settings: settings, label: label, configuration: try configuration(pool, device))
        var recorded = RecordedWalk(
          walk, over: link, outputs, progress, place: walks.count, isSingle: count == 1)
        recorded.model = models?[place]
        walks.append(recorded)
      }
    }
    progress.begin(walks.map(\.walk.label), plan: plan)
    var outcome = Outcome(feed: feed, plannedCount: count)
    let reports = Locked([WalkReport?](repeating: nil, count: count))
    do {
      if models != nil || command.virtual {
        try await simulate(
          walks, decodeCost: device?.decodeCost, usually: cost, fetcher: fetcher, progress
        ) { place, report in reports.withLock { $0[place] = report } }
      } else {
        let cached = try command.cache.applied(to: fetcher, logger: logger)
        try await perform(walks, fetcher: cached) { place, report in reports.withLock { $0[place] = report } }
        await CacheOptions.finish(cached)
      }
    } catch {
      outcome.failure = error
    }
    for (walk, report) in zip(walks, reports.withLock { $0 }) {
      guard var report else { continue }
      report.assertions = assertions.map { $0.evaluate(report) }
      var walk = walk
      walk.report = report
      outcome.walks.append(walk)
    }
    return outcome
  }

  /// Performs walks one after the other, in real time.
  ///
  /// - Parameter record: Called with the index and the report of each walk, also of one that was interrupted.
  private func perform(
    _ walks: [RecordedWalk], fetcher: any Fetching, record: (Int, WalkReport) -> Void
  ) async throws {
    for (place, walk) in walks.enumerated() {
      try Task.checkCancellation()
      // Each walk finds the link in the same state.
      let network: any Fetching = walk.link.map { ThrottledFetcher(fetcher, link: $0.spec) } ?? fetcher
      let replay = FeedReplay(
        walk.walk, fetcher: network, patience: command.options.patience, logger: logger)
      do {
        record(place, try await replay.run())
      } catch {
        if let report = replay.interruptedReport { record(place, report) }
        throw error
      }
    }
  }

  /// Performs walks in parallel, each in a simulation of its own; those of modelled players once the facts of their items
  /// are read.
  ///
  /// - Parameters:
  ///   - decodeCost: The costs of a device.
  ///   - usual: Those of Reel's pool without a device.
  ///   - record: The same as for `perform`; called on any thread.
  private func simulate(
    _ walks: [RecordedWalk], decodeCost: DecodeCost?, usually usual: DecodeCost, fetcher: any Fetching,
    _ progress: WalkProgress, record: @escaping @Sendable (Int, WalkReport) -> Void
  ) async throws {
    var facts = ModelledItems()
    let modelled = walks.compactMap { walk in walk.model.map { (walk: walk.walk, model: $0) } }
    if !modelled.isEmpty {
      progress.prepare("reading the items")
      let loading = try command.options.loading().playing(feed: command.feed)
      try await facts.read(
        modelled, with: ItemReader(fetcher: fetcher, configuration: loading, logger: logger))
    }
    let (items, memory) = (facts, SimulatedWalk.Memory())
    let visits = try command.visiting.plan()
    var waiting = walks.enumerated().makeIterator()
    try await SideBySide.run(next: { waiting.next() }) { place, walk in
      if let model = walk.model {
        var replay = try ModelledReplay(
          walk.walk, model: model, link: walk.link?.spec, items: items, decodeCost: decodeCost)
        replay.visits = visits
        return replay.report()
      }
      var simulated = SimulatedWalk(
        walk.walk, decodeCost: decodeCost ?? usual, link: walk.link?.spec, fetcher: fetcher,
        limit: .seconds(command.options.timeout), memory: memory, logger: logger)
      simulated.visits = visits
      simulated.onInterruption = { record(place, $0) }
      return try await simulated.run()
    } ended: { walk, result in
      record(walk.offset, try result.get())
    }
  }

  /// A walk with one pool over one link, and the recorders of its events.
  private struct RecordedWalk: Sendable {
    private(set) var walk: Walk
    let link: LinkArgument.Link?
    let page: TimelineRecorder?
    let frames: FirstFrames?
    /// The modelled player; nil for Reel's pool.
    var model: PlayerModel?
    var report: WalkReport

    /// - Parameters:
    ///   - place: The index of the walk.
    ///   - isSingle: False if there are other walks: a page of several has no timelines.
    init(
      _ walk: Walk, over link: LinkArgument.Link?, _ outputs: FeedOutputs, _ progress: WalkProgress,
      place: Int, isSingle: Bool
    ) {
      (self.walk, self.link) = (walk, link)
      let page = outputs.page != nil && isSingle ? TimelineRecorder(walk.feed) : nil
      let frames = page != nil ? FirstFrames(walk.feed) : nil
      var consumers: [WalkTrace.Consumer] = []
      if let file = outputs.trace { consumers.append(WalkTrace.lines { file.add($0) }) }
      if let page { consumers.append { page.record($0) } }
      consumers.append { progress.record($0, of: place) }
      self.walk.trace = WalkTrace(consumers: consumers)
      if let frames { self.walk.frames = { item, frame in frames.add(frame, of: item) } }
      (self.page, self.frames) = (page, frames)
      report = WalkReport(label: walk.label, settings: walk.settings)
    }
  }

  private func configuration(_ pool: FeedCommand.Pool, _ device: DeviceModel?) throws -> PoolConfiguration {
    var configuration = PoolConfiguration(
      walkingWith: pool.size, pool.policy, firstRung: command.firstRung?.firstRung ?? .adapted,
      loading: try command.options.loading().playing(feed: command.feed),
      adaptsBitRate: command.options.adaptsBitRate)
    configuration.decodingPermits = command.cores ?? 2
    if let device { configuration.apply(limitsOf: device) }
    return configuration
  }

  /// Warns of rungs above the rate of a link, or above the mean rate of a recorded one. Among several links, each
  /// warning names its link.
  private func warnings(_ walks: [RecordedWalk]) -> [String] {
    let areSeveral = Set(walks.map(\.link?.name)).count > 1
    var warnings: [String] = []
    for walk in walks {
      guard let link = walk.link,
        let text = LinkWarning.text(
          [walk.report], bitsPerSecond: link.spec.bitsPerSecond, adapts: command.options.adaptsBitRate)
      else { continue }
      let warning = areSeveral ? "\(link.name): \(text)" : text
      if !warnings.contains(warning) { warnings.append(warning) }
    }
    guard warnings.count > Self.warningLimit else { return warnings }
    let omitted = warnings.count - Self.warningLimit
    return warnings.prefix(Self.warningLimit) + ["and \(omitted) more such warnings of other recordings"]
  }

  /// The maximum number of recordings with a warning of their own.
  private static let warningLimit = 10

  /// Writes the files besides the reports; returns the errors of those that failed.
  private func write(_ outcome: Outcome, _ warnings: [String], to outputs: FeedOutputs) -> [ReelError] {
    var failures: [ReelError] = []
    let (reports, names) = (
      outcome.walks.map(\.report), outcome.feed.items.map { Redaction.clean($0.name) }
    )
    failures.catching { () throws(ReelError) in try outputs.trace?.complete() }
    failures.catching { () throws(ReelError) in
      try outputs.csv?.complete(with: WalkCSV.text(reports, names: names))
    }
    failures.catching { () throws(ReelError) in try outputs.junit?.complete(with: JUnitXML.text(reports)) }
    failures.catching { () throws(ReelError) in
      try outputs.page?.complete(with: try page(outcome, names: names, warnings: warnings))
    }
    return failures
  }

  private func page(_ outcome: Outcome, names: [String], warnings: [String]) throws(ReelError) -> String {
    let (walks, run) = (outcome.walks, RunDescription())
    guard walks.count == 1, let walk = walks.first, let timeline = walk.page?.timeline else {
      return ComparisonPage(
        reports: walks.map(\.report), run: run, warnings: warnings, answer: outcome.answer
      ).html
    }
    let images = walk.frames?.all ?? [:]
    var items: [WalkPage.Item] = []
    for (index, name) in names.enumerated() {
      let picture = try images[index].map { image throws(ReelError) in try PNGEncoder.encode(image) }
      items.append(WalkPage.Item(title: name, picture: picture))
    }
    let rate = (walk.link?.spec).map { link -> @Sendable (Duration) -> Double in
      { Double(link.recording?.bitsPerSecond(at: link.start + $0) ?? link.bitsPerSecond) }
    }
    return WalkPage(
      report: walk.report, timeline: timeline, items: items, linkRate: rate,
      run: run, warnings: warnings
    ).html
  }

  private func printReports(_ reports: [WalkReport], _ answer: String) throws(ReelError) {
    if command.options.json {
      for report in reports { try Console.print(try report.json()) }
    } else if !command.options.quiet {
      var texts: [String] = []
      let areSeveralLinks = Set(reports.map(\.settings.link)).count > 1
      if areSeveralLinks || command.compare != nil {
        let table = areSeveralLinks ? reports.linkTable : reports.table(corner: "players and policy")
        texts = table.lines + reports.failureLines + visitLines(reports)
      } else {
        texts = reports.map { $0.text(includingSwipes: command.details) }
      }
      if command.compare != nil, !answer.isEmpty { texts.insert("\(answer)\n", at: 0) }
      // In one piece, for a reader that closes its end after the answer.
      try Console.printText(texts.joined(separator: "\n"))
    }
  }

  private func visitLines(_ reports: [WalkReport]) -> [String] {
    let pools = reports.compactMap { report in report.visits.map { (name: report.label, visits: $0) } }
    return pools.isEmpty ? [] : [""] + Table.visits(pools).lines
  }

  /// Prints the reports; returns false if an assertion is not met. The outcomes of assertions that are met go
  /// to standard output, the others, after them, to standard error.
  private func finish(
    _ reports: [WalkReport], _ answer: String, _ warnings: [String]
  ) throws(ReelError) -> Bool {
    try printReports(reports, answer)
    if !command.options.quiet { for warning in warnings { Console.warn("\(warning)") } }
    let outcomes = reports.flatMap { report in
      report.assertions.map { (label: reports.count > 1 ? "\(report.poolName): " : "", outcome: $0) }
    }
    if !command.options.json, !command.options.quiet {
      for (label, outcome) in outcomes where outcome.isMet {
        try Console.printText("\(label)\(outcome.text(in: Terminal.layout))")
      }
    }
    for (label, outcome) in outcomes where !outcome.isMet {
      Console.fault("\(label)\(outcome.text(in: Terminal.errorLayout))")
    }
    return outcomes.allSatisfy(\.outcome.isMet)
  }
}

/// The files that `reel feed` writes besides its report.
///
/// They are opened before the walk, so that errors are found early.
struct FeedOutputs: Sendable {
  /// The trace in JSON Lines.
  let trace: ResultFile?
  let page: ResultFile?
  let csv: ResultFile?
  let junit: ResultFile?

  /// Throws `ReelError.cannotCreateOutput`.
  init(_ command: FeedCommand) throws(ReelError) {
    trace = try ResultFile.open(command.trace)
    page = try ResultFile.open(command.results.report)
    csv = try ResultFile.open(command.results.csv)
    junit = try ResultFile.open(command.junit)
  }
}

extension JUnitXML {
  /// Returns the outcomes of assertions of walks: a suite for each pool, a test case for each assertion. The
  /// items that failed are the suite's error output.
  static func text(_ reports: [WalkReport]) -> String {
    let suites = reports.map { report in
      Suite(
        name: report.poolName, cases: report.assertions.map(Case.init), duration: report.duration,
        errorOutput: report.failureLines)
    }
    return JUnitXML(command: "feed", suites: suites).text
  }
}
