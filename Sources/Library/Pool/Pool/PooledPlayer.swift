internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
public import ReelPlayback

/// A player of the pool, with its access to network, cores and memory. It moves from item to item, and from
/// slot to slot when items change their indices.
final class PooledPlayer: Sendable {
  /// The item that the player has been given.
  struct Load: Sendable {
    let feedItem: FeedItem
    let item: PlayerItem
    let began: Duration
    /// The network statistics before the load.
    let fetchedBefore: PriorityFetcher.Statistics
    var order: Order
    var isPlaying = false
    /// The stage that was reported last.
    var reported = PreloadStage.none
    /// The time at which the first frame was ready, by the clock; nil until then.
    var firstFrameAt: Duration?
    /// The stage to which a rewound item is loaded again; nil for one that was not rewound, or is buffered
    /// again.
    var rewoundStage: PreloadStage?
    /// The bytes that had been fetched when the item was rewound; 0 for one that was not.
    var byteCountBeforeRewind: Int64 = 0

    /// The stage that loading has reached, since the item was rewound if it was. That of `PlayerItem` never goes back.
    var stage: PreloadStage { rewoundStage ?? item.preloadStage.value }
  }

  /// Instructions to the player for the item.
  struct Order: Sendable {
    /// The index in the feed.
    var index: Int
    /// The rank; 0 for the current item.
    var rank: Int
    /// The target; nil to play the item.
    var target: PreloadTarget?
    /// Limits on loading while it is played.
    var bounds = LoadingBounds()
    /// False to pause.
    var plays: Bool
    /// The time at which playback was requested, by the clock.
    var since: Duration
    /// True if the pool's memory does not allow everything that the policy requests.
    var lacksMemory = false
  }

  let player: Player
  let account: MemoryAccount?
  private let resources: PoolResources
  private let sharesThroughput: Bool
  private let gate: SlotGate
  /// Nil if the number of open decoders is not limited.
  private let decoders: PlayerDecoders?
  private let network: PriorityFetcher.Slot
  private let clock: any MonotonicClock
  private let runtime: any PlayerRuntime
  private let state = Locked<Load?>(nil, rank: .load)

  init(_ resources: PoolResources, configuration: PoolConfiguration) {
    clock = configuration.player.clock
    runtime = configuration.player.runtime
    self.resources = resources
    sharesThroughput = configuration.sharesThroughput
    gate = SlotGate(resources.gate, rank: .max)
    decoders = resources.decoders?.makePlayer(rank: .max)
    network = resources.network.makeSlot(rank: .max)
    account = configuration.keepsAccounts ? try? MemoryAccount() : nil
    player = Player(
      fetcher: network, configuration: configuration.player, gate: gate, decoders: decoders,
      account: account, logger: resources.logger)
    player.actionAtItemEnd = configuration.actionAtItemEnd
  }

  var load: Load? { state.withLock { $0 } }
  var id: FeedItem.ID? { load?.feedItem.id }
  /// True if a frame of the item is on show.
  var hasFrame: Bool { player.hasFrame }
  /// The same, but false for the last frame of an item that is being rewound.
  var isReady: Bool { player.hasFrame && load?.rewoundStage != .initialization }
  /// True while it waits for slots of better rank.
  var isHeldBack: Bool { network.isHeldBack }
  /// True while it waits for another player to close its decoder.
  var isWaitingForDecoder: Bool { decoders?.isWaiting ?? false }
  var fetched: PriorityFetcher.Statistics {
    let (now, before) = (network.statistics, load?.fetchedBefore)
    var statistics = now
    statistics.byteCount -= before?.byteCount ?? 0
    statistics.requestCount -= before?.requestCount ?? 0
    return statistics
  }

  /// Returns the bytes transferred over the network for a load.
  func fetchedByteCount(since load: Load) -> Int64 {
    network.statistics.byteCount - load.fetchedBefore.byteCount
  }

  /// Begins to load an item.
  ///
  /// - Parameter observer: Receives the player's signals.
  func begin(
    _ feedItem: FeedItem, _ order: Order,
    observer: @escaping @Sendable (PlayerItem, PlayerSignal) -> Void
  ) {
    let item = PlayerItem(feedItem.source, headers: feedItem.headers)
    state.withLock {
      $0 = Load(
        feedItem: feedItem, item: item, began: clock.now, fetchedBefore: network.statistics, order: order)
    }
    network.setOwner(feedItem.id)
    setRank(order.rank)
    // The first request is sent on another thread. No player of lower rank may overtake it.
    if feedItem.host != nil { network.expectRequest() }
    player.setObserver { observer(item, $0) }
    player.preloadTarget = order.target
    item.bounds = order.bounds
    if sharesThroughput { item.initialBandwidth = resources.network.throughput?.mean }
    player.replaceCurrentItem(with: item)
    direct(order)
  }

  /// Changes the rank, the target and playback of the load.
  func direct(_ wanted: Order) {
    let order = load.map { wanted.keepingStart(of: $0) } ?? wanted
    let change = state.withLock { load -> (rank: Bool, target: Bool, plays: Bool)? in
      guard var next = load else { return nil }
      let change = (
        next.order.rank != order.rank, next.order.target != order.target, next.isPlaying != order.plays
      )
      (next.order, next.isPlaying) = (order, order.plays)
      load = next
      return change
    }
    guard let change else { return }
    if change.rank { setRank(order.rank) }
    if change.plays, !order.plays { player.pause() }
    if let item = load?.item {
      item.bounds = order.bounds
      if sharesThroughput, let throughput = resources.network.throughput {
        item.initialBandwidth = throughput.mean
      }
    }
    if change.target { player.preloadTarget = order.target }
    if change.plays, order.plays { player.play(asOf: order.since) }
  }

  /// Puts an item that has ended and was left back to its start, if its order wants the first frame. The start is loaded
  /// and decoded again like a preload; its manifest, initialization and connection stay. An item that can't be sought stays
  /// at its end, and one that loops has none.
  ///
  /// - Returns: True if the item was rewound.
  func rewindIfLeft() -> Bool {
    guard let load, load.order.rank > 0, let target = load.order.target, target.stage >= .firstFrame,
      player.canRewind
    else { return false }
    let byteCount = fetchedByteCount(since: load)
    // Before the player reports progress.
    setRewind(of: load.item, to: .initialization, byteCount: byteCount)
    if player.rewind() { return true }
    setRewind(of: load.item, to: nil, byteCount: load.byteCountBeforeRewind)
    return false
  }

  /// Records how far a rewound item is loaded.
  ///
  /// - Returns: True if it has reached another stage.
  func recordRewind(of item: PlayerItem) -> Bool {
    let (hasFrame, isFull) = (player.hasCurrentFrame, item.isPlaybackBufferFull.value)
    return state.withLock { load in
      guard load?.item === item, let old = load?.rewoundStage, hasFrame else { return false }
      let new: PreloadStage? = isFull ? nil : .firstFrame
      load?.rewoundStage = new
      return new != old
    }
  }

  /// Plays the item of picture in picture, regardless of the current item.
  func directPinned() {
    guard let index = load?.order.index else { return }
    if let decoders, !decoders.isPinned { decoders.isPinned = true }
    direct(Order(index: index, rank: 0, target: nil, plays: true, since: clock.now))
  }

  /// Makes the player count as empty. Its memory is about to be released.
  func forget() { state.withLock { $0 = nil } }

  /// Cancels everything, and returns the memory to the system once nothing of the item is running.
  ///
  /// - Returns: A task that ends when that is done.
  @discardableResult
  func end() -> Task<Void, Never> {
    player.setObserver(nil)
    state.withLock { $0 = nil }
    setRank(.max)
    if let decoders, decoders.isPinned { decoders.isPinned = false }
    player.pause()
    player.preloadTarget = PreloadTarget.none
    let wait = player.takeItem()
    return runtime.task { [account] in
      await wait()
      account?.purge()
    }
  }

  /// Records when the first frame of an item was ready, and was shown to outputs if there are any.
  func recordFirstFrame(of item: PlayerItem) {
    guard item.preloadStage.value >= .firstFrame else { return }
    let now = clock.now
    state.withLock { load in
      if load?.item === item, load?.firstFrameAt == nil { load?.firstFrameAt = now }
    }
  }

  /// Returns the stages that have been reached but not reported yet.
  func takeProgress() -> (load: Load, stages: [PreloadStage])? {
    state.withLock { load in
      guard var next = load else { return nil }
      let stage = next.item.preloadStage.value
      let stages = PreloadStage.allCases.filter { $0 > next.reported && $0 <= stage }
      guard !stages.isEmpty else { return nil }
      next.reported = stage
      load = next
      return (next, stages)
    }
  }

  // MARK: - Private

  private func setRewind(of item: PlayerItem, to stage: PreloadStage?, byteCount: Int64) {
    state.withLock { load in
      guard load?.item === item else { return }
      load?.rewoundStage = stage
      load?.byteCountBeforeRewind = byteCount
    }
  }

  private func setRank(_ rank: Int) {
    gate.rank = rank
    decoders?.rank = rank
    network.rank = rank
  }
}

/// The resources that the players of a pool share.
struct PoolResources: Sendable {
  let gate: PriorityGate
  /// The permits of open decoders; nil for no limit.
  let decoders: DecoderPermits?
  let network: PriorityFetcher
  let logger: Logger
}

extension PooledPlayer.Order {
  /// Returns the order with the load's rung of the first segment, once that segment has been opened.
  fileprivate func keepingStart(of load: PooledPlayer.Load) -> PooledPlayer.Order {
    guard load.item.preloadStage.value >= .initialization else { return self }
    let start = load.order.target.map { $0.startPeakBitRate } ?? load.order.bounds.startPeakBitRate
    var order = self
    if order.target == nil {
      order.bounds.startPeakBitRate = start
    } else {
      order.target?.startPeakBitRate = start
    }
    return order
  }

  /// Returns true if the player has frames or media that are no longer wanted. Loading then starts over with
  /// the lower target.
  func givesBack(_ load: PooledPlayer.Load) -> Bool {
    guard let target else { return false }
    return target.stage < .firstFrame && load.stage >= .firstFrame
  }
}

/// The state of one slot: how far its item is loaded, and why it waits.
public struct SlotReadiness: Sendable, Hashable {
  /// The reason why a slot does not load.
  public enum Waiting: String, Sendable, Hashable {
    /// It is not waiting: the item has reached its target.
    case atTarget
    /// It waits for the manifest, or for the first bytes of a file.
    case source
    /// It waits for media.
    case media
    /// Slots with a lower rank number have priority on the network.
    case rank
    /// It waits for another slot to close its decoder (``PoolConfiguration/maximumOpenDecoders``).
    case decoder
    /// The rest of the policy's request does not fit the memory limit (``PoolConfiguration/memoryLimit``).
    case memory
    /// The item failed temporarily, and is being retried.
    case retry
    /// The item failed.
    case failed
  }

  /// The number of the slot, from 0.
  public var slot: Int
  /// The item in the slot; `nil` for an empty slot. All other properties then have their defaults.
  public var item: FeedItem.ID?
  /// The item's index in the feed.
  public var index: Int?
  /// The priority: 0 for the current item, then the preloads in their order.
  public var rank: Int?
  /// The target of the item's loading; `nil` if it plays, and loads without a target.
  public var target: PreloadTarget?
  /// The stage that loading has reached. It falls back when an item that has ended and was left is rewound.
  public var stage = PreloadStage.none
  /// The status of the item in the player, with the error if it failed.
  public var status = PlayerItem.Status.unknown
  /// Whether the player plays, waits or is paused.
  public var timeControlStatus = TimeControlStatus.paused
  /// The duration of compressed media ahead of the frame on show.
  public var bufferedDuration = Duration.zero
  /// The bytes of compressed media that the player holds.
  public var bufferedByteCount = 0
  /// The number of decoded frames, including the one on show.
  public var frameCount = 0
  /// The name of the rung that is loaded; `nil` until it is known.
  public var rung: String?
  /// The time from the beginning of loading to each stage reached.
  public var stageTimes: [PreloadStage: Duration] = [:]
  /// The bytes of the item fetched over the network.
  public var fetchedByteCount: Int64 = 0
  /// The reason why the slot does not load.
  public var waiting = Waiting.atTarget

  /// The state of an empty slot.
  public init(slot: Int) { self.slot = slot }
}
