package import ReelPlayback

/// The basis of a preload policy's plan: the state of a pool at one moment.
///
/// All durations are media time, unless a property says otherwise.
package struct PoolSituation: Sendable, Hashable {
  /// An item of the feed, and how far it is loaded.
  package struct Item: Sendable, Hashable {
    package var index: Int
    /// The distance from the current item, in items: negative for items before it, 0 for the current one.
    package var distance: Int
    /// The feed's entry for the item; `nil` only in situations created by hand.
    package var feedItem: FeedItem?
    /// The duration, as the feed states it, or else the media; `nil` if neither is known.
    package var duration: Duration?
    /// The share of viewers who still watch after 0, 1, 2, … seconds: from 1 falling to 0. `nil` if the feed does not
    /// state it.
    package var retention: [Double]?
    /// The stage that loading has reached; `.notLoaded` for an item without a slot.
    ///
    /// An item that ended and was left starts over: it is at the stage `.initialization` and the position 0, with
    /// nothing buffered. If a plan requests its first frame, it is rewound.
    package var stage = PreloadStage.notLoaded
    /// True if the item's head is on disk, as far as this pool has loaded it.
    package var isOnDisk = false
    /// The position of the frame on show; 0 for an item that was not played.
    package var position = Duration.zero
    /// The compressed media that is loaded ahead of ``position``.
    package var bufferedDuration = Duration.zero
    /// The bytes that were fetched for the item since it got its slot, or since it was rewound.
    package var fetchedByteCount: Int64 = 0
    /// The rungs to choose among, in rising order of bit rate. Empty before the manifest was read, and for a
    /// media file.
    package var rungs: [ItemRung] = []
    /// The id of the rung whose frame is on show; `nil` before the first frame, and for a media file.
    package var rung: String?
    /// The duration of a segment; `nil` before the first was opened, and for a media file.
    package var segmentDuration: Duration?
    /// True if the item is loaded up to its end.
    package var isLoadedToEnd = false
    /// True if the item has failed, and loads nothing.
    package var hasFailed = false

    /// An item without a slot.
    package init(index: Int, distance: Int) {
      self.index = index
      self.distance = distance
    }
  }

  /// The direction of travel: 1 towards higher indices, -1 towards lower ones.
  ///
  /// It is the direction of the last swipe, or at an end of the feed the only possible one.
  package var direction: Int
  package var currentIndex: Int
  /// The number of items in the feed.
  package var itemCount: Int
  /// The number of slots in the pool, including the current item's; at least 1.
  package var slotCount: Int
  /// How long the current item has been played, in wall-clock time; 0 until its swipe has settled.
  package var watchedDuration = Duration.zero
  /// The viewer's watch times of the items before the current one.
  package var history = ViewingHistory()
  /// The current item and the items near it, in the feed's order: as many on each side as there are other slots, and with
  /// a store at least ``PreloadPlan/headLimit``.
  package var items: [Item] = []
  /// The measured costs of the stages so far.
  package var costs = StageCosts()
  /// The memory that the current item takes, or is expected to take, in bytes.
  package var currentByteCount = 0
  /// The throughput of the whole pool; `nil` until 16 kB have been measured.
  ///
  /// It is measured over the transfers of all slots, while at least one of them is being received from.
  /// Samples cover at least 250 ms and 16 kB each. They are weighted by their time, and a weight halves with
  /// each 5 s of receiving.
  package var throughput: ThroughputEstimate?
  /// The number of video decoders that may be open at once; `nil` for no limit.
  package var maximumOpenDecoders: Int?
  /// The memory that all players together may hold, in bytes; `nil` for no limit.
  package var memoryLimit: Int?
  /// True if what the pool fetches is stored, such as on disk, so that a plan may have targets `.onDisk`.
  package var hasStore = false

  /// Creates a situation in which nothing is loaded or known, for instance to test a policy with.
  ///
  /// A current index outside the feed counts as the nearest one inside. At an end of the feed, the direction
  /// is reversed.
  package init(direction: Int = 1, slotCount: Int, itemCount: Int, currentIndex: Int) {
    let current = min(max(currentIndex, 0), max(itemCount - 1, 0))
    var forward = direction < 0 ? -1 : 1
    // At an end of the feed there is only one direction.
    if !(0..<max(itemCount, 0)).contains(current + forward) { forward = -forward }
    self.direction = forward
    self.slotCount = max(slotCount, 1)
    self.itemCount = max(itemCount, 0)
    self.currentIndex = current
  }

  /// The item at a distance from the current one; `nil` if it is not among ``items``.
  package subscript(distance distance: Int) -> Item? { items.first { $0.distance == distance } }

  /// The current item; an item without information if it is not among ``items``.
  package var current: Item { item(at: 0) }

  /// Returns true if the feed has an item at a distance from the current one.
  func hasItem(at distance: Int) -> Bool { (0..<itemCount).contains(currentIndex + distance) }

  /// Returns the item at a distance from the current one; an item without information if it is not among
  /// ``items``.
  func item(at distance: Int) -> Item {
    self[distance: distance] ?? Item(index: currentIndex + distance, distance: distance)
  }
}

extension PoolSituation.Item {
  /// Creates an item without a slot, with the feed's information about it.
  init(_ feedItem: FeedItem, index: Int, distance: Int) {
    self.init(index: index, distance: distance)
    self.feedItem = feedItem
    duration = feedItem.duration
    retention = feedItem.retention?.shares
  }
}

/// The items of a feed that have a slot, how far each is loaded, and in which order: a pure value.
///
/// The window is one stretch of the feed around the current item, inside the feed, of no more items than there are
/// slots; so no two of its indices are the same modulo the slots. It follows from a `PreloadPlan`.
package struct PoolWindow: Sendable, Hashable {
  /// An item with a slot.
  package struct Entry: Sendable, Hashable {
    package let index: Int
    /// The distance from the current item; negative for items before it.
    package let distance: Int
    package let target: PreloadTarget

    package init(index: Int, distance: Int, target: PreloadTarget) {
      self.index = index
      self.distance = distance
      self.target = target
    }
  }

  /// The entries by rank: the current item, then the preloads in the order in which they are loaded. Empty
  /// for an empty feed.
  package let entries: [Entry]
  /// The items without a slot whose heads are to be on disk, the most important one first. Empty without a store.
  package let heads: [Entry]
  package let slotCount: Int

  /// The window of a plan. It grows as described in ``PreloadPlan``.
  package init(_ plan: PreloadPlan, in situation: PoolSituation) {
    slotCount = situation.slotCount
    guard situation.itemCount > 0 else {
      entries = []
      heads = []
      return
    }
    let current = situation.currentIndex
    var left = plan.neighbours.filter {
      $0.target.stage >= .manifest && $0.distance != 0 && $0.distance.magnitude < situation.slotCount
        && situation.hasItem(at: $0.distance)
    }
    // The positions of the neighbours in the plan that are loaded: those between `low` and `high`.
    var (low, high) = (0, 0)
    while high - low + 1 < slotCount,
      let next = left.firstIndex(where: { $0.distance == low - 1 || $0.distance == high + 1 })
    {
      let distance = left[next].distance
      (low, high) = (min(low, distance), max(high, distance))
    }
    var taken: Set<Int> = []
    left.removeAll { !(low...high).contains($0.distance) || !taken.insert($0.distance).inserted }
    entries =
      [Entry(index: current, distance: 0, target: .current)]
      + left.map { Entry(index: current + $0.distance, distance: $0.distance, target: $0.target) }
    taken.insert(0)
    heads = plan.neighbours.filter {
      situation.hasStore && $0.target.stage == .onDisk && $0.distance.magnitude < situation.itemCount
        && situation.hasItem(at: $0.distance)
        && taken.insert($0.distance).inserted
    }.map { Entry(index: current + $0.distance, distance: $0.distance, target: $0.target) }
  }

  /// The indices that have a slot; empty for an empty feed.
  package var indices: Range<Int> {
    guard let low = entries.map(\.index).min(), let high = entries.map(\.index).max() else { return 0..<0 }
    return low..<high + 1
  }

  /// Returns the slot of an item's index.
  package func slot(of index: Int) -> Int { index % slotCount }
}

/// The latest swipes of a viewer in a feed.
package struct ViewingHistory: Sendable, Hashable {
  /// One swipe away from an item.
  package struct Swipe: Sendable, Hashable {
    /// The time for which the item had been played, in wall-clock time; 0 if its own swipe had not settled.
    package var watchedDuration: Duration
    /// True for a swipe towards higher indices.
    package var isForward: Bool

    package init(watchedDuration: Duration, isForward: Bool) {
      self.watchedDuration = watchedDuration
      self.isForward = isForward
    }
  }

  /// The number of swipes that are kept: 32.
  package static let limit = 32

  /// The latest swipes, in their order.
  package private(set) var swipes: [Swipe] = []

  package init() {}

  /// Adds a swipe. Removes the oldest one if there are more than ``limit``.
  package mutating func record(_ swipe: Swipe) {
    if swipes.count >= Self.limit { swipes.removeFirst() }
    swipes.append(swipe)
  }
}
