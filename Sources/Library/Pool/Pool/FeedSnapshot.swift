/// The items of one feed at one moment, as a ``PlayerPooling`` pool gets them.
public struct FeedSnapshot: Sendable, Hashable {
  /// The feed's name.
  public var feed: String
  /// The items in the feed's order.
  public var items: [FeedItem]

  /// A snapshot with these items.
  public init(feed: String, items: [FeedItem]) {
    self.feed = feed
    self.items = items
  }

  /// The items that `feed` has now.
  public init(_ feed: Feed) { self.init(feed: feed.name, items: feed.items) }
}
