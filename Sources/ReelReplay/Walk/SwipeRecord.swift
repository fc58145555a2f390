public import ReelPlayback

/// What came of one swipe: how far its item was, and how long a person waited for its frames.
public struct SwipeRecord: Sendable, Hashable {
  /// Counted from 1; 0 for the item that the walk begins with.
  public var number: Int
  /// When the swipe settled, since the walk began.
  public var time: Duration
  package var kind: SwipeKind
  /// The next swipe of a burst followed at once: nobody waited for this item.
  public var isPassing = false
  /// In the feed.
  public var itemIndex: Int
  /// The item's identity in words.
  public var itemID: String
  /// The stage that the item had reached when the swipe settled.
  public var stage: PreloadStage
  /// From then until the item was left, or the walk ended.
  public var watched: Duration = .zero
  /// From then to the first frame in hand; nil where there was none until the item was left.
  public var timeToFirstFrame: Duration?
  /// From then to the second frame; nil likewise.
  public var timeToSecondFrame: Duration?
  /// The item has one frame, and never moves.
  public var isStill = false
  /// Where the time went that the first frame took, in words; nil where it was there.
  public var cause: String?
  public var stallCount = 0
  /// Of all stalls together.
  public var stallDuration: Duration = .zero
  public var longestStall: Duration = .zero
  /// The parts of the item's way to its first frame, in order, whenever they were.
  package var stageTimes: [StageTime] = []
  /// Bytes that were fetched for the item from when the swipe settled until it was left.
  public var byteCount: Int64 = 0
  /// Why the item failed, in words.
  public var error: String?

  package init(
    number: Int, time: Duration, kind: SwipeKind, itemIndex: Int, itemID: String, stage: PreloadStage
  ) {
    self.number = number
    self.time = time
    self.kind = kind
    self.itemIndex = itemIndex
    self.itemID = itemID
    self.stage = stage
  }

  /// The first frame was there when the swipe settled.
  public var isHit: Bool { stage >= .firstFrame }

  /// True for a swipe whose wait counts: one of a person who looked, to an item that did not fail before its first
  /// frame.
  public var isCounted: Bool {
    kind != .start && !isPassing && (error == nil || timeToFirstFrame != nil)
  }

  /// The cause that these parts make, in their order: `manifest 142 ms, segment 201 ms, decode 12 ms`. Parts of less than
  /// half a millisecond are left out; nil where none is left.
  package static func cause(of parts: [StageTime]) -> String? {
    let words = parts.filter { $0.duration >= .microseconds(500) }.map(\.description)
    return words.isEmpty ? nil : words.joined(separator: ", ")
  }

  /// The wait for the first frame as statistics count it: one that was given up counts with how long it lasted, which
  /// is the least that it can have been. Nil where the swipe does not count.
  var countedFirstFrame: Duration? { isCounted ? timeToFirstFrame ?? watched : nil }

  /// The same of the wait for the second frame. Nil for an item of one frame too, and for one that failed before
  /// its second.
  var countedSecondFrame: Duration? {
    guard isCounted, !isStill, error == nil || timeToSecondFrame != nil else { return nil }
    return timeToSecondFrame ?? watched
  }
}
