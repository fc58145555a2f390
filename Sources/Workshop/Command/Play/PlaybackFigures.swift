import ReelCore
import ReelLab
internal import ReelPlayback
internal import ReelSources

typealias PlaybackFigure = Figure<PlayRecordSummary>

typealias PlaybackAssertion = FigureAssertion<PlayRecordSummary>

/// The figures of the playback of a source. A figure is declared here, and what shows figures takes it from `all`.
///
/// The record states them under the same names, but the reasons of `skipped` in `skipped_reasons`, and `frozen` in `wall`.
enum PlaybackFigures {
  static let all: [PlaybackFigure] = times + stalls + media + traffic

  /// Parses an assertion such as `second_frame<150ms`. Throws `ReelError` of kind `usage`.
  static func assertion(_ text: String) throws(ReelError) -> PlaybackAssertion {
    try PlaybackAssertion(parsing: text, among: all, advice: "reel play --help lists the metrics")
  }

  // MARK: - Private

  private static let times = [
    time(
      "first_frame", "first frame", "from the start of loading to the first frame", [.page],
      absence: "no frame was shown"
    ) { $0.firstFrameMs },
    time(
      "second_frame", "second frame", "from the start of loading to the second frame", [.page],
      absence: "no second frame was shown"
    ) { $0.secondFrameMs },
    time(
      "lateness.p50", "lateness, p50", "how late frames were shown, median",
      absence: "frames were not due at a time"
    ) { $0.lateness?.p50Ms },
    time(
      "lateness.p99", "lateness, p99", "how late frames were shown, 99th percentile",
      absence: "frames were not due at a time"
    ) { $0.lateness?.p99Ms },
    time(
      "live_latency", "behind the live edge", "distance from the live edge at the end", [.page],
      absence: "the source is not live"
    ) { $0.liveLatencyMs },
    time("wall", "time", "time from the start of work on the source") { $0.wallMs },
  ]

  private static let stalls = [
    count("stalls.count", "stalls", "number of stalls", [.page]) { $0.stalls.count },
    time("stalled", "stalled", "total time of all stalls", [.page]) { $0.stalledMs },
    time("frozen", "frozen", "time in which a frame stood still over lost media") {
      $0.wall.times[.frozen].milliseconds
    },
    PlaybackFigure(
      "rebuffering", "rebuffering", "share of stalls and seeks in the time from the first frame on", .share,
      [.page], absence: "nothing was played"
    ) { $0.rebuffering.map(WalkValue.share) },
  ]

  private static let media =
    [
      time("played", "played", "media shown", [.page]) { $0.played * 1e3 },
      time("skipped", "skipped", "media not shown", [.page]) { $0.skipped * 1e3 },
      time("skipped.missing", "missing", "media not shown because it was not loaded") {
        $0.skippedReasons[.missing] * 1e3
      },
      time("skipped.damaged", "damaged", "media not shown because it was damaged") {
        $0.skippedReasons[.damaged] * 1e3
      },
      time("skipped.jumped", "jumped", "media jumped over") { $0.skippedReasons[.jumped] * 1e3 },
      time("skipped.dropped", "dropped", "media not shown because it was late") {
        $0.skippedReasons[.dropped] * 1e3
      },
      count("frames.shown", "frames shown", "frames shown", [.page]) { $0.frames.shown },
      PlaybackFigure(
        "frames.dropped", "frames dropped", "frames dropped because they were late", [.count, .share],
        [.page],
        absence: "no frame was shown"
      ) { .part(Int64($0.frames.dropped), of: Int64($0.frames.shown + $0.frames.dropped), as: $1) },
      PlaybackFigure(
        "frames.damaged", "frames damaged", "frames shown with damage", [.count, .share], [.page],
        absence: "no frame was shown"
      ) { .part(Int64($0.frames.damaged), of: Int64($0.frames.shown), as: $1) },
      count("failures", "failures", "failed requests and segments, retried or not") { $0.failures },
    ]

  private static let traffic = [
    PlaybackFigure(
      "rung.mean", "mean bit rate", "mean declared bit rate of the frames shown", .bitRate,
      absence: "no rung with a stated bit rate was shown"
    ) { record in
      let rungs = record.rungs.filter { $0.indicatedBitRate != nil && $0.shownFrameCount > 0 }
      let frames = rungs.map(\.shownFrameCount).reduce(0, +)
      guard frames > 0 else { return nil }
      let sum = rungs.map { Double($0.indicatedBitRate ?? 0) * Double($0.shownFrameCount) }.reduce(0, +)
      return .bitRate(sum / Double(frames))
    },
    PlaybackFigure("bytes", "bytes", "bytes of manifests, keys and media", .size, [.page]) {
      .size($0.bytes)
    },
    count("requests", "requests", "number of requests", [.page]) { $0.requests },
    PlaybackFigure(
      "memory", "peak memory", "peak memory of the process", .size, absence: "memory was not measured"
    ) { $0.memoryBytes.map { .size(Int64($0)) } },
  ]

  private static func time(
    _ name: String, _ title: String, _ meaning: String, _ places: Set<FigurePlace> = [],
    absence: String = "there is no such figure",
    _ milliseconds: @escaping @Sendable (PlayRecordSummary) -> Double?
  ) -> PlaybackFigure {
    PlaybackFigure(name, title, meaning, .time, places, absence: absence) { record in
      milliseconds(record).map { .time(.nanoseconds(Int64(($0 * 1e6).rounded()))) }
    }
  }

  private static func count(
    _ name: String, _ title: String, _ meaning: String, _ places: Set<FigurePlace> = [],
    _ value: @escaping @Sendable (PlayRecordSummary) -> Int
  ) -> PlaybackFigure {
    PlaybackFigure(name, title, meaning, .count, places) { .count(value($0)) }
  }
}
