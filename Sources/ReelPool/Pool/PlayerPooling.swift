public import ReelCore

/// What a `PlayerService` wants of a pool: it knows nothing of slots and players.
public protocol PlayerPooling: AnyObject, Sendable {
  /// Makes an item the current one, and hands over its first frame where that is there. Never waits.
  ///
  /// Throws `ReelError.usage` for an index that the snapshot does not have.
  @discardableResult
  func show(_ index: Int, of snapshot: FeedSnapshot, phase: SwipePhase) throws(ReelError) -> Handover

  /// The items have changed, or the place of the current one among them; the current item goes on.
  ///
  /// - Parameter index: of the current item; nil where there is none any more.
  func update(_ snapshot: FeedSnapshot, currentIndex index: Int?)

  /// Plays the current item, or pauses it.
  func setPlaying(_ isPlaying: Bool)

  /// Sets who is told of an item that can't be played; called on any thread, and must not block.
  func setFailureHandler(_ handler: (@Sendable (FeedItem.ID, ReelError) -> Void)?)
}
