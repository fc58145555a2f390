import Foundation
package import ReelCore

/// Which of the two playlists a text is (RFC 8216 §4.1).
package enum PlaylistKind: Sendable {
  case multivariant
  case media

  /// Reads up to the first tag that determines the kind. Throws `badManifest` for anything but a playlist,
  /// stating what it is.
  package init(_ bytes: [UInt8]) throws(ReelError) {
    var lines = PlaylistLines(bytes)
    var line = lines.next()
    // Comments before the header are wrong but harmless.
    while let range = line, bytes[range.lowerBound] == UInt8(ascii: "#"),
      !bytes.has("#EXT", at: range.lowerBound)
    {
      line = lines.next()
    }
    guard let first = line else {
      throw ReelError(
        .badManifest, bytes.isEmpty ? "the playlist is empty" : "not a playlist: it has no tags")
    }
    guard bytes.has("#EXT", at: first.lowerBound) else {
      throw ReelError(
        .badManifest, "not a playlist: \(Self.description(bytes, first))", place: .line(lines.number))
    }
    var hasMediaTags = false
    while let range = line {
      let start = range.lowerBound
      if bytes.has("#EXT-X-STREAM-INF", at: start) || bytes.has("#EXT-X-MEDIA:", at: start)
        || bytes.has("#EXT-X-I-FRAME-STREAM-INF", at: start)
        || bytes.has("#EXT-X-IMAGE-STREAM-INF", at: start)
      {
        self = .multivariant
        return
      }
      if bytes.has("#EXTINF", at: start) {
        self = .media
        return
      }
      hasMediaTags = hasMediaTags || Self.mediaTags.contains { bytes.has($0, at: start) }
      line = lines.next()
    }
    guard hasMediaTags else {
      throw ReelError(
        .badManifest, "the playlist has neither variants (EXT-X-STREAM-INF) nor segments (EXTINF)")
    }
    self = .media
  }

  // MARK: - Private

  /// How the tags begin that only media playlists have, other than EXTINF.
  private static let mediaTags: [StaticString] = [
    "#EXT-X-TARGETDURATION", "#EXT-X-MEDIA-SEQUENCE", "#EXT-X-PART", "#EXT-X-PLAYLIST-TYPE", "#EXT-X-ENDLIST",
    "#EXT-X-DISCONTINUITY", "#EXT-X-SKIP", "#EXT-X-PRELOAD-HINT", "#EXT-X-SERVER-CONTROL",
    "#EXT-X-RENDITION-REPORT", "#EXT-X-I-FRAMES-ONLY", "#EXT-X-IMAGES-ONLY", "#EXT-X-TILES",
  ]

  private static func description(_ bytes: [UInt8], _ line: Range<Int>) -> String {
    switch bytes[line.lowerBound] {
    case UInt8(ascii: "<"):
      let text = bytes.text(in: line.prefix(64)).lowercased()
      return text.contains("html") ? "it is an HTML page" : "it is XML"
    case UInt8(ascii: "{"), UInt8(ascii: "["): return "it is JSON"
    default: return "it does not start with #EXTM3U"
    }
  }
}
