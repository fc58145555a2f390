/// What a source that begins with text is.
package enum TextFormat: Sendable, Hashable {
  case manifest(ManifestFormat)
  /// Something else, described in words.
  case other(String)

  /// The number of bytes that are enough to detect a manifest, unless the source is shorter.
  package static let byteCount = 4096

  /// Detects the format from the first bytes; nil if they are not text, or text of no known kind. File names and media
  /// types are ignored.
  package init?(_ bytes: [UInt8]) {
    // An MPD may be in UTF-16, a playlist may not.
    let text = XMLReader.utf8(bytes)
    var rest = text[...]
    if rest.starts(with: [0xef, 0xbb, 0xbf]) { rest = rest.dropFirst(3) }
    rest = rest.drop { $0 == 0x20 || (0x09...0x0d).contains($0) }
    guard let first = rest.first else {
      guard Self.isText(bytes) else { return nil }
      self = .other("blank text")
      return
    }
    if text.count == bytes.count, Self.isPlaylist(rest) {
      self = .manifest(.hls)
    } else if first == UInt8(ascii: "<") {
      let head = String(decoding: rest.prefix(Self.byteCount), as: UTF8.self).lowercased()
      if head.contains("<html") || head.contains("<!doctype html") {
        self = .other("an HTML page")
      } else if head.contains("mpd") || head.hasPrefix("<?xml") || head.hasPrefix("<!--") {
        // A long comment may precede the root element. The XML reader reports errors.
        self = .manifest(.dash)
      } else {
        self = .other("XML, but not an MPD")
      }
    } else if first == UInt8(ascii: "{") || first == UInt8(ascii: "["), Self.isText(bytes) {
      self = .other("JSON")
    } else {
      return nil
    }
  }

  /// Returns true if the first bytes are text.
  package static func isText(_ bytes: [UInt8]) -> Bool {
    bytes.prefix(1024).allSatisfy { $0 >= 0x20 && $0 != 0x7f || (0x09...0x0d).contains($0) }
  }

  // MARK: - Private

  /// Returns true if the first line other than a comment is an HLS tag.
  private static func isPlaylist(_ text: ArraySlice<UInt8>) -> Bool {
    var rest = text
    while rest.first == UInt8(ascii: "#") {
      if ["#EXTM3U", "#EXT-X-", "#EXTINF"].contains(where: { rest.starts(with: $0.utf8) }) { return true }
      rest = rest.drop { $0 != 0x0a && $0 != 0x0d }.drop { $0 == 0x20 || (0x09...0x0d).contains($0) }
    }
    return false
  }
}
