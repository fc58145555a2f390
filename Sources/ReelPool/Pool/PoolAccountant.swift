package import ReelPlayback

/// Who keeps account of what a pool does; called at once, on any thread.
package struct PoolAccountant: Sendable {
  /// What an item has come to when it leaves its player.
  package struct Departure: Sendable {
    package var fetchedByteCount: Int64
    package var statistics: PlayerStatistics
  }

  /// So many frames of an item have come out of decoders.
  package var decoded: @Sendable (FeedItem.ID, Int) -> Void
  package var departed: @Sendable (FeedItem.ID, Departure) -> Void

  package init(
    decoded: @escaping @Sendable (FeedItem.ID, Int) -> Void,
    departed: @escaping @Sendable (FeedItem.ID, Departure) -> Void
  ) {
    self.decoded = decoded
    self.departed = departed
  }
}
