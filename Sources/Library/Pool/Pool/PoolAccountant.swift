package import ReelPlayback

/// Receives the figures of a pool's work, at once and on any thread.
package struct PoolAccountant: Sendable {
  /// The figures of an item when it leaves its player, or is rewound.
  package struct Departure: Sendable {
    package var fetchedByteCount: Int64
    package var statistics: PlayerStatistics
  }

  /// The total number of frames that an item's decoders have returned.
  package var decoded: @Sendable (FeedItem.ID, Int) -> Void
  package var departed: @Sendable (FeedItem.ID, Departure) -> Void
  /// An item that has ended and was left loads its start anew; its figures until then.
  package var rewound: @Sendable (FeedItem.ID, Departure) -> Void

  package init(
    decoded: @escaping @Sendable (FeedItem.ID, Int) -> Void,
    departed: @escaping @Sendable (FeedItem.ID, Departure) -> Void,
    rewound: @escaping @Sendable (FeedItem.ID, Departure) -> Void = { _, _ in }
  ) {
    self.decoded = decoded
    self.departed = departed
    self.rewound = rewound
  }
}
