public import ReelPlayback

/// What a preload policy can base a plan on: the state of a pool at one moment.
///
/// All durations are media time, except where a property says otherwise.
public struct PoolSituation: Sendable, Hashable {
  /// An item of the feed, and how far it is loaded.
  public struct Item: Sendable, Hashable {
    /// The index in the feed.
    public var index: Int
    /// The distance from the current item, in items: negative for items before it, 0 for the current one.
    public var distance: Int
    /// What the feed says of the item; `nil` only in situations made by hand.
    public var feedItem: FeedItem?
    /// The duration, as the feed states it, or else the media; `nil` if neither is known.
    public var duration: Duration?
    /// The share of viewers who still watch after 0, 1, 2, … seconds: from 1 falling to 0. `nil` if the feed does not
    /// state it.
    public var retention: [Double]?
    /// The stage that loading has reached; `.none` for an item without a slot.
    ///
    /// An item that ended and was left starts over: it is at the stage `.initialization` and the position 0, with
    /// nothing buffered. A plan that wants its first frame has it rewound.
    public var stage = PreloadStage.none
    /// The position of the frame on show: 0 for an item that was not played.
    public var position = Duration.zero
    /// The compressed media that is loaded ahead of ``position``.
    public var bufferedDuration = Duration.zero
    /// The bytes that were fetched for the item since it got its slot, or since it began anew.
    public var fetchedByteCount: Int64 = 0
    /// The rungs to choose among, in rising order of bit rate. Empty before the manifest was read, and for a media file.
    public var rungs: [ItemRung] = []
    /// The id of the rung whose frame is on show; `nil` before the first frame, and for a media file.
    public var rung: String?
    /// The duration of a segment; `nil` before the first was opened, and for a media file.
    public var segmentDuration: Duration?
    /// True if the item is loaded up to its end.
    public var isLoadedToEnd = false
    /// True if the item has failed, and loads nothing.
    public var hasFailed = false

    /// An item without a slot.
    public init(index: Int, distance: Int) {
      self.index = index
      self.distance = distance
    }
  }

  /// The direction of travel: 1 towards higher indices, -1 towards lower ones.
  ///
  /// It is the direction of the last swipe, or at an end of the feed the only one possible.
  public var direction: Int
  /// The index of the current item.
  public var currentIndex: Int
  /// The number of items in the feed.
  public var itemCount: Int
  /// The number of slots in the pool, including the current item's; at least 1.
  public var slotCount: Int
  /// How long the current item has been played, in wall-clock time; 0 until its swipe has settled.
  public var watchedDuration = Duration.zero
  /// How long the viewer watched the items before the current one.
  public var history = ViewingHistory()
  /// The current item and the items near it: as many on each side as there are other slots, in the feed's order.
  public var items: [Item] = []
  /// The measured costs of the stages so far.
  public var costs = StageCosts()
  /// The memory that the current item takes, or is expected to take, in bytes.
  public var currentByteCount = 0
  /// The throughput of the whole pool; `nil` until 16 kB have been measured.
  ///
  /// It is measured over the transfers of all slots, while at least one of them is being received from. Samples cover at
  /// least 250 ms and 16 kB each. They are weighted by their time, and a weight halves with each 5 s of receiving.
  public var throughput: ThroughputEstimate?
  /// The number of video decoders that may be open at once; `nil` for no limit.
  public var maximumOpenDecoders: Int?
  /// The memory that all players together may hold, in bytes; `nil` for no limit.
  public var memoryLimit: Int?

  /// A situation in which nothing is loaded and nothing is known, for instance to test a policy with.
  ///
  /// A current index outside the feed counts as the nearest one inside. At an end of the feed, the direction is turned
  /// around.
  public init(direction: Int = 1, slotCount: Int, itemCount: Int, currentIndex: Int) {
    let current = min(max(currentIndex, 0), max(itemCount - 1, 0))
    var forward = direction < 0 ? -1 : 1
    // At an end of the feed there is one way to go.
    if !(0..<max(itemCount, 0)).contains(current + forward) { forward = -forward }
    self.direction = forward
    self.slotCount = max(slotCount, 1)
    self.itemCount = max(itemCount, 0)
    self.currentIndex = current
  }

  /// The item at a distance from the current one; `nil` for one that is not among ``items``.
  public subscript(distance distance: Int) -> Item? { items.first { $0.distance == distance } }

  /// The current item; one of which nothing is known if it is not among ``items``.
  public var current: Item { item(at: 0) }

  /// The current item, and the items ahead in the direction of travel for which there are slots, the nearest first.
  public var itemsAhead: [Item] {
    (0..<slotCount).compactMap { step in
      let distance = step * direction
      return hasItem(at: distance) ? item(at: distance) : nil
    }
  }

  /// True if the feed has an item at a distance from the current one.
  func hasItem(at distance: Int) -> Bool { (0..<itemCount).contains(currentIndex + distance) }

  /// The item at a distance from the current one; one of which nothing is known if it is not among ``items``.
  func item(at distance: Int) -> Item {
    self[distance: distance] ?? Item(index: currentIndex + distance, distance: distance)
  }
}

extension PoolSituation.Item {
  /// An item without a slot, with what the feed says of it.
  init(_ feedItem: FeedItem, index: Int, distance: Int) {
    self.init(index: index, distance: distance)
    self.feedItem = feedItem
    duration = feedItem.duration
    retention = feedItem.retention?.shares
  }
}
