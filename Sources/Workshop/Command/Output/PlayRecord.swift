import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelLab

/// An event of `reel play`: a line of `--json`, or of text (`PlayText`).
///
/// Times on the item's timeline are in seconds.
struct PlayRecord: Encodable {
  struct Track: Encodable {
    let kind: String
    let codec: String
    let language: String?
    let width: Int?
    let height: Int?
    let frameRate: Double?
    let sampleRate: Int?
    let channels: Int?

    init(_ track: PlayerItem.Track) {
      kind = track.kind.rawValue
      codec = track.codec
      language = track.language
      width = track.size?.width
      height = track.size?.height
      frameRate = track.frameRate.map { $0.value.rounded(places: 6) }
      sampleRate = track.sampleRate
      channels = track.channelCount
    }
  }

  let event: String
  /// The position on show.
  var position: Double
  /// The time since work on the source began.
  var timeMs: Double
  var status: String?
  /// The reason why playback waits.
  var reason: String?
  /// The time that it took, or will take.
  var afterMs: Double?
  var fromRung: String?
  var toRung: String?
  /// The reason why another rung was chosen.
  var cause: String?
  var attempt: Int?
  var of: Int?
  var from: Double?
  var to: Double?
  var gapMs: Double?
  /// Nil for a live item.
  var duration: Double?
  var width: Int?
  var height: Int?
  var tracks: [Track]?
  var error: ErrorRecord?

  private init(_ event: String, position: MediaTime, after: Duration) {
    self.event = event
    self.position = position.seconds.rounded(places: 6)
    timeMs = after.milliseconds
  }

  /// - Parameters:
  ///   - position: The position on show.
  ///   - after: The time since work on the source began.
  init(_ status: TimeControlStatus, position: MediaTime, after: Duration) {
    self.init("status", position: position, after: after)
    switch status {
    case .paused: self.status = "paused"
    case .playing: self.status = "playing"
    case .waitingToPlay(let reason):
      self.status = "waiting_to_play"
      self.reason =
        switch reason {
        case .noItemToPlay: "no_item_to_play"
        case .evaluatingBufferingRate: "evaluating_buffering_rate"
        case .toMinimizeStalls: "to_minimize_stalls"
        }
    }
  }

  /// Creates the record of an item that is ready to play.
  init(ready item: PlayerItem, position: MediaTime, after: Duration) {
    self.init("ready", position: position, after: after)
    duration = item.duration.value?.seconds.rounded(places: 6)
    width = item.presentationSize.value?.width
    height = item.presentationSize.value?.height
    tracks = item.tracks.value.map(Track.init)
  }

  /// - Parameter position: The time of events without a time of their own.
  init(_ event: PlayerEvent, position: MediaTime, after: Duration) {
    switch event {
    case .firstFrame(let time, let wait):
      self.init("first_frame", position: time, after: after)
      afterMs = wait.milliseconds
    case .seekDone(let time, let wait):
      self.init("seek_done", position: time, after: after)
      afterMs = wait.milliseconds
    case .stalled(let time):
      self.init("stalled", position: time, after: after)
    case .resumed(let time, let wait):
      self.init("resumed", position: time, after: after)
      afterMs = wait.milliseconds
    case .rungSwitched(let old, let new, let time, let cause):
      self.init("rung_switched", position: time, after: after)
      fromRung = old
      toRung = new
      self.cause = cause?.name
    case .retry(let attempt, let count, let wait, let error):
      self.init("retry", position: position, after: after)
      self.attempt = attempt
      of = count
      afterMs = wait.milliseconds
      self.error = ErrorRecord(error)
    case .segmentMissed(let start, let length, let error):
      self.init("segment_missed", position: position, after: after)
      from = start.seconds.rounded(places: 6)
      to = (start + length).seconds.rounded(places: 6)
      self.error = ErrorRecord(error)
    case .gapSkipped(let start, let end):
      self.init("gap_skipped", position: position, after: after)
      from = start.seconds.rounded(places: 6)
      to = end.seconds.rounded(places: 6)
    case .jumpedToLive(let start, let end):
      self.init("jumped_to_live", position: position, after: after)
      from = start.seconds.rounded(places: 6)
      to = end.seconds.rounded(places: 6)
    case .looped(let gap):
      self.init("looped", position: position, after: after)
      gapMs = gap.milliseconds
    case .playedToEnd(let time):
      self.init("played_to_end", position: time, after: after)
    case .failed(let error):
      self.init("failed", position: position, after: after)
      self.error = ErrorRecord(error)
    case .outputFailed(let error):
      self.init("output_failed", position: position, after: after)
      self.error = ErrorRecord(error)
    }
  }
}

extension RungSwitchCause {
  /// The name in JSON.
  var name: String {
    switch self {
    case .adaptationUp: "adaptation_up"
    case .adaptationDown: "adaptation_down"
    case .failure: "failure"
    case .retry: "retry"
    case .limit: "limit"
    case .startup: "startup"
    case .period: "period"
    }
  }
}

/// A shown frame as a line of `reel play --json --md5`. Its keys are those of `reel frames`.
struct PlayRecordFrame: Encodable {
  let event = "frame"
  let pts: Int64?
  let ptsTime: Double
  let timeBase: String
  let time: Double
  let timeMs: Double
  let keyFrame: Bool
  let damaged: Bool
  let md5: String

  /// - Parameter after: The time since work on the source began. Throws `ReelError.internalFault` if memory
  ///   runs out.
  init(_ frame: VideoFrame, after: Duration) throws(ReelError) {
    pts = frame.presentationTicks
    ptsTime = frame.ptsTime
    timeBase = frame.stream.timeBase.description
    time = frame.time.seconds.rounded(places: 6)
    timeMs = after.milliseconds
    keyFrame = frame.isKey
    damaged = frame.isDamaged
    md5 = try frame.md5()
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

  /// The data loaded and the frames shown of one rung.
  struct Rung: Encodable {
    /// Nil for a media file.
    let rung: String?
    let width: Int?
    let height: Int?
    /// The bit rate in bits per second, as the manifest states it.
    let indicatedBitRate: Int?
    /// The bit rate in bits per second, as measured by its transfers.
    let observedBitRate: Double?
    let bytes: Int64
    let requests: Int
    var framesShown: Int
    let framesDropped: Int
    let stalls: Int

    /// - Parameter entries: The entries of one rung, in order.
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

    /// Returns one record for each rung of which anything was loaded or shown, in the order of their first
    /// use.
    static func all(_ log: [AccessLogEntry]) -> [Rung] {
      var order: [String?] = []
      for entry in log where !order.contains(entry.rung) { order.append(entry.rung) }
      return order.map { id in Rung(log.filter { $0.rung == id }) }.filter {
        $0.rung == nil || $0.bytes > 0 || $0.requests > 0 || $0.framesShown > 0 || $0.framesDropped > 0
          || $0.stalls > 0
      }
    }
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
      let sorted = values.sorted()
      guard let median = Self.percentile(0.5, of: sorted), let high = Self.percentile(0.99, of: sorted) else {
        return nil
      }
      (p50Ms, p99Ms) = (median.milliseconds, high.milliseconds)
    }

    /// The value that this share of the sorted values does not exceed; nil if there are none.
    private static func percentile(_ share: Double, of sorted: [Duration]) -> Duration? {
      guard !sorted.isEmpty else { return nil }
      let index = Int((Double(sorted.count) * share).rounded(.up)) - 1
      return sorted[min(max(index, 0), sorted.count - 1)]
    }
  }

  struct Stalls: Encodable {
    let count: Int
  }

  /// How the wall-clock time was spent. The parts add up to `wall_ms`.
  struct Wall: Encodable {
    /// The time before loading began, while outputs were opened.
    let preparingMs: Double
    let startupMs: Double
    let bufferingMs: Double
    let playingMs: Double
    /// The time in which the last frame stayed on show over lost media.
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
  /// The position at which playback ended, on the item's timeline.
  var position: Double?
  /// The media time that was shown.
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
  /// The peak of the process.
  var memoryBytes: Int?
  /// The number of failed requests and segments, mended or not.
  var failures: Int
  /// The first and the last failures: at most 200.
  var failureList: [Failure]
  /// The latest failure.
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
    rebuffering = statistics.times.rebufferingRatio?.rounded(places: 6)
    firstFrameMs = statistics.startupTime?.milliseconds
    startup = item?.startup
    frames = Frames(
      shown: statistics.shownFrameCount, dropped: statistics.droppedFrameCount,
      damaged: statistics.damagedFrameCount)
    lateness = Lateness(statistics.lateness)
    stalls = Stalls(count: statistics.stallCount)
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
    memoryBytes = ProcessMemory.peakResidentByteCount
    let errors = item?.errorLog ?? []
    failures = errors.count
    failureList = Self.listed(errors)
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

  /// Sets the number of shown frames. Excess frames in the counts of rungs were passed on last, and not
  /// shown.
  mutating func setFramesShown(_ count: Int) {
    frames.shown = count
    var excess = max(0, rungs.map(\.framesShown).reduce(0, +) - count)
    for index in rungs.indices.reversed() {
      let part = min(excess, rungs[index].framesShown)
      rungs[index].framesShown -= part
      excess -= part
    }
  }
}

extension PlayRecordSummary {
  /// Media that was not shown.
  struct SkippedPart: Encodable {
    let from: Double
    let to: Double
    let reason: String
    /// The failure that explains it.
    let error: ErrorRecord?
  }

  /// The media that was not shown, by reason. The parts add up to `skipped`.
  struct SkippedReasons: Encodable {
    let missing: Double
    let damaged: Double
    let jumped: Double
    let dropped: Double

    init(_ skipped: [MediaLoss.Reason: MediaTime] = [:]) {
      func seconds(_ reason: MediaLoss.Reason) -> Double {
        (skipped[reason] ?? .zero).seconds.rounded(places: 6)
      }
      missing = seconds(.missing)
      damaged = seconds(.damaged)
      jumped = seconds(.jumped)
      dropped = seconds(.dropped)
    }
  }

  /// A failure of a request, a segment or a part of the media.
  struct Failure: Encodable {
    /// The position on show at that time; nil before anything was loaded.
    let position: Double?
    let rung: String?
    /// The consequence: `retried`, `other_rung`, `other_location`, `tolerated`, `missing`, `damaged`,
    /// `jumped` or `failed`.
    let outcome: String
    /// The kind of media that is lost.
    let kind: String?
    /// The affected media.
    let from: Double?
    let to: Double?
    let error: ErrorRecord

    init(_ entry: ErrorLogEntry) {
      position = entry.time?.seconds.rounded(places: 6)
      rung = entry.rung
      outcome =
        switch entry.outcome {
        case .retried: "retried"
        case .otherRung: "other_rung"
        case .otherLocation: "other_location"
        case .tolerated: "tolerated"
        case .lost(let loss): loss.reason.rawValue
        case .failed: "failed"
        }
      kind = entry.loss?.kind.rawValue
      from = entry.loss?.range?.lowerBound.seconds.rounded(places: 6)
      to = entry.loss?.range?.upperBound.seconds.rounded(places: 6)
      error = ErrorRecord(entry.error)
    }
  }

  /// The number of failures that are listed: half of it from the beginning, half from the end.
  static let failureLimit = 200

  /// Returns the first and the last failures.
  static func listed(_ entries: [ErrorLogEntry]) -> [Failure] {
    guard entries.count > failureLimit else { return entries.map(Failure.init) }
    return (entries.prefix(failureLimit / 2) + entries.suffix(failureLimit / 2)).map(Failure.init)
  }

  /// Sets the played and the skipped media.
  mutating func set(_ losses: PlayLosses) {
    played = losses.media.played.seconds.rounded(places: 6)
    skipped = losses.media.allSkipped.seconds.rounded(places: 6)
    skippedReasons = SkippedReasons(losses.media.skipped)
    skippedParts = losses.parts.map { part in
      SkippedPart(
        from: part.range.lowerBound.seconds.rounded(places: 6),
        to: part.range.upperBound.seconds.rounded(places: 6), reason: part.reason.rawValue,
        error: part.error.map(ErrorRecord.init))
    }
    let omitted = losses.media.omittedLossCount
    skippedPartsOmitted = omitted > 0 ? omitted : nil
    loss = losses.first.map(ErrorRecord.init)
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
    let lastEnd = account.media.end
    self.failures = failures.filter { entry in
      // Media that was loaded ahead was not to be played.
      guard !isComplete, let lastEnd, let from = entry.loss?.range?.lowerBound else { return true }
      return from < lastEnd
    }
    guard let first = media.firstTime, var end = lastEnd else { return }
    var leading = start ?? .zero
    for loss in self.failures.compactMap(\.loss) where loss.kind == .video {
      guard let range = loss.range else { continue }
      let before = max(range.lowerBound, leading)
      if first - before > Self.tolerance, range.upperBound > before {
        leading = min(range.upperBound, first)
        media.add(MediaLoss(kind: .video, reason: loss.reason, range: before..<leading))
      }
      let after = max(range.lowerBound, end)
      if isComplete, range.upperBound - after > Self.tolerance {
        end = range.upperBound
        media.add(MediaLoss(kind: .video, reason: loss.reason, range: after..<end))
      }
    }
  }

  /// The media that was not shown, in order, each with the failure that explains it.
  var parts: [(range: Range<MediaTime>, reason: MediaLoss.Reason, error: ReelError?)] {
    media.losses.compactMap { loss in
      loss.range.map { range in (range, loss.reason, explanation(of: loss.reason, in: range)) }
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
