import Foundation
import ReelCore

/// Turns the references of a manifest into absolute URLs (RFC 3986 §5).
struct URLResolver: Sendable {
  /// The base of relative references.
  let base: URL
  let limit: Int

  init(base: URL, limit: Int = ManifestLimits().urlByteCount) {
    self.base = base
    self.limit = limit
  }

  /// Returns the URL of a reference that `isPlain` or `resolve` has accepted.
  ///
  /// If Foundation refuses it nevertheless, the result is the base.
  func url(_ reference: String) -> URL {
    guard !reference.isEmpty, let url = URL(string: reference, relativeTo: base) else { return base }
    return url.absoluteURL
  }

  /// Returns the URL of any reference. Throws `badManifest` if the reference is invalid or too long, or leads
  /// from a remote manifest to a local file.
  func resolve(_ reference: String, place: ReelError.Place? = nil) throws(ReelError) -> URL {
    guard reference.utf8.count <= limit else {
      throw ReelError(.badManifest, "the URL is longer than \(limit) bytes", place: place)
    }
    if reference.isEmpty { return base }
    guard let url = URL(string: reference, relativeTo: base)?.absoluteURL else {
      throw ReelError(.badManifest, "'\(reference.excerpt)' is not a URL", place: place)
    }
    guard !url.isFileURL || base.isFileURL else {
      throw ReelError(
        .badManifest, "'\(reference.excerpt)' is a local file in a remote manifest", place: place)
    }
    return url
  }

  /// Returns true if these bytes are certainly a URL reference whose scheme is that of the base, `http` or
  /// `https`. This check avoids 2 µs in Foundation.
  static func isPlain(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard !bytes.isEmpty else { return false }
    var index = bytes.startIndex
    if let authority = Self.authorityStart(bytes) {
      index = authority
      while index < bytes.endIndex, Self.isHostByte(bytes[index]) { index += 1 }
      guard index > authority else { return false }
      if index < bytes.endIndex, bytes[index] == UInt8(ascii: ":") {
        let port = index + 1
        index = port
        while index < bytes.endIndex, bytes[index].isDigit { index += 1 }
        guard (1...4).contains(index - port) else { return false }
      }
      guard index < bytes.endIndex else { return true }
      guard bytes[index] == UInt8(ascii: "/") else { return false }
    } else if bytes.starts(with: "//".utf8) {
      return false
    }
    var mayHoldColon = index > bytes.startIndex
    while index < bytes.endIndex {
      let byte = bytes[index]
      if byte == UInt8(ascii: "%") {
        guard index + 2 < bytes.endIndex, bytes[index + 1].hexDigitValue != nil,
          bytes[index + 2].hexDigitValue != nil
        else { return false }
      } else if byte == UInt8(ascii: ":") {
        // Before the first slash, a colon would end a scheme (RFC 3986 §4.2).
        guard mayHoldColon else { return false }
      } else if !Self.isPlainByte(byte) {
        return false
      }
      mayHoldColon = mayHoldColon || byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?")
      index += 1
    }
    return true
  }

  // MARK: - Private

  private static func authorityStart(_ bytes: ArraySlice<UInt8>) -> Int? {
    if bytes.starts(with: "https://".utf8) { return bytes.startIndex + 8 }
    if bytes.starts(with: "http://".utf8) { return bytes.startIndex + 7 }
    return nil
  }

  private static func isHostByte(_ byte: UInt8) -> Bool {
    byte.isDigit || byte.isLetter || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".")
  }

  /// Unreserved characters, delimiters without effect on the resolution, and those that Foundation escapes:
  /// spaces and non-ASCII characters.
  private static func isPlainByte(_ byte: UInt8) -> Bool {
    if byte.isDigit || byte.isLetter || byte >= 0x80 { return true }
    switch byte {
    case UInt8(ascii: " "): return true
    case UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"),
      UInt8(ascii: "?"), UInt8(ascii: "="), UInt8(ascii: "&"), UInt8(ascii: "+"), UInt8(ascii: ","),
      UInt8(ascii: ";"), UInt8(ascii: "@"), UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "("),
      UInt8(ascii: ")"), UInt8(ascii: "*"):
      return true
    default: return false
    }
  }
}
