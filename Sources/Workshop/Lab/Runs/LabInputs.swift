internal import Foundation
internal import ReelCore
package import ReelPool
package import ReelSimulation
package import ReelSources

/// The inputs that a lab's configuration names, read and checked: feeds, recordings, dwell times, devices.
package struct LabInputs: Sendable {
  package struct FeedInput: Sendable {
    package let name: String
    package let feed: Feed
    /// The hash of the bytes of the feed file.
    let contentHash: UInt64
  }

  package struct LinkInput: Sendable {
    package var name: String
    package var group: String
    /// The argument for this link.
    package let text: String
    /// The link before any random draw.
    package let spec: LinkSpec
  }

  package struct DwellInput: Sendable {
    package let name: String
    package let spec: SwipeSpec
  }

  package let configuration: LabConfiguration
  package let feeds: [FeedInput]
  package let links: [LinkInput]
  package let dwells: [DwellInput]
  package let devices: [DeviceModel]
  /// The mean duration, by its own clock, of a walk through each feed with each dwell time and the first seed.
  package let meanWalkDuration: Duration

  /// Reads all inputs that `configuration` names.
  ///
  /// - Parameter readFeed: Returns the bytes of a feed file, and their source, for its path or URL.
  /// - Throws: `ReelError` for the first input that is wrong, with its coding path, or with the number of runs if that
  ///   is above the limit; `CancellationError`.
  package init(
    _ configuration: LabConfiguration,
    readFeed: @Sendable (String) async throws -> (bytes: [UInt8], location: MediaSource)
  ) async throws {
    self.configuration = configuration
    feeds = try await Self.inputs("feeds", configuration.feeds, of: configuration, name: \.name) {
      try await Self.feed($0, configuration, readFeed)
    }
    var links = LabLinks()
    for (index, text) in configuration.links.enumerated() {
      try Task.checkCancellation()
      do throws(ReelError) { try links.add(text, at: index, of: configuration) } catch {
        throw configuration.located(error, at: "links[\(index)]")
      }
    }
    self.links = try links.named(of: configuration)
    dwells = try await Self.inputs("dwells", configuration.dwells, of: configuration, name: \.name) {
      try Self.dwell($0, configuration)
    }
    var devices = try await Self.inputs("devices", configuration.devices, of: configuration, name: \.name) {
      try DeviceModel(argument: $0)
    }
    // A modelled player has the costs of its model.
    if configuration.player != nil, !configuration.statesDevices {
      devices[0].name = LabConfiguration.modelledDevice
    }
    self.devices = devices
    let count = Self.product([
      feeds.count, self.links.count, dwells.count, devices.count, configuration.slotCounts.count,
      configuration.policies.count, configuration.seeds.count,
    ])
    // Plans are made only for the allowed number of walks.
    guard let count, count <= LabConfiguration.runLimit else {
      let text = count.map { "\($0)" } ?? "more than \(Int.max)"
      let failure = ReelError(
        configuration.path == nil ? .usage : .badManifest,
        "the lab has \(text) walks, and the limit is \(LabConfiguration.runLimit)",
        advice: "leave out links, seeds or policies")
      throw configuration.path.map { failure.located(at: $0) } ?? failure
    }
    meanWalkDuration = try Self.meanDuration(configuration, feeds, dwells)
  }

  /// All runs, in order.
  package var runs: LabRuns {
    LabRuns(
      feeds: feeds.map(\.name), links: links.map { LabRuns.Link(name: $0.name, group: $0.group) },
      dwells: dwells.map(\.name), devices: devices.map(\.name), slotCounts: configuration.slotCounts,
      policies: configuration.policies.map(\.description), seeds: configuration.seeds)
  }

  // MARK: - Private

  /// Returns nil on overflow.
  private static func product(_ counts: [Int]) -> Int? {
    counts.reduce(1) { product, count in
      product.flatMap { product in
        let (result, isTooLarge) = product.multipliedReportingOverflow(by: count)
        return isTooLarge ? nil : result
      }
    }
  }

  /// Makes an input of each entry of a list. Throws the first error, with the entry's coding path; also for a repeated
  /// name.
  private static func inputs<Entry, Input>(
    _ field: String, _ entries: [Entry], of configuration: LabConfiguration, name: (Input) -> String,
    make: (Entry) async throws -> Input
  ) async throws -> [Input] {
    var known: Set<String> = []
    var inputs: [Input] = []
    for (index, entry) in entries.enumerated() {
      try Task.checkCancellation()
      do {
        let input = try await make(entry)
        guard known.insert(name(input)).inserted else {
          throw ReelError(
            .usage, "the name \"\(name(input))\" appears twice", advice: "give it a \"name\"")
        }
        inputs.append(input)
      } catch let error as ReelError {
        throw configuration.located(error, at: "\(field)[\(index)]")
      }
    }
    return inputs
  }

  private static func feed(
    _ entry: LabConfiguration.FeedEntry, _ configuration: LabConfiguration,
    _ read: (String) async throws -> (bytes: [UInt8], location: MediaSource)
  ) async throws -> FeedInput {
    let isURL = entry.file.contains("://")
    let (bytes, location) = try await read(isURL ? entry.file : configuration.resolved(entry.file))
    let feed = try FeedFile(bytes: bytes, at: location).feed(named: entry.feed)
    var name = entry.name ?? location.stem
    if entry.name == nil, let feed = entry.feed { name += ":\(feed)" }
    var hash = FNV1a()
    hash.combine(bytes)
    return FeedInput(name: name, feed: feed, contentHash: hash.value)
  }

  private static func dwell(
    _ entry: LabConfiguration.DwellEntry, _ configuration: LabConfiguration
  ) throws(ReelError) -> DwellInput {
    let prefix = "trace:"
    let isTrace = entry.text.trimmed.lowercased().hasPrefix(prefix)
    let text =
      isTrace
      ? prefix + configuration.resolved(entry.text.trimmed.dropFirst(prefix.count).trimmed) : entry.text
    let spec = try SwipeSpec(parsing: text)
    return DwellInput(name: entry.name ?? (isTrace ? entry.text : spec.description), spec: spec)
  }

  /// Checks that each feed can be walked with each dwell time.
  private static func meanDuration(
    _ configuration: LabConfiguration, _ feeds: [FeedInput], _ dwells: [DwellInput]
  ) throws(ReelError) -> Duration {
    var sum = Duration.zero
    for (index, dwell) in dwells.enumerated() {
      for feed in feeds {
        do throws(ReelError) {
          let plan = try WalkPlan(
            feed.feed, swipeCount: configuration.swipeCount, spec: dwell.spec,
            settle: configuration.settle, seed: configuration.seeds.first ?? 1)
          sum += plan.duration
        } catch {
          var failure = configuration.located(error, at: "dwells[\(index)]")
          if feeds.count > 1 { failure.reason += " (feed \(feed.name))" }
          throw failure
        }
      }
    }
    return sum / (feeds.count * dwells.count)
  }
}

/// Collects the links of a lab, and assigns names to them.
struct LabLinks {
  private struct Item {
    var link: LabInputs.LinkInput
    /// The argument of this link as in a configuration.
    let longName: String
    /// The folder of the recording as in a configuration, with the options; nil without one.
    let folder: String?
    /// The place of the argument in the configuration.
    let index: Int
  }

  private var items: [Item] = []

  /// Reads the recordings of an argument.
  mutating func add(
    _ text: String, at index: Int, of configuration: LabConfiguration
  ) throws(ReelError) {
    let argument = try LinkArgument(
      parsing: text, unlessIdeal: configuration.linkFeatures, resolve: configuration.resolved)
    let head = String(text.dropLast(argument.suffix.count))
    for link in try argument.links() {
      var (longName, folder, group) = (text, String?.none, link.name)
      if argument.isFolder {
        let base = head.hasSuffix("/") ? String(head.dropLast()) : head
        let inner = link.name.split(separator: "/").dropLast().joined(separator: "/")
        longName = "\(base)/\(link.name)\(argument.suffix)"
        folder = (inner.isEmpty ? base : "\(base)/\(inner)") + argument.suffix
        group = inner.isEmpty ? Self.lastName(configuration.resolved(head)) : inner
      } else if !argument.isConstant, let slash = head.lastIndex(of: "/") {
        folder = String(head[..<slash]) + argument.suffix
        group = Self.lastName(configuration.resolved(String(head[..<slash])))
      }
      items.append(
        Item(
          link: LabInputs.LinkInput(name: link.name, group: group, text: link.text, spec: link.spec),
          longName: longName, folder: folder, index: index))
    }
  }

  /// Returns the links with distinct names: that of the recording, or its whole argument if several have the
  /// same name. Groups of different folders or options also get different names.
  func named(of configuration: LabConfiguration) throws(ReelError) -> [LabInputs.LinkInput] {
    var (countsByName, foldersByGroup): ([String: Int], [String: Set<String?>]) = ([:], [:])
    for item in items {
      countsByName[item.link.name, default: 0] += 1
      foldersByGroup[item.link.group, default: []].insert(item.folder)
    }
    var known: Set<String> = []
    var links: [LabInputs.LinkInput] = []
    for item in items {
      var link = item.link
      if countsByName[link.name] ?? 0 > 1 { link.name = item.longName }
      if item.folder == nil {
        link.group = link.name
      } else if let folder = item.folder, foldersByGroup[link.group]?.count ?? 0 > 1 {
        link.group = folder
      }
      if !known.insert(link.name).inserted {
        throw configuration.located(
          ReelError(.usage, "the link \"\(link.name)\" appears twice"), at: "links[\(item.index)]")
      }
      links.append(link)
    }
    return links
  }

  // MARK: - Private

  private static func lastName(_ path: String) -> String {
    URL(fileURLWithPath: path).standardized.lastPathComponent
  }
}
