internal import ReelCore
internal import ReelPlayback

/// The state of a pool: what is wanted, and what each slot has been given. The pool's lock protects it.
///
/// A command, such as a swipe, changes what is wanted and begins a new generation. A turn of the pool makes a plan
/// for that generation, and `assign` brings the slots to it in one step.
struct PoolState: Sendable {
  var snapshot = FeedSnapshot(feed: "", items: [])
  /// The index of the current item; nil if there is none.
  var index: Int?
  /// The direction of the last swipe: 1 or -1.
  var direction = 1
  var phase = SwipePhase.settled
  var isPlaying = true
  var isMuted = false
  /// The items at which other feeds were left, the latest first.
  var others: [FeedItem] = []
  /// The time at which playback of the current item was requested, by the clock.
  var settledAt = Duration.zero
  /// The time at which the current item became current, or its swipe settled, by the clock.
  var watchedSince = Duration.zero
  var history = ViewingHistory()
  /// True if the current item has been shown since the last plan. If it had failed, it is retried or reported again.
  var isShownAnew = false
  var isClosed = false

  var slots: [Slot]
  /// The items in picture in picture, each with its own player.
  var pinned: [Pinned] = []

  /// The generation of all that a plan depends on. A turn that finds a later one makes another plan.
  private(set) var generation = 0
  /// The generation of the last plan.
  private var plannedGeneration = 0
  /// The time at which the last plan was made, by the clock.
  private var plannedAt = Duration.zero
  /// The time of the next plan even without a new generation; nil for none.
  private var reviewAt: Duration?
  /// True if the plan depends on how much items have loaded.
  private var followsProgress = false
  /// The number of the window's entries that are kept after a call of `trim`; nil for all.
  var keptCount: Int?

  var costs = StageCosts()
  /// The maximum memory that decoding of a current item has taken beyond its preload.
  var decodingByteCount = 0
  /// The memory that the pool holds, for its memory limit: the maximum since it last held much less.
  var heldByteCount = 0

  init(players: [PooledPlayer]) { slots = players.map { Slot(player: $0) } }
}

extension PoolState {
  /// A player, and the item that it has been given.
  struct Slot: Sendable {
    let player: PooledPlayer
    /// Nil for an empty slot.
    var load: Load?

    var id: FeedItem.ID? { load?.feedItem.id }
    /// True if a frame of the item is on show, other than the last one of an item that is being rewound.
    var isReady: Bool {
      load.map { player.player.hasFrame(of: $0.item) && $0.rewoundStage != .initialization } ?? false
    }
    /// The bytes transferred over the network for the item.
    var fetchedByteCount: Int64 { load.map { player.fetchedByteCount - $0.fetchedBefore } ?? 0 }
    /// The bytes for the item that came from a store instead.
    var storedByteCount: Int64 { load.map { player.storedByteCount - $0.storedBefore } ?? 0 }
  }

  struct Load: Sendable {
    let feedItem: FeedItem
    let item: PlayerItem
    /// The bytes that the player had transferred for other items.
    let fetchedBefore: Int64
    /// The bytes that it had got from a store for them.
    let storedBefore: Int64
    var order: Order
    /// The stage that was reported last.
    var reported = PreloadStage.notLoaded
    /// The time at which the first frame was ready, by the clock; nil until then.
    var firstFrameAt: Duration?
    /// The stage to which a rewound item is loaded again; nil for one that was not rewound, or is buffered again.
    var rewoundStage: PreloadStage?
    /// The bytes that had been fetched when the item was rewound; 0 for one that was not.
    var byteCountBeforeRewind: Int64 = 0

    /// The stage that loading has reached, since the item was rewound if it was. That of `PlayerItem` never goes back.
    var stage: PreloadStage { rewoundStage ?? item.preloadStage.value }
  }

  /// Instructions to a player for its item.
  struct Order: Sendable {
    /// The index in the feed; nil for an item of another feed.
    var index: Int?
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
    var isMuted: Bool
    /// True if the pool's memory does not allow everything that the policy requests.
    var lacksMemory = false
  }

  struct Pinned: Sendable {
    let id: FeedItem.ID
    var slot: Slot
    /// A closure that ends picture in picture, if it still exists.
    let stop: @Sendable () -> Void
  }

  /// The items that the slots should have, by rank.
  struct Plan {
    struct Entry {
      let item: FeedItem
      let slot: Int
      var order: Order
    }

    let generation: Int
    /// The feed at the time of the plan, and the direction of travel in it. The pool's feed may have changed since.
    let snapshot: FeedSnapshot
    let direction: Int
    /// The indices of the window in the snapshot.
    var indices = 0..<0
    var entries: [Entry] = []
    /// The heads of items without a slot that should be on disk, the most important one first.
    var heads: [HeadKeeper.Wanted] = []
    /// The bytes by which the pool's memory is expected to grow; 0 without a memory limit.
    var growth = 0
    /// The time until the next plan if nothing changes; nil for none.
    var reviewInterval: Duration?
    var followsProgress = false
  }

  /// The changes to the slots that a plan requires.
  struct Assignment {
    /// Items that keep their players.
    var kept: [(slot: Slot, entry: Plan.Entry)] = []
    /// Items that have left their players.
    var ended: [(number: Int, slot: Slot)] = []
    /// Items that get players.
    var begun: [(number: Int, player: PooledPlayer, entry: Plan.Entry)] = []
    /// The current item was shown again although it had failed.
    var failure: (id: FeedItem.ID, error: ReelError)?
  }
}

// MARK: - Queries

extension PoolState {
  var currentItem: FeedItem? { index.map { snapshot.items[$0] } }

  var currentSlot: Slot? { currentItem.flatMap { slot(of: $0.id) } }

  var target: OutputSurface.Target? { currentSlot.flatMap { slot in slot.id.map { (slot.player, $0) } } }

  func slot(of id: FeedItem.ID) -> Slot? { slots.first { $0.id == id } }

  func isPinned(_ id: FeedItem.ID?) -> Bool { pinned.contains { $0.id == id } }

  /// Returns how long the current item has been played since its swipe settled.
  func watchedDuration(at now: Duration) -> Duration {
    phase == .settled && index != nil ? max(now - watchedSince, .zero) : .zero
  }

  /// True if an item besides the current one is loaded, and may be ended.
  var hasPreload: Bool {
    slots.contains { slot in
      guard let load = slot.load, load.feedItem.id != currentItem?.id else { return false }
      return load.order.target?.stage != PreloadStage.notLoaded
    }
  }
}

// MARK: - Commands

extension PoolState {
  /// Makes an item of a snapshot the current one.
  ///
  /// - Parameters:
  ///   - settled: The time since which playback counts as requested.
  ///   - now: The time of the swipe.
  mutating func show(
    _ index: Int, of snapshot: FeedSnapshot, _ phase: SwipePhase, settled: Duration, at now: Duration
  ) {
    setDirection(to: index, of: snapshot)
    let (isFirst, watched) = (currentItem == nil, watchedDuration(at: now))
    let isOther = setItems(snapshot, index: index)
    if isOther, !isFirst {
      history.record(ViewingHistory.Swipe(watchedDuration: watched, isForward: direction > 0))
    }
    // An item that is playing continues when a drag returns to it.
    if isOther || self.phase == .dragEnded {
      self.phase = phase
      settledAt = settled
      watchedSince = now
    }
    isShownAnew = true
  }

  /// - Returns: True if the current item has changed.
  @discardableResult
  mutating func setItems(_ new: FeedSnapshot, index newIndex: Int?) -> Bool {
    let (old, oldPlayer) = (currentItem?.id, currentSlot?.player)
    if new.feed != snapshot.feed, let left = currentItem {
      // In the same step, so that no plan ends either of the two items.
      others.removeAll { [new.feed, left.id.feed].contains($0.id.feed) }
      others.insert(left, at: 0)
    }
    snapshot = new
    index = newIndex
    beginGeneration()
    guard currentItem?.id != old else { return false }
    keptCount = nil
    // The previous item stays at its last frame, because the turn that pauses it may come later.
    oldPlayer?.player.hold()
    return true
  }

  /// Sets the direction of a swipe to an index, seen from the current item's position in the new snapshot.
  private mutating func setDirection(to next: Int, of new: FeedSnapshot) {
    guard new.feed == snapshot.feed else {
      direction = 1
      return
    }
    guard let index, let id = currentItem?.id else { return }
    let isThere = new.items.indices.contains(index) && new.items[index].id == id
    let old = isThere ? index : new.items.firstIndex { $0.id == id } ?? index
    if old != next { direction = next > old ? 1 : -1 }
  }

  /// Takes the item out of the window that is the least important preload. Its slot gets another player.
  ///
  /// - Parameter sparesWaiting: Keeps preloads that wait for memory and have loaded nothing.
  /// - Returns: The slot that the item had; nil if no preload is left.
  mutating func giveUpPreload(
    sparesWaiting: Bool, replacement: PooledPlayer
  ) -> (number: Int, slot: Slot)? {
    var lowest: (number: Int, rank: Int)?
    for (number, slot) in slots.enumerated() {
      guard let load = slot.load, load.feedItem.id != currentItem?.id,
        !(sparesWaiting && load.order.target?.stage == PreloadStage.notLoaded),
        load.order.rank >= lowest?.rank ?? 0
      else { continue }
      lowest = (number, load.order.rank)
    }
    guard let lowest else { return nil }
    keptCount = min(keptCount ?? .max, max(1, lowest.rank))
    beginGeneration()
    let slot = slots[lowest.number]
    slots[lowest.number] = Slot(player: replacement)
    return (lowest.number, slot)
  }

  /// Empties all slots.
  mutating func close() -> [Slot] {
    isClosed = true
    index = nil
    beginGeneration()
    let old = slots
    for number in slots.indices { slots[number].load = nil }
    return old
  }
}

// MARK: - Plans

extension PoolState {
  /// Records that something has changed that the plan depends on.
  mutating func beginGeneration() { generation += 1 }

  /// Records that items have loaded more, or have failed.
  ///
  /// - Returns: True if the plan depends on that.
  mutating func recordChange(at now: Duration) -> Bool {
    guard followsProgress, !isClosed else { return false }
    reviewAt = min(reviewAt ?? now, now)
    return true
  }

  /// The time of the next plan, if nothing changes; nil for none.
  private var nextReview: Duration? {
    // Plans that change their own input must not follow each other without a pause.
    reviewAt.map { max($0, plannedAt + PreloadPlan.minimumReviewInterval) }
  }

  /// Returns when the next turn is due.
  func nextTurn(at now: Duration) -> TaskLoop.Next {
    if isClosed { return .idle }
    if plannedGeneration != generation { return .again }
    guard let nextReview else { return .idle }
    return nextReview > now ? .at(nextReview) : .again
  }

  /// Begins a plan if one is due.
  mutating func beginPlan(at now: Duration) -> Bool {
    guard nextTurn(at: now) == .again else { return false }
    plannedGeneration = generation
    plannedAt = now
    // Before the plan is made, so that a change in the meantime is not lost.
    reviewAt = nil
    return true
  }

  mutating func setReview(of plan: Plan, at now: Duration) {
    followsProgress = plan.followsProgress
    guard let interval = plan.reviewInterval else { return }
    let time = now + max(interval, PreloadPlan.minimumReviewInterval)
    reviewAt = min(reviewAt ?? time, time)
  }

  /// Assigns a player to each entry of a plan. A player that has the item moves to the slot of its index. All changes
  /// are one step, so that a swipe finds either the old state or the new one.
  ///
  /// - Returns: The changes, to be carried out; nil if another plan is needed.
  mutating func assign(_ plan: Plan) -> Assignment? {
    guard generation == plan.generation else { return nil }
    var assignment = Assignment()
    let isShown = isShownAnew
    isShownAnew = false
    for (number, slot) in slots.enumerated() {
      guard let load = slot.load else { continue }
      if isShown, slot.id == currentItem?.id, case .failed(let error) = load.item.status.value {
        // A temporary failure is retried.
        if !error.isTemporary {
          assignment.failure = (load.feedItem.id, error)
          continue
        }
      } else if let entry = plan.entries.first(where: { $0.item.id == slot.id }), !entry.order.givesBack(load)
      {
        continue
      }
      slots[number].load = nil
      assignment.ended.append((number, slot))
    }
    for entry in plan.entries {
      let number = entry.slot
      // Other items were removed, so the item's index has changed. Its player moves to the new slot.
      if let place = slots.firstIndex(where: { $0.id == entry.item.id }), place != number {
        slots.swapAt(place, number)
      }
    }
    for entry in plan.entries {
      let number = entry.slot
      if slots[number].id == entry.item.id {
        assignment.kept.append((slots[number], entry))
      } else {
        assignment.begun.append((number, slots[number].player, entry))
      }
    }
    return assignment
  }

  /// Changes the load of a player, in a slot or pinned. Returns nil if it has none.
  mutating func withLoad<Result>(of player: PooledPlayer, _ body: (inout Load) -> Result) -> Result? {
    if let number = slots.firstIndex(where: { $0.player === player }) {
      return slots[number].load.mutate(body)
    }
    guard let place = pinned.firstIndex(where: { $0.slot.player === player }) else { return nil }
    return pinned[place].slot.load.mutate(body)
  }
}

// MARK: - Progress

extension PoolState {
  /// Returns the stages that items have reached since the last call.
  mutating func takeProgress() -> [(number: Int, slot: Slot, stages: [PreloadStage])] {
    var progress: [(number: Int, slot: Slot, stages: [PreloadStage])] = []
    for number in slots.indices {
      guard let load = slots[number].load else { continue }
      let stage = load.item.preloadStage.value
      let stages = PreloadStage.ofPlayers.filter { $0 > load.reported && $0 <= stage }
      guard !stages.isEmpty else { continue }
      slots[number].load?.reported = stage
      progress.append((number, slots[number], stages))
    }
    return progress
  }

  /// Records when the first frame of an item was ready, and was shown to outputs if there are any.
  mutating func recordFirstFrame(of item: PlayerItem, at now: Duration) {
    guard item.preloadStage.value >= .firstFrame,
      let number = slots.firstIndex(where: { $0.load?.item === item }),
      slots[number].load?.firstFrameAt == nil
    else { return }
    slots[number].load?.firstFrameAt = now
  }

  /// Records how far a rewound item is loaded.
  ///
  /// - Returns: True if it has reached another stage.
  mutating func recordRewind(of item: PlayerItem) -> Bool {
    guard let number = slots.firstIndex(where: { $0.load?.item === item }),
      let old = slots[number].load?.rewoundStage, slots[number].player.player.hasCurrentFrame
    else { return false }
    let new: PreloadStage? = item.isPlaybackBufferFull.value ? nil : .firstFrame
    slots[number].load?.rewoundStage = new
    return new != old
  }
}

extension PoolState.Order {
  /// Returns the order with the load's rung of the first segment, once that segment has been opened.
  func keepingStart(of load: PoolState.Load) -> PoolState.Order {
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

  /// Limits the rung of the first segment, unless that is limited already.
  mutating func beginAt(_ peakBitRate: Int?) {
    guard var target else {
      bounds.startPeakBitRate = bounds.startPeakBitRate ?? peakBitRate
      return
    }
    target.startPeakBitRate = target.startPeakBitRate ?? peakBitRate
    self.target = target
  }

  /// Begins with the rung whose start is on disk.
  mutating func begin(atHead bitRate: Int) {
    if target == nil { bounds.startPeakBitRate = bitRate } else { target?.startPeakBitRate = bitRate }
  }

  /// Returns true if the player has frames or media that are no longer wanted. Loading then starts over with
  /// the lower target.
  fileprivate func givesBack(_ load: PoolState.Load) -> Bool {
    guard let target else { return false }
    return target.stage < .firstFrame && load.stage >= .firstFrame
  }
}

extension Optional {
  /// Changes the value in place; returns nil if there is none.
  fileprivate mutating func mutate<Result>(_ body: (inout Wrapped) -> Result) -> Result? {
    guard var value = self else { return nil }
    defer { self = value }
    return body(&value)
  }
}
