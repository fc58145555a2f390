/// The id by which media and manifests refer to a key: `KID` of ISO/IEC 23001-7, 16 bytes.
public struct KeyID: Sendable, Hashable {
  public let bytes: [UInt8]

  /// Nil unless there are 16 bytes.
  public init?(bytes: some Collection<UInt8>) {
    guard bytes.count == ContentKey.byteCount else { return nil }
    self.bytes = Array(bytes)
  }

  /// Reads 32 hexadecimal digits, with or without the dashes of a UUID, or base64url (RFC 4648 §5). Nil for anything
  /// else.
  public init?(_ text: some StringProtocol) {
    guard let bytes = ContentKey.decode(text) else { return nil }
    self.init(bytes: bytes)
  }
}

extension KeyID {
  /// The id of all zeros, which stands for no id.
  package static let zero = KeyID(unchecked: [UInt8](repeating: 0, count: ContentKey.byteCount))

  private init(unchecked bytes: [UInt8]) { self.bytes = bytes }
}

extension KeyID: CustomStringConvertible {
  /// 32 hexadecimal digits.
  public var description: String { bytes.hexadecimal }
}

/// A 16-byte AES key that media is decrypted with.
///
/// Its descriptions never contain the bytes, so no log, error or report does.
public struct ContentKey: Sendable, Hashable {
  /// The size of a key and of its id.
  public static let byteCount = 16

  public let bytes: [UInt8]

  /// Nil unless there are 16 bytes.
  public init?(bytes: some Collection<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = Array(bytes)
  }

  /// Reads 32 hexadecimal digits or base64url (RFC 4648 §5). Nil for anything else.
  public init?(_ text: some StringProtocol) {
    guard let bytes = Self.decode(text) else { return nil }
    self.init(bytes: bytes)
  }

  // MARK: - Private

  /// Decodes 16 bytes from hexadecimal digits or base64url. Also accepts plain base64, which licence servers send.
  fileprivate static func decode(_ text: some StringProtocol) -> [UInt8]? {
    let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }
    if digits.count == 2 * byteCount, let bytes = hexadecimal(digits) { return bytes }
    return base64(Array(text.utf8))
  }

  private static func hexadecimal(_ digits: [UInt8]) -> [UInt8]? {
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = Character(Unicode.Scalar(digits[index])).hexDigitValue,
        let low = Character(Unicode.Scalar(digits[index + 1])).hexDigitValue
      else { return nil }
      bytes.append(UInt8(high << 4 | low))
    }
    return bytes
  }

  /// 16 bytes are 22 characters, plus two characters of optional padding.
  private static func base64(_ text: [UInt8]) -> [UInt8]? {
    var text = text[...]
    while text.last == UInt8(ascii: "=") { text.removeLast() }
    guard text.count == 22 else { return nil }
    var (bits, count): (UInt32, Int) = (0, 0)
    var bytes: [UInt8] = []
    for character in text {
      let value: UInt8
      switch character {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = character - UInt8(ascii: "A")
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character - UInt8(ascii: "a") + 26
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = character - UInt8(ascii: "0") + 52
      case UInt8(ascii: "-"), UInt8(ascii: "+"): value = 62
      case UInt8(ascii: "_"), UInt8(ascii: "/"): value = 63
      default: return nil
      }
      bits = bits << 6 | UInt32(value)
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return bytes
  }
}

extension ContentKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  public var description: String { "(a key)" }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Sequence<UInt8> {
  /// Two lower-case digits per byte.
  package var hexadecimal: String {
    var text = ""
    for byte in self {
      if byte < 16 { text += "0" }
      text += String(byte, radix: 16)
    }
    return text
  }
}
