internal import ReelCore
public import ReelPlayback

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
  /// An event of the player of an item.
  case player(FeedItem.ID, PlayerEvent)
}
