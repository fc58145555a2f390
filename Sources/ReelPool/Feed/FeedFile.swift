public import ReelCore
public import ReelPlayback

/// The feeds of a feed file: a list of URLs and paths, an `.m3u` list, or JSON.
///
/// All are UTF-8, with or without a byte order mark; lines end with LF, CRLF or CR.
///
/// What begins with `{`, `[` or `"` is JSON; `./` before it makes a path of a name that does.
///
/// A **list** has an entry a line; blank lines and lines that begin with `#` are left out. In an **.m3u** list the
/// title behind the comma of an `#EXTINF` line is the next entry's. They give one feed, of the name `default`.
///
/// **JSON** is an object with `items`, which is the feed `default`, or `feeds`, or both; or an array, which is `items`
/// alone. `feeds` is an object of feeds by name, or an array of objects with `name` and `items`; a feed is an array of
/// items, or an object with `items`. An item is a text, its URL or path, or an object with `url` and whatever is known
/// of `title`, `author`, `likes`, `comments`, `poster`, and `headers` (an object of texts, or an array of texts
/// `Name: value`). `null` is the same as nothing; other keys are not looked at.
///
/// What an entry says is read by `FeedReference`: URLs as a browser reads them, paths as a shell does.
///
/// Of several feeds some may be empty, but not all.
public struct FeedFile: Sendable, Hashable {
  /// At least one, in the file's order; the feed `default` of JSON before the named ones. Each has another name.
  public let feeds: [Feed]

  /// The name of the feed that has none in the file.
  public static let defaultName = "default"

  /// Reads the feeds in `bytes`.
  ///
  /// `location` is where they come from: relative entries are relative to it, those of standard input to the current
  /// folder.
  ///
  /// Throws `ReelError` of kind `badManifest` or `unsupported` with the line, and in JSON the path of the value
  /// (`feeds.following[3].url`), for what is no feed, for an entry that can't be read, and beyond a limit.
  public init(
    bytes: [UInt8], at location: MediaSource, limits: FeedLimits = FeedLimits()
  ) throws(ReelError) {
    do throws(ReelError) {
      feeds = try Self.feeds(in: bytes, at: location, limits: limits)
    } catch {
      // What is wrong with an entry names the entry; the file is where to look.
      var located = error
      if let entry = error.location { located.reason = "\(entry): \(error.reason)" }
      located.location = location.name
      throw located
    }
  }

  /// Reads a file of this machine.
  ///
  /// Throws as `init(bytes:at:limits:)`, and `noSuchFile` where the file can't be read.
  public init(path: String, limits: FeedLimits = FeedLimits()) throws(ReelError) {
    let bytes = try LocalText.bytes(path: path, limit: limits.byteCount)
    try self.init(bytes: bytes, at: try MediaSource(argument: path), limits: limits)
  }

  /// The feed of this name.
  public subscript(name: String) -> Feed? { feeds.first { $0.name == name } }

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
