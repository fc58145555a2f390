/// The items of one feed, in the order in which they are swiped through.
public struct FeedSnapshot: Sendable, Hashable {
  /// The feed's name.
  public var feed: String
  public var items: [FeedItem]

  public init(feed: String, items: [FeedItem]) {
    self.feed = feed
    self.items = items
  }

  public init(_ feed: Feed) { self.init(feed: feed.name, items: feed.items) }
}
