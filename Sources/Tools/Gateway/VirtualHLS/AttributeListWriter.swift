import ReelCore
import ReelManifest

/// Writes an attribute list (RFC 8216 §4.2). Whatever a manifest says stays inside of its value.
struct AttributeListWriter {
  private(set) var text: String

  /// `tag` with its colon, `#EXT-X-MEDIA:`.
  init(tag: StaticString) {
    text = "\(tag)"
  }

  /// A number, a resolution or an enumerated string of ours.
  mutating func add(_ name: StaticString, _ value: String) {
    if text.utf8.last != UInt8(ascii: ":") { text += "," }
    text += "\(name)=\(value)"
  }

  /// A quoted string, which can hold neither quotes nor line breaks.
  mutating func add(_ name: StaticString, quoted value: String) {
    add(name, "\"\(Self.plain(value))\"")
  }

  /// `value` with apostrophes for its quotes, and what steers or breaks a line written out.
  static func plain(_ value: String) -> String {
    var result = ""
    for scalar in value.printable.unicodeScalars {
      result.unicodeScalars.append(scalar == "\"" ? "'" : scalar)
    }
    return result
  }
}
