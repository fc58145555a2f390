public import ReelCore

/// The operations that a ``PlayerService`` needs of a pool.
///
/// ``PlayerPool`` implements them with players. Tests can use a pool without players.
public protocol PlayerPooling: AnyObject, Sendable {
  /// Makes an item of `snapshot` the current item, and returns its frame if it is decoded. Does not wait.
  ///
  /// - Parameters:
  ///   - index: The item's index in the snapshot.
  ///   - snapshot: Replaces the items of the pool.
  ///   - phase: `dragEnded` only shows the item's frame; `settled` also plays it.
  /// - Throws: `ReelError` of kind `usage` for an index outside the snapshot.
  @discardableResult
  func show(_ index: Int, of snapshot: FeedSnapshot, phase: SwipePhase) throws(ReelError) -> Handover

  /// Replaces the items of the pool, and the index of the current item among them. A current item that is unchanged
  /// plays on.
  ///
  /// - Parameters:
  ///   - snapshot: The items of the feed.
  ///   - index: The index of the current item; `nil` if there is none any more.
  func update(_ snapshot: FeedSnapshot, currentIndex index: Int?)

  /// Plays the current item and those shown from now on, or pauses them.
  func setPlaying(_ isPlaying: Bool)

  /// Sets the handler that is called for an item that can't be played. The call may come on any thread and must not
  /// block.
  func setFailureHandler(_ handler: (@Sendable (FeedItem.ID, ReelError) -> Void)?)
}
