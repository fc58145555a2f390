public import Logging
public import ReelCore
package import ReelFFmpeg
public import ReelReading
public import ReelSources

/// Plays one item at a time: loads it, decodes it, and shows its frames to outputs when they are due.
///
/// As in AVFoundation, calls return at once, and observed properties report the resulting state. All members may be
/// used from any thread. Frames are shown on a thread of the player's own.
///
/// A frame is late if the next frame is due as well. Late frames are dropped and counted, unless nothing has been shown
/// for 250 ms. At a rate of `.infinity` every frame is shown as soon as it is decoded.
///
/// A player stops when it is released: see ``stop()``.
public final class Player: Sendable {
  /// The action of a player at the end of an item.
  public enum ActionAtItemEnd: Sendable, Hashable {
    /// Pauses. The last frame stays on show, and ``Player/play()`` starts again at the beginning.
    case pause
    /// Starts again at the beginning, without a gap if the network is fast enough. A source that can't be sought
    /// pauses.
    case loop
    /// Keeps playing without any more frames. The last frame stays on show.
    case none
  }

  /// Whether the player plays, is paused, or waits.
  public let timeControlStatus: ObservedProperty<TimeControlStatus>
  /// The current item, or nil.
  public let currentItem: ObservedProperty<PlayerItem?>
  /// The requested rate: 0.25 to 8, or `.infinity`; 0 while paused.
  public let rate: ObservedProperty<Double>
  /// Whether audio is muted. Set it with ``setMuted(_:)``.
  public let isMuted: ObservedProperty<Bool>
  /// The factor by which samples are multiplied: 0 for silence, 1 for no change. Set it with ``setVolume(_:)``.
  public let volume: ObservedProperty<Float>
  /// The events of all items that this player plays.
  ///
  /// Each read makes a new stream. It begins with what has happened to the current item, as ``PlayerItem/events`` does,
  /// and continues with each new event, also of later items. A reader that falls 1,024 events behind loses the oldest.
  public var events: AsyncStream<PlayerEvent> { core.events.events }

  let core: PlayerCore

  /// Creates a player without an item.
  ///
  /// - Parameters:
  ///   - fetcher: Fetches manifests and media.
  ///   - configuration: The configuration for all items.
  ///   - logger: Receives the messages of FFmpeg's libraries.
  public convenience init(
    fetcher: any Fetching, configuration: PlayerConfiguration = PlayerConfiguration(),
    logger: Logger = Logger(label: "reel.playback")
  ) {
    self.init(fetcher: fetcher, configuration: configuration, account: nil, logger: logger)
  }

  /// - Parameters:
  ///   - gate: Grants permission before each call into a decoder.
  ///   - decoders: Limits the open video decoders. Nil for no limit.
  ///   - account: Counts the memory that the player holds.
  package init(
    fetcher: any Fetching, configuration: PlayerConfiguration = PlayerConfiguration(),
    gate: (any DecodingGate)? = nil, decoders: (any DecoderLimit)? = nil, account: MemoryAccount?,
    logger: Logger = Logger(label: "reel.playback")
  ) {
    core = PlayerCore(
      fetcher: fetcher, configuration: configuration, gate: gate, decoders: decoders, account: account,
      logger: logger)
    timeControlStatus = core.timeControlStatus.property
    currentItem = core.currentItem.property
    rate = core.rate.property
    isMuted = core.isMuted.property
    volume = core.volume.property
  }

  deinit { core.close() }

  // MARK: Playing

  /// Plays at the rate that was set last, as soon as enough media is buffered. After the end of an item, playback
  /// starts again at the beginning, unless ``actionAtItemEnd`` is `.none`.
  public func play() { core.play() }

  /// Pauses. The frame on show stays, and loading continues until the buffer is full.
  public func pause() { core.pause() }

  /// Sets the rate and plays. A rate of 0 or below pauses.
  ///
  /// - Parameter rate: 0.25 to 8, or `.infinity` for as fast as possible. Other positive rates are clamped to that
  ///   range.
  public func setRate(_ rate: Double) { core.setRate(rate) }

  /// Stops loading and decoding, unloads the item, pauses, and detaches all outputs. The player can play another item
  /// later.
  public func stop() { core.stop() }

  /// Like ``stop()``, but returns only when nothing of the item is running.
  public func stopAndWait() async { await core.stopAndWait() }

  /// Loads an item up to its first frame, and stops. Returns its error, or that of `late` if this ends before; nil if the
  /// item has a frame, or if the task was cancelled.
  ///
  /// - Parameter late: Waits as long as the item may take.
  package func loadFirstFrame(
    of item: PlayerItem, orUntil late: @escaping @Sendable () async -> ReelError?
  ) async -> ReelError? {
    preloadTarget = PreloadTarget(stage: .firstFrame)
    replaceCurrentItem(with: item)
    let error = await withTaskGroup(of: ReelError?.self) { group in
      group.addTask {
        for await status in item.status.values {
          switch status {
          case .readyToPlay: return nil
          case .failed(let error): return error
          case .unknown: break
          }
        }
        return nil
      }
      group.addTask { await late() }
      defer { group.cancelAll() }
      return await group.next() ?? nil
    }
    await stopAndWait()
    return error
  }

  /// Replaces the current item and begins loading the new one. If the player was playing, the new item plays too.
  ///
  /// An item that another player has is refused: this player is then without an item, and has the event
  /// ``PlayerEvent/failed(_:)`` with an error of kind `usage`.
  ///
  /// - Parameter item: The item to load, or nil to unload the current one.
  public func replaceCurrentItem(with item: PlayerItem?) { core.replaceCurrentItem(with: item, start: nil) }

  /// Like ``replaceCurrentItem(with:)``, but starts at `start`.
  ///
  /// - Parameters:
  ///   - item: The item to load, or nil to unload the current one.
  ///   - start: The position of the first frame to show, on the item's timeline.
  public func replaceCurrentItem(with item: PlayerItem?, startingAt start: MediaTime) {
    core.replaceCurrentItem(with: item, start: start)
  }

  /// Seeks to the frame on show at `time`, and waits until that frame is shown.
  ///
  /// After the call, no frame from before the seek is shown. A seek also retries an item that failed with a temporary
  /// error.
  ///
  /// - Parameters:
  ///   - time: The position on the item's timeline. Positions outside the item mean its first or last frame.
  ///   - tolerance: How much earlier the shown frame may be. Zero for the exact frame.
  /// - Returns: True when the frame was shown. False if another seek, another item, or a stop came first.
  ///
  /// If the task is cancelled, the wait ends at once, and the player still goes to the position. A task that was
  /// cancelled before does not seek.
  ///
  /// Throws `ReelError`: `usage` if the player is linear or has no item, `unsupported` if the source can't be sought,
  /// or the error with which the item failed; or `CancellationError`.
  @discardableResult
  public func seek(to time: MediaTime, tolerance: MediaTime = .zero) async throws -> Bool {
    try await core.seek(to: time, tolerance: tolerance)
  }

  /// The playback position on the item's timeline.
  public var currentTime: MediaTime { core.currentTime }

  // MARK: Settings

  /// Whether to wait for enough buffered media before playback starts or resumes. If false, playback starts with the
  /// first frame, and pauses where it would stall. True by default.
  public var automaticallyWaitsToMinimizeStalling: Bool {
    get { core.settings.waitsToMinimizeStalls }
    set { core.updateSettings { $0.waitsToMinimizeStalls = newValue } }
  }

  /// Whether seeking is refused, as in feeds of short videos. False by default.
  public var requiresLinearPlayback: Bool {
    get { core.settings.requiresLinearPlayback }
    set { core.updateSettings { $0.requiresLinearPlayback = newValue } }
  }

  /// The action at the end of an item. `.pause` by default.
  public var actionAtItemEnd: ActionAtItemEnd {
    get { core.settings.actionAtItemEnd }
    set { core.updateSettings { $0.actionAtItemEnd = newValue } }
  }

  /// Whether outputs may show frames outside of the process (``FrameOutput/isExternal``). Setting it to false detaches
  /// such outputs. True by default.
  public var allowsExternalPlayback: Bool {
    get { core.settings.allowsExternalPlayback }
    set { core.updateSettings { $0.allowsExternalPlayback = newValue } }
  }

  /// Whether a pool may show this player in picture in picture. True by default.
  public var allowsPictureInPicture: Bool {
    get { core.settings.allowsPictureInPicture }
    set { core.updateSettings { $0.allowsPictureInPicture = newValue } }
  }

  /// Whether each new item plays without a call to ``play()``. Setting it does not affect the current item. False by
  /// default.
  public var playsWhenReady: Bool {
    get { core.settings.playsWhenReady }
    set { core.updateSettings { $0.playsWhenReady = newValue } }
  }

  /// The extent to which the item is loaded before it is played. Nil, the default, loads for playback.
  ///
  /// A target set during playback limits further loading, and releases the frames decoded after the one on show. Set it
  /// to nil again before you call ``play()``.
  package var preloadTarget: PreloadTarget? {
    get { core.settings.preloadTarget }
    set { core.setPreloadTarget(newValue) }
  }

  /// Mutes or unmutes audio. A separate audio stream is not loaded while it is muted.
  public func setMuted(_ isMuted: Bool) { core.setMuted(isMuted) }

  /// Sets the factor by which samples are multiplied.
  ///
  /// - Parameter volume: 0 for silence, 1 for no change. A negative value counts as 0, one that is not finite as 1.
  public func setVolume(_ volume: Float) { core.setVolume(volume) }

  // MARK: Outputs

  /// Attaches an output for frames, and shows it the frame on show. Has no effect on an output that is
  /// already attached.
  ///
  /// Throws `ReelError.usage` if the output is external and ``allowsExternalPlayback`` is false.
  public func attach(_ output: any FrameOutput) throws(ReelError) { try core.attach(output) }

  /// Detaches an output for frames, and finishes it. Does not finish an output that is not attached.
  ///
  /// When the call returns, the output is no longer in use. Throws the error of its `finish()`.
  public func detach(_ output: any FrameOutput) throws { try core.detach(output) }

  /// Attaches an output for audio. It receives the samples that are due from now on. Has no effect on an output that is
  /// already attached.
  public func attach(_ output: any AudioOutput) { core.attach(output) }

  /// Detaches an output for audio, and finishes it. Does not finish an output that is not attached.
  ///
  /// When the call returns, the output is no longer in use. Throws the error of its `finish()`.
  public func detach(_ output: any AudioOutput) throws { try core.detach(output) }

  /// Returns the frame on show, or nil if there is none. No pixels are copied, and the call does not wait.
  public func currentFrame() -> VideoFrame? { core.currentFrame() }

  package var hasFrame: Bool { core.state.read { $0.item.onShow.frame != nil } }

  package func hasFrame(of item: PlayerItem) -> Bool { currentFrame(of: item) != nil }

  /// Returns the frame on show, or nil if there is none, or the player has another item.
  package func currentFrame(of item: PlayerItem) -> VideoFrame? {
    core.state.read { $0.item.playerItem === item ? $0.item.onShow.frame : nil }
  }

  /// Keeps the frame on show, even if other frames are due, until `release()`, `pause()` or another item.
  /// Wakes no thread.
  package func hold() { core.hold() }

  /// Continues playback after `hold()`.
  package func release() { core.release() }

  /// Like `play()`, but requested at an earlier time by the clock: the frame on show counts as shown since then.
  package func play(asOf time: Duration) { core.play(asOf: time) }

  /// True if the item has ended, and `play()` would start it again at its beginning.
  package var canRewind: Bool { core.canRewind }

  /// Returns an item that has ended to its beginning, which is then loaded as far as ``preloadTarget``
  /// requires. Its last frame stays on show until the first one is decoded.
  ///
  /// - Returns: False if nothing changes: the item has not ended, or can't be sought.
  package func rewind() -> Bool { core.rewind() }

  /// False while the frame on show is from before the last seek.
  package var hasCurrentFrame: Bool { core.state.read { $0.hasCurrentFrame } }

  /// Unloads the item like `replaceCurrentItem(with: nil)`. The returned closure waits until nothing of the
  /// item is running, even if the player plays another one by then.
  package func takeItem() -> @Sendable () async -> Void { core.takeItem() }

  /// Calls outputs independently of the players with which this one shared a lock
  /// (`PlayerConfiguration.outputLock`).
  package func separateOutputs() { core.outputLock.separate() }

  /// Sets a closure that receives all signals, and events in their order. It is called on any thread, without locks, and
  /// must not block.
  package func setObserver(_ observer: (@Sendable (PlayerSignal) -> Void)?) {
    core.observer.withLock { $0.call = observer }
  }

  /// Calls `receive` with each event from now on, when it is told: in the order of changes of the player's properties
  /// (`ObservedProperty.observe(_:)`), and before the call that made the change returns. It is called under a lock, and
  /// may do no more than add to the buffer of a stream.
  package func observeEvents(_ receive: @escaping @Sendable (PlayerEvent) -> Void) {
    core.events.observe(receive)
  }

  // MARK: Accounts

  /// The statistics of the current item. They start at zero with each item.
  public var statistics: PlayerStatistics { core.statistics }

  /// The statistics with an `unshownByteCount` of 0, which take less time.
  package var statisticsWithoutUnshown: PlayerStatistics { core.statisticsWithoutUnshown }
}

/// Statistics of the frames shown of the current item, and of the media that is loaded for it. The memory of a player by kind is
/// in the ledger of a pool (`PlayerPool.memory`).
public struct PlayerStatistics: Sendable, Hashable {
  /// The number of frames shown.
  public var shownFrameCount = 0
  /// The number of frames dropped because they were late.
  public var droppedFrameCount = 0
  /// The number of frames shown that missed a reference or were concealed.
  public var damagedFrameCount = 0
  /// The number of times that playback ran out of media. At a rate of `.infinity`, waits of up to 250 ms do not count.
  public var stallCount = 0
  /// The total duration of all stalls, including a current one.
  public var stallDuration: Duration = .zero
  /// The time from the beginning of loading to the first frame shown. Nil before it.
  public var startupTime: Duration?
  /// The use of the time since the beginning of loading.
  package var times = PlaybackTimes()
  /// The lateness of the shown frames, a value per frame. The latest 8192 values are kept, not in order.
  package var lateness: [Duration] = []
  /// The lateness of the first frame of each iteration of a loop.
  package var loopGaps: [Duration] = []
  package var ring: FrameRing.Statistics?
  /// The bytes that were received but not demuxed yet.
  package var inFlightByteCount = 0
  /// The memory of the manifest, in bytes. 0 for a player outside a pool, where it is not measured.
  package var manifestByteCount = 0
  package var onShowByteCount = 0
  /// Whether an output for frames is attached.
  package var hasOutput = false
  /// The bytes of compressed media in the forward buffer.
  package var bufferByteCount = 0
  /// The part of ``bufferByteCount`` that comes after the frame on show.
  package var unshownByteCount = 0
  /// The maximum of ``bufferByteCount`` so far.
  package var bufferHighWaterByteCount = 0
  /// The media that is loaded ahead of the frame on show.
  public var bufferedDuration: Duration = .zero
  package var isLoadedToEnd = false
  /// The throughput that adaptation assumes, in bits per second. Nil if it has none, or the bit rate is not adapted.
  public var estimatedBandwidth: Double?
  /// The time spent in video decoders.
  package var decodeDuration: Duration = .zero
  /// The number of frames that video decoders returned.
  public var decodedFrameCount = 0
  /// The part of ``decodedFrameCount`` that was decoded again to continue after the decoder was closed.
  package var repeatedFrameCount = 0
  /// An estimate of the bytes of the open decoder's own frames (`DecoderFacts.heldByteCount(outsideCount:)`).
  package var decoderByteCount = 0

  /// Creates statistics with zeros.
  package init() {}
}

/// The configuration of a player, for all of its items.
public struct PlayerConfiguration: Sendable {
  /// The configuration of loading: header fields, limits, the bandwidth cap, keys, decoder threads.
  public var loading = LoadingConfiguration()
  /// Whether rungs are chosen by the measured throughput. If false, the player chooses the highest rung at or under
  /// `LoadingConfiguration.preferredPeakBitRate`. False by default.
  public var adaptsBitRate = false
  /// The throughput to assume before the first measurement, in bits per second. If nil, adaptation starts
  /// with the highest rung up to 3 Mbit/s.
  public var initialBandwidth: Double?
  /// The amounts of buffered media at which playback starts and resumes.
  public var thresholds = BufferingThresholds()
  /// The number of retries of a failed item, and their delays.
  public var retryPolicy = ItemRetryPolicy()
  /// The number of frames to decode ahead. 8 by default.
  package var ringFrameCapacity = 8
  /// The bytes of frames to decode ahead. 256 MiB by default.
  package var ringByteCapacity = 256 << 20
  /// The clock by which frames are shown and durations are measured.
  package var clock: any MonotonicClock = SystemMonotonicClock()
  /// Runs the player's threads and tasks.
  package var runtime: any PlayerRuntime = SystemRuntime.shared
  /// Opens the player's video decoders.
  package var decoders: any DecoderMaking = LibavDecoders()
  /// A lock to share with other players while outputs are called. If nil, each player has its own.
  package var outputLock: OutputLock?

  /// Creates the default configuration.
  public init() {}
}
