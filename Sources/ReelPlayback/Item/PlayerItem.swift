public import Foundation
public import ReelCore
internal import ReelFFmpeg

/// Media to be played: what is known of it, and how its loading goes.
///
/// An item does nothing by itself; the player that it is given to loads it. Its properties are observed: each has a
/// current `value`, and `values` gives that and every change. What happens once is in `events`. An item is one player's
/// at a time.
public final class PlayerItem: Sendable {
  public enum Status: Sendable, Hashable {
    case unknown
    /// The first frame is there, not only the streams' parameters: an item that is ready can be shown.
    case readyToPlay
    case failed(ReelError)
  }

  /// One of the streams that are played.
  public struct Track: Sendable, Hashable {
    public enum Kind: String, Sendable, Hashable {
      case video
      case audio
    }

    public var kind: Kind
    /// libavcodec's name of the codec.
    public var codec: String
    public var language: String?
    /// Of video.
    public var size: PixelSize?
    /// Of video, in frames per second.
    public var frameRate: Rational?
    /// Of audio, in hertz.
    public var sampleRate: Int?
    public var channelCount: Int?
  }

  /// What an item asks of the player that loads it.
  public struct Preferences: Sendable, Hashable {
    /// How much compressed media is loaded ahead of what is on show. 3 s.
    public var forwardBufferDuration = Duration.seconds(3)
    /// Rungs above so many bits per second are left out where there are others; nil for the player's own cap.
    public var peakBitRate: Int?
    /// Rungs with more lines are left out where there are others.
    public var maximumResolution: PixelSize?

    public init() {}
  }

  public let source: MediaSource
  /// Sent with every request of the item, after those of the player's configuration.
  public let headers: [HeaderField]

  public let status = ObservedProperty(Status.unknown)
  /// Nil before it is known, and for a live item.
  public let duration = ObservedProperty<MediaTime?>(nil)
  /// Of the upright frame with square pixels; nil before the first one.
  public let presentationSize = ObservedProperty<PixelSize?>(nil)
  public let tracks = ObservedProperty<[Track]>([])
  /// True once `tracks` lists all streams that are played. A separate audio stream may become known only after the
  /// first frame, which does not wait for it.
  public let areTracksKnown = ObservedProperty(false)
  /// What can be shown without loading more, on the presentation's timeline.
  public let loadedTimeRanges = ObservedProperty<[Range<MediaTime>]>([])
  public let isPlaybackBufferEmpty = ObservedProperty(true)
  public let isPlaybackBufferFull = ObservedProperty(false)
  public let isPlaybackLikelyToKeepUp = ObservedProperty(false)
  /// The stage that loading has reached.
  public let preloadStage = ObservedProperty(PreloadStage.none)
  /// How often the item can still be tried again before it fails.
  public let remainingRetries = ObservedProperty(5)
  /// The rung whose frames are shown; nil for a media file.
  public let rung = ObservedProperty<String?>(nil)
  /// How far a live item is behind the edge of what its manifest names; nil for one that is not live.
  public let liveLatency = ObservedProperty<Duration?>(nil)
  /// What happens once.
  ///
  /// Each time it is read, a stream of what happens from then on, in order. An observer that falls 1,024 events behind
  /// loses the oldest.
  public var events: AsyncStream<PlayerEvent> { eventChannel.events }
  let eventChannel = EventChannel<PlayerEvent>()

  private struct State {
    var preferences = Preferences()
    var onChange: (@Sendable () -> Void)?
    var accessLog: [AccessLogEntry] = []
    var errorLog: [ErrorLogEntry] = []
    var startup: StartupReport?
    var stageTimes: [PreloadStage: Duration] = [:]
  }

  private let state = Locked(State())

  /// Entries of a log that are kept: the oldest go first.
  private static let logLimit = 1000

  public init(_ source: MediaSource, headers: [HeaderField] = []) {
    self.source = source
    self.headers = headers
  }

  /// - Parameter url: `http`, `https` or `file`: a media file, an HLS playlist or an MPD.
  public convenience init(url: URL, headers: [HeaderField] = []) { self.init(.url(url), headers: headers) }

  public var preferences: Preferences {
    get { state.withLock { $0.preferences } }
    set {
      let onChange = state.withLock { state in
        state.preferences = newValue
        return state.onChange
      }
      onChange?()
    }
  }

  /// 3 s.
  public var preferredForwardBufferDuration: Duration {
    get { preferences.forwardBufferDuration }
    set { preferences.forwardBufferDuration = newValue }
  }

  /// In bits per second; nil for the player's own cap.
  public var preferredPeakBitRate: Int? {
    get { preferences.peakBitRate }
    set { preferences.peakBitRate = newValue }
  }

  public var preferredMaximumResolution: PixelSize? {
    get { preferences.maximumResolution }
    set { preferences.maximumResolution = newValue }
  }

  /// One entry for each rung that was played, in order.
  public var accessLog: [AccessLogEntry] { state.withLock { $0.accessLog } }
  /// What could not be had, in order.
  public var errorLog: [ErrorLogEntry] { state.withLock { $0.errorLog } }
  /// What it took to get to the first frame; nil before that.
  public var startup: StartupReport? { state.withLock { $0.startup } }

  /// When each stage was reached, counted from the beginning of loading.
  public var stageTimes: [PreloadStage: Duration] { state.withLock { $0.stageTimes } }

  // MARK: - Internal

  func note(_ stage: PreloadStage, after duration: Duration) {
    state.withLock { state in
      for earlier in PreloadStage.allCases where earlier > .none && earlier <= stage {
        if state.stageTimes[earlier] == nil { state.stageTimes[earlier] = duration }
      }
    }
  }

  /// Called when preferences change.
  func setOnChange(_ onChange: (@Sendable () -> Void)?) { state.withLock { $0.onChange = onChange } }

  func setStartup(_ report: StartupReport) { state.withLock { $0.startup = report } }

  /// Begins an entry, unless the last one is of the same rung.
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

  func log(_ entry: ErrorLogEntry) {
    state.withLock { state in
      state.errorLog.append(entry)
      if state.errorLog.count > Self.logLimit { state.errorLog.removeFirst() }
    }
  }

  /// As before it was loaded: another player, or the same one again, begins to load it.
  func reset() {
    state.withLock { state in
      state.accessLog = []
      state.errorLog = []
      state.startup = nil
      state.stageTimes = [:]
    }
    status.set(.unknown)
    areTracksKnown.set(false)
    loadedTimeRanges.set([])
    isPlaybackBufferEmpty.set(true)
    isPlaybackBufferFull.set(false)
    isPlaybackLikelyToKeepUp.set(false)
    preloadStage.set(.none)
    rung.set(nil)
    liveLatency.set(nil)
  }
}

extension PlayerItem: Equatable {
  /// The very same item.
  public static func == (left: PlayerItem, right: PlayerItem) -> Bool { left === right }
}
