internal import Foundation
package import ReelCore
package import ReelModels
package import ReelPool
package import ReelSimulation

/// The runs of a lab: all combinations of feeds, links, dwell times, devices, pool sizes, policies and seeds.
///
/// ```json
/// {
///   "feeds": ["feed.json", { "file": "feeds.json", "feed": "following", "name": "following" }],
///   "links": ["recordings/hsdpa,scale=8,rtt=60ms", "lte"],
///   "dwells": ["exp:5s", { "name": "restless", "dwell": "retention", "back": "10%" }],
///   "devices": ["mid", "low"],
///   "pools": [3, 5],
///   "policies": ["adjacent", "adaptive"],
///   "seeds": 4,
///   "swipes": 40
/// }
/// ```
///
/// `reel lab --help` lists the fields with their defaults.
///
/// Paths are relative to the folder of the configuration. `~/` stands for the home folder.
package struct LabConfiguration: Sendable {
  package struct FeedEntry: Sendable, Hashable {
    package var file: String
    /// The name of one of several feeds; nil for the first that has items.
    package var feed: String?
    package var name: String?

    package init(file: String, feed: String? = nil, name: String? = nil) {
      (self.file, self.feed, self.name) = (file, feed, name)
    }
  }

  package struct DwellEntry: Sendable, Hashable {
    /// The text for `SwipeSpec`.
    package var text: String
    package var name: String?

    package init(text: String, name: String? = nil) { (self.text, self.name) = (text, name) }
  }

  package var feeds: [FeedEntry] = []
  package var links = Self.defaultLinks
  /// What links model unless they are ideal.
  package var linkFeatures = LinkFeatures.all
  /// The modelled player; nil for Reel's pool.
  package private(set) var player: PlayerModel?
  package var dwells = [DwellEntry(text: Self.defaultDwell)]
  package var devices = ["mid"] { didSet { statesDevices = true } }
  /// True if the devices are not the default.
  private(set) var statesDevices = false
  package var slotCounts = [3] { didSet { statesPools = true } }
  /// True if the numbers of players are not the default.
  private var statesPools = false
  package var policies = Self.defaultPolicies.compactMap { try? PreloadPolicies.parse($0) }
  package var seeds: [UInt64] = [1] { didSet { statesSeeds = true } }
  /// True if policies or seeds are not the default.
  package var statesPolicies = false
  private var statesSeeds = false
  package var swipeCount: Int?
  /// The time from the end of a drag to the settle.
  package var settle = Duration.zero
  /// The highest bit rate to open; nil if measured transfers choose the rungs.
  package var bandwidth: Int?
  package var maximumHeight: Int?
  package var firstRung = FirstRung.adapted
  /// The visits of each walk; nil for one without a simulated cache.
  package var visits: VisitPlan?
  /// The texts of `player` and `policies`: a path among them is relative to the file's.
  private var playerText = "reel"
  private var policyTexts: [String]?
  /// The path of the file; nil for a configuration that options of the command line state.
  package private(set) var path: String?

  /// The largest file of a configuration: 1 MiB.
  package static let byteLimit = 1 << 20
  /// The maximum number of runs: 1,000,000.
  package static let runLimit = 1_000_000
  /// The maximum number of swipes of a walk: 100,000.
  package static let swipeLimit = 100_000

  /// The policies of a configuration that names none: all that need no argument.
  package static let defaultPolicies = ["adjacent", "media3", "adaptive", "none"]
  package static let defaultLinks = ["3g", "lte", "wifi"]
  package static let defaultDwell = "exp:5s"

  /// A configuration without feeds, for options to fill.
  package init() {}

  /// Reads a configuration from JSON.
  ///
  /// - Parameter path: The path of the file, for errors and for the paths in it.
  /// - Throws: `ReelError` of kind `badManifest`, with the coding path of the first value that is wrong, such as
  ///   `dwells[1].dwell`. The files that it names are not checked.
  package init(json bytes: [UInt8], path: String) throws(ReelError) {
    do {
      self = try JSONDecoder().decode(Self.self, from: Data(bytes))
    } catch {
      let known = (error as? DecodingError).map { ReelError($0) } ?? error as? ReelError
      var failure = known ?? ReelError(.badManifest, "\(error)")
      failure.kind = .badManifest
      throw failure.located(at: path)
    }
    self.path = path
    do throws(ReelError) { try use(player: playerText) } catch { throw located(error, at: "player") }
    if let policyTexts {
      (policies, statesPolicies) = ([], true)
      for (index, text) in policyTexts.enumerated() {
        do throws(ReelError) { policies.append(try policy(parsing: text)) } catch {
          throw located(error, at: "policies[\(index)]")
        }
      }
    }
    try check()
  }

  /// Reads a local file.
  ///
  /// - Throws: The same errors as `init(json:path:)`, and an error if the file can't be read or is too large.
  package init(path: String) throws(ReelError) {
    try self.init(json: try LocalText.bytes(path: path, limit: Self.byteLimit), path: path)
  }

  /// Gives a modelled player as many players as its policies need, unless the lab states them. Throws for a value out of
  /// range, an empty list and a repeated value.
  package mutating func check() throws(ReelError) {
    if player != nil, !statesPools {
      slotCounts = [modelledPolicies.map(\.playerCount).max() ?? 1]
      statesPools = false
    }
    let lists = [
      ("feeds", feeds.count), ("links", links.count), ("dwells", dwells.count), ("devices", devices.count),
      ("pools", slotCounts.count),
      ("policies", policies.count), ("seeds", seeds.count),
    ]
    for (name, count) in lists where count == 0 { throw failure(name, "must have at least one element") }
    for (index, count) in slotCounts.enumerated() where !(1...1000).contains(count) {
      throw failure("pools[\(index)]", "must be a whole number from 1 to 1000, not \(count)")
    }
    if let swipeCount, !(0...Self.swipeLimit).contains(swipeCount) {
      throw failure("swipes", "must be a whole number from 0 to \(Self.swipeLimit), not \(swipeCount)")
    }
    if let player, let visits {
      do throws(ReelError) { try visits.check(player) } catch { throw located(error, at: "simulated_cache") }
    }
    if let maximumHeight, maximumHeight < 1 {
      throw failure("max_height", "must be a whole number above 0, not \(maximumHeight)")
    }
    try checkDistinct(slotCounts.map { "\($0)" }, "pools")
    try checkDistinct(policies.map(\.description), "policies")
    try checkDistinct(seeds.map { "\($0)" }, "seeds")
  }

  /// The name of the device whose costs are those of a model.
  package static let modelledDevice = "as modelled"

  /// Walks with a modelled player, and its usual policies.
  package mutating func use(player argument: String) throws(ReelError) {
    guard argument.lowercased() != "reel" else { return }
    let isFile = argument.lowercased().hasSuffix(".json")
    let model = try PlayerModel(argument: isFile ? resolved(argument) : argument)
    player = model
    policies = try ModelledPreload.usual.map { text throws(ReelError) in
      try ModelledPreload(parsing: text, of: model)
    }
  }

  /// Returns the policy of the player, or of Reel's pool, that a text states.
  package func policy(parsing text: String) throws(ReelError) -> any PreloadPolicy {
    guard let player else { return try PreloadPolicies.parse(text) }
    return try ModelledPreload(parsing: text, of: player)
  }

  package var modelledPolicies: [ModelledPreload] { policies.compactMap { $0 as? ModelledPreload } }

  /// Walks for advice (``Advice``): with policies that a choice can be made of, and several seeds. What the lab states stays.
  package mutating func walkForAdvice() throws(ReelError) {
    guard let player else {
      throw located(
        ReelError(
          .usage, "--advise needs a modelled player",
          advice: "name one: \(PlayerModel.shippedNames.joined(separator: ", ")), or the file of a model"),
        at: "player")
    }
    if !statesPolicies { policies = try Advice.policies(for: player) }
    if !statesSeeds { seeds = Advice.seeds }
    try check()
  }

  /// Returns nil for `auto`.
  package static func bandwidth(parsing text: String) throws(ReelError) -> Int? {
    text.lowercased() == "auto" ? nil : Int(clamping: try BitRate(parsing: text).bitsPerSecond)
  }

  package static func firstRung(parsing text: String) throws(ReelError) -> FirstRung {
    if let rung = FirstRung(rawValue: text.lowercased()) { return rung }
    let names = FirstRung.allCases.map(\.rawValue).joined(separator: ", ")
    throw ReelError(.usage, "\"\(text)\" is not a first rung", advice: "write one of \(names)")
  }

  /// Returns the seeds that a number stands for.
  package static func seeds(upTo count: UInt64) throws(ReelError) -> [UInt64] {
    guard (1...UInt64(runLimit)).contains(count) else {
      throw ReelError(.usage, "the number of seeds must be from 1 to \(runLimit), not \(count)")
    }
    return Array(1...count)
  }

  /// Returns the path that a text refers to: relative to the configuration's folder.
  package func resolved(_ text: String) -> String {
    if text.hasPrefix("/") { return text }
    if text.hasPrefix("~/") { return NSHomeDirectory() + text.dropFirst() }
    guard let slash = path?.lastIndex(of: "/"), let path else { return text }
    return path[...slash] + text
  }

  /// Returns an error of a value, or of what the value refers to, with the coding path and the file; for options, with
  /// the name of the option.
  package func located(_ error: ReelError, at field: String) -> ReelError {
    guard let path else {
      let name = String(field.prefix { $0 != "[" }).replacing("_", with: "-")
      let singular = ["feeds": "feed", "links": "link", "dwells": "dwell", "devices": "device"][name]
      return error.inField("--\(singular ?? name)")
    }
    var failure = error.inField(field)
    // The error is in the file, not in the arguments of the program.
    if failure.kind == .usage { failure.kind = .badManifest }
    return failure.located(at: path)
  }

  // MARK: - Private

  private func failure(_ field: String, _ reason: String) -> ReelError {
    located(ReelError(.usage, reason), at: field)
  }

  private func checkDistinct(_ names: [String], _ field: String) throws(ReelError) {
    var known: Set<String> = []
    for (index, name) in names.enumerated() where !known.insert(name).inserted {
      throw failure("\(field)[\(index)]", "\(name) appears twice")
    }
  }
}

extension LabConfiguration: Decodable {
  private enum Field: String, CodingKey, CaseIterable {
    case feeds, links, tcp, tls, dns, player, dwells, devices, pools, policies, seeds, swipes, settle,
      bandwidth, visits, between
    case simulatedCache = "simulated_cache"
    case maxHeight = "max_height"
    case firstRung = "first_rung"
  }

  package init(from decoder: any Decoder) throws {
    let fields = try decoder.fields(
      Field.self, removed: ["flicks": SwipeShares.insteadOfFlicks, "viewers": "use dwells"])
    feeds = try fields.decode([FeedEntry].self, forKey: .feeds)
    try fields.read(.links, into: &links)
    for (field, feature) in [(Field.tcp, LinkFeatures.tcp), (.tls, .tls), (.dns, .dns)] {
      if try fields.decodeIfPresent(Bool.self, forKey: field) == false { linkFeatures.remove(feature) }
    }
    try fields.read(.dwells, into: &dwells)
    try fields.read(.devices, into: &devices)
    statesDevices = fields.contains(.devices)
    try fields.read(.pools, into: &slotCounts)
    statesPools = fields.contains(.pools)
    try fields.read(.swipes, into: &swipeCount)
    try fields.read(.maxHeight, into: &maximumHeight)
    try fields.read(.player, into: &playerText)
    policyTexts = try fields.decodeIfPresent([String].self, forKey: .policies)
    defer { statesSeeds = fields.contains(.seeds) }
    if let count = try? fields.decode(UInt64.self, forKey: .seeds) {
      seeds = try ReelError.inField("seeds") { try Self.seeds(upTo: count) }
    } else {
      try fields.read(.seeds, into: &seeds)
    }
    if let text = try fields.decodeIfPresent(String.self, forKey: .settle) {
      settle = try WalkPlan.settle(parsing: text, of: "settle")
    }
    visits = try VisitPlan.plan(
      cache: try fields.decodeIfPresent(String.self, forKey: .simulatedCache),
      visits: try fields.decodeIfPresent(Int.self, forKey: .visits),
      between: try fields.decodeIfPresent(String.self, forKey: .between),
      names: ["simulated_cache", "visits", "between"])
    if let text = try fields.decodeIfPresent(String.self, forKey: .bandwidth) {
      bandwidth = try ReelError.inField("bandwidth") { try Self.bandwidth(parsing: text) }
    }
    if let text = try fields.decodeIfPresent(String.self, forKey: .firstRung) {
      firstRung = try ReelError.inField("first_rung") { try Self.firstRung(parsing: text) }
    }
  }
}

extension LabConfiguration.FeedEntry: Decodable {
  private enum Field: String, CodingKey, CaseIterable {
    case file, feed, name
  }

  package init(from decoder: any Decoder) throws {
    if let text = try? decoder.singleValueContainer().decode(String.self) {
      self.init(file: text)
      return
    }
    let fields = try decoder.fields(Field.self)
    self.init(
      file: try fields.decode(String.self, forKey: .file),
      feed: try fields.decodeIfPresent(String.self, forKey: .feed),
      name: try fields.decodeIfPresent(String.self, forKey: .name))
  }
}

extension LabConfiguration.DwellEntry: Decodable {
  private enum Field: String, CodingKey, CaseIterable {
    case name, dwell, back, bursts
  }

  package init(from decoder: any Decoder) throws {
    if let text = try? decoder.singleValueContainer().decode(String.self) {
      self.init(text: text)
      return
    }
    let fields = try decoder.fields(Field.self, removed: ["flicks": SwipeShares.insteadOfFlicks])
    var text = try fields.decode(String.self, forKey: .dwell)
    for share in [Field.back, .bursts] {
      if let value = try fields.decodeIfPresent(String.self, forKey: share) {
        text += ",\(share.rawValue)=\(value)"
      }
    }
    self.init(text: text, name: try fields.decodeIfPresent(String.self, forKey: .name))
  }
}

extension Decoder {
  /// Returns the fields of an object. Throws `ReelError` for a field that is not one of `Key`.
  ///
  /// - Parameter removed: By name, what replaces fields that were removed.
  package func fields<Key: CodingKey & CaseIterable>(
    _: Key.Type, removed: [String: String] = [:]
  ) throws -> KeyedDecodingContainer<Key> {
    let found = try container(keyedBy: JSONFields.Name.self).allKeys.map(\.stringValue).sorted()
    if let unknown = found.first(where: { Key(stringValue: $0) == nil }) {
      let names = Key.allCases.map(\.stringValue).joined(separator: ", ")
      throw ReelError(
        .badManifest,
        "\((codingPath + [JSONFields.Name(unknown)]).text): \(removed[unknown] == nil ? "unknown" : "removed") field",
        advice: removed[unknown] ?? "the fields are \(names)")
    }
    return try container(keyedBy: Key.self)
  }
}

extension KeyedDecodingContainer {
  /// Sets `value` if the field is present.
  fileprivate func read<Value: Decodable>(_ key: Key, into value: inout Value) throws {
    do {
      if let new = try decodeIfPresent(Value.self, forKey: key) { value = new }
    } catch let error where !(error is DecodingError || error is ReelError) {
      // The decoder has an error of its own for a number that the type can't hold, without its place.
      throw DecodingError.dataCorrupted(
        DecodingError.Context(codingPath: codingPath + [key], debugDescription: "a number is out of range"))
    }
  }
}

extension ReelError {
  /// Returns the error with the coding path of the value that it belongs to, or that refers to its file.
  fileprivate func inField(_ field: String) -> ReelError {
    var (bare, failure) = (self, self)
    bare.advice = nil
    failure.reason = "\(field): \(bare)"
    failure.location = nil
    failure.place = nil
    return failure
  }

  fileprivate static func inField<Value>(
    _ field: String, _ body: () throws -> Value
  ) throws -> Value {
    do { return try body() } catch let error as ReelError { throw error.inField(field) }
  }
}
