public import Logging
public import ReelCore
package import ReelFFmpeg

/// Plays one item at a time: loads it, decodes it, and shows its frames to outputs when their time has come.
///
/// As AVFoundation's, it is a remote control: calls say what is wanted and return at once, properties tell what is. All
/// of it may be used from any thread. Frames are shown on a thread of the player's own.
///
/// Late frames: a frame is shown when its time has come. One whose successor is due as well is dropped and counted,
/// unless nothing has been shown for 250 ms. At a rate of `.infinity` every frame is shown as soon as it is there.
///
/// A player that is let go, or stopped, ends all that it has begun.
public final class Player: Sendable {
  /// What is done when an item has been played to its end.
  public enum ActionAtItemEnd: Sendable, Hashable {
    /// The last frame stays on show.
    case pause
    /// The item begins anew, without a gap where the network allows it.
    case loop
    /// The player stays as it is, at a rate that has nothing to show.
    case none
  }

  /// What the player is doing.
  public let timeControlStatus: ObservedProperty<TimeControlStatus>
  public let currentItem: ObservedProperty<PlayerItem?>
  /// The rate that is wanted while playing: 0.25 to 8, or `.infinity`; 0 while paused.
  public let rate: ObservedProperty<Double>
  public let isMuted: ObservedProperty<Bool>
  /// 0 to 1 and beyond: what samples are multiplied by.
  public let volume: ObservedProperty<Float>
  /// What happens once, of every item that is played here.
  ///
  /// Each time it is read, a stream of what happens from then on, in order. An observer that falls 1,024 events behind
  /// loses the oldest.
  public var events: AsyncStream<PlayerEvent> { core.events.events }

  let core: PlayerCore

  /// - Parameter fetcher: Gets manifests and media.
  public convenience init(
    fetcher: any Fetching, configuration: PlayerConfiguration = PlayerConfiguration(),
    logger: Logger = Logger(label: "reel.playback")
  ) {
    self.init(fetcher: fetcher, configuration: configuration, gate: nil, account: nil, logger: logger)
  }

  /// - Parameters:
  ///   - gate: Asked before each call into a decoder.
  ///   - account: What the player holds of memory is counted there.
  package init(
    fetcher: any Fetching, configuration: PlayerConfiguration, gate: (any DecodingGate)?,
    account: MemoryAccount? = nil, logger: Logger
  ) {
    core = PlayerCore(
      fetcher: fetcher, configuration: configuration, gate: gate, account: account, logger: logger)
    timeControlStatus = core.timeControlStatus
    currentItem = core.currentItem
    rate = core.rate
    isMuted = core.isMuted
    volume = core.volume
  }

  deinit { core.close() }

  // MARK: Playing

  /// Plays at the rate that was set last, from the first moment that enough is there.
  public func play() { core.play() }

  public func pause() { core.pause() }

  /// Sets the rate and plays; 0 pauses.
  ///
  /// - Parameter rate: 0.25 to 8, or `.infinity` for as fast as it goes; others are brought into that range.
  public func setRate(_ rate: Double) { core.setRate(rate) }

  /// Ends loading and decoding, takes the item away, and detaches all outputs. The player can be given another item;
  /// observers of an item's properties end with the item.
  public func stop() { core.stop() }

  /// As `stop()`; returns when nothing of the item runs any more.
  public func stopAndWait() async { await core.stopAndWait() }

  /// Takes another item, which begins to load at once, or none. It plays at once where the one before did.
  public func replaceCurrentItem(with item: PlayerItem?) { core.replaceCurrentItem(with: item, start: nil) }

  /// As the other, beginning at `start`.
  public func replaceCurrentItem(with item: PlayerItem?, startingAt start: MediaTime) {
    core.replaceCurrentItem(with: item, start: start)
  }

  /// Goes to the frame on show at `time`, at once: nothing earlier is shown any more when this has been called, and an
  /// older seek ends with false.
  ///
  /// - Parameter tolerance: a frame that is so much earlier will do; zero for the exact one.
  /// - Returns: True when the frame has been shown; false where another seek, item or stop came before.
  ///
  /// Throws `ReelError`: `usage` where the player is linear or has no item, `unsupported` for a source that can't be
  /// sought, or what the item failed with.
  @discardableResult
  public func seek(to time: MediaTime, tolerance: MediaTime = .zero) async throws -> Bool {
    try await core.seek(to: time, tolerance: tolerance)
  }

  /// The time that is on show, on the item's timeline.
  public var currentTime: MediaTime { core.currentTime }

  // MARK: Settings

  /// False begins with the first frame, and pauses where it would stall.
  public var automaticallyWaitsToMinimizeStalling: Bool {
    get { core.settings.waitsToMinimizeStalls }
    set { core.updateSettings { $0.waitsToMinimizeStalls = newValue } }
  }

  /// True refuses seeking, as feeds of short videos do.
  public var isLinear: Bool {
    get { core.settings.isLinear }
    set { core.updateSettings { $0.isLinear = newValue } }
  }

  public var actionAtItemEnd: ActionAtItemEnd {
    get { core.settings.actionAtItemEnd }
    set { core.updateSettings { $0.actionAtItemEnd = newValue } }
  }

  /// False refuses outputs that show frames outside of the process, and detaches those that are attached.
  public var allowsExternalPlayback: Bool {
    get { core.settings.allowsExternalPlayback }
    set { core.updateSettings { $0.allowsExternalPlayback = newValue } }
  }

  /// False refuses to take the player out of a pool's window.
  public var allowsPictureInPicture: Bool {
    get { core.settings.allowsPictureInPicture }
    set { core.updateSettings { $0.allowsPictureInPicture = newValue } }
  }

  /// True plays each item as soon as it is ready, whether `play()` was called or not.
  public var playsWhenReady: Bool {
    get { core.settings.playsWhenReady }
    set { core.updateSettings { $0.playsWhenReady = newValue } }
  }

  /// How far the item is loaded while it is not played; nil loads for playing.
  ///
  /// A target that is set on an item which was played pauses its loading, and gives back the frames behind the one on
  /// show; `play()` is to be called when the target is nil again.
  public var preloadTarget: PreloadTarget? {
    get { core.settings.preloadTarget }
    set { core.setPreloadTarget(newValue) }
  }

  /// Muted audio is not heard, and not even fetched where it is a stream of its own.
  public func setMuted(_ isMuted: Bool) { core.setMuted(isMuted) }

  public func setVolume(_ volume: Float) { core.setVolume(volume) }

  // MARK: Outputs

  /// Shows frames there from now on, beginning with the one that is on show.
  ///
  /// Throws `ReelError.usage` for one that is external where that is not allowed.
  public func attach(_ output: any FrameOutput) throws(ReelError) { try core.attach(output) }

  /// Shows nothing there any more, and finishes it. Throws what its `finish()` throws.
  public func detach(_ output: any FrameOutput) throws { try core.detach(output) }

  public func attach(_ output: any AudioOutput) { core.attach(output) }

  public func detach(_ output: any AudioOutput) throws { try core.detach(output) }

  /// The frame on show, with a reference of its own; nil before there is one. No pixel is copied, and nothing is
  /// waited for.
  public func currentFrame() -> TimedFrame? { core.currentFrame() }

  /// There is a frame on show.
  public var hasFrame: Bool { core.state.withLock { $0.onShow != nil } }

  /// Leaves the frame on show where it is, whatever is due, until `release()`, `pause()` or another item. It wakes no
  /// thread.
  package func hold() { core.hold() }

  package func release() { core.release() }

  /// As `play()`, asked for at an earlier time by the clock: the frame on show has had its time since then.
  package func play(asOf time: Duration) { core.play(asOf: time) }

  /// Takes the item away, as `replaceCurrentItem(with: nil)`. What it gives returns when nothing of the item runs any
  /// more, whatever the player plays then.
  package func takeItem() -> @Sendable () async -> Void { core.takeItem() }

  /// From now on its outputs are called beside those of the players that it shared a lock with
  /// (`PlayerConfiguration.outputLock`).
  package func separateOutputs() { core.outputLock.separate() }

  /// Sets who is told what happens, before observers are: called at once, on any thread, without locks. It must not
  /// block.
  package func setObserver(_ observer: (@Sendable (PlayerSignal) -> Void)?) {
    core.observer.withLock { $0.call = observer }
  }

  // MARK: Accounts

  /// What has been shown of the present item, and what it holds.
  public var statistics: PlayerStatistics { core.statistics }
}

/// What a player has done with its item.
public struct PlayerStatistics: Sendable, Hashable {
  /// Frames shown.
  public var shownFrameCount = 0
  /// Frames that were dropped as late.
  public var droppedFrameCount = 0
  /// Frames shown that missed a reference or were concealed.
  public var damagedFrameCount = 0
  /// How often the presentation stood still for want of media, after its first frame. At a rate of `.infinity` a wait
  /// counts that is longer than 250 ms.
  public var stallCount = 0
  /// Of all stalls together, the present one too.
  public var stallDuration: Duration = .zero
  /// From the beginning of loading to the first frame shown; nil before.
  public var startupTime: Duration?
  /// How the time since the beginning of loading was spent.
  public var times = PlaybackTimes()
  /// How late frames were shown: one value each, the latest few thousand.
  public var lateness: [Duration] = []
  /// Of the gaps between the last frame of an item and the first of its next time, for loops.
  public var loopGaps: [Duration] = []
  package var ring: FrameRing.Statistics?
  /// Bytes that have come from the network and were not demuxed yet.
  public var inFlightByteCount = 0
  /// Memory that the manifest takes: its model and its text; 0 where that is not counted (no memory account).
  public var manifestByteCount = 0
  /// Bytes of the frame on show.
  public var onShowByteCount = 0
  /// An output has the frame on show.
  public var hasOutput = false
  /// Compressed bytes held.
  public var bufferByteCount = 0
  /// Of these, what comes behind the frame on show.
  public var unshownByteCount = 0
  public var bufferHighWaterByteCount = 0
  /// Loaded ahead of what is on show.
  public var bufferedDuration: Duration = .zero
  /// What adaptation takes the network for, in bits per second.
  public var estimatedBandwidth: Double?
  /// Time spent in decoders.
  public var decodeDuration: Duration = .zero
  /// Frames that came out of decoders.
  public var decodedFrameCount = 0
  /// Of those, frames that were decoded once more, after the decoder had been closed, to get to the next one.
  public var repeatedFrameCount = 0

  public init() {}
}
