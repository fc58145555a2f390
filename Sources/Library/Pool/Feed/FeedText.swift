internal import ReelCore

/// The bytes of a feed file as text that was looked over: UTF-8 without a byte order mark.
struct FeedText {
  let bytes: ArraySlice<UInt8>

  /// Throws `ReelError.badManifest` for what is no text, no UTF-8, or too large.
  init(bytes: [UInt8], limit: Int) throws(ReelError) {
    guard bytes.count <= limit else {
      throw ReelError(.badManifest, "larger than the limit of \(limit) bytes")
    }
    self.bytes = try LocalText.validated(bytes)
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
}
