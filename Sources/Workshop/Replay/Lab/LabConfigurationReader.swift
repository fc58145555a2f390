internal import Foundation
internal import ReelCore
internal import ReelPool

/// Reads the fields of a lab's configuration. What is wrong goes into a list, and the other fields are read all the same.
struct LabConfigurationReader {
  static let fields = [
    "feeds", "links", "tcp", "tls", "dns", "viewers", "devices", "pools", "policies", "seeds", "swipes",
    "bandwidth", "max_height", "first_rung",
  ]

  private let root: JSONField
  /// What is wrong with the fields as a whole.
  let failures: [ReelError]

  /// - Parameter isFile: False for options: a wrong value is then an error of kind `usage`.
  /// - Throws: `ReelError` if the text is no JSON object.
  init(_ bytes: [UInt8], isFile: Bool) throws(ReelError) {
    root = try JSONField(json: bytes, of: "a configuration", failing: isFile ? .badManifest : .usage)
    guard root.isObject else { throw root.failure("must be an object, not \(root.kind)") }
    var failures: [ReelError] = []
    Self.attempt(&failures) { [root] () throws(ReelError) in try root.allow(Self.fields) }
    self.failures = failures
  }

  /// A field's value; nil if the field is missing or wrong.
  func value<Value>(
    _ name: String, _ failures: inout [ReelError], _ read: (JSONField) throws(ReelError) -> Value
  ) -> Value? {
    root.optional(name).flatMap { field in
      Self.attempt(&failures) { () throws(ReelError) in
        try Self.placed(field) { () throws(ReelError) in try read(field) }
      }
    }
  }

  /// An array's values, those that are right; nil if there is no such field.
  private func values<Value>(
    _ name: String, _ failures: inout [ReelError], _ read: (JSONField) throws(ReelError) -> Value
  ) -> [LabConfiguration.Entry<Value>]? {
    guard let field = root.optional(name) else { return nil }
    let elements = Self.attempt(&failures) { () throws(ReelError) in try field.elements() } ?? []
    return elements.compactMap { element in
      let value = Self.attempt(&failures) { () throws(ReelError) in
        try Self.placed(element) { () throws(ReelError) in try read(element) }
      }
      return value.map { LabConfiguration.Entry(value: $0, field: element) }
    }
  }

  func texts(
    _ name: String, _ usual: [String], _ failures: inout [ReelError]
  ) -> [LabConfiguration.Entry<String>] {
    values(name, &failures) { field throws(ReelError) in try field.text(upTo: Self.textLimit) }
      ?? usual.map { LabConfiguration.Entry(value: $0, field: root) }
  }

  func feeds(_ failures: inout [ReelError]) -> [LabConfiguration.Entry<LabConfiguration.FeedEntry>] {
    let feeds = values("feeds", &failures) { field throws(ReelError) in
      guard !field.isText else {
        return LabConfiguration.FeedEntry(file: try field.text(upTo: Self.textLimit))
      }
      try field.allow(["file", "feed", "name"])
      return LabConfiguration.FeedEntry(
        file: try field.required("file").text(upTo: Self.textLimit), feed: try field.optional("feed")?.text(),
        name: try field.optional("name")?.text())
    }
    if feeds == nil { Self.attempt(&failures) { () throws(ReelError) in _ = try root.required("feeds") } }
    return feeds ?? []
  }

  func viewers(_ failures: inout [ReelError]) -> [LabConfiguration.Entry<LabConfiguration.ViewerEntry>] {
    values("viewers", &failures) { field throws(ReelError) in
      guard !field.isText else {
        return LabConfiguration.ViewerEntry(text: try field.text(upTo: Self.textLimit))
      }
      try field.allow(["name", "dwell", "flicks", "back", "bursts"])
      var text = try field.required("dwell").text(upTo: Self.textLimit)
      for share in ["flicks", "back", "bursts"] {
        guard let member = field.optional(share) else { continue }
        let value = try member.text()
        try Self.placed(member) { () throws(ReelError) in
          _ = try SwipeShares.share(parsing: value, of: share)
        }
        text += ",\(share)=\(value)"
      }
      return LabConfiguration.ViewerEntry(text: text, name: try field.optional("name")?.text())
    } ?? [
      LabConfiguration.Entry(
        value: LabConfiguration.ViewerEntry(text: LabConfiguration.defaultViewer), field: root)
    ]
  }

  func slotCounts(_ failures: inout [ReelError]) -> [Int] {
    let counts = values("pools", &failures) { field throws(ReelError) in try field.count(in: 1...1000) }
    return unique(counts, by: \.self, &failures) ?? [3]
  }

  func policies(_ failures: inout [ReelError]) -> [any PreloadPolicy] {
    let policies = values("policies", &failures) { field throws(ReelError) in
      try PreloadPolicies.parse(try field.text())
    }
    return unique(policies, by: \.description, &failures)
      ?? LabConfiguration.defaultPolicies.compactMap { try? PreloadPolicies.parse($0) }
  }

  func seeds(_ failures: inout [ReelError]) -> [UInt64] {
    if let field = root.optional("seeds"), field.isNumber {
      let count = Self.attempt(&failures) { () throws(ReelError) in
        try field.count(in: 1...UInt64(LabConfiguration.runLimit))
      }
      return Array(1...(count ?? 1))
    }
    let seeds = values("seeds", &failures) { field throws(ReelError) in try field.count(in: 0...UInt64.max) }
    return unique(seeds, by: \.self, &failures) ?? [1]
  }

  // MARK: - Private

  /// The longest text that names a file or a link.
  private static let textLimit = 4096

  /// The values without their places. One that appears twice is wrong.
  private func unique<Value, Key: Hashable>(
    _ entries: [LabConfiguration.Entry<Value>]?, by key: (Value) -> Key, _ failures: inout [ReelError]
  ) -> [Value]? {
    guard let entries else { return nil }
    var known: Set<Key> = []
    for entry in entries where !known.insert(key(entry.value)).inserted {
      failures.append(entry.field.failure("\(key(entry.value)) appears twice"))
    }
    return entries.map(\.value)
  }

  /// Notes an error; nil then.
  @discardableResult
  private static func attempt<Value>(
    _ failures: inout [ReelError], _ body: () throws(ReelError) -> Value
  ) -> Value? {
    do throws(ReelError) { return try body() } catch {
      failures.append(error)
      return nil
    }
  }

  /// What `body` gives; an error of it that has no place gets that of `field`.
  private static func placed<Value>(
    _ field: JSONField, _ body: () throws(ReelError) -> Value
  ) throws(ReelError) -> Value {
    do throws(ReelError) { return try body() } catch {
      throw error.place == nil ? field.failure(error) : error
    }
  }
}

extension LabConfiguration.Origin {
  /// The path of a file; nil for options.
  var path: String? {
    if case .file(let path) = self { return path }
    return nil
  }

  /// The path that a text means: relative to the configuration's folder.
  package func resolved(_ text: String) -> String {
    if text.hasPrefix("/") { return text }
    if text.hasPrefix("~/") { return NSHomeDirectory() + text.dropFirst() }
    guard let slash = path?.lastIndex(of: "/"), let path else { return text }
    return path[...slash] + text
  }

  /// An error of a field with the path of the configuration; or with the name of the option in place of the field's.
  func located(_ error: ReelError) -> ReelError {
    var error = error
    switch self {
    case .file(let path):
      // The file is wrong, not how the program was called.
      if error.kind == .usage { error.kind = .badManifest }
      return error.located(at: path)
    case .options:
      error.place = nil
      let name = error.reason.prefix { $0.isLetter || $0 == "_" }
      guard let option = Self.optionNames[String(name)] else { return error }
      // An index says nothing: the value is quoted.
      let rest = error.reason.dropFirst(name.count)
      error.reason = option + (rest.firstIndex(of: ":").map { String(rest[$0...]) } ?? "")
      return error
    }
  }

  private static let optionNames = [
    "feeds": "--feed", "links": "--link", "viewers": "--viewer", "devices": "--device", "pools": "--pools",
    "policies": "--policies", "seeds": "--seeds", "swipes": "--swipes", "first_rung": "--first-rung",
    "bandwidth": "--bandwidth", "max_height": "--max-height",
  ]
}
