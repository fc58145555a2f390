public import Logging
public import ReelCore
public import ReelPlayback

/// A pool of players that walks a feed: the current item plays, and the first frames of its neighbours are decoded
/// before they are wanted.
///
/// Item `index` of a snapshot has the slot `index % slotCount`; a slot belongs to the item's identity in its feed, so that
/// what was loaded of an item stays where others are removed, and never passes for another's. Around the current item
/// lies the window: one stretch of the snapshot, of no more items than there are slots, as deep as the policy wants
/// (`PreloadPolicy`). What leaves it is cancelled at once, and its memory goes back to the system. What stays keeps its
/// buffer, and becomes the current item without a byte fetched twice.
///
/// The current item goes before preloads, and preloads by their rank, on the network and on the processor.
///
/// - An index that the snapshot does not have is an error. A pool larger than the feed has slots that stay empty. A policy
///   that wants more than there are slots gets the nearest of what it wants.
/// - An item that can't be played fails alone: its slot says so (`SlotReadiness.status`), and its neighbours play. One
///   whose failure may pass is tried again when it is shown once more.
///
/// All of it may be used from any thread; no call waits.
public final class PlayerPool: PlayerPooling {
  /// What happens in the pool.
  ///
  /// Each read makes a new stream, of the events from then on, in order. A reader that falls 1,024 events behind loses
  /// the oldest.
  public var events: AsyncStream<PoolEvent> { core.events.events }
  /// How ready each slot is, by slot. Told when a stage is reached or a player tells something; `slotReadiness` is of now.
  public let readiness: ObservedProperty<[SlotReadiness]>

  let core: PoolCore

  /// - Parameters:
  ///   - fetcher: Gets manifests and media; one that is `ConnectionOpening` opens connections ahead.
  ///   - configuration: How many players, and how they load.
  public init(
    fetcher: any Fetching, configuration: PoolConfiguration = PoolConfiguration(),
    logger: Logger = Logger(label: "reel.pool")
  ) {
    core = PoolCore(fetcher: fetcher, configuration: configuration, logger: logger)
    readiness = core.readiness
  }

  /// A pool that walks `feed`: it begins to load the first item and its neighbours, and shows the first frame, paused.
  ///
  /// - Parameters:
  ///   - feed: Where several feeds share a pool, use a `PlayerService`.
  ///   - fetcher: Gets manifests and media; one that is `ConnectionOpening` opens connections ahead.
  ///   - configuration: How many players, and how they load.
  public convenience init(
    feed: Feed, fetcher: any Fetching, configuration: PoolConfiguration = PoolConfiguration(),
    logger: Logger = Logger(label: "reel.pool")
  ) {
    self.init(fetcher: fetcher, configuration: configuration, logger: logger)
    pause()
    update(FeedSnapshot(feed), currentIndex: feed.items.isEmpty ? nil : 0)
  }

  deinit { core.close() }

  // MARK: Playing

  /// Plays the current item, and those that are swiped to.
  public func play() { core.setPlaying(true) }

  /// Pauses the current item, and those that are swiped to.
  public func pause() { core.setPlaying(false) }

  /// The same as ``play()`` and ``pause()``.
  public func setPlaying(_ isPlaying: Bool) { core.setPlaying(isPlaying) }

  /// The item that was shown last; nil before there is one.
  public var currentItem: FeedItem? { core.state.withLock { $0.currentItem } }

  // MARK: Swiping

  /// Makes an item of the feed the current one, and hands over its frame where that is there. Never waits.
  ///
  /// - Returns: For an index that the feed does not have, a handover with an `error`: the current item stays.
  @discardableResult
  public func show(_ index: Int, phase: SwipePhase = .settled) -> Handover { core.show(index, phase: phase) }

  @discardableResult
  public func show(
    _ index: Int, of snapshot: FeedSnapshot, phase: SwipePhase = .settled
  ) throws(ReelError) -> Handover {
    try core.show(index, of: snapshot, phase: phase)
  }

  /// Returns when the first frame of an item of the feed is decoded: a swipe to it is a hit then.
  ///
  /// - Throws: What the item failed with; `ReelError` of kind `usage` where the policy, as things stand, does not load
  ///   the item that far, or the feed does not have it, and of kind `cancelled` where the pool was closed;
  ///   `CancellationError` where the task was cancelled.
  public func ready(_ index: Int) async throws { try await core.ready(index) }

  public func update(_ snapshot: FeedSnapshot, currentIndex index: Int?) {
    core.update(snapshot, index: index)
  }

  public func setFailureHandler(_ handler: (@Sendable (FeedItem.ID, ReelError) -> Void)?) {
    core.state.withLock { $0.onFailure = handler }
  }

  /// Ends all players, pinned ones too, finishes the surface's output, and gives back what is held. Nothing is loaded any
  /// more.
  public func close() { core.close() }

  // MARK: Output

  /// The frames of the current item, from item to item: the one on show, then each as it is due. A reader that is slow
  /// gets the newest, and holds nobody up.
  ///
  /// Each use makes a reader of its own. The sequence ends when the pool is closed; a task that reads it keeps the pool,
  /// so close the pool or cancel the task. Posters are not among the frames.
  public var frames: AsyncStream<VideoFrame> { core.frameStream }

  /// Sets the output that follows the current item: it gets the frame that a swipe finds within the call of `show`,
  /// then each frame as it is due. The output before is finished; what that throws is thrown here. One that is set after
  /// `close()` is finished at once.
  public func setSurface(_ output: (any FrameOutput)?) throws {
    guard !core.state.withLock({ $0.isClosed }) else {
      try output?.finish()
      return
    }
    try core.surface.setOutput(output) { core.state.withLock { $0.target } }
    core.wakePoster()
  }

  /// The item that the surface shows.
  public var surfaceItem: FeedItem.ID? { core.surface.id }

  // MARK: Accounts

  /// The current item's player; nil where it has none yet.
  public var currentPlayer: Player? { core.state.withLock { $0.target }?.player.player }

  public var slotReadiness: [SlotReadiness] { core.slotReadiness }

  /// What each player holds of memory, by kind, and in `total` all players together.
  public var memory: MemoryLedger { core.ledger }

  /// Gives memory back until all players together hold at most so many bytes, or only the current item is left: the
  /// preloads go first that have the lowest rank. They are not loaded again before the current item changes.
  ///
  /// - Returns: What is held afterwards, in bytes, as `memory` has it.
  @discardableResult
  public func trim(to byteCount: Int) -> Int { core.trim(to: byteCount) }

  // MARK: Pinning

  /// Takes the current item's player out of the window: it plays on, on an output of its own, while the feed goes on;
  /// its slot gets another player.
  ///
  /// Throws `ReelError.usage` where there is no current player, or where pinning is refused by the pool or the player.
  public func startPictureInPicture(to output: any FrameOutput) throws(ReelError) -> PictureInPicturePlayer {
    try core.startPictureInPicture(to: output)
  }

  /// The players that are pinned.
  public var pinnedItems: [FeedItem.ID] { core.state.withLock { $0.pinned.map(\.id) } }

  // MARK: - Internal

  /// Sets who is told what happens at once, on any thread; must not block.
  package func setObserver(_ observer: (@Sendable (PoolEvent) -> Void)?) {
    core.observer.withLock { $0.call = observer }
  }

  package func setAccountant(_ accountant: PoolAccountant?) { core.accountant.withLock { $0 = accountant } }

  /// How the loading of an item went, as far as its first frame; nil where it has no slot or no frame.
  package func startup(of id: FeedItem.ID) -> StartupReport? {
    core.state.withLock { $0.player(of: id) }?.load?.item.startup
  }

  /// Bytes that came over the network for an item; 0 where it has no slot.
  package func fetchedByteCount(of id: FeedItem.ID) -> Int64 {
    core.state.withLock { $0.player(of: id) }?.fetched.byteCount ?? 0
  }
}
