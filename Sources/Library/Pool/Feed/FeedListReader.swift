internal import ReelCore

/// Reads a list of URLs and paths, with the titles of an `.m3u` list where it has any.
struct FeedListReader {
  let reference: FeedReference
  let itemLimit: Int

  /// Throws `ReelError` with the line of what can't be read.
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

  /// The title of `#EXTINF:123,Title` or `#EXTINF:-1 key="a, b",Title`; nil where there is none.
  private static func title(_ line: String) -> String? {
    guard line.hasPrefix("#EXTINF:") else { return nil }
    var isQuoted = false
    // Players write attributes between the duration and the comma, and commas in their quotes.
    let comma = line.firstIndex { character in
      if character == "\"" { isQuoted.toggle() }
      return character == "," && !isQuoted
    }
    guard let comma = comma ?? line.firstIndex(of: ",") else { return nil }
    let title = line[line.index(after: comma)...].trimmed
    return title.isEmpty ? nil : title
  }
}
