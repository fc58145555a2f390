public import ReelCore
public import ReelPlayback

/// The feeds of a feed file: a list of URLs and paths, an `.m3u` list, or JSON.
///
/// The text is UTF-8, with or without a byte order mark. Lines end with LF, CRLF or CR.
///
/// A **list** has one URL or path per line. Blank lines and lines that begin with `#` are ignored. In an **.m3u** list,
/// the title after the comma of an `#EXTINF` line belongs to the next entry. Both give one feed named `default`.
///
/// A file that begins with `{`, `[` or `"` is **JSON**: an object with `items` (the feed `default`), `feeds`, or both;
/// or an array, which stands for `items` alone. `feeds` is an object of feeds by name, or an array of objects with
/// `name` and `items`. A feed is an array of items, or an object with `items`. An item is a string (its URL or path) or
/// an object with `url` and, optionally, `title`, `author`, `likes`, `comments`, `poster`, `headers`, `duration` and
/// `retention`. `headers` is an object of strings, or an array of strings of the form `Name: value`. `duration` is the
/// number of seconds of the media, above 0 and at most a day. `retention` is an array with the share of viewers still
/// watching at each second from second 0 (``RetentionCurve``). `null` counts as absent; unknown keys are ignored.
///
/// An entry with a scheme is a URL. In a feed from the network, any other entry is a relative reference (RFC 3986 §5),
/// and no entry may name a local file. In a local feed, any other entry is a path relative to the feed's folder; `~/`
/// stands for the home folder, and no character is escaped.
///
/// Some of the feeds may be empty, but not all. To list a path that begins with a character of JSON, write `./` first.
public struct FeedFile: Sendable, Hashable {
  /// The feeds in the file's order, at least one. In JSON, `default` precedes the named ones. No two have the same
  /// name.
  public let feeds: [Feed]

  /// The name given to a feed that has none in the file: `default`.
  public static let defaultName = "default"

  /// Reads the feeds in `bytes`.
  ///
  /// - Parameters:
  ///   - bytes: The content of the feed file.
  ///   - location: Where the bytes come from. Relative entries are resolved against it; those of standard input are
  ///     relative to the current folder.
  ///   - limits: The largest feed to accept.
  /// - Throws: `ReelError` of kind `badManifest` or `unsupported` if the bytes are no feed, an entry can't be read, or
  ///   a limit is exceeded. The error names the line, or in JSON the path of the value (`feeds.following[3].url`).
  public init(
    bytes: [UInt8], at location: MediaSource, limits: FeedLimits = FeedLimits()
  ) throws(ReelError) {
    do throws(ReelError) {
      feeds = try Self.feeds(in: bytes, at: location, limits: limits)
    } catch {
      // The reason names the entry, the location the file.
      var located = error
      if let entry = error.location { located.reason = "\(entry): \(error.reason)" }
      located.location = location.name
      throw located
    }
  }

  /// Reads a local file.
  ///
  /// - Throws: The errors of `init(bytes:at:limits:)`, and `noSuchFile` if the file can't be read.
  public init(path: String, limits: FeedLimits = FeedLimits()) throws(ReelError) {
    let bytes = try LocalText.bytes(path: path, limit: limits.byteCount)
    try self.init(bytes: bytes, at: try MediaSource(argument: path), limits: limits)
  }

  /// The feed with this name; `nil` if there is none.
  public subscript(name: String) -> Feed? { feeds.first { $0.name == name } }

  /// The feed with this name; for nil the first that has items.
  ///
  /// - Throws: `ReelError` of kind `usage` if there is none, or it has no items.
  package func feed(named name: String?) throws(ReelError) -> Feed {
    guard let feed = name.map({ self[$0] }) ?? feeds.first(where: { !$0.items.isEmpty }) else {
      throw ReelError(
        .usage, "there is no feed \(name ?? "")",
        advice: "it has \(feeds.map(\.name).joined(separator: ", "))")
    }
    guard !feed.items.isEmpty else { throw ReelError(.usage, "the feed \(feed.name) is empty") }
    return feed
  }

  // MARK: - Private

  private static func feeds(
    in bytes: [UInt8], at location: MediaSource, limits: FeedLimits
  ) throws(ReelError) -> [Feed] {
    let text = try FeedText(bytes: bytes, limit: limits.byteCount)
    let reference = FeedReference(feed: location, limit: limits.referenceByteCount)
    let feeds: [Feed]
    if text.isJSON {
      feeds = try FeedJSONReader(reference: reference, itemLimit: limits.itemCount).feeds(in: text.bytes)
    } else {
      feeds = [try FeedListReader(reference: reference, itemLimit: limits.itemCount).feed(in: text.bytes)]
    }
    guard feeds.contains(where: { !$0.items.isEmpty }) else {
      throw ReelError(.badManifest, "the feed has no items")
    }
    return feeds
  }
}
