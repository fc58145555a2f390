internal import Foundation

/// What a player says about itself in a request: Common Media Client Data (CTA-5004, and version 2, CTA-5004-B).
///
/// Keys with a free text, those of other organizations, and unknown ones are named in `others`, without their values.
package struct CMCD: Codable, Sendable, Hashable {
  /// A value of a structured field (RFC 8941).
  package enum Value: Codable, Sendable, Hashable {
    case flag(Bool)
    case number(Double)
    /// A string or a token.
    case text(String)
    /// An inner list, as version 2 has them.
    case list([Item])

    /// A member of an inner list with the names of its parameters that are true, such as the type of the object.
    package struct Item: Codable, Sendable, Hashable {
      package var value: Value
      package var types: [String]?
      /// The range of an object that will be requested next.
      package var range: String?
    }

    package init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let flag = try? container.decode(Bool.self) {
        self = .flag(flag)
      } else if let number = try? container.decode(Double.self) {
        self = .number(number)
      } else if let text = try? container.decode(String.self) {
        self = .text(text)
      } else {
        self = .list(try container.decode([Item].self))
      }
    }

    package func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      switch self {
      case .flag(let flag): try container.encode(flag)
      case .number(let number): try container.encode(number)
      case .text(let text): try container.encode(text)
      case .list(let items): try container.encode(items)
      }
    }
  }

  /// The values by key, such as `br`.
  package var values: [String: Value] = [:]
  /// The names of the keys whose values are left out.
  package var others: [String]?
  /// The first thing that could not be read; nil if everything was.
  package var malformed: String?

  /// Reads the CMCD of a request: that of its header fields, or else that of its query. Nil without any.
  package init?(headers: [(name: String, value: String)], query: Substring) {
    let fields = headers.filter { Self.headerNames.contains($0.name.lowercased()) }.map(\.value)
    var text = fields.isEmpty ? nil : fields.joined(separator: ",")
    if text == nil, let value = QueryNames.value(of: "CMCD", in: query) {
      guard let decoded = value.removingPercentEncoding else {
        malformed = "the query is not percent-encoded UTF-8"
        return
      }
      text = decoded
    }
    guard let text else { return nil }
    guard text.utf8.count <= Self.byteLimit else {
      malformed = "more than \(Self.byteLimit) bytes"
      return
    }
    read(text)
  }

  // MARK: - Private

  private enum Kind { case number, text, path, flag }

  private static let headerNames: Set<String> = [
    "cmcd-object", "cmcd-request", "cmcd-session", "cmcd-status",
  ]
  private static let byteLimit = 4096
  private static let textLimit = 200

  private static let kinds: [String: Kind] = {
    var kinds: [String: Kind] = ["nor": .path, "cid": .path]
    let numbers =
      "br d tb bl dl mtp rtp v pr ab lb tab lab tbl tpb pb bsd bsda bsa ltc msd ts pt sn dfa ttfb ttlb rc"
    for key in numbers.split(separator: " ") { kinds[String(key)] = .number }
    for key in ["ot", "sf", "st", "sid", "nrr", "sta", "e", "cdn"] { kinds[key] = .text }
    for key in ["su", "bs", "bg", "nr"] { kinds[key] = .flag }
    return kinds
  }()

  private mutating func read(_ text: String) {
    var parser = StructuredFieldParser(text)
    var others: Set<String> = []
    while let (key, value) = parser.nextMember() {
      guard let kind = Self.kinds[key] else {
        others.insert(String(key.prefix(64)))
        continue
      }
      if let value = Self.checked(value, kind) {
        values[key] = value
      } else if malformed == nil {
        malformed = "the value of \(key) has another type"
      }
    }
    if !others.isEmpty { self.others = others.sorted() }
    if let failure = parser.failure, malformed == nil { malformed = failure }
  }

  /// Returns the value if it has the type of its key.
  private static func checked(_ value: Value, _ kind: Kind) -> Value? {
    switch (value, kind) {
    case (.number, .number), (.flag, .flag): return value
    case (.text(let text), .text): return .text(String(text.prefix(textLimit)))
    case (.text(let text), .path): return .text(String(withoutQuery(text).prefix(textLimit)))
    case (.list(let items), .number), (.list(let items), .path), (.list(let items), .text):
      var checkedItems: [Value.Item] = []
      for var item in items {
        if case .list = item.value { return nil }
        guard let value = checked(item.value, kind) else { return nil }
        item.value = value
        checkedItems.append(item)
      }
      return .list(checkedItems)
    default: return nil
    }
  }

  /// Returns a relative path, which is percent-encoded once more in version 1, without its query.
  private static func withoutQuery(_ path: String) -> String {
    var path = path
    for _ in 0..<3 {
      guard let decoded = path.removingPercentEncoding, decoded != path else { break }
      path = decoded
    }
    return String(path.prefix { $0 != "?" && $0 != "#" })
  }
}

package enum QueryNames {
  /// Returns the names, without values; what has no name is left out.
  package static func all(in query: Substring) -> [String] {
    parts(of: query).compactMap { $0.value == nil ? nil : String($0.name.prefix(64)) }
  }

  /// Returns the percent-encoded value of a name; nil if it is absent.
  static func value(of name: String, in query: Substring) -> Substring? {
    parts(of: query).first { $0.name == name }?.value
  }

  private static func parts(of query: Substring) -> [(name: String, value: Substring?)] {
    query.split(separator: "&").map { part in
      let parts = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      return (parts[0].removingPercentEncoding ?? String(parts[0]), parts.count > 1 ? parts[1] : nil)
    }
  }
}

/// Reads the members of a dictionary of RFC 8941 §3.2, which is also the form of CMCD.
struct StructuredFieldParser {
  /// Where and why reading ended before the end; nil if it did not.
  private(set) var failure: String?

  private var rest: ArraySlice<UInt8>

  init(_ text: String) { rest = Array(text.utf8)[...] }

  /// Returns the next member; nil at the end, and after a failure.
  mutating func nextMember() -> (key: String, value: CMCD.Value)? {
    skip(" ,\t")
    guard failure == nil, !rest.isEmpty else { return nil }
    let key = take { $0.isKeyCharacter }
    guard !key.isEmpty else { return fail("a key is missing") }
    guard takes("=") else { return end(of: key, .flag(true)) }
    guard let value = rest.first == UInt8(ascii: "(") ? list() : bareItem() else {
      return fail("the value of \(key.prefix(64)) can't be read")
    }
    return end(of: key, value)
  }

  // MARK: - Private

  private mutating func end(of key: String, _ value: CMCD.Value) -> (key: String, value: CMCD.Value)? {
    _ = parameters()
    skip(" \t")
    guard rest.isEmpty || rest.first == UInt8(ascii: ",") else {
      return fail("the value of \(key.prefix(64)) can't be read")
    }
    return (key, value)
  }

  private mutating func fail(_ reason: String) -> (key: String, value: CMCD.Value)? {
    failure = reason
    return nil
  }

  private mutating func list() -> CMCD.Value? {
    rest = rest.dropFirst()
    var items: [CMCD.Value.Item] = []
    while true {
      skip(" ")
      if takes(")") { return .list(items) }
      guard let value = bareItem() else { return nil }
      let (types, range) = parameters()
      items.append(CMCD.Value.Item(value: value, types: types.isEmpty ? nil : types, range: range))
    }
  }

  /// Reads the parameters of an item: the names of those that are true, and the text of `r`.
  private mutating func parameters() -> (types: [String], range: String?) {
    var types: [String] = []
    var range: String?
    while takes(";") {
      skip(" ")
      let name = take { $0.isKeyCharacter }
      guard takes("=") else {
        types.append(name)
        continue
      }
      if case .text(let text)? = bareItem(), name == "r" { range = String(text.prefix(64)) }
    }
    return (types, range)
  }

  private mutating func bareItem() -> CMCD.Value? {
    guard let first = rest.first else { return nil }
    switch first {
    case UInt8(ascii: "\""): return string().map { .text($0) }
    case UInt8(ascii: "?"):
      let text = take { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "0") || $0 == UInt8(ascii: "1") }
      return text == "?1" ? .flag(true) : text == "?0" ? .flag(false) : nil
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      let text = take { $0.isDigit || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") }
      // 15 digits is the maximum of RFC 8941 §3.3.1.
      return text.utf8.count <= 17 ? Double(text).map { .number($0) } : nil
    default:
      let text = take { $0.isTokenCharacter }
      return text.isEmpty ? nil : .text(text)
    }
  }

  private mutating func string() -> String? {
    rest = rest.dropFirst()
    var bytes: [UInt8] = []
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\"") { return String(decoding: bytes, as: UTF8.self) }
      guard byte == UInt8(ascii: "\\") else {
        bytes.append(byte)
        continue
      }
      guard let escaped = rest.popFirst() else { return nil }
      bytes.append(escaped)
    }
    return nil
  }

  private mutating func takes(_ character: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: character) else { return false }
    rest = rest.dropFirst()
    return true
  }

  private mutating func skip(_ characters: String) {
    rest = rest.drop { characters.utf8.contains($0) }
  }

  private mutating func take(while condition: (UInt8) -> Bool) -> String {
    let taken = rest.prefix(while: condition)
    rest = rest[taken.endIndex...]
    return String(decoding: taken, as: UTF8.self)
  }
}

extension UInt8 {
  fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }

  private var isLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }

  fileprivate var isKeyCharacter: Bool { isDigit || isLetter || "_-.*".utf8.contains(self) }

  fileprivate var isTokenCharacter: Bool { isDigit || isLetter || "!#$%&'*+-.^_`|~:/".utf8.contains(self) }
}
