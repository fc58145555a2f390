internal import ReelCore

/// The bytes of a feed file as text that was looked over: UTF-8 without a byte order mark.
struct FeedText {
  let bytes: ArraySlice<UInt8>

  /// Throws `ReelError.badManifest` for what is no text, no UTF-8, or too large.
  init(bytes: [UInt8], limit: Int) throws(ReelError) {
    guard bytes.count <= limit else {
      throw ReelError(.badManifest, "larger than the limit of \(limit) bytes")
    }
    if bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) {
      throw ReelError(.badManifest, "UTF-16", advice: "save the feed as UTF-8")
    }
    self.bytes = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? bytes[3...] : bytes[...]
    if self.bytes.contains(0) { throw ReelError(.badManifest, "no text, but binary data") }
    if String(validating: self.bytes, as: UTF8.self) == nil {
      throw ReelError(.badManifest, "not UTF-8", place: .line(Self.lineOfBadByte(in: self.bytes)))
    }
    if self.bytes.first(where: { !$0.isBlank }) == UInt8(ascii: "<") {
      throw ReelError(
        .badManifest, "XML or HTML, not a feed", advice: "a feed is a list of URLs, .m3u, or JSON")
    }
  }

  /// True where the text begins as an object, an array or a text of JSON does.
  var isJSON: Bool {
    let first = bytes.first { !$0.isBlank }
    return [UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "\"")].contains(first)
  }

  // MARK: - Private

  /// The first line that is not UTF-8. Line ends are ASCII, so lines can be looked at one by one.
  private static func lineOfBadByte(in bytes: ArraySlice<UInt8>) -> Int {
    for line in TextLines(bytes) where String(validating: line.bytes, as: UTF8.self) == nil {
      return line.number
    }
    return 1
  }
}
