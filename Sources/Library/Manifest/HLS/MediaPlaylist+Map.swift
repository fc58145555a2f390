package import ReelCore

extension MediaPlaylist {
  /// EXT-X-MAP (RFC 8216 §4.3.2.5): the bytes that come before the segments that follow.
  package struct Map: Sendable, Hashable {
    /// URI.
    package var reference: String
    /// BYTERANGE; the offset is 0 if it has none.
    package var byteRange: ByteRange?
    /// The EXT-X-KEY tags before it, which it is encrypted with.
    package var keys: [Key]

    init(_ attributes: AttributeList, keys: [Key], place: ReelError.Place) throws(ReelError) {
      guard let reference = attributes["URI"] else {
        throw ReelError(.badManifest, "EXT-X-MAP has no URI", place: place)
      }
      self.reference = reference
      self.keys = keys
      if let text = attributes["BYTERANGE"] {
        let bytes = Array(text.utf8)
        let range = try ByteRangeText(bytes, in: 0..<bytes.count, place: place)
        byteRange = try range.byteRange(implicitOffset: 0, place: place)
      }
    }
  }
}
