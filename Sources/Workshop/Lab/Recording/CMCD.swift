internal import Foundation
internal import ReelCore

/// What a player says about itself in a request: Common Media Client Data (CTA-5004, and version 2, CTA-5004-B).
/// Version 1 can also be written.
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

  /// Values to write.
  package init(_ values: [String: Value]) { self.values = values }

  // MARK: Writing

  /// The part of a request that has the values.
  package enum Transmission: String, Sendable, Hashable, CaseIterable {
    case query
    case header
  }

  /// The header fields of version 1, without those that would be empty. Keys of other versions are left out.
  ///
  /// Here and in `queryParameter`, numbers are rounded as their keys demand, and `nor` is a path that is not
  /// percent-encoded for this purpose yet.
  package var headerFields: [(name: String, value: String)] {
    Self.groups.compactMap { group in
      let text = written(group.keys)
      return text.isEmpty ? nil : (group.name, text)
    }
  }

  /// The parameter of a query in version 1, percent-encoded; nil without a value.
  package var queryParameter: String? {
    let text = written(Self.groups.flatMap(\.keys))
    return text.isEmpty ? nil : "CMCD=" + Self.encoded(text)
  }

  /// Returns the path of the object that is requested next, from the one that is requested now; nil if another server
  /// has it. It has no query, because that may have a secret.
  static func path(of next: URL, from url: URL) -> String? {
    guard let server = ServerAddress(next), server == ServerAddress(url) else { return nil }
    func parts(_ url: URL) -> [String] { url.path(percentEncoded: true).components(separatedBy: "/") }
    let (folder, path) = (parts(url).dropLast(), parts(next))
    let shared = zip(folder, path.dropLast()).prefix { $0 == $1 }.count
    return ([String](repeating: "..", count: folder.count - shared) + path[shared...]).joined(separator: "/")
  }

  /// Percent-encodes all but unreserved characters (RFC 3986 §2.3).
  private static func encoded(_ text: String) -> String {
    text.utf8.map { byte in
      let isUnreserved = byte.isDigit || byte.isLetter || "-._~".utf8.contains(byte)
      let digits = String(byte, radix: 16, uppercase: true)
      return isUnreserved ? String(UnicodeScalar(byte)) : "%" + (digits.count < 2 ? "0" : "") + digits
    }.joined()
  }

  /// Returns the members with these keys, sorted by key.
  private func written(_ keys: [String]) -> String {
    keys.sorted().compactMap { key in values[key].flatMap { Self.member(key, $0) } }.joined(separator: ",")
  }

  /// Returns nil for what is not sent: false, and the usual value of a key.
  private static func member(_ key: String, _ value: Value) -> String? {
    switch value {
    case .flag(let flag): return flag ? key : nil
    case .number(let number):
      guard number.isFinite, abs(number) < 1e15 else { return nil }
      switch key {
      case "pr": return number == 1 ? nil : "pr=\((number * 100).rounded() / 100)"
      case "v" where number == 1: return nil
      case "bl", "dl", "mtp", "rtp": return "\(key)=\(Int((number / 100).rounded()) * 100)"
      default: return "\(key)=\(Int(number.rounded()))"
      }
    case .text(let text):
      switch key {
      case "ot", "sf", "st": return "\(key)=\(text)"
      case "nor": return "nor=\"\(encoded(text))\""
      default:
        // Of a string (RFC 8941 §3.3.3). Both keys have at most 64 characters.
        let printable = String(text.unicodeScalars.filter { (0x20..<0x7F).contains($0.value) }.prefix(64))
        let escaped = printable.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        return "\(key)=\"\(escaped)\""
      }
    // Of version 2.
    case .list: return nil
    }
  }

  /// The keys of version 1, by the header fields that have them.
  private static let groups: [(name: String, keys: [String])] = [
    ("CMCD-Object", ["br", "d", "ot", "tb"]),
    ("CMCD-Request", ["bl", "dl", "mtp", "nor", "nrr", "su"]),
    ("CMCD-Session", ["cid", "pr", "sf", "sid", "st", "v"]),
    ("CMCD-Status", ["bs", "rtp"]),
  ]

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

  fileprivate var isLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }

  fileprivate var isKeyCharacter: Bool { isDigit || isLetter || "_-.*".utf8.contains(self) }

  fileprivate var isTokenCharacter: Bool { isDigit || isLetter || "!#$%&'*+-.^_`|~:/".utf8.contains(self) }
}
