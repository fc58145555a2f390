import ReelCore
import ReelReplay

/// An assertion on the playback of a source.
typealias PlaybackAssertion = FigureAssertion<PlayRecordSummary>

/// The figures of the playback of a source that `reel play --assert` takes.
enum PlaybackFigures {
  typealias PlaybackFigure = Figure<PlayRecordSummary>

  static let all: [PlaybackFigure] = times + stalls + media + traffic

  /// Parses an assertion such as `second_frame<150ms`. Throws `ReelError` of kind `usage`.
  static func assertion(_ text: String) throws(ReelError) -> PlaybackAssertion {
    try PlaybackAssertion(parsing: text, among: all, advice: "reel play --help lists the metrics")
  }

  // MARK: - Private

  private static let times = [
    time("first_frame", "from the start of loading to the first frame", absence: "no frame was shown") {
      $0.startupMs
    },
    time(
      "second_frame", "from the start of loading to the second frame", absence: "no second frame was shown"
    ) {
      $0.secondFrameMs
    },
    time("lateness.p50", "how late frames were shown, median", absence: "frames were not due at a time") {
      $0.latenessP50Ms
    },
    time(
      "lateness.p99", "how late frames were shown, 99th percentile", absence: "frames were not due at a time"
    ) {
      $0.latenessP99Ms
    },
    time("live_latency", "distance from the live edge at the end", absence: "the source is not live") {
      $0.liveLatencyMs
    },
    time("wall", "time from the start of work on the source") { $0.wallMs },
  ]

  private static let stalls = [
    count("stalls.count", "number of stalls") { $0.stalls },
    time("stalled", "total time of all stalls") { $0.stalledMs },
    time("frozen", "time in which a frame stood still over lost media") { $0.wall.frozenMs },
    PlaybackFigure(
      "rebuffering", "share of stalls and seeks in the time from the first frame on", [.share],
      absence: "nothing was played"
    ) { record, _ in record.rebufferingRatio.map { .share($0) } },
  ]

  private static let media =
    [
      time("played", "media shown") { $0.played * 1e3 },
      time("skipped", "media not shown") { $0.skipped * 1e3 },
      time("skipped.missing", "media not shown because it was not loaded") {
        $0.skippedReasons.missing * 1e3
      },
      time("skipped.damaged", "media not shown because it was damaged") { $0.skippedReasons.damaged * 1e3 },
      time("skipped.jumped", "media jumped over") { $0.skippedReasons.jumped * 1e3 },
      time("skipped.dropped", "media not shown because it was late") { $0.skippedReasons.dropped * 1e3 },
      count("frames.shown", "frames shown") { $0.framesShown },
      PlaybackFigure(
        "frames.dropped", "frames dropped because they were late", [.count, .share],
        absence: "no frame was shown"
      ) { share($0.framesDropped, of: $0.framesShown + $0.framesDropped, $1) },
      PlaybackFigure(
        "frames.damaged", "frames shown with damage", [.count, .share], absence: "no frame was shown"
      ) { share($0.framesDamaged, of: $0.framesShown, $1) },
      count("failures", "failed requests and segments, retried or not") { $0.failures },
    ]

  private static let traffic = [
    PlaybackFigure(
      "rung.mean", "mean declared bit rate of the frames shown", [.bitRate],
      absence: "no rung with a stated bit rate was shown"
    ) { record, _ in
      let rungs = record.rungs.filter { $0.indicatedBitRate != nil && $0.framesShown > 0 }
      let frames = rungs.map(\.framesShown).reduce(0, +)
      guard frames > 0 else { return nil }
      let sum = rungs.map { Double($0.indicatedBitRate ?? 0) * Double($0.framesShown) }.reduce(0, +)
      return .bitRate(sum / Double(frames))
    },
    PlaybackFigure("bytes", "bytes of manifests, keys and media", [.size]) { record, _ in .size(record.bytes)
    },
    count("requests", "number of requests") { $0.requests },
    PlaybackFigure(
      "memory", "peak memory of the process", [.size], absence: "memory was not measured"
    ) { record, _ in record.peakMemoryBytes.map { .size(Int64($0)) } },
  ]

  private static func time(
    _ name: String, _ meaning: String, absence: String = "there is no such figure",
    _ milliseconds: @escaping @Sendable (PlayRecordSummary) -> Double?
  ) -> PlaybackFigure {
    PlaybackFigure(name, meaning, [.time], absence: absence) { record, _ in
      milliseconds(record).map { .time(.nanoseconds(Int64(($0 * 1e6).rounded()))) }
    }
  }

  private static func count(
    _ name: String, _ meaning: String, _ value: @escaping @Sendable (PlayRecordSummary) -> Int
  ) -> PlaybackFigure {
    PlaybackFigure(name, meaning, [.count]) { record, _ in .count(value(record)) }
  }

  private static func share(_ part: Int, of all: Int, _ kind: WalkValue.Kind) -> WalkValue? {
    guard kind == .share else { return .count(part) }
    return all > 0 ? .share(Double(part) / Double(all)) : nil
  }
}
