import Foundation
import ReelCore

/// Writes JSON value by value, in the same form as Foundation's encoder, which takes ten times as long for
/// small objects. Strings are written as `JSONLine` does.
struct JSONText {
  private(set) var bytes: [UInt8] = []
  private var isFirst = true

  mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

  /// Appends text that already is JSON.
  mutating func append(_ text: some StringProtocol) { bytes.append(contentsOf: text.utf8) }

  /// Writes an object; `body` writes its fields.
  mutating func object(_ body: (inout JSONText) -> Void) {
    let wasFirst = isFirst
    isFirst = true
    append("{")
    body(&self)
    append("}")
    isFirst = wasFirst
  }

  /// Appends bytes that already are JSON.
  mutating func append(bytes more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }

  /// Writes the comma before a field, except before the first one.
  mutating func comma() {
    if !isFirst { append(",") }
    isFirst = false
  }

  mutating func key(_ name: String) {
    comma()
    append("\"")
    append(name)
    append("\":")
  }

  /// Writes a field, or nothing for nil.
  mutating func field(_ name: String, _ value: Int64?) {
    guard let value else { return }
    key(name)
    append(String(value))
  }

  /// Writes a field with a finite number.
  mutating func field(_ name: String, _ value: Double) {
    key(name)
    let text = value.description
    append(text.hasSuffix(".0") ? text.dropLast(2) : text[...])
  }

  mutating func field(_ name: String, _ value: Bool) {
    key(name)
    append(value ? "true" : "false")
  }

  /// Writes a field, or nothing for nil.
  mutating func field(_ name: String, _ value: String?) {
    guard let value else { return }
    key(name)
    string(value)
  }

  mutating func field(_ name: String, _ values: [String]) {
    key(name)
    append("[")
    for (index, value) in values.enumerated() {
      if index > 0 { append(",") }
      string(value)
    }
    append("]")
  }

  // MARK: - Private

  /// Writes a string with the escapes of RFC 8259 §7.
  private mutating func string(_ text: String) {
    let start = bytes.count
    bytes.append(UInt8(ascii: "\""))
    for byte in text.withoutUserInformation.utf8 {
      switch byte {
      case UInt8(ascii: "\""): append("\\\"")
      case UInt8(ascii: "\\"): append("\\\\")
      case 0x08: append("\\b")
      case 0x09: append("\\t")
      case 0x0A: append("\\n")
      case 0x0C: append("\\f")
      case 0x0D: append("\\r")
      case 0..<0x20: append("\\u00" + (byte < 0x10 ? "0" : "1") + String(byte & 15, radix: 16))
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
    guard bytes[start...].contains(where: { $0 >= 0x7f }) else { return }
    let escaped = String(decoding: bytes[start...], as: UTF8.self).printableJSON
    bytes.replaceSubrange(start..., with: escaped.utf8)
  }
}

/// An error as JSON.
struct ErrorRecord: Encodable, Sendable {
  let kind: String
  let message: String
  let location: String?
  let exitCode: Int32
  /// The HTTP status, in results files only.
  let status: Int?

  init(_ error: ReelError) { self.init(error, hasStatus: false) }

  init(_ error: ReelError, hasStatus: Bool) {
    kind = error.kind.rawValue
    message = error.description
    location = error.location
    exitCode = ExitStatus.code(of: error)
    status = hasStatus ? error.status : nil
  }
}

/// The JSON record of a source, printed by `--json`. Results files have it without `source`, in whose place they have
/// `url`, and without fields of the run (`ResultLine.keys`).
protocol SourceRecord: Encodable, Sendable {
  /// The record of a source of which nothing but its error is known.
  init(source: String, error: ReelError)
}

extension SourceRecord {
  /// The names of the fields.
  static var keys: Set<String> {
    let record = Self(source: "", error: .interrupted)
    return Set(
      Mirror(reflecting: record).children.compactMap { $0.label?.snakeCased })
  }
}

extension Double {
  /// Rounds to a number of decimals, for JSON.
  func rounded(places: Int) -> Double {
    let factor = pow(10, Double(places))
    return (self * factor).rounded() / factor
  }
}

extension MediaTime {
  /// The seconds to the microsecond, for JSON.
  var roundedSeconds: Double { seconds.rounded(places: 6) }
}

extension String {
  /// A name of Swift as one of JSON: `first_frame` for `firstFrame`.
  var snakeCased: String { reduce(into: "") { $0 += $1.isUppercase ? "_" + $1.lowercased() : String($1) } }
}
