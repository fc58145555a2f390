internal import ReelCore
public import ReelPlayback

/// What happens once in a pool.
public enum PoolEvent: Sendable, Hashable {
  /// An item has been given a slot, and begins to load.
  case assigned(FeedItem.ID, slot: Int)
  /// Loading has reached a stage, so long after it began.
  case reached(FeedItem.ID, slot: Int, PreloadStage, after: Duration)
  /// An item has left its slot; it was cancelled, and its memory given back.
  case evicted(FeedItem.ID, slot: Int, PreloadStage)
  /// The item has become the current one.
  case shown(FeedItem.ID, SwipePhase, stage: PreloadStage)
  /// The surface shows this item from now on.
  case surfaceAttached(FeedItem.ID)
  case surfaceDetached(FeedItem.ID)
  /// The item's own image is on the surface, until its first frame is there.
  case posterShown(FeedItem.ID)
  case pinned(FeedItem.ID, PictureInPictureState)
  /// Preloads were given up to make memory free; so many bytes are held now.
  case trimmed(byteCount: Int)
  /// What happens in the player of an item.
  case player(FeedItem.ID, PlayerEvent)
}
