package import ReelCore
package import ReelPool

/// What a lab runs: feeds, links, viewers, devices, pool sizes, policies and seeds, each with each.
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
/// | `tcp`, `tls`, `dns` | `false` models these of connections only on links that say so | `true` |
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
    /// Which of several feeds; nil for the first that has items.
    package var feed: String?
    package var name: String?
  }

  package struct ViewerEntry: Sendable, Hashable {
    /// As `ViewerSpec` reads it.
    package var text: String
    package var name: String?
  }

  /// Where a configuration comes from.
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
  /// The largest number of runs: 1,000,000.
  package static let runLimit = 1_000_000
  /// The largest number of swipes of a walk: 100,000.
  package static let swipeLimit = 100_000

  /// The policies of a configuration that names none: all that need no argument.
  package static let defaultPolicies = ["adjacent", "media3", "pdas", "dashlet", "adaptive", "none"]
  package static let defaultLinks = ["3g", "lte", "wifi"]
  package static let defaultViewer = "exp:5s"

  /// Reads a configuration from JSON.
  ///
  /// - Throws: `LabFailures` with all that is wrong in the text itself. Files that it names are not looked at.
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
  /// - Throws: As `init(json:from:)`, and if the file can't be read or is too large.
  package init(path: String) throws(LabFailures) {
    let bytes: [UInt8]
    do throws(ReelError) {
      bytes = try LocalText.bytes(path: path, limit: Self.byteLimit)
    } catch {
      throw LabFailures([error])
    }
    try self.init(json: bytes, from: .file(path))
  }

  /// Nil for `auto`.
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

/// All that is wrong with a configuration, in its order.
package struct LabFailures: Error, Sendable, Hashable {
  /// Never empty.
  package let errors: [ReelError]

  init(_ errors: [ReelError]) { self.errors = errors }
}
