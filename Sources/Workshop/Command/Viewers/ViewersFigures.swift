import ReelCore
import ReelLab

typealias ViewersFigure = Figure<ViewersSummary>

typealias ViewersAssertion = FigureAssertion<ViewersSummary>

/// The figures of a run of `reel viewers`. What shows figures takes them from `all`.
enum ViewersFigures {
  static let all: [ViewersFigure] = starts + playback + traffic + machine

  /// Parses an assertion such as `start.p95<2s`. Throws `ReelError` of kind `usage`.
  static func assertion(_ text: String) throws(ReelError) -> ViewersAssertion {
    try ViewersAssertion(parsing: text, among: all, advice: "reel viewers --help lists the metrics")
  }

  // MARK: - Private

  private static let starts: [ViewersFigure] = [
    count("viewers", "most viewers at once", "most viewers at once", [.page]) { $0.mostPresent },
    count("views", "views", "views that began", [.page]) { $0.counts.views },
    ViewersFigure(
      "failed", "views failed", "views that ended with an error", [.count, .share], [.page],
      absence: "no view began"
    ) { .part(Int64($0.counts.failedCount), of: Int64($0.counts.views), as: $1) },
    count("starts", "starts", "first frames", [.page]) { $0.counts.starts.count },
    start("start.p50", "start, p50", "time to the first frame, median") { $0.p50 },
    start("start.p95", "start, p95", "time to the first frame, 95th percentile") { $0.p95 },
    start("start.p99", "start, p99", "time to the first frame, 99th percentile") { $0.p99 },
    start("start.max", "start, longest", "longest time to a first frame") { $0.max },
  ]

  private static let playback: [ViewersFigure] = [
    count("stalls", "stalls", "stalls of all viewers", [.page]) { $0.counts.stalls },
    ViewersFigure(
      "rebuffering", "rebuffering", "share of stalls and jumps in the time from the first frames on", .share,
      [.page], absence: "nothing was played"
    ) { $0.counts.rebuffering.map(WalkValue.share) },
    ViewersFigure("played", "played", "time that all viewers together have played", .time) {
      .time($0.counts.played)
    },
    ViewersFigure(
      "rung.mean", "mean rung", "mean declared bit rate of what was played", .bitRate, [.page],
      absence: "no rung with a stated bit rate was played"
    ) { $0.counts.meanRung.map(WalkValue.bitRate) },
    ViewersFigure(
      "live_latency.p95", "behind the live edge, p95",
      "distance from the live edge at the ends of views, 95th percentile", .time, [.page],
      absence: "no source was live"
    ) { $0.liveLatency.map { .time($0.p95) } },
  ]

  private static let traffic: [ViewersFigure] = [
    ViewersFigure("bytes", "bytes", "bytes of manifests, keys and media", .size, [.page]) {
      .size($0.counts.bytes)
    },
    ViewersFigure("rate", "bit rate", "mean bit rate that was received", .bitRate, [.page]) {
      $0.bitRate.map(WalkValue.bitRate)
    },
    count("requests", "requests", "requests, redirects and retries included", [.page]) {
      $0.counts.requestCount
    },
    ViewersFigure(
      "errors", "errors", "what could not be loaded at first, by number or as a share of requests",
      [.count, .share], [.page], absence: "nothing was requested"
    ) { .part(Int64($0.counts.errorCount), of: Int64($0.counts.requestCount), as: $1) },
  ]

  private static let machine: [ViewersFigure] = [
    ViewersFigure(
      "machine.cores", "cores full", "share of time for which the cores of this machine were full", .share
    ) { .share($0.machine.fullCores) },
    ViewersFigure(
      "machine.link", "link full", "share of time for which the link of this machine was full", .share
    ) { .share($0.machine.fullLink) },
  ]

  private static func count(
    _ name: String, _ title: String, _ meaning: String, _ places: Set<FigurePlace> = [],
    _ value: @escaping @Sendable (ViewersSummary) -> Int
  ) -> ViewersFigure {
    ViewersFigure(name, title, meaning, .count, places) { .count(value($0)) }
  }

  private static func start(
    _ name: String, _ title: String, _ meaning: String,
    _ value: @escaping @Sendable (LatencySummary) -> Duration
  ) -> ViewersFigure {
    ViewersFigure(name, title, meaning, .time, [.page], absence: "no first frame came") {
      $0.start.map { .time(value($0)) }
    }
  }
}
