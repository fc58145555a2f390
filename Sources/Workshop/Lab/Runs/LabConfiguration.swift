internal import Foundation
package import ReelCore
package import ReelPool
import ReelSimulation

/// The runs of a lab: all combinations of feeds, links, viewers, devices, pool sizes, policies and seeds.
///
/// ```json
/// {
///   "feeds": ["feed.json", { "file": "feeds.json", "feed": "following", "name": "following" }],
///   "links": ["recordings/hsdpa,scale=8,rtt=60ms", "lte"],
///   "viewers": ["exp:5s", { "name": "restless", "dwell": "retention", "flicks": "10%" }],
///   "devices": ["mid", "low"],
///   "pools": [3, 5],
///   "policies": ["adjacent", "adaptive"],
///   "seeds": 4,
///   "swipes": 40
/// }
/// ```
///
/// | field | meaning | default |
/// |---|---|---|
/// | `feeds` | feed files, as `reel feed` takes them; `feed` chooses one of several feeds in a file | required |
/// | `links` | links, as `LinkArgument` takes them; a folder stands for all its recordings | `3g`, `lte`, `wifi` |
/// | `tcp`, `tls`, `dns` | `false` to model these features only on links that state them | `true` |
/// | `viewers` | `ViewerSpec`'s texts, or objects with `dwell`, `flicks`, `back`, `bursts` and `name` | `exp:5s` |
/// | `devices` | built-in devices | `mid` |
/// | `pools` | numbers of players | 3 |
/// | `policies` | preload policies | all that need no argument |
/// | `seeds` | a list of seeds; or a number, which stands for 1 to that number | 1 |
/// | `swipes` | swipes of a walk | as many as a trace has; 20 without one |
/// | `bandwidth` | `auto`, where transfers choose the rungs, or the highest bit rate to open | `auto` |
/// | `max_height` | rungs with more lines are left out | none |
/// | `first_rung` | `adapted`, `low` or `auto` (`FirstRung`) | `adapted` |
///
/// Paths are relative to the folder of the configuration. `~/` stands for the home folder.
package struct LabConfiguration: Sendable {
  /// A value and its place in the configuration, for errors.
  package struct Entry<Value: Sendable>: Sendable {
    package let value: Value
    let field: JSONField
  }

  package struct FeedEntry: Sendable, Hashable {
    package var file: String
    /// The name of one of several feeds; nil for the first that has items.
    package var feed: String?
    package var name: String?
  }

  package struct ViewerEntry: Sendable, Hashable {
    /// The text for `ViewerSpec`.
    package var text: String
    package var name: String?
  }

  /// The origin of a configuration.
  package enum Origin: Sendable {
    case file(String)
    /// From the command line: the fields are named as options.
    case options
  }

  package let origin: Origin
  package let feeds: [Entry<FeedEntry>]
  package let links: [Entry<String>]
  package let viewers: [Entry<ViewerEntry>]
  package let devices: [Entry<String>]
  package let slotCounts: [Int]
  package let policies: [any PreloadPolicy]
  package let seeds: [UInt64]
  package let swipeCount: Int?
  /// The highest bit rate to open; nil if measured transfers choose the rungs.
  package var bandwidth: Int?
  package var maximumHeight: Int?
  package let firstRung: FirstRung
  package let modelsTCP: Bool
  package let modelsTLS: Bool
  package let modelsDNS: Bool

  /// The largest file of a configuration: 1 MiB.
  package static let byteLimit = 1 << 20
  /// The maximum number of runs: 1,000,000.
  package static let runLimit = 1_000_000
  /// The maximum number of swipes of a walk: 100,000.
  package static let swipeLimit = 100_000

  /// The policies of a configuration that names none: all that need no argument.
  package static let defaultPolicies = ["adjacent", "media3", "pdas", "dashlet", "adaptive", "none"]
  package static let defaultLinks = ["3g", "lte", "wifi"]
  package static let defaultViewer = "exp:5s"

  /// The options of the command line that state fields.
  package static let optionNames = [
    "feeds": "--feed", "links": "--link", "viewers": "--viewer", "devices": "--device", "pools": "--pools",
    "policies": "--policies", "seeds": "--seeds", "swipes": "--swipes", "first_rung": "--first-rung",
    "bandwidth": "--bandwidth", "max_height": "--max-height", "tcp": "--plain-links", "tls": "--plain-links",
    "dns": "--plain-links",
  ]

  /// Reads a configuration from JSON.
  ///
  /// - Throws: `LabFailures` with all errors in the text itself. The files that it names are not checked.
  package init(json bytes: [UInt8], from origin: Origin) throws(LabFailures) {
    let reader: LabConfigurationReader
    do throws(ReelError) {
      reader = try LabConfigurationReader(bytes, isFile: origin.path != nil)
    } catch {
      throw LabFailures([origin.located(error)])
    }
    var failures = reader.failures
    self.origin = origin
    feeds = reader.feeds(&failures)
    links = reader.texts("links", Self.defaultLinks, &failures)
    viewers = reader.viewers(&failures)
    devices = reader.texts("devices", ["mid"], &failures)
    slotCounts = reader.slotCounts(&failures)
    policies = reader.policies(&failures)
    seeds = reader.seeds(&failures)
    swipeCount = reader.value("swipes", &failures) { field throws(ReelError) in
      try field.count(in: 0...Self.swipeLimit)
    }
    bandwidth =
      reader.value("bandwidth", &failures) { field throws(ReelError) in
        try Self.bandwidth(parsing: try field.text())
      } ?? nil
    maximumHeight = reader.value("max_height", &failures) { field throws(ReelError) in
      try field.count(in: 1...1_000_000)
    }
    firstRung =
      reader.value("first_rung", &failures) { field throws(ReelError) in
        try Self.firstRung(try field.text())
      } ?? .adapted
    func flag(_ name: String, _ usual: Bool) -> Bool {
      reader.value(name, &failures) { field throws(ReelError) in try field.flag() } ?? usual
    }
    (modelsTCP, modelsTLS, modelsDNS) = (flag("tcp", true), flag("tls", true), flag("dns", true))
    guard failures.isEmpty else { throw LabFailures(failures.map(origin.located)) }
  }

  /// Reads a local file.
  ///
  /// - Throws: The same errors as `init(json:from:)`, and an error if the file can't be read or is too large.
  package init(path: String) throws(LabFailures) {
    let bytes: [UInt8]
    do throws(ReelError) {
      bytes = try LocalText.bytes(path: path, limit: Self.byteLimit)
    } catch {
      throw LabFailures([error])
    }
    try self.init(json: bytes, from: .file(path))
  }

  /// Returns nil for `auto`.
  package static func bandwidth(parsing text: String) throws(ReelError) -> Int? {
    text.lowercased() == "auto" ? nil : Int(clamping: try BitRate(parsing: text).bitsPerSecond)
  }

  // MARK: - Private

  private static func firstRung(_ text: String) throws(ReelError) -> FirstRung {
    if let rung = FirstRung(rawValue: text.lowercased()) { return rung }
    let names = FirstRung.allCases.map(\.rawValue).joined(separator: ", ")
    throw ReelError(.usage, "\"\(text)\" is not a first rung", advice: "write one of \(names)")
  }
}

/// All errors of a configuration, in its order.
package struct LabFailures: Error, Sendable, Hashable {
  /// Never empty.
  package let errors: [ReelError]

  init(_ errors: [ReelError]) { self.errors = errors }
}

/// Reads the fields of a lab's configuration. Errors are collected, and the other fields are read all the
/// same.
struct LabConfigurationReader {
  static let fields = [
    "feeds", "links", "tcp", "tls", "dns", "viewers", "devices", "pools", "policies", "seeds", "swipes",
    "bandwidth", "max_height", "first_rung",
  ]

  private let root: JSONField
  /// The errors of the fields as a whole.
  let failures: [ReelError]

  /// - Parameter isFile: False for options: a wrong value is then an error of kind `usage`.
  /// - Throws: `ReelError` if the text is not a JSON object.
  init(_ bytes: [UInt8], isFile: Bool) throws(ReelError) {
    root = try JSONField(json: bytes, of: "a configuration", failing: isFile ? .badManifest : .usage)
    guard root.isObject else { throw root.failure("must be an object, not \(root.kind)") }
    var failures: [ReelError] = []
    Self.attempt(&failures) { [root] () throws(ReelError) in try root.allow(Self.fields) }
    self.failures = failures
  }

  /// Returns a field's value; nil if the field is missing or invalid.
  func value<Value>(
    _ name: String, _ failures: inout [ReelError], _ read: (JSONField) throws(ReelError) -> Value
  ) -> Value? {
    root.optional(name).flatMap { field in
      Self.attempt(&failures) { () throws(ReelError) in
        try Self.placed(field) { () throws(ReelError) in try read(field) }
      }
    }
  }

  /// Returns the valid values of an array; nil if there is no such field.
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

  /// Returns the values without their places. A repeated value is an error.
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

  /// Records an error, and returns nil.
  @discardableResult
  private static func attempt<Value>(
    _ failures: inout [ReelError], _ body: () throws(ReelError) -> Value
  ) -> Value? {
    do throws(ReelError) { return try body() } catch {
      failures.append(error)
      return nil
    }
  }

  /// Returns the result of `body`. An error of it without a place gets that of `field`.
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

  /// Returns the path that a text refers to: relative to the configuration's folder.
  package func resolved(_ text: String) -> String {
    if text.hasPrefix("/") { return text }
    if text.hasPrefix("~/") { return NSHomeDirectory() + text.dropFirst() }
    guard let slash = path?.lastIndex(of: "/"), let path else { return text }
    return path[...slash] + text
  }

  /// Returns an error of a field with the path of the configuration, or with the name of the option instead
  /// of the field's.
  func located(_ error: ReelError) -> ReelError {
    var error = error
    switch self {
    case .file(let path):
      // The error is in the file, not in the arguments of the program.
      if error.kind == .usage { error.kind = .badManifest }
      return error.located(at: path)
    case .options:
      error.place = nil
      let name = error.reason.prefix { $0.isLetter || $0 == "_" }
      guard let option = LabConfiguration.optionNames[String(name)] else { return error }
      // An index says nothing: the value is quoted.
      let rest = error.reason.dropFirst(name.count)
      error.reason = option + (rest.firstIndex(of: ":").map { String(rest[$0...]) } ?? "")
      return error
    }
  }
}
