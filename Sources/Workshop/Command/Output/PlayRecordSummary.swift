import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelReplay

/// The summary of a source played by `reel play`: the last line of `--json`, or the lines of
/// `PlayText.summary(_:)`.
struct PlayRecordSummary: Encodable {
  /// Why playback ended.
  enum Ending: String, Encodable {
    case playedToEnd = "played_to_end"
    /// The duration of `--duration` was played.
    case duration
    case interrupted
    case failed
  }

  /// What was loaded and shown of one rung.
  struct Rung: Encodable {
    /// Nil for a media file.
    let rung: String?
    let width: Int?
    let height: Int?
    /// In bits per second, as the manifest states it.
    let indicatedBitRate: Int?
    /// In bits per second, as measured by its transfers.
    let observedBitRate: Double?
    let bytes: Int64
    let requests: Int
    var framesShown: Int
    let framesDropped: Int
    let stalls: Int

    /// - Parameter entries: Those of one rung, in order.
    init(_ entries: [AccessLogEntry]) {
      var entry = entries.last ?? AccessLogEntry()
      for other in entries.dropLast() {
        entry.byteCount += other.byteCount
        entry.requestCount += other.requestCount
        entry.measuredByteCount += other.measuredByteCount
        entry.transferDuration += other.transferDuration
        entry.shownFrameCount += other.shownFrameCount
        entry.droppedFrameCount += other.droppedFrameCount
        entry.stallCount += other.stallCount
      }
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

    /// One for each rung of which anything was loaded or shown, in the order of their first use.
    static func all(_ log: [AccessLogEntry]) -> [Rung] {
      var order: [String?] = []
      for entry in log where !order.contains(entry.rung) { order.append(entry.rung) }
      return order.map { id in Rung(log.filter { $0.rung == id }) }.filter {
        $0.rung == nil || $0.bytes > 0 || $0.requests > 0 || $0.framesShown > 0 || $0.framesDropped > 0
          || $0.stalls > 0
      }
    }
  }

  /// How the wall-clock time was spent. The parts add up to `wall_ms`.
  struct Wall: Encodable {
    /// The time before loading began, while outputs were opened.
    let preparingMs: Double
    let startupMs: Double
    let bufferingMs: Double
    let playingMs: Double
    /// The time in which the last frame stood still over media that was lost.
    let frozenMs: Double
    let stalledMs: Double
    let seekingMs: Double
    let pausedMs: Double

    init(_ times: PlaybackTimes, wall: Duration) {
      preparingMs = max(.zero, wall - times.total).milliseconds
      startupMs = times[.startup].milliseconds
      bufferingMs = times[.buffering].milliseconds
      playingMs = times[.playing].milliseconds
      frozenMs = times[.frozen].milliseconds
      stalledMs = times[.stalled].milliseconds
      seekingMs = times[.seeking].milliseconds
      pausedMs = times[.paused].milliseconds
    }
  }

  let event = "summary"
  let source: String
  let ended: Ending
  /// Where playback ended, on the item's timeline.
  var position: Double?
  /// Media time that was shown.
  var played: Double
  /// The media time that was not shown: between frames, and before the first and after the last one.
  var skipped: Double
  var skippedReasons = SkippedReasons()
  /// The parts of `skipped`. Of each reason, the first 100 are listed.
  var skippedParts: [SkippedPart] = []
  /// The number of further parts; nil for none.
  var skippedPartsOmitted: Int?
  /// Nil for a live item, and if it is unknown.
  var duration: Double?
  var wallMs: Double
  var wall: Wall
  /// From the start of loading to the first frame shown.
  var startupMs: Double?
  var startup: StartupRecord?
  /// The time from the beginning of loading to the second frame.
  var secondFrameMs: Double?
  var framesShown: Int
  var framesDropped: Int
  var framesDamaged: Int
  /// How late frames were shown; nil at a rate of max, at which frames are not due at a time.
  var latenessP50Ms: Double?
  var latenessP99Ms: Double?
  var stalls: Int
  var stalledMs: Double
  /// The time spent stalled and seeking as a share of the time spent stalled, seeking and playing. Nil if nothing was
  /// played.
  var rebufferingRatio: Double?
  /// For a live item, how far behind the live edge playback ended.
  var liveLatencyMs: Double?
  var rungs: [Rung]
  /// The bytes of manifests, keys and media, read over the network or from local files.
  var bytes: Int64
  /// The number of requests. Opening a local file counts as one.
  var requests: Int
  /// The part of `bytes` and `requests` that is local files and standard input.
  var localBytes: Int64
  var localRequests: Int
  var loopGapsMs: [Double]
  var decodeMs: Double
  var bufferPeakBytes: Int
  var ringPeakBytes: Int
  var ringPeakFrames: Int
  /// Of the process.
  var peakMemoryBytes: Int?
  /// The number of failed requests and segments, mended or not.
  var failures: Int
  /// The first and the last of them: at most 200.
  var failureList: [Failure]
  /// The latest of them.
  var lastFailure: ErrorRecord?
  /// The first media, of video or audio, that was missed, damaged or skipped: `--strict` fails with it.
  var loss: ErrorRecord?
  /// The outcomes of `--assert`; nil without any.
  var assertions: [AssertionOutcome]?
  var error: ErrorRecord?

  /// The record of a source that could not be opened.
  init(source: String, error: ReelError) {
    self.init(
      source: source, item: nil, statistics: PlayerStatistics(),
      ended: error.kind == .cancelled ? .interrupted : .failed, wall: .zero)
    self.error = ErrorRecord(error)
  }

  /// - Parameters:
  ///   - statistics: Taken before the player was stopped.
  ///   - wall: The time since work on the source began.
  init(source: String, item: PlayerItem?, statistics: PlayerStatistics, ended: Ending, wall: Duration) {
    self.source = source
    self.ended = ended
    played = 0
    skipped = 0
    duration = item?.duration.value?.seconds.rounded(places: 6)
    wallMs = wall.milliseconds
    self.wall = Wall(statistics.times, wall: wall)
    secondFrameMs = statistics.times.timeToSecondFrame?.milliseconds
    rebufferingRatio = statistics.times.rebufferingRatio?.rounded(places: 6)
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
    rungs = Rung.all(item?.accessLog ?? [])
    bytes = 0
    requests = 0
    localBytes = 0
    localRequests = 0
    loopGapsMs = statistics.loopGaps.map(\.milliseconds)
    decodeMs = statistics.decodeDuration.milliseconds
    bufferPeakBytes = statistics.bufferHighWaterByteCount
    ringPeakBytes = statistics.ring?.highWaterByteCount ?? 0
    ringPeakFrames = statistics.ring?.highWaterFrameCount ?? 0
    peakMemoryBytes = ProcessMemory.peakResidentByteCount
    let errors = item?.errorLog ?? []
    failures = errors.count
    failureList = Self.listed(errors)
    lastFailure = errors.last.map { ErrorRecord($0.error) }
  }

  /// Sets the bytes and requests: those that were fetched, and those of a local manifest or media file, which is read
  /// directly.
  mutating func setTraffic(
    network: TrafficCounter.Traffic, local fetched: TrafficCounter.Traffic, of item: PlayerItem
  ) {
    var local = fetched
    let isLocalFile =
      switch item.source {
      case .standardInput: true
      case .url(let url): url.isFileURL
      }
    if isLocalFile {
      if let file = item.accessLog.first(where: { $0.rung == nil }) {
        local.byteCount += file.byteCount
        local.requestCount += file.requestCount
      } else if let manifest = item.startup?[.resolve] {
        local.byteCount += manifest.byteCount
        local.requestCount += manifest.requestCount
      }
    }
    (localBytes, localRequests) = (local.byteCount, local.requestCount)
    (bytes, requests) = (
      network.byteCount + local.byteCount, network.requestCount + local.requestCount
    )
  }

  /// Sets the number of shown frames. Frames that rungs count beyond it were handed out last, and not shown.
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

  /// The value that this share of the sorted values does not exceed; nil if there are none.
  private static func percentile(_ share: Double, of sorted: [Duration]) -> Duration? {
    guard !sorted.isEmpty else { return nil }
    let index = Int((Double(sorted.count) * share).rounded(.up)) - 1
    return sorted[min(max(index, 0), sorted.count - 1)]
  }
}
