public import Foundation
public import ReelPlayback

/// A named list of items, in the order in which they are swiped through.
public struct Feed: Sendable, Hashable, Identifiable {
  /// The name that identifies the feed among others.
  public let name: String
  /// The entries in the feed's order.
  public private(set) var items: [FeedItem]
  /// How many items each source has had, including removed ones, so that no identity is used twice.
  private var occurrences: [String: Int] = [:]

  /// An empty feed.
  public init(name: String) {
    self.name = name
    items = []
  }

  /// A feed with one item for each source, without titles or other descriptions.
  public init(name: String, sources: [MediaSource]) {
    self.init(name: name)
    for source in sources { append(source) }
  }

  /// A feed with one item for each URL: media files, HLS playlists or MPDs.
  ///
  /// - Parameters:
  ///   - name: The name of the feed.
  ///   - urls: `http`, `https` or `file` URLs.
  public init(name: String = FeedFile.defaultName, urls: [URL]) {
    self.init(name: name, sources: urls.map { .url($0) })
  }

  /// The feed's name.
  public var id: String { name }

  /// Adds an item at the end, with a new identity.
  ///
  /// - Parameters:
  ///   - source: The media of the item.
  ///   - describe: Sets the item's title and other descriptions before it is added.
  @discardableResult
  public mutating func append(
    _ source: MediaSource, describe: (inout FeedItem) -> Void = { _ in }
  ) -> FeedItem {
    occurrences[source.name, default: 0] += 1
    let id = FeedItem.ID(feed: name, source: source.name, occurrence: occurrences[source.name] ?? 1)
    var item = FeedItem(id: id, source: source)
    describe(&item)
    items.append(item)
    return item
  }

  /// Removes an item. The other items keep their identities.
  ///
  /// - Returns: The removed item, or `nil` if the feed has no item with this identity.
  @discardableResult
  public mutating func remove(_ id: FeedItem.ID) -> FeedItem? {
    index(of: id).map { items.remove(at: $0) }
  }

  /// The current index of an item; `nil` if the feed does not have it.
  public func index(of id: FeedItem.ID) -> Int? { items.firstIndex { $0.id == id } }
}
