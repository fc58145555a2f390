/// The item that a ``PlayerService`` plays.
public struct NowPlaying: Sendable, Hashable {
  /// The feed's name.
  public var feed: String
  /// The item's index in the feed.
  public var index: Int
  /// The item with its title, author, likes and comments.
  public var item: FeedItem
  /// The phase of the latest swipe.
  public var phase: SwipePhase

  /// An item at its place in a feed.
  public init(feed: String, index: Int, item: FeedItem, phase: SwipePhase) {
    self.feed = feed
    self.index = index
    self.item = item
    self.phase = phase
  }
}
