public import Foundation
public import ReelCore
public import ReelPlayback

/// One entry of a feed: where its media comes from, and what is shown beside it.
public struct FeedItem: Sendable, Hashable, Identifiable {
  /// An entry's identity: its feed, its source, and which entry of that source it is.
  ///
  /// It is given once and stays while others are added and removed, so two entries of one URL are two items, and the
  /// second remains the second when the first is gone. A feed that is read again gives the same identities for as long
  /// as the entries of one source keep their order among themselves.
  public struct ID: Sendable, Hashable {
    /// The feed's name.
    public let feed: String
    /// The source's URL, or its path where it is a file.
    public let source: String
    /// 1 for the source's first entry in the feed.
    public let occurrence: Int

    public init(feed: String, source: String, occurrence: Int = 1) {
      self.feed = feed
      self.source = source
      self.occurrence = occurrence
    }
  }

  public let id: ID
  public var source: MediaSource
  public var title: String?
  public var author: String?
  /// Not negative.
  public var likes: Int?
  /// How many there are; not negative.
  public var comments: Int?
  /// A frame to be shown until the first frame is there.
  public var poster: URL?
  /// Further fields for every request of this item, in order.
  public var headers: [HeaderField]

  public init(
    id: ID, source: MediaSource, title: String? = nil, author: String? = nil, likes: Int? = nil,
    comments: Int? = nil, poster: URL? = nil, headers: [HeaderField] = []
  ) {
    self.id = id
    self.source = source
    self.title = title
    self.author = author
    self.likes = likes
    self.comments = comments
    self.poster = poster
    self.headers = headers
  }

  /// What to call the item where there is little room: its title, else the source's short name.
  public var name: String { title ?? source.stem }
}

extension FeedItem.ID: CustomStringConvertible {
  /// The source, with the number of its entry from the second on: `clip.mp4 (2)`. The feed is not in it.
  public var description: String { occurrence == 1 ? source : "\(source) (\(occurrence))" }
}
