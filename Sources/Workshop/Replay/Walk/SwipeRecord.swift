public import ReelPlayback

/// The record of one swipe: how far its item was loaded, and how long the viewer waited for its frames.
public struct SwipeRecord: Sendable, Hashable {
  /// The number of the swipe, from 1; 0 for the item that the walk begins with.
  public var number: Int
  /// The time of the settle since the walk began. For a swipe passed by in a burst, the time of the end of the drag.
  public var time: Duration
  package var kind: SwipeKind
  /// True if the next swipe of a burst followed before this one settled: nobody waited for this item.
  public var isPassing = false
  /// The item's index in the feed.
  public var itemIndex: Int
  /// The description of the item's identity.
  public var itemID: String
  /// The stage that the item had reached when the swipe settled.
  public var stage: PreloadStage
  /// The time from the settle until the item was left or the walk ended.
  public var watched: Duration = .zero
  /// The time from the settle until the first frame was on the surface; 0 if it was shown before the settle.
  ///
  /// `nil` if there was no frame until the item was left.
  public var timeToFirstFrame: Duration?
  /// The time from the settle until the second frame was on the surface; `nil` if there was none.
  public var timeToSecondFrame: Duration?
  /// True if the item played to its end with only one frame.
  public var isStill = false
  /// What the wait for the first frame was spent on, as `manifest answer 142 ms, segment transfer 201 ms, decode 12 ms`;
  /// the ``error`` if the item failed and no frame was shown; `nil` if nobody waited.
  public var cause: String?
  /// The number of stalls while the item was watched.
  public var stallCount = 0
  /// The total duration of the stalls.
  public var stallDuration: Duration = .zero
  /// The duration of the longest stall.
  public var longestStall: Duration = .zero
  /// The parts of the wait for the first frame, from the settle on: for each part, its name and its duration. To the
  /// microsecond they add up to ``timeToFirstFrame``, or to ``watched`` if there was no frame. Empty if nobody waited, or
  /// if the item failed and no frame was shown.
  package var waitParts: [StageTime] = []
  /// The bytes that had been fetched for the item when the swipe settled.
  public var loadedByteCount: Int64 = 0
  /// The rung with the highest bit rate that was opened; `nil` for a media file.
  public var rung: String?
  /// The bit rate of ``rung`` as the manifest states it, in bits per second.
  public var rungBitRate: Int?
  /// The stages of loading up to the first frame, in order, whenever they took place.
  package var stageTimes: [StageTime] = []
  /// The bytes fetched for the item from the settle until it was left.
  public var byteCount: Int64 = 0
  /// The rungs whose frames were on the surface, in order, from the end of the drag until the item was left. A rung that
  /// comes again has another entry. Empty if nothing was shown, and for items passed by in a burst.
  public var rungs: [ShownRung] = []
  /// The description of the error that the item failed with, even if the viewer had left it before.
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

  /// True if the first frame was decoded when the swipe settled.
  public var isHit: Bool { stage >= .firstFrame }

  /// True if statistics count the wait: not for the start of the walk, items passed by in a burst, and items that
  /// failed before their first frame.
  public var isCounted: Bool {
    kind != .start && !isPassing && (error == nil || timeToFirstFrame != nil)
  }

  /// The item has failed: that is why a viewer who waited saw no frame.
  mutating func noteFailure(_ error: String) {
    guard !isPassing, timeToFirstFrame == nil else { return }
    self.error = self.error ?? error
    cause = self.error
    waitParts = []
  }

  /// The text for ``cause``: the stages in order. Stages of less than half a millisecond are left out; nil if none
  /// remains.
  package static func cause(of parts: [StageTime]) -> String? {
    let words = parts.filter { $0.duration >= .microseconds(500) }.map(\.description)
    return words.isEmpty ? nil : words.joined(separator: ", ")
  }

  /// The number of times that another rung than before was on show.
  public var rungSwitchCount: Int { max(0, rungs.count - 1) }

  /// The wait for the first frame as statistics count it. A wait that was given up counts with its duration so far,
  /// which is a lower bound. Nil if the swipe does not count.
  var countedFirstFrame: Duration? { isCounted ? timeToFirstFrame ?? watched : nil }

  /// The same for the second frame. Also nil for an item with one frame, and for one that failed before its second
  /// frame.
  var countedSecondFrame: Duration? {
    guard isCounted, !isStill, error == nil || timeToSecondFrame != nil else { return nil }
    return timeToSecondFrame ?? watched
  }
}
