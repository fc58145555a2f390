public import Foundation
public import HTTPTypes
public import ReelCore
internal import ReelFFmpeg
public import ReelSources

/// Media to play, with the state of its loading and playback.
///
/// An item does nothing by itself: the player that it is given to loads it. Only one player can use an item at a time;
/// another one refuses it.
/// Its observed properties each have a current `value`, and `values`, a stream of that value and every change.
public final class PlayerItem: Sendable {
  /// Whether an item can be played.
  public enum Status: Sendable, Hashable {
    /// Not known yet: the item is not loaded, or has not loaded far enough.
    case unknown
    /// The first frame is decoded and on show, or audio that comes before it is playing.
    case readyToPlay
    /// Loading or decoding failed, and is not retried.
    case failed(ReelError)
  }

  /// A video or audio stream that is played.
  public struct Track: Sendable, Hashable {
    /// Whether the track is video or audio.
    public var kind: TrackKind
    /// The codec's name in libavcodec, such as `h264` or `aac`.
    public var codec: String
    /// The language that the container states.
    public var language: String?
    /// The size of video frames as stored, before they are turned upright. Nil for audio.
    public var size: PixelSize?
    /// The frame rate of video, in frames per second. Nil for audio.
    public var frameRate: Rational?
    /// The sample rate of audio, in hertz. Nil for video, and where it is known only after decoding (MPEG-TS).
    public var sampleRate: Int?
    /// The number of audio channels. Nil for video, and where it is known only after decoding (MPEG-TS).
    public var channelCount: Int?
  }

  /// Preferences for the loading of an item.
  package struct Preferences: Sendable, Hashable {
    /// The compressed media to load ahead of the frame on show. 3 s by default.
    package var forwardBufferDuration = Duration.seconds(3)
    /// The highest bit rate to choose, in bits per second. If all rungs are above it, the lowest one plays. If nil,
    /// `LoadingConfiguration.preferredPeakBitRate` applies, or no cap if the player adapts the bit rate.
    package var peakBitRate: Int?
    /// The resolution that no chosen rung exceeds in height or in width. If all rungs exceed it, those with the smallest
    /// height play.
    package var maximumResolution: PixelSize?

    /// Creates the default preferences.
    package init() {}
  }

  /// The source of the media.
  public let source: MediaSource
  /// Header fields to send with the item's requests, after those of `LoadingConfiguration.headers`. Credentials go only
  /// to the server of the source, as described there.
  public let headers: HTTPFields

  /// Whether the item can be played.
  public var status: ObservedProperty<Status> { observed.status.property }
  /// The duration of the item. Nil before it is known, and for a live item.
  public var duration: ObservedProperty<MediaTime?> { observed.duration.property }
  /// The size of the frame on show, upright and with square pixels. Nil before the first frame.
  public var presentationSize: ObservedProperty<PixelSize?> { observed.presentationSize.property }
  /// The streams that are played, as far as they are known. A separate audio stream may become known only after the first
  /// frame.
  public var tracks: ObservedProperty<[Track]> { observed.tracks.property }
  /// True once `tracks` lists all streams that are played. A separate audio stream may become known only after the
  /// first frame, which does not wait for it.
  package var areTracksKnown: ObservedProperty<Bool> { observed.areTracksKnown.property }
  /// The media that can be shown without loading more: at most one range. While an item loops, its times continue from
  /// one iteration to the next.
  public var loadedTimeRanges: ObservedProperty<[Range<MediaTime>]> { observed.loadedTimeRanges.property }
  /// True if all loaded media was decoded and all decoded frames were shown.
  public var isPlaybackBufferEmpty: ObservedProperty<Bool> { observed.isPlaybackBufferEmpty.property }
  /// True if the forward buffer has reached its target, or contains the rest of the item.
  public var isPlaybackBufferFull: ObservedProperty<Bool> { observed.isPlaybackBufferFull.property }
  /// True if playback can start or resume and is then unlikely to stall (``BufferingThresholds``).
  public var isPlaybackLikelyToKeepUp: ObservedProperty<Bool> { observed.isPlaybackLikelyToKeepUp.property }
  /// The stage that loading has reached.
  public var preloadStage: ObservedProperty<PreloadStage> { observed.preloadStage.property }
  /// The number of retries that are left before the item fails (``ItemRetryPolicy``).
  public var remainingRetries: ObservedProperty<Int> { observed.remainingRetries.property }
  /// The id of the rung whose frame is on show. Nil before the first frame, and for a media file.
  public var rung: ObservedProperty<String?> { observed.rung.property }
  /// How far playback is behind the live edge. Nil for an item that is not live.
  public var liveLatency: ObservedProperty<Duration?> { observed.liveLatency.property }
  /// The events of the item's loading and playback.
  ///
  /// Each read makes a new stream. It begins with what has happened since the item began to load, at most the latest 128
  /// events, and continues with each new event. ``PlayerEvent/playedToEnd(time:)`` and ``PlayerEvent/failed(_:)`` are no
  /// longer among the first ones once the item is played again or retried. A reader that falls 1,024 events behind loses
  /// the oldest.
  public var events: AsyncStream<PlayerEvent> { eventChannel.events }
  let eventChannel = EventChannel<PlayerEvent>(memory: PlayerEvent.memory)

  /// The values of the observed properties, which the player sets.
  struct Observed: Sendable {
    let status = ObservedSource(Status.unknown)
    let duration = ObservedSource<MediaTime?>(nil)
    let presentationSize = ObservedSource<PixelSize?>(nil)
    let tracks = ObservedSource<[Track]>([])
    let areTracksKnown = ObservedSource(false)
    let loadedTimeRanges = ObservedSource<[Range<MediaTime>]>([])
    let isPlaybackBufferEmpty = ObservedSource(true)
    let isPlaybackBufferFull = ObservedSource(false)
    let isPlaybackLikelyToKeepUp = ObservedSource(false)
    let preloadStage = ObservedSource(PreloadStage.notLoaded)
    let remainingRetries = ObservedSource(5)
    let rung = ObservedSource<String?>(nil)
    let liveLatency = ObservedSource<Duration?>(nil)
  }

  let observed = Observed()

  private struct State {
    var preferences = Preferences()
    var bounds = LoadingBounds()
    var initialBandwidth: Double?
    var ladder = ItemLadder()
    var onChange: (@Sendable (_ wantsMore: Bool) -> Void)?
    var accessLog: [AccessLogEntry] = []
    var errorLog: [ErrorLogEntry] = []
    var startup: StartupReport?
    var stageTimes: [PreloadStage: Duration] = [:]
    /// The player that has the item, and its session.
    var owner: Owner?
  }

  private let state = Locked(State())

  /// The number of entries that a log keeps. The oldest are removed first.
  private static let logLimit = 1000

  /// Creates an item. Loading begins when a player gets it.
  ///
  /// - Parameters:
  ///   - source: The source of the media.
  ///   - headers: Header fields for the item's requests. See ``headers``.
  public init(_ source: MediaSource, headers: HTTPFields = [:]) {
    self.source = source
    self.headers = headers
  }

  /// Creates an item for a media file, an HLS playlist or a DASH MPD.
  ///
  /// - Parameters:
  ///   - url: An `http`, `https` or `file` URL.
  ///   - headers: Header fields for the item's requests. See ``headers``.
  public convenience init(url: URL, headers: HTTPFields = [:]) { self.init(.url(url), headers: headers) }

  /// The preferences for loading. Changes also take effect while the item is loaded or played.
  package var preferences: Preferences {
    get { state.withLock { $0.preferences } }
    set {
      let onChange = state.withLock { state in
        state.preferences = newValue
        return state.onChange
      }
      onChange?(false)
    }
  }

  /// The limits on loading while the item is played, in addition to its preferences. They are kept when a
  /// player begins to load the item.
  package var bounds: LoadingBounds {
    get { state.withLock { $0.bounds } }
    set {
      let change = state.withLock { state -> (isRaised: Bool, onChange: (@Sendable (Bool) -> Void)?)? in
        guard state.bounds != newValue else { return nil }
        let preferred = state.preferences.forwardBufferDuration
        let old = state.bounds.forwardBufferDuration ?? preferred
        state.bounds = newValue
        return ((newValue.forwardBufferDuration ?? preferred) > old, state.onChange)
      }
      if let change { change.onChange?(change.isRaised) }
    }
  }

  /// The throughput to assume before the first measurement, in bits per second, instead of
  /// `PlayerConfiguration.initialBandwidth`. It takes effect when the item's media is opened.
  package var initialBandwidth: Double? {
    get { state.withLock { $0.initialBandwidth } }
    set { state.withLock { $0.initialBandwidth = newValue } }
  }

  /// The rungs of the item's video, as far as they are known.
  package var ladder: ItemLadder { state.withLock { $0.ladder } }

  /// The compressed media to load ahead of the frame on show. 3 s by default.
  public var preferredForwardBufferDuration: Duration {
    get { preferences.forwardBufferDuration }
    set { preferences.forwardBufferDuration = newValue }
  }

  /// The highest bit rate to choose, in bits per second. If all rungs are above it, the lowest one plays. If nil,
  /// `LoadingConfiguration.preferredPeakBitRate` applies, or no cap if the player adapts the bit rate.
  public var preferredPeakBitRate: Int? {
    get { preferences.peakBitRate }
    set { preferences.peakBitRate = newValue }
  }

  /// The resolution that no chosen rung exceeds in height or in width. If all rungs exceed it, those with the smallest
  /// height play. A source without rungs plays as it is.
  public var preferredMaximumResolution: PixelSize? {
    get { preferences.maximumResolution }
    set { preferences.maximumResolution = newValue }
  }

  /// An entry for each rung that was chosen, in order; for a media file, a single one. The latest 1000 are kept.
  public var accessLog: [AccessLogEntry] { state.withLock { $0.accessLog } }
  /// The failures during loading, in order. The latest 1000 are kept.
  public var errorLog: [ErrorLogEntry] { state.withLock { $0.errorLog } }
  /// The duration of each stage up to the first frame. Nil before the first frame.
  public var startup: StartupReport? { state.withLock { $0.startup } }

  /// The time at which each stage was reached, measured from the beginning of loading.
  package var stageTimes: [PreloadStage: Duration] { state.withLock { $0.stageTimes } }

  // MARK: - Internal

  /// A player that has an item, and its session with it.
  struct Owner: Equatable {
    let player: ObjectIdentifier
    let session: ObjectIdentifier
  }

  /// Gives the item to an owner, until `release(_:)`. Returns false if another player has it.
  func claim(for owner: Owner) -> Bool {
    state.withLock { state in
      guard state.owner.map({ $0.player == owner.player }) ?? true else { return false }
      state.owner = owner
      return true
    }
  }

  /// Lets other players have the item, if the owner still has it.
  func release(_ owner: Owner) {
    state.withLock { if $0.owner == owner { $0.owner = nil } }
  }

  func record(_ stage: PreloadStage, after duration: Duration) {
    state.withLock { state in
      for earlier in PreloadStage.ofPlayers where earlier <= stage {
        if state.stageTimes[earlier] == nil { state.stageTimes[earlier] = duration }
      }
    }
  }

  /// Sets a handler for changes of preferences or bounds; `wantsMore` is true if loading must continue up to
  /// the new bound.
  func setOnChange(_ onChange: (@Sendable (_ wantsMore: Bool) -> Void)?) {
    state.withLock { $0.onChange = onChange }
  }

  func updateLadder(_ body: (inout ItemLadder) -> Void) { state.withLock { body(&$0.ladder) } }

  func setStartup(_ report: StartupReport) { state.withLock { $0.startup = report } }

  /// Begins an entry, unless the last one is for the same rung.
  func beginAccess(_ entry: AccessLogEntry) {
    state.withLock { state in
      guard state.accessLog.last?.rung != entry.rung || state.accessLog.isEmpty else { return }
      state.accessLog.append(entry)
      if state.accessLog.count > Self.logLimit { state.accessLog.removeFirst() }
    }
  }

  /// Changes the last entry of a rung.
  func updateAccess(rung: String?, _ body: (inout AccessLogEntry) -> Void) {
    state.withLock { state in
      guard let index = state.accessLog.lastIndex(where: { $0.rung == rung }) else { return }
      body(&state.accessLog[index])
    }
  }

  /// Returns why video within `range` is lost, according to the log; nil if it does not say.
  package func videoLoss(in range: Range<MediaTime>) -> MediaLoss.Reason? {
    state.withLock { state in
      state.errorLog.lazy.compactMap(\.loss).last { $0.affects(.video, in: range) }?.reason
    }
  }

  /// Returns true if the log has a loss of video that covers `range`.
  func hasLostVideo(covering range: Range<MediaTime>) -> Bool {
    state.withLock { state in
      state.errorLog.lazy.compactMap(\.loss).contains { loss in
        loss.kind == .video
          && loss.range.map { $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound }
            ?? false
      }
    }
  }

  func log(_ entry: ErrorLogEntry) {
    state.withLock { state in
      if let last = state.errorLog.indices.last, state.errorLog[last].extend(by: entry) { return }
      state.errorLog.append(entry)
      if state.errorLog.count > Self.logLimit { state.errorLog.removeFirst() }
    }
  }

  /// Resets the state of loading, before a player begins to load the item.
  func reset() {
    state.withLock { state in
      state.accessLog = []
      state.errorLog = []
      state.startup = nil
      state.stageTimes = [:]
      state.ladder = ItemLadder()
    }
    eventChannel.forget()
    observed.status.set(.unknown)
    observed.areTracksKnown.set(false)
    observed.loadedTimeRanges.set([])
    observed.isPlaybackBufferEmpty.set(true)
    observed.isPlaybackBufferFull.set(false)
    observed.isPlaybackLikelyToKeepUp.set(false)
    observed.preloadStage.set(.notLoaded)
    observed.rung.set(nil)
    observed.liveLatency.set(nil)
  }
}

extension PlayerItem: Equatable {
  /// Returns true if both are the same object.
  public static func == (left: PlayerItem, right: PlayerItem) -> Bool { left === right }
}

/// One quality of an item, as its manifest states it.
package struct ItemRung: Sendable, Hashable {
  /// The rung's id, as in ``PlayerItem/rung``.
  package var id: String
  /// The peak bit rate, in bits per second; the average one if no peak is stated, and 0 if none is.
  package var bitRate: Int
  /// The size of frames as stored; nil if not stated.
  package var size: PixelSize?

  package init(id: String, bitRate: Int, size: PixelSize? = nil) {
    self.id = id
    self.bitRate = bitRate
    self.size = size
  }
}

/// The qualities of an item's video, and the division of its media.
package struct ItemLadder: Sendable, Hashable {
  /// The rungs by rising bit rate. Empty before the manifest was read, and for a media file.
  package var rungs: [ItemRung] = []
  /// The duration of the segment that was opened last; nil before the first, and for a media file.
  package var segmentDuration: Duration?
}

/// The amounts of buffered media at which playback starts and resumes, and at which loading pauses and continues.
///
/// All durations except `audioPatience` are media time.
public struct BufferingThresholds: Sendable, Hashable {
  /// The media that must be buffered before playback starts, also after a seek. 0.5 s by default.
  public var start = Duration.milliseconds(500)
  /// The media that must be buffered before playback resumes after a stall, and before it starts if the audio
  /// of the same file or segment has not arrived. 1.5 s by default.
  public var resume = Duration.milliseconds(1500)
  /// The maximum time that playback waits for a separate audio stream that delivers nothing. After that the
  /// item plays without audio. 10 s by default.
  package var audioPatience = Duration.seconds(10)
  /// The share of the forward buffer's target below which paused loading continues. 0.75 by default.
  package var refillShare = 0.75
  /// The bytes of undecoded media at which loading pauses, regardless of the target. 64 MiB by default.
  package var maximumByteCount = 64 << 20

  /// Creates the default thresholds.
  public init() {}

  /// Returns whether playback can start or resume and is then unlikely to stall.
  ///
  /// - Parameters:
  ///   - buffered: The media that is loaded ahead of the frame on show.
  ///   - target: The forward buffer's target. If it is reached, that is enough, even if a threshold is
  ///     higher.
  ///   - isComplete: Whether the item is loaded to its end.
  ///   - isFull: Whether loading has paused, so that waiting would not bring more media.
  ///   - isAfterStall: Whether playback is stalled, or its audio is late, so that ``resume`` applies instead
  ///     of ``start``.
  ///   - rate: The playback rate. A finite rate above 1 multiplies the threshold.
  package func isLikelyToKeepUp(
    buffered: Duration, target: Duration, isComplete: Bool, isFull: Bool, isAfterStall: Bool, rate: Double
  ) -> Bool {
    if isComplete || isFull { return true }
    // The rate is limited because multiplying a Duration can overflow.
    let needed = (isAfterStall ? resume : start) * (rate.isFinite ? min(max(rate, 1), 1000) : 1)
    return buffered >= min(needed, target)
  }
}

/// The number of retries for an item whose loading failed, and their delays.
///
/// Only temporary failures (`ReelError.isTemporary`) are retried. The first delay is `baseDelay`, and each further
/// one is twice as long, up to `maximumDelay`. All attempts are available again once a packet was read beyond those
/// read before. A pure value: it does not wait.
public struct ItemRetryPolicy: Sendable, Hashable {
  /// The number of consecutive attempts without a new packet; 0 for no retries.
  package let attempts: Int
  /// The delay after the first failure.
  package let baseDelay: Duration
  package let maximumDelay: Duration
  /// The number of attempts that are left.
  package private(set) var remaining: Int

  /// Creates a policy with all attempts left. A negative number of attempts counts as 0.
  public init(
    attempts: Int = 5, baseDelay: Duration = .milliseconds(500), maximumDelay: Duration = .seconds(8)
  ) {
    self.attempts = max(attempts, 0)
    self.baseDelay = baseDelay
    self.maximumDelay = maximumDelay
    remaining = max(attempts, 0)
  }

  /// The longest `Retry-After` to honour, as in `RetryPolicy`.
  private static let maximumRetryAfter = Duration.seconds(20)

  /// Uses up an attempt and returns the delay before it. Returns nil if the error is final or no attempt is left.
  package mutating func next(after error: ReelError) -> Duration? {
    guard error.isTemporary, remaining > 0 else { return nil }
    var delay = baseDelay
    for _ in 0..<(attempts - remaining) where delay < maximumDelay { delay = delay * 2 }
    remaining -= 1
    delay = min(delay, maximumDelay)
    guard let asked = error.retryAfter, asked <= Self.maximumRetryAfter else { return delay }
    return max(delay, asked)
  }

  /// Makes all attempts available again, after new media was read. The next delay is `baseDelay`.
  package mutating func succeed() {
    remaining = attempts
  }
}
