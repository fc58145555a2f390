import Foundation
import ReelCore
import ReelFFmpeg
public import ReelPlayback
import ReelLab
internal import ReelReading
public import ReelSources

/// An event of `reel play`: a line of `--json`, or of text (`PlayText`).
struct PlayRecord: Encodable, Sendable {
  enum Event: Sendable {
    case status(TimeControlStatus)
    /// An item is ready to play. It has no duration if it is live.
    case ready(duration: MediaTime?, size: PixelSize?, tracks: [PlayerItem.Track])
    case player(PlayerEvent)

    static func ready(_ item: PlayerItem) -> Event {
      .ready(
        duration: item.duration.value, size: item.presentationSize.value, tracks: item.tracks.value)
    }
  }

  let event: Event
  /// The position on show, on the item's timeline, or that of an event that has one.
  let position: MediaTime
  /// The time since work on the source began.
  let time: Duration

  /// - Parameters:
  ///   - position: The position on show.
  ///   - after: The time since work on the source began.
  init(_ event: Event, position: MediaTime, after: Duration) {
    self.event = event
    time = after
    switch event {
    case .player(.firstFrame(let time, _)), .player(.seekDone(let time, _)), .player(.stalled(let time)),
      .player(.resumed(let time, _)), .player(.rungSwitched(_, _, let time, _)),
      .player(.playedToEnd(let time)):
      self.position = time
    default: self.position = position
    }
  }

  /// Times on the item's timeline are in seconds.
  func encode(to encoder: any Encoder) throws {
    let (name, fields) = content
    try encoder.encode(["event": name, "position": position.roundedSeconds, "time_ms": time])
    try encoder.encode(fields)
  }

  /// The name of the event, and the fields that only such events have.
  private var content: (name: String, fields: JSONFields) {
    switch event {
    case .status(.paused): ("status", ["status": "paused"])
    case .status(.playing): ("status", ["status": "playing"])
    case .status(.waitingToPlayAtSpecifiedRate(let reason)):
      ("status", ["status": "waiting_to_play", "reason": reason.rawValue.snakeCased])
    case .ready(let duration, let size, let tracks):
      (
        "ready",
        [
          "duration": duration?.roundedSeconds, "width": size?.width, "height": size?.height,
          "tracks": tracks.map(Self.fields),
        ]
      )
    case .player(.firstFrame(_, let wait)): ("first_frame", ["after_ms": wait])
    case .player(.seekDone(_, let wait)): ("seek_done", ["after_ms": wait])
    case .player(.stalled): ("stalled", [:])
    case .player(.resumed(_, let wait)): ("resumed", ["after_ms": wait])
    case .player(.rungSwitched(let old, let new, _, let cause)):
      ("rung_switched", ["from_rung": old, "to_rung": new, "cause": cause?.rawValue.snakeCased])
    case .player(.retry(let attempt, let count, let wait, let error)):
      (
        "retry", ["attempt": attempt, "of": count, "after_ms": wait, "error": ErrorRecord(error)]
      )
    case .player(.segmentMissed(let start, let length, let error)):
      (
        "segment_missed",
        [
          "from": start.roundedSeconds, "to": (start + length).roundedSeconds, "error": ErrorRecord(error),
        ]
      )
    case .player(.gapSkipped(let start, let end)):
      ("gap_skipped", ["from": start.roundedSeconds, "to": end.roundedSeconds])
    case .player(.jumpedToLive(let start, let end)):
      ("jumped_to_live", ["from": start.roundedSeconds, "to": end.roundedSeconds])
    case .player(.looped(let gap)): ("looped", ["gap_ms": gap])
    case .player(.playedToEnd): ("played_to_end", [:])
    case .player(.failed(let error)): ("failed", ["error": ErrorRecord(error)])
    case .player(.outputFailed(let error)): ("output_failed", ["error": ErrorRecord(error)])
    }
  }

  private static func fields(_ track: PlayerItem.Track) -> JSONFields {
    [
      "kind": track.kind.rawValue, "codec": track.codec, "language": track.language,
      "width": track.size?.width, "height": track.size?.height,
      "frame_rate": track.frameRate?.value.rounded(places: 6), "sample_rate": track.sampleRate,
      "channels": track.channelCount,
    ]
  }
}

extension VideoFrame {
  /// The shown frame as a line of `reel play --json --md5`. Its keys are those of `reel frames`.
  ///
  /// - Parameter after: The time since work on the source began. Throws `ReelError.internalFault` if memory
  ///   runs out.
  func playRecord(after: Duration) throws(ReelError) -> JSONFields {
    [
      "event": "frame", "pts": presentationTicks, "pts_time": ptsTime,
      "time_base": stream.timeBase.description, "time": time.roundedSeconds, "time_ms": after,
      "key_frame": isKey, "damaged": isDamaged, "md5": try md5(),
    ]
  }
}

/// The summary of a source played by `reel play`: the last line of `--json`, or the lines of
/// `PlayText.summary(_:)`.
struct PlayRecordSummary: SourceRecord {
  /// Why playback ended.
  enum Ending: String, Encodable {
    case playedToEnd = "played_to_end"
    /// The duration of `--duration` was played.
    case duration
    case interrupted
    case failed
  }

  struct Frames: Encodable {
    var shown: Int
    let dropped: Int
    var damaged: Int
  }

  /// How late frames were shown.
  struct Lateness: Encodable {
    let p50Ms: Double
    let p99Ms: Double

    /// Nil if there are no values.
    init?(_ values: [Duration]) {
      guard let summary = LatencySummary(values) else { return nil }
      (p50Ms, p99Ms) = (summary.p50.milliseconds, summary.p99.milliseconds)
    }
  }

  struct Stalls: Encodable {
    let count: Int
  }

  /// How the wall-clock time was spent. The parts add up to `wall_ms`.
  struct Wall: Encodable, Sendable {
    /// The time before loading began, while outputs were opened.
    let preparing: Duration
    let times: PlaybackTimes

    init(_ times: PlaybackTimes, wall: Duration) {
      preparing = max(.zero, wall - times.total)
      self.times = times
    }

    func encode(to encoder: any Encoder) throws {
      try encoder.encode(["preparing_ms": preparing])
      for phase in PlaybackTimes.Phase.allCases {
        try encoder.encode(["\(phase.rawValue)_ms": times[phase]])
      }
    }
  }

  let event = "summary"
  let source: String
  let ended: Ending
  /// The position at which playback ended, on the item's timeline.
  var position: Double?
  /// The media time that was shown.
  var played = 0.0
  /// The media time that was not shown: between frames, and before the first and after the last one.
  var skipped = 0.0
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
  var firstFrameMs: Double?
  var startup: StartupReport?
  /// The time from the beginning of loading to the second frame.
  var secondFrameMs: Double?
  var frames: Frames
  /// Nil at a rate of max, at which frames are not due at a time.
  var lateness: Lateness?
  var stalls: Stalls
  var stalledMs: Double
  /// The time spent stalled and seeking as a share of the time spent stalled, seeking and playing. Nil if nothing was
  /// played.
  var rebuffering: Double?
  /// For a live item, how far behind the live edge playback ended.
  var liveLatencyMs: Double?
  /// One entry for each rung of which anything was loaded or shown.
  var rungs: [AccessLogEntry]
  /// The bytes of manifests, keys and media, read over the network or from local files.
  var bytes: Int64 = 0
  /// The number of requests. Opening a local file counts as one.
  var requests = 0
  /// The part of `bytes` and `requests` that is local files and standard input.
  var localBytes: Int64 = 0
  var localRequests = 0
  var loopGapsMs: [Double]
  var decodeMs: Double
  var bufferPeakBytes: Int
  var ringPeakBytes: Int
  var ringPeakFrames: Int
  /// The peak of the process.
  var memoryBytes: Int?
  /// The number of failed requests and segments, mended or not.
  var failures: Int
  /// The first and the last failures: at most 200.
  var failureList: [ErrorLogEntry]
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
    duration = item?.duration.value?.roundedSeconds
    wallMs = wall.milliseconds
    self.wall = Wall(statistics.times, wall: wall)
    secondFrameMs = statistics.times.timeToSecondFrame?.milliseconds
    rebuffering = statistics.times.rebufferingRatio?.rounded(places: 6)
    firstFrameMs = statistics.startupTime?.milliseconds
    startup = item?.startup
    frames = Frames(
      shown: statistics.shownFrameCount, dropped: statistics.droppedFrameCount,
      damaged: statistics.damagedFrameCount)
    lateness = Lateness(statistics.lateness)
    stalls = Stalls(count: statistics.stallCount)
    stalledMs = statistics.stallDuration.milliseconds
    rungs = (item?.accessLog ?? []).byRung
    loopGapsMs = statistics.loopGaps.map(\.milliseconds)
    decodeMs = statistics.decodeDuration.milliseconds
    bufferPeakBytes = statistics.bufferHighWaterByteCount
    ringPeakBytes = statistics.ring?.highWaterByteCount ?? 0
    ringPeakFrames = statistics.ring?.highWaterFrameCount ?? 0
    memoryBytes = ProcessMemory.peakResidentByteCount
    let errors = item?.errorLog ?? []
    failures = errors.count
    failureList =
      errors.count > Self.failureLimit
      ? Array(errors.prefix(Self.failureLimit / 2) + errors.suffix(Self.failureLimit / 2)) : errors
    lastFailure = errors.last.map { ErrorRecord($0.error) }
  }

  /// Sets the bytes and requests: those that were fetched, and those of a local manifest or media file, which
  /// is read directly.
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
      } else if let manifest = item.startup?[.open] {
        local.byteCount += manifest.byteCount
        local.requestCount += manifest.requestCount
      }
    }
    (localBytes, localRequests) = (local.byteCount, local.requestCount)
    (bytes, requests) = (
      network.byteCount + local.byteCount, network.requestCount + local.requestCount
    )
  }

  /// Sets the number of shown frames. Excess frames in the counts of rungs were passed on last, and not
  /// shown.
  mutating func setFramesShown(_ count: Int) {
    frames.shown = count
    var excess = max(0, rungs.map(\.shownFrameCount).reduce(0, +) - count)
    for index in rungs.indices.reversed() {
      let part = min(excess, rungs[index].shownFrameCount)
      rungs[index].shownFrameCount -= part
      excess -= part
    }
  }
}

extension PlayRecordSummary {
  /// Media that was not shown, with the failure that explains it.
  struct SkippedPart: Encodable, Sendable {
    let range: Range<MediaTime>
    let reason: MediaLoss.Reason
    let error: ReelError?

    func encode(to encoder: any Encoder) throws {
      try encoder.encode([
        "from": range.lowerBound.roundedSeconds, "to": range.upperBound.roundedSeconds,
        "reason": reason.rawValue, "error": error.map(ErrorRecord.init),
      ])
    }
  }

  /// The media that was not shown, by reason. The parts add up to `skipped`.
  struct SkippedReasons: Encodable, Sendable {
    var skipped: [MediaLoss.Reason: MediaTime] = [:]

    /// Seconds.
    subscript(reason: MediaLoss.Reason) -> Double { (skipped[reason] ?? .zero).roundedSeconds }

    func encode(to encoder: any Encoder) throws {
      for reason in MediaLoss.Reason.allCases { try encoder.encode([reason.rawValue: self[reason]]) }
    }
  }

  /// The number of failures that are listed: half of it from the beginning, half from the end.
  static let failureLimit = 200

  /// Sets the played and the skipped media.
  mutating func set(_ losses: PlayLosses) {
    played = losses.media.played.roundedSeconds
    skipped = losses.media.allSkipped.roundedSeconds
    skippedReasons = SkippedReasons(skipped: losses.media.skipped)
    skippedParts = losses.parts
    let omitted = losses.media.omittedLossCount
    skippedPartsOmitted = omitted > 0 ? omitted : nil
    loss = losses.first.map(ErrorRecord.init)
  }
}

/// The data loaded and the frames shown of one rung.
extension AccessLogEntry: Encodable {
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "rung": rung, "width": size?.width, "height": size?.height, "indicated_bit_rate": indicatedBitRate,
      "observed_bit_rate": observedBitRate.flatMap { $0.isFinite ? $0.rounded(places: 0) : nil },
      "bytes": byteCount, "requests": requestCount, "frames_shown": shownFrameCount,
      "frames_dropped": droppedFrameCount, "stalls": stallCount,
    ])
  }
}

extension [AccessLogEntry] {
  /// One entry for each rung of which anything was loaded or shown, in the order of their first use.
  fileprivate var byRung: [AccessLogEntry] {
    var rungs: [AccessLogEntry] = []
    for entry in self {
      guard let place = rungs.firstIndex(where: { $0.rung == entry.rung }) else {
        rungs.append(entry)
        continue
      }
      let before = rungs[place]
      rungs[place] = entry
      rungs[place].byteCount += before.byteCount
      rungs[place].requestCount += before.requestCount
      rungs[place].measuredByteCount += before.measuredByteCount
      rungs[place].transferDuration += before.transferDuration
      rungs[place].shownFrameCount += before.shownFrameCount
      rungs[place].droppedFrameCount += before.droppedFrameCount
      rungs[place].stallCount += before.stallCount
    }
    return rungs.filter {
      $0.rung == nil || $0.byteCount > 0 || $0.requestCount > 0 || $0.shownFrameCount > 0
        || $0.droppedFrameCount > 0 || $0.stallCount > 0
    }
  }
}

/// A failure of a request, a segment or a part of the media, with the position on show at that time, the kind of media
/// that is lost, and the part of it.
extension ErrorLogEntry: Encodable {
  public func encode(to encoder: any Encoder) throws {
    let outcome =
      switch outcome {
      case .retried: "retried"
      case .otherRung: "other_rung"
      case .otherLocation: "other_location"
      case .tolerated: "tolerated"
      case .lost(let loss): loss.reason.rawValue
      case .failed: "failed"
      }
    try encoder.encode([
      "position": time?.roundedSeconds, "rung": rung, "outcome": outcome, "kind": loss?.kind.rawValue,
      "from": loss?.range?.lowerBound.roundedSeconds, "to": loss?.range?.upperBound.roundedSeconds,
      "error": ErrorRecord(error),
    ])
  }
}

/// The media of a source that `reel play` did not show or play, and the failures that explain it.
struct PlayLosses {
  /// The media between frames, before the first one and after the last one.
  private(set) var media: ShownMedia
  private let failures: [ErrorLogEntry]
  private let damagedCount: Int
  private let source: String

  /// The maximum duration of missing media at the beginning and the end that is due to rounded times.
  private static let tolerance = MediaTime(value: 1, timescale: 20)

  /// - Parameters:
  ///   - failures: The log of the item.
  ///   - start: The position at which playback was to begin; nil for the beginning.
  ///   - isComplete: True if the source was played to its end.
  init(
    _ account: PlayFrames.Account, failures: [ErrorLogEntry], start: MediaTime?, isComplete: Bool,
    source: String
  ) {
    media = account.media
    damagedCount = account.damagedCount
    self.source = source
    // Media that was loaded ahead was not to be played.
    let limit = isComplete ? nil : account.limitTime ?? account.media.end
    self.failures = failures.filter { entry in
      guard let limit, let from = entry.loss?.range?.lowerBound else { return true }
      return from < limit
    }
    guard let first = media.firstTime, var end = account.media.end else { return }
    var leading = start ?? .zero
    for loss in self.failures.compactMap(\.loss) where loss.kind == .video {
      guard let range = loss.range else { continue }
      let before = max(range.lowerBound, leading)
      if first - before > Self.tolerance, range.upperBound > before {
        leading = min(range.upperBound, first)
        media.add(MediaLoss(kind: .video, reason: loss.reason, range: before..<leading))
      }
      let after = range.lowerBound - end < Self.tolerance ? end : range.lowerBound
      let last = limit.map { min(range.upperBound, $0) } ?? range.upperBound
      if last - after > Self.tolerance {
        end = last
        media.add(MediaLoss(kind: .video, reason: loss.reason, range: after..<end))
      }
    }
  }

  /// The media that was not shown, in order, each with the failure that explains it.
  var parts: [PlayRecordSummary.SkippedPart] {
    media.losses.compactMap { loss in
      loss.range.map { range in
        .init(range: range, reason: loss.reason, error: explanation(of: loss.reason, in: range))
      }
    }.sorted { $0.range.lowerBound < $1.range.lowerBound }
  }

  /// The first missed, damaged or skipped media, of video or audio, as an error. Frames that were dropped
  /// because they were late do not count.
  var first: ReelError? {
    let logged = failures.compactMap { entry in
      entry.loss.map { (time: $0.range?.lowerBound ?? entry.time ?? .zero, error: entry.error) }
    }
    let unexplained = parts.filter { $0.reason != .dropped && $0.error == nil }.map { part in
      (
        time: part.range.lowerBound,
        error: ReelError(
          .badMedia, "\(part.reason.rawValue): no frame \(PlayText.words(of: part.range))", at: source)
      )
    }
    if let first = (logged + unexplained).min(by: { $0.time < $1.time }) { return first.error }
    guard damagedCount > 0 else { return nil }
    return ReelError(.badMedia, "\(damagedCount) damaged frames were shown", at: source)
  }

  // MARK: - Private

  private func explanation(of reason: MediaLoss.Reason, in range: Range<MediaTime>) -> ReelError? {
    guard reason != .dropped else { return nil }
    return failures.last { entry in
      guard let loss = entry.loss, loss.kind == .video, let lost = loss.range else { return false }
      return loss.reason == reason && lost.overlaps(range)
    }?.error
  }
}
