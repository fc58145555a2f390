internal import Foundation
public import ReelCore
public import ReelSources

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
/// an object with `url` and, optionally, `title`, `author`, `likes`, `comments`, `poster`, `headers`, `secret_headers`,
/// `duration` and `retention`. `headers`, and `secret_headers` for fields of `HTTPField.secret(_:_:)`, are objects of
/// strings, or arrays of strings of the form `Name: value`. `duration` is the number of seconds of the media, above 0 and
/// at most a day. `retention` is an array with the share of viewers still watching at each second from second 0. `null`
/// counts as absent; unknown keys are ignored.
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
  package static let defaultName = "default"

  /// Reads the feeds in `bytes`.
  ///
  /// - Parameters:
  ///   - bytes: The content of the feed file.
  ///   - location: The origin of the bytes. Relative entries are resolved against it; those of standard input
  ///     are relative to the current folder.
  /// - Throws: `ReelError` of kind `badManifest` or `unsupported` if the bytes are not a feed, an entry can't
  ///   be read, or a limit is exceeded. The error names the line, or in JSON the path of the value
  ///   (`feeds.following[3].url`).
  public init(bytes: [UInt8], at location: MediaSource) throws(ReelError) {
    try self.init(bytes: bytes, at: location, limits: FeedLimits())
  }

  package init(bytes: [UInt8], at location: MediaSource, limits: FeedLimits) throws(ReelError) {
    do throws(ReelError) {
      feeds = try Self.feeds(in: bytes, at: location, limits: limits)
    } catch {
      // The reason names the entry, and the location names the file.
      var located = error
      if let entry = error.location { located.reason = "\(entry): \(error.reason)" }
      located.location = location.name
      throw located
    }
  }

  /// Reads a local file.
  ///
  /// - Throws: The errors of `init(bytes:at:)`, and `noSuchFile` if the file can't be read.
  public init(path: String) throws(ReelError) { try self.init(path: path, limits: FeedLimits()) }

  package init(path: String, limits: FeedLimits) throws(ReelError) {
    let bytes = try LocalText.bytes(path: path, limit: limits.byteCount)
    try self.init(bytes: bytes, at: try MediaSource(argument: path), limits: limits)
  }

  /// The feed with this name; `nil` if there is none.
  public subscript(name: String) -> Feed? { feeds.first { $0.name == name } }

  /// Returns the feed with this name; for nil, the first one that has items.
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
    guard bytes.count <= limits.byteCount else {
      throw ReelError(.badManifest, "larger than the limit of \(limits.byteCount) bytes")
    }
    let text = try LocalText.validated(bytes)
    let first = text.first { !$0.isSpace }
    if first == UInt8(ascii: "<") {
      throw ReelError(
        .badManifest, "XML or HTML, not a feed", advice: "a feed is a list of URLs, .m3u, or JSON")
    }
    let reference = FeedReference(feed: location, limit: limits.referenceByteCount)
    let feeds: [Feed]
    if [UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "\"")].contains(first) {
      feeds = try FeedJSONReader(reference: reference, itemLimit: limits.itemCount).feeds(in: text)
    } else {
      feeds = [try FeedListReader(reference: reference, itemLimit: limits.itemCount).feed(in: text)]
    }
    guard feeds.contains(where: { !$0.items.isEmpty }) else {
      throw ReelError(.badManifest, "the feed has no items")
    }
    return feeds
  }
}

/// Reads a list of URLs and paths, with the titles of an `.m3u` list if it has any.
struct FeedListReader {
  let reference: FeedReference
  let itemLimit: Int

  /// Throws `ReelError` with the line of an unreadable entry.
  func feed(in bytes: ArraySlice<UInt8>) throws(ReelError) -> Feed {
    var feed = Feed(name: FeedFile.defaultName)
    var title: String?
    for (number, bytes) in TextLines(bytes) {
      let line = String(decoding: bytes, as: UTF8.self)
      if line.isEmpty { continue }
      if line.hasPrefix("#EXT-X-") {
        throw ReelError(
          .badManifest, "an HLS playlist, not a feed", place: .line(number),
          advice: "play it, or list its URL in a feed")
      }
      if line.hasPrefix("#") {
        title = Self.title(line) ?? title
        continue
      }
      guard feed.items.count < itemLimit else {
        throw ReelError(.badManifest, "more than the limit of \(itemLimit) items", place: .line(number))
      }
      do {
        feed.append(try reference.source(line)) { $0.title = title }
      } catch {
        var placed = error
        placed.place = .line(number)
        throw placed
      }
      title = nil
    }
    return feed
  }

  // MARK: - Private

  /// Returns the title of `#EXTINF:123,Title` or `#EXTINF:-1 key="a, b",Title`; nil if there is none.
  private static func title(_ line: String) -> String? {
    guard line.hasPrefix("#EXTINF:") else { return nil }
    var isQuoted = false
    // Playlist writers put attributes between the duration and the comma, with commas inside quotes.
    let comma = line.firstIndex { character in
      if character == "\"" { isQuoted.toggle() }
      return character == "," && !isQuoted
    }
    guard let comma = comma ?? line.firstIndex(of: ",") else { return nil }
    let title = line[line.index(after: comma)...].trimmed
    return title.isEmpty ? nil : title
  }
}

/// Resolves the entries of a feed: a URL, or a reference relative to the feed.
///
/// - An entry with a scheme is a URL: `http`, `https` or `file`.
/// - In a feed from an `http` or `https` URL, any other entry is a relative reference, resolved against that
///   URL (RFC 3986 §5) as in a browser. It can't refer to a local file.
/// - In a local feed, any other entry is a path, as in a shell: relative to the folder of the feed, absolute
///   with a leading `/`, in the user's home with a leading `~/`. No character is escaped: `#`, `?` and `%20`
///   are parts of a name. `..` is left to the system, which resolves links.
package struct FeedReference: Sendable {
  /// The URL of the feed, if it is remote.
  private let remote: URL?
  /// The folder that paths are relative to; it ends with a slash.
  private let folder: String
  private let home: String
  private let limit: Int

  package init(feed: MediaSource, limit: Int) { self.init(feed: feed, limit: limit, home: Self.userFolder) }

  /// `home` is the user's folder.
  init(feed: MediaSource, limit: Int, home: String) {
    self.limit = limit
    self.home = home
    let current = FileManager.default.currentDirectoryPath
    switch feed {
    case .standardInput: (remote, folder) = (nil, "\(current)/")
    case .url(let url) where url.isFileURL:
      remote = nil
      folder = String(url.path[...(url.path.lastIndex(of: "/") ?? url.path.startIndex)])
    case .url(let url): (remote, folder) = (url.absoluteURL, "\(current)/")
    }
  }

  /// The user's home folder, as in a shell.
  static var userFolder: String { ProcessInfo.processInfo.environment["HOME"] ?? NSHomeDirectory() }

  /// Returns the source that `text` refers to.
  ///
  /// Throws `ReelError` for a text that is empty, too long, not a URL, of an unsupported scheme, or a
  /// reference from a remote feed to a local file.
  package func source(_ text: String) throws(ReelError) -> MediaSource { .url(try url(text)) }

  /// Returns the URL that `text` refers to. Throws the same errors as `source(_:)`.
  func url(_ text: String) throws(ReelError) -> URL {
    guard !text.isEmpty else { throw ReelError(.badManifest, "the URL is empty") }
    guard text.utf8.count <= limit else {
      throw ReelError(.badManifest, "the URL is longer than \(limit) bytes")
    }
    guard !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7f }) else {
      throw ReelError(.badManifest, "\"\(text)\" contains a control character")
    }
    guard text != "-" else {
      throw ReelError(
        .badManifest, "standard input can't be an item", advice: "write ./- for a file named -")
    }
    if Self.hasScheme(text) { return try absolute(text) }
    guard let remote else {
      return URL(fileURLWithPath: path(text), isDirectory: text.hasSuffix("/"))
    }
    guard let url = URL(string: text, relativeTo: remote)?.absoluteURL else {
      throw ReelError(.badManifest, "\"\(text)\" is not a valid URL")
    }
    return try absolute(url.absoluteString)
  }

  // MARK: - Private

  private func absolute(_ text: String) throws(ReelError) -> URL {
    let source: MediaSource
    do throws(ReelError) {
      source = try MediaSource(argument: text)
    } catch {
      // The error is in the feed, not in the arguments of the program.
      var inFeed = error
      if error.kind == .usage { inFeed.kind = .badManifest }
      throw inFeed
    }
    guard case .url(let url) = source else {
      throw ReelError(.badManifest, "\"\(text)\" is not a valid URL")
    }
    guard remote == nil || !url.isFileURL else {
      throw ReelError(.badManifest, "\"\(text)\" is a local file in a remote feed")
    }
    return url
  }

  private func path(_ text: String) -> String {
    if text.hasPrefix("/") { return text }
    if text.hasPrefix("~/") { return home + text.dropFirst() }
    return folder + text
  }

  /// Returns true for `name://`, and for `file:` and `data:` without slashes. A single letter is a drive, not
  /// a scheme.
  private static func hasScheme(_ text: String) -> Bool {
    guard let colon = text.firstIndex(of: ":") else { return false }
    let scheme = text[..<colon]
    guard scheme.count > 1, scheme.first?.isLetter == true,
      scheme.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) })
    else { return false }
    return text[colon...].hasPrefix("://") || ["file", "data"].contains(scheme.lowercased())
  }
}

/// The limits for a feed file that ``FeedFile`` accepts.
package struct FeedLimits: Sendable, Hashable {
  /// The bytes of the file. Defaults to 16 MiB.
  package var byteCount: Int
  /// The items of all feeds in the file together. Defaults to 100,000.
  package var itemCount: Int
  /// The bytes of one URL or path. Defaults to 65,536.
  package var referenceByteCount: Int

  package init(byteCount: Int = 16 << 20, itemCount: Int = 100_000, referenceByteCount: Int = 65_536) {
    self.byteCount = byteCount
    self.itemCount = itemCount
    self.referenceByteCount = referenceByteCount
  }
}
