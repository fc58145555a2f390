public import ReelPlayback

/// How ready one slot is.
public struct SlotReadiness: Sendable, Hashable {
  /// Why nothing moves.
  public enum Waiting: String, Sendable, Hashable {
    /// What is wanted is there.
    case atTarget
    /// For the manifest, or the first bytes of a file.
    case source
    /// For media.
    case media
    /// More important slots go first on the network.
    case rank
    /// For a pause before the next attempt.
    case retry
    case failed
  }

  /// From 0.
  public var slot: Int
  /// Nil for a slot without an item.
  public var item: FeedItem.ID?
  /// In the feed.
  public var index: Int?
  /// 0 for the current item, then the preloads in their order.
  public var rank: Int?
  /// How far it is to be loaded; nil for playing.
  public var target: PreloadTarget?
  public var stage = PreloadStage.none
  public var status = PlayerItem.Status.unknown
  public var timeControlStatus = TimeControlStatus.paused
  /// Compressed media ahead of the frame on show.
  public var bufferedDuration = Duration.zero
  public var bufferedByteCount = 0
  /// Decoded frames, the one on show included.
  public var frameCount = 0
  public var rung: String?
  /// When each stage was reached, from the beginning of loading.
  public var stageTimes: [PreloadStage: Duration] = [:]
  /// Bytes of the item that came over the network.
  public var fetchedByteCount: Int64 = 0
  public var waiting = Waiting.atTarget

  public init(slot: Int) { self.slot = slot }
}
