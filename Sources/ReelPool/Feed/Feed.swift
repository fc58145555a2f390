public import Foundation
public import ReelPlayback

/// A named list of items, in the order in which they are swiped through.
public struct Feed: Sendable, Hashable, Identifiable {
  public let name: String
  public private(set) var items: [FeedItem]
  /// How many entries each source has had, removed ones included: an identity is never given twice.
  private var occurrences: [String: Int] = [:]

  /// An empty feed.
  public init(name: String) {
    self.name = name
    items = []
  }

  /// A feed of these sources, without anything beside them.
  public init(name: String, sources: [MediaSource]) {
    self.init(name: name)
    for source in sources { append(source) }
  }

  /// A feed of these URLs (`http`, `https`, `file`): media files, HLS playlists, MPDs.
  public init(name: String = FeedFile.defaultName, urls: [URL]) {
    self.init(name: name, sources: urls.map { .url($0) })
  }

  public var id: String { name }

  /// Adds an entry at the end, with an identity of its own. `describe` fills in what is known of it.
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

  /// Removes an entry; the others keep their identities. Nil where there is none of this identity.
  @discardableResult
  public mutating func remove(_ id: FeedItem.ID) -> FeedItem? {
    index(of: id).map { items.remove(at: $0) }
  }

  /// Where the entry is now; nil where it is not in this feed.
  public func index(of id: FeedItem.ID) -> Int? { items.firstIndex { $0.id == id } }
}
