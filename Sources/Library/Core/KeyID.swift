/// The 16-byte id by which media and manifests refer to a key: the `KID` of ISO/IEC 23001-7.
public struct KeyID: Sendable, Hashable {
  /// The 16 bytes of the id.
  package let bytes: [UInt8]

  /// Creates an id from its bytes, or returns nil unless there are exactly 16.
  package init?(bytes: some Collection<UInt8>) {
    guard bytes.count == ContentKey.byteCount else { return nil }
    self.bytes = Array(bytes)
  }

  /// Parses an id from 32 hexadecimal digits, with or without the dashes of a UUID, or from base64url or base64 (RFC
  /// 4648 §5, §4). Returns nil for any other text.
  public init?(_ text: some StringProtocol) {
    guard let bytes = ContentKey.decode(text) else { return nil }
    self.init(bytes: bytes)
  }
}

extension KeyID {
  /// The id of 16 zero bytes, which stands for no id.
  package static let zero = KeyID(unchecked: [UInt8](repeating: 0, count: ContentKey.byteCount))

  private init(unchecked bytes: [UInt8]) { self.bytes = bytes }
}

extension KeyID: CustomStringConvertible {
  /// 32 hexadecimal digits.
  public var description: String { bytes.hexadecimal }
}

/// A 16-byte AES key for decrypting media.
///
/// Its descriptions and its mirror never contain the bytes, which keeps them out of logs, errors and reports.
public struct ContentKey: Sendable, Hashable {
  /// The size of a key and of a key id, in bytes.
  package static let byteCount = 16

  /// The 16 bytes of the key. Keep them out of logs.
  package let bytes: [UInt8]

  /// Creates a key from its bytes, or returns nil unless there are exactly 16.
  public init?(bytes: some Collection<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = Array(bytes)
  }

  /// Parses a key from 32 hexadecimal digits, with or without dashes, or from base64url or base64 (RFC 4648 §5, §4).
  /// Returns nil for any other text.
  public init?(_ text: some StringProtocol) {
    guard let bytes = Self.decode(text) else { return nil }
    self.init(bytes: bytes)
  }

  // MARK: - Private

  /// Decodes 16 bytes from hexadecimal digits or base64url. Also accepts plain base64, which license servers send.
  fileprivate static func decode(_ text: some StringProtocol) -> [UInt8]? {
    let digits = text.utf8.filter { $0 != UInt8(ascii: "-") }
    if digits.count == 2 * byteCount, let bytes = hexadecimal(digits) { return bytes }
    return base64(Array(text.utf8))
  }

  private static func hexadecimal(_ digits: [UInt8]) -> [UInt8]? {
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = digits[index].hexDigitValue, let low = digits[index + 1].hexDigitValue else {
        return nil
      }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  /// Decodes 16 bytes from 22 characters, with or without the two characters of padding.
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
  /// The text `(a key)` for every key.
  public var description: String { "(a key)" }
  public var debugDescription: String { description }
  /// A mirror without children.
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

/// A DRM system that is registered with the DASH Industry Forum.
package enum ProtectionSystem: String, Sendable {
  case widevine = "Widevine"
  case playReady = "PlayReady"
  case fairPlay = "FairPlay"
  case clearKey = "ClearKey"
  case marlin = "Marlin"
  case primetime = "Primetime"
  case nagra = "Nagra"
  case chinaDRM = "ChinaDRM"

  /// Returns the system with this id, or nil if it is not known. The id has 32 hexadecimal digits in upper or lower
  /// case, with or without dashes.
  package init?(id: some StringProtocol) {
    switch id.lowercased().filter({ $0 != "-" }) {
    case "edef8ba979d64acea3c827dcd51d21ed": self = .widevine
    case "9a04f07998404286ab92e65be0885f95", "79f0049a40988642ab92e65be0885f95": self = .playReady
    case "94ce86fb07ff4f43adb893d2fa968ca2": self = .fairPlay
    case "e2719d58a985b3c9781ab030af78d30e", "1077efecc0b24d02ace33c1e52e2fb4b": self = .clearKey
    case "5e629af538da4063897797ffbd9902d4": self = .marlin
    case "f239e769efa348509c16a903c6932efb": self = .primetime
    case "adb41c242dbf4a6d958b4457c0d27b95": self = .nagra
    case "3d5e6d359b9a41e8b843dd3c6e72c42c": self = .chinaDRM
    default: return nil
    }
  }

  package var name: String { rawValue }
}
