internal import ReelCore
public import ReelPlayback

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
  package var rank: Int?
  /// The target of the item's loading; `nil` if it plays, and loads without a target.
  public var target: PreloadTarget?
  /// The stage that loading has reached. It falls back when an item that has ended and was left is rewound.
  public var stage = PreloadStage.notLoaded
  /// The status of the item in the player, with the error if it failed.
  package var status = PlayerItem.Status.unknown
  /// Whether the player plays, waits or is paused.
  package var timeControlStatus = TimeControlStatus.paused
  /// The duration of compressed media ahead of the frame on show.
  public var bufferedDuration = Duration.zero
  /// The bytes of compressed media that the player holds.
  package var bufferedByteCount = 0
  /// The number of decoded frames, including the one on show.
  public var frameCount = 0
  /// The name of the rung that is loaded; `nil` until it is known.
  public var rung: String?
  /// The time from the beginning of loading to each stage reached.
  package var stageTimes: [PreloadStage: Duration] = [:]
  /// The bytes of the item fetched over the network.
  public var fetchedByteCount: Int64 = 0
  /// The bytes of the item that came from a cache instead.
  public var storedByteCount: Int64 = 0
  /// The reason why the slot does not load.
  public var waiting = Waiting.atTarget

  /// The state of an empty slot.
  package init(slot: Int) { self.slot = slot }
}

extension SlotReadiness {
  /// The readiness of a slot of a pool.
  ///
  /// - Parameter attempts: How often a player retries an item (`ItemRetryPolicy.attempts`).
  init(_ number: Int, _ slot: PoolState.Slot, attempts: Int) {
    self.init(slot: number)
    guard let load = slot.load else { return }
    let player = slot.player.player
    let statistics = player.statisticsWithoutUnshown
    item = load.feedItem.id
    index = load.order.index
    rank = load.order.rank
    target = load.order.target
    stage = load.stage
    status = load.item.status.value
    timeControlStatus = player.timeControlStatus.value
    bufferedDuration = statistics.bufferedDuration
    bufferedByteCount = statistics.bufferByteCount
    frameCount = (statistics.ring?.frameCount ?? 0) + (statistics.onShowByteCount > 0 ? 1 : 0)
    rung = load.item.rung.value
    stageTimes = load.item.stageTimes
    fetchedByteCount = slot.fetchedByteCount
    storedByteCount = slot.storedByteCount
    waiting = reason(of: slot.player, load, attempts: attempts)
  }

  /// Returns why the slot does not load.
  private func reason(of player: PooledPlayer, _ load: PoolState.Load, attempts: Int) -> Waiting {
    if case .failed = status { return .failed }
    if let target, stage >= target.stage { return load.order.lacksMemory ? .memory : .atTarget }
    if target == nil, load.item.isPlaybackBufferFull.value { return .atTarget }
    if load.item.remainingRetries.value < attempts { return .retry }
    if player.isWaitingForDecoder { return .decoder }
    if player.isHeldBack { return .rank }
    return stage < .manifest ? .source : .media
  }
}
