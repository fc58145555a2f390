public import Logging
public import ReelCore
internal import ReelFFmpeg
public import ReelPlayback
public import ReelReading
package import ReelSources

/// A pool of players for swiping through a feed: the current item plays, and the first frames of its neighbours are
/// decoded before a swipe reaches them.
///
/// Each player occupies a slot; item `index` has the slot `index % slotCount`. A slot follows the identity of its item,
/// so a loaded item stays loaded when others are removed. The **window** is the contiguous part of the feed around the
/// current item that has slots. The policy (``PreloadPolicy``) decides how far it reaches and how far each neighbour is
/// loaded. An item that leaves the window is cancelled at once, and its memory is freed. Its frames and packets return to
/// the system; how much of the rest does depends on malloc. An item that stays keeps its buffer, and becomes the current
/// item without fetching a byte twice.
///
/// On the network and on the processor, the current item has priority over preloads, and preloads follow by rank.
///
/// - If the pool has more slots than the feed has items, slots stay empty. If the policy wants more items than there
///   are slots, the nearest ones are loaded.
/// - An item that can't be played does not affect its neighbours. A swipe to it has the error (``Handover/error``). If
///   the failure is temporary, showing the item again retries it.
///
/// You can call all methods from any thread. Only `ready(_:)` waits for media.
public final class PlayerPool: PlayerPooling {
  /// The events of the pool and of its players.
  ///
  /// Each read makes a new stream. It begins with what has happened to the items that have a slot or are pinned, each
  /// since it got its slot, at most the latest 512 events, and continues with each new event. A reader that falls 1,024
  /// events behind loses the oldest.
  public var events: AsyncStream<PoolEvent> { core.events.events }
  /// The readiness of each slot, in the order of the slots. Updated when an item reaches a stage and after each event of a
  /// player.
  public let readiness: ObservedProperty<[SlotReadiness]>

  let core: PoolCore

  /// A pool without a feed, for a ``PlayerService``. It plays the items that are shown until it is paused.
  ///
  /// - Parameters:
  ///   - fetcher: Fetches manifests and media. If it is a `ConnectionOpening`, the pool opens connections ahead.
  ///   - configuration: The number of players, the policy, and the settings of the players.
  ///   - logger: Gets the messages of the pool and its players.
  public init(
    fetcher: any Fetching, configuration: PoolConfiguration = PoolConfiguration(),
    logger: Logger = Logger(label: "reel.pool")
  ) {
    core = PoolCore(fetcher: fetcher, configuration: configuration, logger: logger)
    readiness = core.readiness.property
  }

  /// A pool for one feed. It loads the first item and its neighbours, and shows the first frame, paused.
  ///
  /// - Parameters:
  ///   - feed: The items to swipe through. For several feeds on one pool, use a ``PlayerService``.
  ///   - fetcher: Fetches manifests and media. If it is a `ConnectionOpening`, the pool opens connections ahead.
  ///   - configuration: The number of players, the policy, and the settings of the players.
  ///   - logger: Gets the messages of the pool and its players.
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

  /// Plays the current item and every item shown from now on, or pauses them. Also available as `play()` and `pause()`.
  public func setPlaying(_ isPlaying: Bool) { core.setPlaying(isPlaying) }

  /// Mutes or unmutes all items of the pool, now and from now on, except those in picture in picture. Separate audio streams
  /// of muted items are not loaded.
  public func setMuted(_ isMuted: Bool) { core.setMuted(isMuted) }

  /// The current item: the one that was shown last. `nil` before the first.
  public var currentItem: FeedItem? { core.state.withLock { $0.currentItem } }

  // MARK: Swiping

  /// Makes an item of the feed the current item, and returns its frame if it is decoded. Does not wait.
  ///
  /// - Parameters:
  ///   - index: The item's index in the feed.
  ///   - phase: `dragEnded` only shows the item's frame; `settled` also plays it, unless the pool is paused.
  /// - Returns: The frame and the stage found. For an index outside the feed, the handover has an error of kind
  ///   `usage`, and the current item stays.
  @discardableResult
  public func show(_ index: Int, phase: SwipePhase) -> Handover {
    core.show(index, of: nil, phase: phase)
  }

  /// Makes an item of `snapshot` the current item, and returns its frame if it is decoded. Does not wait.
  ///
  /// - Parameters:
  ///   - index: The item's index in the snapshot.
  ///   - snapshot: Replaces the items of the pool.
  ///   - phase: `dragEnded` only shows the item's frame; `settled` also plays it, unless the pool is paused.
  /// - Returns: The frame and the stage found. For an index outside the snapshot, the handover has an error of kind
  ///   `usage`, and nothing changes.
  @discardableResult
  public func show(_ index: Int, of snapshot: FeedSnapshot, phase: SwipePhase = .settled) -> Handover {
    core.show(index, of: snapshot, phase: phase)
  }

  /// Waits until the first frame of an item of the feed is decoded. A swipe to the item is then a hit.
  ///
  /// - Throws: The error that the item failed with; `ReelError` of kind `usage` if the index is outside the feed, the
  ///   item leaves the feed or is pinned, or the policy currently does not load it up to its first frame, or of kind
  ///   `closed` if the pool is closed; `CancellationError` if the task was cancelled.
  public func ready(_ index: Int) async throws { try await core.ready(index) }

  /// Replaces the items of the pool, and the index of the current item among them. An unchanged current item
  /// continues to play.
  ///
  /// - Parameters:
  ///   - snapshot: The items of the feed.
  ///   - index: The index of the current item. With `nil`, or an index outside the snapshot, the pool has none.
  public func update(_ snapshot: FeedSnapshot, currentIndex index: Int?) {
    core.update(snapshot, index: index)
  }

  /// Keeps the starts of items of other feeds, in place of those of the call before.
  ///
  /// The first ones are loaded in slots of their own (``PoolConfiguration/slotsForOtherFeeds``). With a cache, the heads of the
  /// others are kept on disk: all that their starts request, and the first 3 s of media. They are loaded one at a time, while
  /// no player uses the network, and after those that the policy wants.
  ///
  /// - Parameter items: The items at which the other feeds were left, the latest first. At a change of feed, the pool puts the
  ///   item that is left before them, and removes that of the feed that is shown.
  public func keepStarts(of items: [FeedItem]) { core.keepStarts(of: items) }

  /// Sets the handler of failures. Setting `nil` removes it.
  ///
  /// It is called when an item of the window can't be played, and once more if such an item is shown again. The call
  /// may come on any thread and must not block.
  public func setFailureHandler(_ handler: (@Sendable (FeedItem.ID, ReelError) -> Void)?) {
    core.listeners.withLock { $0.onFailure = handler }
  }

  /// Ends all players, including pinned ones, finishes the surface's output, and frees the memory. A closed pool loads
  /// nothing more: `show` and waits have an error of kind `closed`.
  public func close() { core.close() }

  // MARK: Output

  /// The frames of the current item, across swipes: first the frame on show, then each frame when it is due.
  ///
  /// Each access creates an independent reader. A slow reader gets only the newest frame, and delays no
  /// other. The sequence ends when the pool is closed. A task that reads it keeps the pool alive, so close
  /// the pool or cancel the task. Posters are not included.
  public var frames: AsyncStream<VideoFrame> { core.frameStream }

  /// Sets the surface: the output that follows the current item.
  ///
  /// On a hit, the surface gets the item's frame within the call of `show`, then each frame when it is due.
  /// The previous output is finished. An output that is set after ``close()`` is finished at once.
  ///
  /// - Parameter output: The new surface, or `nil` for none.
  /// - Throws: The error that finishing an output throws.
  public func setSurface(_ output: (any FrameOutput)?) throws {
    guard !core.state.withLock({ $0.isClosed }) else {
      try output?.finish()
      return
    }
    try core.surface.setOutput(output) { core.state.withLock { $0.target } }
    // Posters are fetched only for a surface.
    core.state.withLock { $0.beginGeneration() }
    core.wake()
  }

  /// The item whose player the surface is attached to; `nil` if there is none.
  public var surfaceItem: FeedItem.ID? { core.surface.id }

  // MARK: Accounts

  /// The current item's player; `nil` if it does not have one yet, as right after a swipe to an item that was not
  /// preloaded.
  public var currentPlayer: Player? { core.state.withLock { $0.target }?.player.player }

  package var slotReadiness: [SlotReadiness] { core.slotReadiness }

  /// The memory that each player currently holds, by kind, and its total.
  public var memory: MemoryLedger { core.ledgerWithDisk }

  /// Ends preloads, the least important first, until all players together hold at most `byteCount` bytes.
  ///
  /// The current item and pinned players are counted but never ended. The pool does not load the preloads again before
  /// the current item changes.
  ///
  /// - Returns: The bytes held afterwards by the players that have an item.
  @discardableResult
  public func trim(to byteCount: Int) -> Int { core.trim(to: byteCount) }

  /// Removes from the cache on disk what was not used for the longest time, until at most `byteCount` bytes are left. What
  /// other pools and programs keep there counts too.
  ///
  /// - Returns: The bytes on disk afterwards; 0 without a cache.
  @discardableResult
  public func trimDisk(to byteCount: Int64) async -> Int64 {
    guard let store = core.resources.network.store else { return 0 }
    await store.trim(toByteCount: max(byteCount, 0))
    core.heads?.checkAll()
    return store.storedByteCount
  }

  // MARK: Pinning

  /// Takes the current item's player out of the window. It continues to play to an output of its own, and its
  /// slot gets another player.
  ///
  /// The pool does not load the item a second time while it is pinned: a swipe to it shows nothing on the surface.
  ///
  /// - Parameter output: Gets the frames of the player from now on.
  /// - Returns: The player. It ends when you release it.
  /// - Throws: `ReelError` of kind `usage` if there is no current player, or if the pool or the player does not allow
  ///   picture in picture or the external output; the error of attaching the output.
  public func startPictureInPicture(to output: any FrameOutput) throws(ReelError) -> PictureInPicturePlayer {
    try core.startPictureInPicture(to: output)
  }

  // MARK: - Internal

  /// Sets a handler for events, called at once on any thread. It must not block.
  package func setObserver(_ observer: (@Sendable (PoolEvent) -> Void)?) {
    core.listeners.withLock { $0.onEvent = observer }
  }

  package func setAccountant(_ accountant: PoolAccountant?) {
    core.listeners.withLock { $0.accountant = accountant }
  }

  /// Returns the start-up report of an item; nil if it has no slot or no frame yet.
  package func startup(of id: FeedItem.ID) -> StartupReport? {
    core.state.withLock { $0.slot(of: id) }?.load?.item.startup
  }

  /// Returns the rungs that were opened for an item, in order; empty if it has no slot.
  package func accessLog(of id: FeedItem.ID) -> [AccessLogEntry] {
    core.state.withLock { $0.slot(of: id) }?.load?.item.accessLog ?? []
  }

  /// Returns true if the head of an item was loaded, and was on disk when that was checked last.
  package func isOnDisk(_ id: FeedItem.ID) -> Bool { core.heads?.isOnDisk(id) ?? false }

  /// Returns the bytes transferred over the network for an item; 0 if it has no slot.
  package func fetchedByteCount(of id: FeedItem.ID) -> Int64 {
    core.state.withLock { $0.slot(of: id) }?.fetchedByteCount ?? 0
  }
}

/// A pool as programs use it: a ``PlayerPool``, or a fake without media in tests.
///
/// Code that takes `some PlayerPooling` can be tested with a fake.
public protocol PlayerPooling: AnyObject, Sendable {
  /// The current item: the one that was shown last. `nil` before the first.
  var currentItem: FeedItem? { get }

  /// The frames of the current item, across swipes: first the frame on show, then each frame when it is due.
  ///
  /// Each access creates an independent reader.
  var frames: AsyncStream<VideoFrame> { get }

  /// The memory that each player currently holds, by kind, and its total.
  var memory: MemoryLedger { get }

  /// The readiness of each slot, in the order of the slots.
  var readiness: ObservedProperty<[SlotReadiness]> { get }

  /// The events of the pool and of its players. Each read makes a new stream.
  var events: AsyncStream<PoolEvent> { get }

  /// The item that the surface is attached to; `nil` if there is none.
  var surfaceItem: FeedItem.ID? { get }

  /// Sets the surface: the output that follows the current item. The previous output is finished.
  func setSurface(_ output: (any FrameOutput)?) throws

  /// Takes the current item out of the window. It continues to play to an output of its own.
  ///
  /// - Throws: `ReelError` of kind `usage` if there is no current player, or picture in picture is not allowed.
  func startPictureInPicture(to output: any FrameOutput) throws(ReelError) -> PictureInPicturePlayer

  /// Makes an item of the feed the current item, and returns its frame if it is decoded. Does not wait.
  ///
  /// - Parameters:
  ///   - index: The item's index in the feed. For an index outside the feed, the handover has an error of kind `usage`.
  ///   - phase: `dragEnded` only shows the item's frame; `settled` also plays it, unless the pool is paused.
  @discardableResult
  func show(_ index: Int, phase: SwipePhase) -> Handover

  /// Waits until the first frame of an item of the feed is decoded. A swipe to the item is then a hit.
  ///
  /// - Throws: The error that the item failed with; `ReelError` of kind `usage` if the index is outside the feed, or
  ///   `closed` if the pool is closed; `CancellationError` if the task was cancelled.
  func ready(_ index: Int) async throws

  /// Ends the pool, and with it ``frames``.
  func close()

  /// Makes an item of `snapshot` the current item, and returns its frame if it is decoded. Does not wait.
  ///
  /// - Parameters:
  ///   - index: The item's index in the snapshot.
  ///   - snapshot: Replaces the items of the pool.
  ///   - phase: `dragEnded` only shows the item's frame; `settled` also plays it.
  /// - Returns: The frame and the stage found. For an index outside the snapshot, the handover has an error of kind
  ///   `usage`, and nothing changes.
  @discardableResult
  func show(_ index: Int, of snapshot: FeedSnapshot, phase: SwipePhase) -> Handover

  /// Replaces the items of the pool, and the index of the current item among them. An unchanged current item
  /// continues to play.
  ///
  /// - Parameters:
  ///   - snapshot: The items of the feed.
  ///   - index: The index of the current item; `nil` if there is none any more.
  func update(_ snapshot: FeedSnapshot, currentIndex index: Int?)

  /// Keeps the starts of items of other feeds, the most important one first, in place of those of the call before. By default,
  /// it does nothing.
  func keepStarts(of items: [FeedItem])

  /// Plays the current item and those shown from now on, or pauses them.
  func setPlaying(_ isPlaying: Bool)

  /// Mutes or unmutes all items of the pool, now and from now on.
  func setMuted(_ isMuted: Bool)

  /// Sets the handler that is called for an item that can't be played. The call may come on any thread and must not
  /// block.
  func setFailureHandler(_ handler: (@Sendable (FeedItem.ID, ReelError) -> Void)?)
}

extension PlayerPooling {
  public func keepStarts(of items: [FeedItem]) {}

  /// Plays the current item, and every item shown from now on.
  public func play() { setPlaying(true) }

  /// Pauses the current item, and every item shown from now on.
  public func pause() { setPlaying(false) }

  /// Makes an item of the feed the current item and plays it, unless the pool is paused: `show(_:phase:)` with the phase
  /// `settled`.
  @discardableResult
  public func show(_ index: Int) -> Handover { show(index, phase: .settled) }
}

/// An event of a ``PlayerPool``.
public enum PoolEvent: Sendable, Hashable {
  /// An item got a slot, and begins to load.
  case assigned(FeedItem.ID, slot: Int)
  /// The loading of an item reached a stage, `after` this time since it began.
  case reached(FeedItem.ID, slot: Int, PreloadStage, after: Duration)
  /// An item lost its slot at this stage. Its loading is cancelled, and its memory is freed.
  case evicted(FeedItem.ID, slot: Int, PreloadStage)
  /// The item was shown with `PlayerPool.show`; `stage` is the stage found.
  case shown(FeedItem.ID, SwipePhase, stage: PreloadStage)
  /// The surface was attached to the player of this item.
  case surfaceAttached(FeedItem.ID)
  /// The surface was detached from the player of this item.
  case surfaceDetached(FeedItem.ID)
  /// The item's poster is on the surface until its first frame is decoded.
  case posterShown(FeedItem.ID)
  /// The state of an item's picture in picture changed.
  case pinned(FeedItem.ID, PictureInPictureState)
  /// `PlayerPool.trim(to:)` ended preloads; this many bytes are held now.
  case trimmed(byteCount: Int)
  /// The head of an item without a slot is on disk.
  case stored(FeedItem.ID)
  /// An event of the player of an item.
  case player(FeedItem.ID, PlayerEvent)

  /// The item that the event is about; nil if it is about the pool.
  var item: FeedItem.ID? {
    switch self {
    case .assigned(let id, _), .reached(let id, _, _, _), .evicted(let id, _, _), .shown(let id, _, _),
      .surfaceAttached(let id), .surfaceDetached(let id), .posterShown(let id), .pinned(let id, _),
      .stored(let id), .player(let id, _):
      id
    case .trimmed: nil
    }
  }
}

extension VideoFrame {
  /// The feed's item that the frame belongs to; nil for a frame that does not come from a pool.
  public package(set) var item: FeedItem.ID? {
    get { itemID as? FeedItem.ID }
    set { itemID = newValue }
  }
}

/// The items of one feed at one moment, for a ``PlayerPooling`` pool.
public struct FeedSnapshot: Sendable, Hashable {
  /// The feed's name.
  public var feed: String
  /// The items in the feed's order.
  public var items: [FeedItem]

  /// A snapshot with these items, each once.
  public init(feed: String, items: [FeedItem]) {
    self.feed = feed
    self.items = items
  }

  /// Creates a snapshot of the current items of `feed`.
  public init(_ feed: Feed) { self.init(feed: feed.name, items: feed.items) }

  /// Returns an item. Throws for an index outside the snapshot.
  package func item(at index: Int) throws(ReelError) -> FeedItem {
    guard items.indices.contains(index) else { throw outside(index) }
    return items[index]
  }

  /// Throws for an item that the snapshot does not have.
  package func check(_ id: FeedItem.ID) throws(ReelError) {
    guard !items.contains(where: { $0.id == id }) else { return }
    throw ReelError(.usage, "the feed \(feed) has this item no longer", at: id.description)
  }

  package func outside(_ index: Int) -> ReelError {
    ReelError(
      .usage,
      items.isEmpty
        ? "the feed \(feed) has no items"
        : "the feed \(feed) has no item \(index): its \(items.count) items count from 0")
  }
}
