import Foundation
import ReelCore

/// The bytes that a `data:` URL holds (RFC 2397).
struct DataURL {
  let bytes: [UInt8]

  /// Throws `badManifest` for what holds none.
  init(_ url: URL) throws(ReelError) {
    let text = url.absoluteString
    guard text.lowercased().hasPrefix("data:"), let comma = text.firstIndex(of: ",") else {
      throw ReelError(.badManifest, "a data: URL without data")
    }
    let head = text[..<comma]
    let content = Self.decoded(text[text.index(after: comma)...].utf8)
    guard head.lowercased().hasSuffix(";base64") else {
      bytes = content
      return
    }
    guard let data = Data(base64Encoded: Data(content), options: .ignoreUnknownCharacters) else {
      throw ReelError(.badManifest, "a data: URL that is no base64")
    }
    bytes = Array(data)
  }

  // MARK: - Private

  /// The bytes that are meant, which need be no text; what is no escape stands for itself.
  private static func decoded(_ text: Substring.UTF8View) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
      let digits = rest.prefix(2)
      if byte == UInt8(ascii: "%"), digits.count == 2,
        let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
      {
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return bytes
  }
}
