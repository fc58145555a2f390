import ReelCore
import ReelPlayback

/// What `reel play` tells of a source at its end: the last line of `--json`, or the lines of `PlayText.summary(_:)`.
struct PlayRecordSummary: Encodable {
  /// Why playback is over.
  enum Ending: String, Encodable {
    case playedToEnd = "played_to_end"
    /// As long as `--duration` was played.
    case duration
    case interrupted
    case failed
  }

  /// What was played of one rung, from its choice until another was chosen.
  struct Rung: Encodable {
    /// Nil for a media file.
    let rung: String?
    let width: Int?
    let height: Int?
    /// In bits per second, as the manifest states it.
    let indicatedBitRate: Int?
    /// In bits per second, as its transfers measured it.
    let observedBitRate: Double?
    let bytes: Int64
    let requests: Int
    var framesShown: Int
    let framesDropped: Int
    let stalls: Int

    init(_ entry: AccessLogEntry) {
      rung = entry.rung
      width = entry.size?.width
      height = entry.size?.height
      indicatedBitRate = entry.indicatedBitRate
      observedBitRate = entry.observedBitRate.flatMap { $0.isFinite ? $0.rounded(places: 0) : nil }
      bytes = entry.byteCount
      requests = entry.requestCount
      framesShown = entry.shownFrameCount
      framesDropped = entry.droppedFrameCount
      stalls = entry.stallCount
    }
  }

  let event = "summary"
  let source: String
  let ended: Ending
  /// Where playback ended, on the item's timeline.
  var position: Double?
  /// Media time that was on show.
  var played: Double
  /// Nil for a live item, and before it was known.
  var duration: Double?
  var wallMs: Double
  /// From the beginning of loading to the first picture shown.
  var startupMs: Double?
  var startup: StartupRecord?
  var framesShown: Int
  var framesDropped: Int
  var framesDamaged: Int
  /// How late pictures were shown; nil at a rate of max, which has no times to be late for.
  var latenessP50Ms: Double?
  var latenessP99Ms: Double?
  var stalls: Int
  var stalledMs: Double
  var rungs: [Rung]
  /// Of everything that was fetched: manifests, keys, media.
  var bytes: Int64
  var requests: Int
  var loopGapsMs: [Double]
  var decodeMs: Double
  var bufferPeakBytes: Int
  var ringPeakBytes: Int
  var ringPeakFrames: Int
  /// Of the process.
  var peakMemoryBytes: Int64?
  /// What could not be had, mended or not.
  var failures: Int
  /// The latest of them.
  var lastFailure: ErrorRecord?
  var error: ErrorRecord?

  private enum CodingKeys: String, CodingKey {
    case event, source, ended, position, played, duration, wallMs, startupMs, startup, framesShown,
      framesDropped
    case framesDamaged, latenessP50Ms, latenessP99Ms, stalls, stalledMs, rungs, bytes, requests, loopGapsMs
    case decodeMs, bufferPeakBytes, ringPeakBytes, ringPeakFrames, peakMemoryBytes, failures, lastFailure,
      error
  }

  /// Of a source that was not even begun.
  init(source: String, error: ReelError) {
    self.init(source: source, item: nil, statistics: PlayerStatistics(), ended: .failed, wall: .zero)
    self.error = ErrorRecord(error)
  }

  /// - Parameters:
  ///   - statistics: Taken before the player was stopped.
  ///   - wall: Since the source was begun.
  init(source: String, item: PlayerItem?, statistics: PlayerStatistics, ended: Ending, wall: Duration) {
    self.source = source
    self.ended = ended
    played = 0
    duration = item?.duration.value?.seconds.rounded(places: 6)
    wallMs = wall.milliseconds
    startupMs = statistics.startupTime?.milliseconds
    startup = item?.startup.map(StartupRecord.init)
    framesShown = statistics.shownFrameCount
    framesDropped = statistics.droppedFrameCount
    framesDamaged = statistics.damagedFrameCount
    let lateness = statistics.lateness.sorted()
    latenessP50Ms = Self.percentile(0.5, of: lateness)?.milliseconds
    latenessP99Ms = Self.percentile(0.99, of: lateness)?.milliseconds
    stalls = statistics.stallCount
    stalledMs = statistics.stallDuration.milliseconds
    rungs = (item?.accessLog ?? []).map(Rung.init)
    bytes = 0
    requests = 0
    loopGapsMs = statistics.loopGaps.map(\.milliseconds)
    decodeMs = statistics.decodeDuration.milliseconds
    bufferPeakBytes = statistics.bufferHighWaterByteCount
    ringPeakBytes = statistics.ring?.highWaterByteCount ?? 0
    ringPeakFrames = statistics.ring?.highWaterFrameCount ?? 0
    peakMemoryBytes = ProcessMemory.peak
    let errors = item?.errorLog ?? []
    failures = errors.count
    lastFailure = errors.last.map { ErrorRecord($0.error) }
  }

  /// Sets how many pictures were shown. What rungs count beyond that was handed out last, and not shown.
  mutating func setFramesShown(_ count: Int) {
    framesShown = count
    var excess = max(0, rungs.map(\.framesShown).reduce(0, +) - count)
    for index in rungs.indices.reversed() {
      let part = min(excess, rungs[index].framesShown)
      rungs[index].framesShown -= part
      excess -= part
    }
  }

  // MARK: - Private

  /// The value that so large a share of the sorted values is at or under; nil of none.
  private static func percentile(_ share: Double, of sorted: [Duration]) -> Duration? {
    guard !sorted.isEmpty else { return nil }
    let index = Int((Double(sorted.count) * share).rounded(.up)) - 1
    return sorted[min(max(index, 0), sorted.count - 1)]
  }
}
