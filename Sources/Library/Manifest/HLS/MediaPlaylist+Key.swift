import ReelCore

extension MediaPlaylist {
  /// EXT-X-KEY or EXT-X-SESSION-KEY (RFC 8216 §4.3.2.4): how segments are encrypted.
  package struct Key: Sendable, Hashable {
    /// METHOD: `NONE`, `AES-128`, `SAMPLE-AES`, or another.
    package var method: String
    /// URI.
    package var reference: String?
    /// IV: 16 bytes.
    package var initializationVector: [UInt8]?
    /// KEYFORMAT; `identity` if it has none.
    package var keyFormat: String

    init(_ attributes: AttributeList, place: ReelError.Place) throws(ReelError) {
      guard let method = attributes["METHOD"] else {
        throw ReelError(.badManifest, "EXT-X-KEY has no METHOD", place: place)
      }
      self.method = method.uppercased()
      reference = attributes["URI"]
      keyFormat = attributes["KEYFORMAT"] ?? "identity"
      guard let text = attributes["IV"] else { return }
      guard let bytes = Self.hexadecimal(text) else {
        throw ReelError(
          .badManifest, "the IV '\(text.excerpt)' is not a hexadecimal number of 128 bits", place: place)
      }
      initializationVector = bytes
    }

    /// A 128-bit number, `0x…`, big endian; leading zeros may be missing.
    private static func hexadecimal(_ text: String) -> [UInt8]? {
      let lowercased = text.lowercased()
      guard lowercased.hasPrefix("0x") else { return nil }
      let digits = lowercased.utf8.dropFirst(2)
      guard (1...32).contains(digits.count) else { return nil }
      var bytes = [UInt8](repeating: 0, count: 16)
      for (place, digit) in digits.reversed().enumerated() {
        guard let value = digit.hexDigitValue else { return nil }
        bytes[15 - place / 2] |= place % 2 == 0 ? value : value << 4
      }
      return bytes
    }
  }
}
