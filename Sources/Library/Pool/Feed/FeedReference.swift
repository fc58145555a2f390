internal import Foundation
package import ReelCore
package import ReelPlayback

/// Reads what the entries of a feed say: a URL, or something relative to the feed.
///
/// - What has a scheme is a URL: `http`, `https` or `file`.
/// - In a feed that came from an `http` or `https` URL everything else is a relative reference, resolved against that
///   URL (RFC 3986 §5) as a browser does it. It can't lead to a local file.
/// - In a local feed everything else is a path, as a shell reads it: relative to the folder of the feed, absolute with a
///   leading `/`, in the user's home with a leading `~/`. No character is escaped: `#`, `?` and `%20` are parts of a
///   name. `..` is left to the system, which knows links.
package struct FeedReference: Sendable {
  /// Where the feed is, if it is remote.
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

  /// The user's folder, as a shell has it.
  static var userFolder: String { ProcessInfo.processInfo.environment["HOME"] ?? NSHomeDirectory() }

  /// The source that `text` means.
  ///
  /// Throws `ReelError` for what is empty, too long, no URL, of a scheme that is not supported, or a way from a remote
  /// feed to a local file.
  package func source(_ text: String) throws(ReelError) -> MediaSource { .url(try url(text)) }

  /// The URL that `text` means. Throws as `source(_:)`.
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
      // It is the feed that is wrong, not how the program was called.
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

  /// True for `name://`, and for `file:` and `data:` without slashes. One letter is a drive, not a scheme.
  private static func hasScheme(_ text: String) -> Bool {
    guard let colon = text.firstIndex(of: ":") else { return false }
    let scheme = text[..<colon]
    guard scheme.count > 1, scheme.first?.isLetter == true,
      scheme.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) })
    else { return false }
    return text[colon...].hasPrefix("://") || ["file", "data"].contains(scheme.lowercased())
  }
}
