/// What a service plays.
public struct NowPlaying: Sendable, Hashable {
  /// The feed's name.
  public var feed: String
  /// In the feed.
  public var index: Int
  /// With all that is shown beside it: title, author, likes, comments.
  public var item: FeedItem
  public var phase: SwipePhase

  public init(feed: String, index: Int, item: FeedItem, phase: SwipePhase) {
    self.feed = feed
    self.index = index
    self.item = item
    self.phase = phase
  }
}
