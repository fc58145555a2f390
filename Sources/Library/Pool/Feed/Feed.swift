public import Foundation
public import HTTPTypes
package import ReelCore
public import ReelSources

/// A named list of items, in the order in which they are swiped through.
public struct Feed: Sendable, Hashable, Identifiable {
  /// The name that identifies the feed among others.
  public private(set) var name: String
  /// The entries in the feed's order.
  public private(set) var items: [FeedItem]
  /// The number of items that each source has had, including removed ones, so that no identity is used twice.
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
  public init(name: String = "default", urls: [URL]) {
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
    var item = FeedItem(id: nextID(of: source), source: source)
    describe(&item)
    append(item)
    return item
  }

  func nextID(of source: MediaSource) -> FeedItem.ID {
    FeedItem.ID(feed: name, source: source.name, occurrence: occurrences[source.name, default: 0] + 1)
  }

  /// Adds an item with the identity that `nextID(of:)` returns.
  mutating func append(_ item: FeedItem) {
    occurrences[item.id.source] = item.id.occurrence
    items.append(item)
  }

  /// Removes an item. The other items keep their identities.
  ///
  /// - Returns: The removed item, or `nil` if the feed has no item with this identity.
  @discardableResult
  public mutating func remove(_ id: FeedItem.ID) -> FeedItem? {
    index(of: id).map { items.remove(at: $0) }
  }

  /// Returns the current index of an item; `nil` if the feed does not have it.
  public func index(of id: FeedItem.ID) -> Int? { items.firstIndex { $0.id == id } }

  /// Returns feeds of different names: the second of a name has a number after it, as in `new (2)`, also in the
  /// identities of its items.
  static func distinct(_ feeds: [Feed]) -> [Feed] {
    var taken = Set(feeds.map(\.name))
    var seen: Set<String> = []
    return feeds.map { feed in
      guard !seen.insert(feed.name).inserted else { return feed }
      var (number, other) = (2, feed)
      while !taken.insert("\(feed.name) (\(number))").inserted { number += 1 }
      other.name = "\(feed.name) (\(number))"
      for index in other.items.indices { other.items[index].id.feed = other.name }
      return other
    }
  }
}

/// One entry of a feed: the source of its media, and the information that an app shows with it.
///
/// ``Feed/append(_:describe:)`` makes items.
public struct FeedItem: Sendable, Hashable, Identifiable {
  /// An item's identity: its feed, its source, and which entry of that source it is.
  ///
  /// The identity does not change when other items are added or removed. Two entries of one URL are two items, and the
  /// second remains the second when the first is removed. Reading a feed again gives the same identities as long as the
  /// entries of each source keep their order.
  public struct ID: Sendable, Hashable {
    /// The feed's name.
    public fileprivate(set) var feed: String
    /// The source's URL, or its path if it is a local file.
    public let source: String
    /// The number of this entry among those of the same source, from 1.
    public let occurrence: Int

    /// An identity from its parts. ``Feed/append(_:describe:)`` makes one for each item that it adds.
    package init(feed: String, source: String, occurrence: Int = 1) {
      self.feed = feed
      self.source = source
      self.occurrence = occurrence
    }
  }

  /// The item's identity, which stays the same while the feed changes.
  public fileprivate(set) var id: ID
  /// The media file, HLS playlist or MPD to play.
  public var source: MediaSource
  /// The title to show.
  public var title: String?
  /// The author to show.
  public var author: String?
  /// The number of likes, not negative.
  public var likes: Int?
  /// The number of comments, not negative.
  public var comments: Int?
  /// The URL of an image (JPEG, PNG or WebP) to show until the first frame is decoded.
  public var poster: URL?
  /// Additional header fields for this item's media requests, in order. Credentials go only to the server of its source
  /// (`LoadingConfiguration.headers`). The poster is requested without them.
  public var headers: HTTPFields
  /// The duration of the media, if the feed states it.
  public var duration: Duration?
  /// The share of viewers still watching after each second, if the feed states it.
  package var retention: RetentionCurve?

  /// An item with the given identity, without descriptions.
  init(id: ID, source: MediaSource) {
    self.id = id
    self.source = source
    headers = [:]
  }

  /// A short name for lists and messages: the title, or else the name of its file or of the file's folder.
  public var name: String { title ?? source.stem }
}

extension FeedItem.ID: CustomStringConvertible {
  /// The source, with the number of its entry from the second on: `clip.mp4 (2)`. The feed's name is not included.
  public var description: String { occurrence == 1 ? source : "\(source) (\(occurrence))" }
}

/// The share of viewers still watching an item after each second.
///
/// The first share is that of second 0, the next one that of second 1, and so on; between two seconds the curve is a
/// straight line. No share is larger than the one before. A curve may continue past the end of the item, for viewers
/// who watch it again.
package struct RetentionCurve: Sendable, Hashable {
  /// The largest number of shares of a curve: 86,400, a day.
  package static let entryLimit = 86_400

  /// The share of viewers still watching at each second, from 0 to 1. Never empty.
  package let shares: [Double]

  /// Creates a curve from its shares.
  ///
  /// - Throws: `ReelError` of kind `usage` for an empty array, more than `entryLimit` shares, a share outside
  ///   0...1, and a share that is larger than the previous one. The reason names the share by its index.
  package init(_ shares: [Double]) throws(ReelError) {
    if let fault = Self.fault(in: shares) {
      throw ReelError(.usage, fault.index.map { "share \($0) \(fault.reason)" } ?? fault.reason)
    }
    self.shares = shares
  }

  /// The time of the last share.
  package var duration: Duration { .seconds(shares.count - 1) }

  /// Returns the share of viewers still watching at a time; before second 0 that of second 0, and after the
  /// last share the last share.
  package func share(at time: Duration) -> Double {
    let seconds = time / .seconds(1)
    guard seconds > 0 else { return shares[0] }
    guard seconds < Double(shares.count - 1) else { return shares[shares.count - 1] }
    let index = Int(seconds)
    return shares[index] + (shares[index + 1] - shares[index]) * (seconds - Double(index))
  }

  // MARK: - Internal

  /// Creates a curve of shares for which `fault(in:)` returns nil.
  init(checked shares: [Double]) { self.shares = shares }

  /// Returns the first reason why `shares` are not a curve, and the index of the faulty share if it is one;
  /// nil for a curve.
  static func fault(in shares: [Double]) -> (index: Int?, reason: String)? {
    if shares.isEmpty { return (nil, "should have at least one share") }
    if shares.count > entryLimit { return (nil, "has more than the limit of \(entryLimit) shares") }
    for (index, share) in shares.enumerated() {
      guard share >= 0, share <= 1 else { return (index, "must be from 0 to 1") }
      guard index == 0 || share <= shares[index - 1] else {
        return (index, "is larger than the share before")
      }
    }
    return nil
  }

  /// Returns the first time at which the curve is at or below `share`, in seconds; nil if it stays above.
  ///
  /// The inverse of `share(at:)`. It uses only operations whose rounding IEEE 754 defines exactly.
  package func seconds(fallingTo share: Double) -> Double? {
    guard let last = shares.last, last <= share else { return nil }
    // The first index whose share is not above the wanted one.
    let index = shares.indices.bisect { shares[$0] <= share }
    guard index > 0 else { return 0 }
    let above = shares[index - 1]
    return Double(index - 1) + (above - share) / (above - shares[index])
  }
}
