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
    var reports: [WalkReport] = []
    for link in links {
      for pool in pools {
        try Task.checkCancellation()
        let prefix = links.count > 1 ? link.map { $0.name + " " } : nil
        let run = Run(pool: pool, link: link, label: (prefix ?? "") + pool.label)
        reports.append(try await walk(feed, plan, viewer, run, cost: cost, fetcher: fetcher, outputs: outputs))
      }
    }
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

  private func walk(
    _ feed: Feed, _ plan: WalkPlan, _ viewer: ViewerSpec, _ run: Run, cost: DecodeCost, fetcher: any Fetching,
    outputs: FeedOutputs
  ) async throws -> WalkReport {
    let (pool, link) = (run.pool, run.link?.spec)
    var configuration = PoolConfiguration()
    configuration.slotCount = pool.size
    configuration.policy = pool.policy
    configuration.decodingPermits = command.cores ?? 2
    configuration.player.loading = try command.options.loading()
    configuration.player.adaptsBitRate = command.options.adaptsBitRate
    // What is read of a file counts as what comes over a network does.
    configuration.player.loading.fetchesFiles = true
    let simulation = command.virtual ? SimulatedRuntime() : nil
    var settings = WalkSettings(
      feed: command.feed, itemCount: feed.items.count, slotCount: pool.size,
      policy: pool.policy.description, link: run.link?.text, dwell: command.dwell,
      shares: viewer.reportedShares, seed: command.seed)
    if let simulation {
      configuration.enter(simulation, decodeCost: cost)
      settings.isVirtual = true
      settings.decodeCost = cost.frame
    }
    var network: any Fetching = fetcher
    if let simulation {
      // Without a link, bytes cost nothing but must come one after the other all the same.
      network = ThrottledFetcher(
        fetcher, link: try link ?? LinkSpec(parsing: "10Gbit/0ms"), in: simulation,
        limit: .seconds(command.options.timeout))
    } else if let link {
      network = ThrottledFetcher(fetcher, link: link)
    }
    var frames: (@Sendable (FeedItem, borrowing TimedFrame) -> Void)?
    if let sheet = outputs.sheet { frames = { _, frame in sheet.add(frame) } }
    let replay = FeedReplay(
      feed, plan: plan, settings: settings, label: run.label, configuration: configuration, fetcher: network,
      trace: outputs.trace.map { file in WalkTrace { file.write($0) } }, frames: frames, logger: logger)
    var report = try await replay.run(in: simulation)
    report.scores = try command.scores()
    return report
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
