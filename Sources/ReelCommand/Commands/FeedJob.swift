import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelPool
import ReelReplay

/// One run of `reel feed`.
struct FeedJob: Sendable {
  private let command: FeedCommand
  private let logger: Logger

  init(_ command: FeedCommand, logger: Logger) {
    self.command = command
    self.logger = logger
  }

  /// Walks with each pool, prints the reports, and says whether all assertions hold for all of them.
  ///
  /// What becomes of the files beside the report is told when the report is printed: the first error is thrown.
  func run() async throws -> Bool {
    // Broken recordings are told of before anything is fetched.
    var links: [LinkArgument.Link?] = [nil]
    if let argument = try command.linkArgument() { links = try argument.links(seed: command.seed) }
    let outputs = try FeedOutputs(trace: command.trace, contactSheet: command.contactSheet)
    // A modelled clock stands still for real pauses.
    let fetcher = command.options.transport(logger: logger, limitsWaits: true, pauses: !command.virtual)
    let feed = try await feed(fetcher)
    let viewer = try command.viewer()
    let plan = try WalkPlan(feed, swipeCount: command.swipes, viewer: viewer, seed: command.seed)
    let assertions = try command.assertions.map { text throws(ReelError) in try WalkAssertion(parsing: text) }
    var cost = try command.cost()
    if command.calibrate { cost = try await DecodeCalibration(feed, logger: logger).measure(fetcher) }
    let pools = try command.pools()
    let runs = links.flatMap { link in
      pools.map { pool in
        let prefix = links.count > 1 ? link.map { $0.name + " " } : nil
        return Run(pool: pool, link: link, label: (prefix ?? "") + pool.label)
      }
    }
    let reports =
      command.virtual
      ? try await simulate(feed, plan, viewer, runs, cost: cost, fetcher: fetcher, outputs: outputs)
      : try await walk(feed, plan, viewer, runs, fetcher: fetcher, outputs: outputs)
    let failures = outputs.commit()
    let isMet = try finish(reports, assertions)
    guard let failure = failures.first else { return isMet }
    Console.report(Array(failures.dropFirst()))
    throw failure
  }

  // MARK: - Private

  private func feed(_ fetcher: any Fetching) async throws -> Feed {
    let source = try MediaSource(argument: command.feed)
    let file: FeedFile
    switch source {
    case .url(let url) where !url.isFileURL:
      let headers = try command.options.loading().headers
      let request = FetchRequest(url: url, headers: headers, purpose: .source)
      // A server may send bytes for ever, each of them in time.
      file = try await withDeadline(seconds: command.options.timeout, source: source.name) {
        let response = try await fetcher.fetch(request)
        return try FeedFile(
          bytes: try await response.body.collect(upTo: FeedLimits().byteCount, orThrow: .badManifest),
          at: .url(response.url))
      }
    case .url(let url): file = try FeedFile(path: url.path)
    case .standardInput:
      throw ReelError(.usage, "a feed is read from a file or URL", at: "-")
    }
    let found = command.feedName.map { file[$0] } ?? file.feeds.first { !$0.items.isEmpty }
    guard let feed = found else {
      throw ReelError(
        .usage, "there is no feed \(command.feedName ?? "")", at: source.name,
        advice: "it has \(file.feeds.map(\.name).joined(separator: ", "))")
    }
    guard !feed.items.isEmpty else {
      throw ReelError(.usage, "the feed \(feed.name) is empty", at: source.name)
    }
    return feed
  }

  /// One of the walks.
  private struct Run {
    let pool: FeedCommand.Pool
    let link: LinkArgument.Link?
    let label: String
  }

  /// Walks one after the other, in real time.
  private func walk(
    _ feed: Feed, _ plan: WalkPlan, _ viewer: ViewerSpec, _ runs: [Run], fetcher: any Fetching,
    outputs: FeedOutputs
  ) async throws -> [WalkReport] {
    var reports: [WalkReport] = []
    for run in runs {
      try Task.checkCancellation()
      // Each walk finds the link in the same state.
      let network: any Fetching = run.link.map { ThrottledFetcher(fetcher, link: $0.spec) } ?? fetcher
      let replay = FeedReplay(
        feed, plan: plan, settings: settings(feed, viewer, run), label: run.label,
        configuration: try configuration(run.pool), fetcher: network, trace: trace(outputs),
        frames: frames(outputs), logger: logger)
      reports.append(try await scored(replay.run()))
    }
    return reports
  }

  /// Walks side by side, each in a simulation of its own.
  private func simulate(
    _ feed: Feed, _ plan: WalkPlan, _ viewer: ViewerSpec, _ runs: [Run], cost: DecodeCost,
    fetcher: any Fetching, outputs: FeedOutputs
  ) async throws -> [WalkReport] {
    let memory = SimulatedWalk.Memory(decodesFirstFramesOnly: command.decoding == .first)
    let walks = try runs.map { run in
      var walk = SimulatedWalk(
        feed, plan: plan, settings: settings(feed, viewer, run), label: run.label,
        configuration: try configuration(run.pool), decodeCost: cost, link: run.link?.spec, fetcher: fetcher,
        limit: .seconds(command.options.timeout), memory: memory, logger: logger)
      walk.trace = trace(outputs)
      walk.frames = frames(outputs)
      return walk
    }
    return try await SimulatedWalk.run(walks).map(scored)
  }

  private func scored(_ report: WalkReport) throws -> WalkReport {
    var report = report
    report.scores = try command.scores()
    return report
  }

  private func settings(_ feed: Feed, _ viewer: ViewerSpec, _ run: Run) -> WalkSettings {
    WalkSettings(
      feed: command.feed, itemCount: feed.items.count, slotCount: run.pool.size,
      policy: run.pool.policy.description, link: run.link?.text, dwell: command.dwell,
      shares: viewer.reportedShares, seed: command.seed)
  }

  private func configuration(_ pool: FeedCommand.Pool) throws -> PoolConfiguration {
    var configuration = PoolConfiguration()
    configuration.slotCount = pool.size
    configuration.policy = pool.policy
    configuration.decodingPermits = command.cores ?? 2
    configuration.player.loading = try command.options.loading()
    configuration.player.adaptsBitRate = command.options.adaptsBitRate
    // What is read of a file counts as what comes over a network does.
    configuration.player.loading.fetchesFiles = true
    return configuration
  }

  private func trace(_ outputs: FeedOutputs) -> WalkTrace? {
    outputs.trace.map { file in WalkTrace { file.write($0) } }
  }

  private func frames(_ outputs: FeedOutputs) -> (@Sendable (FeedItem, borrowing TimedFrame) -> Void)? {
    guard let sheet = outputs.sheet else { return nil }
    return { _, frame in sheet.add(frame) }
  }

  /// Prints; false where an assertion does not hold.
  private func finish(_ reports: [WalkReport], _ assertions: [WalkAssertion]) throws(ReelError) -> Bool {
    if command.options.json {
      for report in reports { try Console.print(try report.json()) }
    } else if !command.options.quiet {
      if Set(reports.map(\.settings.link)).count > 1 {
        try Console.print(LinkTable(reports).text)
      } else if command.compare == nil {
        for report in reports { try Console.print(report.text(includingSwipes: command.details)) }
      } else {
        try Console.print(ComparisonTable(reports).text)
      }
    }
    var isMet = true
    for report in reports {
      let totals = report.totals
      for assertion in assertions {
        let outcome = assertion.evaluate(totals)
        guard !outcome.isMet else { continue }
        isMet = false
        Console.note("reel: \(reports.count > 1 ? "\(report.label): " : "")\(outcome)")
      }
    }
    return isMet
  }
}
