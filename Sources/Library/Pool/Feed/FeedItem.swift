public import Foundation
public import ReelCore
public import ReelPlayback

/// One entry of a feed: the source of its media, and what an app shows beside it.
public struct FeedItem: Sendable, Hashable, Identifiable {
  /// An item's identity: its feed, its source, and which entry of that source it is.
  ///
  /// The identity does not change when other items are added or removed. Two entries of one URL are two items, and the
  /// second remains the second when the first is removed. Reading a feed again gives the same identities as long as the
  /// entries of each source keep their order.
  public struct ID: Sendable, Hashable {
    /// The feed's name.
    public let feed: String
    /// The source's URL, or its path if it is a local file.
    public let source: String
    /// The number of this entry among those of the same source, from 1.
    public let occurrence: Int

    /// An identity from its parts. ``Feed/append(_:describe:)`` makes one for each item that it adds.
    public init(feed: String, source: String, occurrence: Int = 1) {
      self.feed = feed
      self.source = source
      self.occurrence = occurrence
    }
  }

  /// The item's identity, which stays the same while the feed changes.
  public let id: ID
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
  /// Additional header fields for every media request of this item, in order. The poster is requested without them.
  public var headers: [HeaderField]
  /// The duration of the media, if the feed states it.
  public var duration: Duration?
  /// How many viewers are still watching after each second, if the feed states it.
  public var retention: RetentionCurve?

  /// An item with the given identity and descriptions.
  public init(
    id: ID, source: MediaSource, title: String? = nil, author: String? = nil, likes: Int? = nil,
    comments: Int? = nil, poster: URL? = nil, headers: [HeaderField] = [], duration: Duration? = nil,
    retention: RetentionCurve? = nil
  ) {
    self.id = id
    self.source = source
    self.title = title
    self.author = author
    self.likes = likes
    self.comments = comments
    self.poster = poster
    self.headers = headers
    self.duration = duration
    self.retention = retention
  }

  /// A short name for lists and messages: the title, or else that of the source (`MediaSource.stem`).
  public var name: String { title ?? source.stem }
}

extension FeedItem.ID: CustomStringConvertible {
  /// The source, with the number of its entry from the second on: `clip.mp4 (2)`. The feed's name is not included.
  public var description: String { occurrence == 1 ? source : "\(source) (\(occurrence))" }
}
