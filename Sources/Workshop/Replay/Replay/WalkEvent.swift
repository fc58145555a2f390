package import ReelCore
package import ReelPlayback
package import ReelPool

/// One event of a walk, as ``WalkTrace`` passes it to each of its consumers.
package struct WalkEvent: Sendable {
  package enum Kind: String, Sendable {
    case swipe, settled, assigned, reached, evicted, departed, attached, detached, poster, shown, decoded,
      stalled
    case resumed, ended, rewound, failed, request, response, received
    /// Bytes of a body that were read just now. Not part of the JSON Lines.
    case chunk
    /// The memory of each slot. Not part of the JSON Lines.
    case memory
    /// The walk has ended, and `count` items are opened again to tell whether they failed. Not part of the JSON Lines.
    case check
  }

  package let kind: Kind
  /// Since the walk began.
  package let time: Duration
  package var item: FeedItem.ID?
  package var slot: Int?
  package var stage: PreloadStage?
  package var detail: String?
  package var count: Int?
  /// The frame's time on the item's timeline.
  package var seconds: Double?
  /// The request's number, from 1.
  package var request: Int?
  package var url: String?
  package var purpose: FetchPurpose?
  package var byteCount: Int64?
  /// Of a `memory` event: the bytes that each slot holds.
  package var slotByteCounts: [Int] = []

  package init(_ kind: Kind, at time: Duration) {
    self.kind = kind
    self.time = time
  }
}
