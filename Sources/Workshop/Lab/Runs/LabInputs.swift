internal import Foundation
internal import ReelCore
package import ReelPlayback
package import ReelPool
package import ReelSimulation

/// The inputs that a lab's configuration names, read and checked: feeds, recordings, viewers, devices.
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

  package struct ViewerInput: Sendable {
    package let name: String
    package let spec: ViewerSpec
  }

  package let configuration: LabConfiguration
  package let feeds: [FeedInput]
  package let links: [LinkInput]
  package let viewers: [ViewerInput]
  package let devices: [DeviceModel]
  /// The mean duration, by its own clock, of a walk through each feed by each viewer, with the first seed.
  package let meanWalkDuration: Duration

  /// Reads all inputs that `configuration` names.
  ///
  /// - Parameter readFeed: Returns the bytes of a feed file, and their source, for its path or URL.
  /// - Throws: `LabFailures` with all errors, or with the number of runs if that is above the limit;
  ///   `CancellationError`.
  package init(
    _ configuration: LabConfiguration,
    readFeed: @Sendable (String) async throws -> (bytes: [UInt8], location: MediaSource)
  ) async throws {
    self.configuration = configuration
    var failures: [ReelError] = []
    var feeds: [LabConfiguration.Entry<FeedInput>] = []
    for entry in configuration.feeds {
      try Task.checkCancellation()
      do {
        let input = try await Self.feed(entry.value, configuration.origin, readFeed)
        feeds.append(LabConfiguration.Entry(value: input, field: entry.field))
      } catch let error as ReelError {
        failures.append(entry.field.failure(error))
      }
    }
    links = try Self.links(configuration, &failures)
    var viewers: [LabConfiguration.Entry<ViewerInput>] = []
    for entry in configuration.viewers {
      do throws(ReelError) {
        let input = try Self.viewer(entry.value, configuration.origin)
        viewers.append(LabConfiguration.Entry(value: input, field: entry.field))
      } catch {
        failures.append(entry.field.failure(error))
      }
    }
    var devices: [LabConfiguration.Entry<DeviceModel>] = []
    for entry in configuration.devices {
      do throws(ReelError) {
        let device = try DeviceModel(argument: entry.value)
        devices.append(LabConfiguration.Entry(value: device, field: entry.field))
      } catch {
        failures.append(entry.field.failure(error))
      }
    }
    self.feeds = Self.distinct(feeds, by: \.name, &failures)
    self.viewers = Self.distinct(viewers, by: \.name, &failures)
    self.devices = Self.distinct(devices, by: \.name, &failures)
    let count = Self.product([
      feeds.count, links.count, viewers.count, devices.count, configuration.slotCounts.count,
      configuration.policies.count, configuration.seeds.count,
    ])
    let isWithinLimit = count.map { $0 <= LabConfiguration.runLimit } ?? false
    // Plans are made only for the allowed number of walks.
    meanWalkDuration =
      isWithinLimit ? Self.meanDuration(configuration, feeds, viewers, &failures) : .zero
    guard failures.isEmpty else { throw LabFailures(failures.map(configuration.origin.located)) }
    guard isWithinLimit else {
      let text = count.map { "\($0)" } ?? "more than \(Int.max)"
      let failure = ReelError(
        .usage, "the lab has \(text) walks, and the limit is \(LabConfiguration.runLimit)",
        advice: "leave out links, seeds or policies")
      throw LabFailures([configuration.origin.located(failure)])
    }
  }

  /// All runs, in order.
  package var runs: LabRuns {
    LabRuns(
      feeds: feeds.map(\.name), links: links.map { LabRuns.Link(name: $0.name, group: $0.group) },
      viewers: viewers.map(\.name), devices: devices.map(\.name), slotCounts: configuration.slotCounts,
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

  private static func feed(
    _ entry: LabConfiguration.FeedEntry, _ origin: LabConfiguration.Origin,
    _ read: (String) async throws -> (bytes: [UInt8], location: MediaSource)
  ) async throws -> FeedInput {
    let isURL = entry.file.contains("://")
    let (bytes, location) = try await read(isURL ? entry.file : origin.resolved(entry.file))
    let feed = try FeedFile(bytes: bytes, at: location).feed(named: entry.feed)
    var name = entry.name ?? location.stem
    if entry.name == nil, let feed = entry.feed { name += ":\(feed)" }
    var hash = FNV1a()
    hash.combine(bytes)
    return FeedInput(name: name, feed: feed, contentHash: hash.value)
  }

  private static func links(
    _ configuration: LabConfiguration, _ failures: inout [ReelError]
  ) throws -> [LinkInput] {
    var links = LabLinks()
    for entry in configuration.links {
      try Task.checkCancellation()
      do throws(ReelError) {
        try links.add(entry, of: configuration)
      } catch {
        failures.append(entry.field.failure(error))
      }
    }
    return links.named(&failures)
  }

  private static func viewer(
    _ entry: LabConfiguration.ViewerEntry, _ origin: LabConfiguration.Origin
  ) throws(ReelError) -> ViewerInput {
    let prefix = "trace:"
    let isTrace = entry.text.trimmed.lowercased().hasPrefix(prefix)
    let text =
      isTrace ? prefix + origin.resolved(entry.text.trimmed.dropFirst(prefix.count).trimmed) : entry.text
    let spec = try ViewerSpec(parsing: text)
    return ViewerInput(name: entry.name ?? (isTrace ? entry.text : spec.description), spec: spec)
  }

  /// Returns the values; records those whose name is repeated.
  private static func distinct<Value>(
    _ entries: [LabConfiguration.Entry<Value>], by name: (Value) -> String, _ failures: inout [ReelError]
  ) -> [Value] {
    var known: Set<String> = []
    for entry in entries where !known.insert(name(entry.value)).inserted {
      failures.append(
        entry.field.failure("the name \"\(name(entry.value))\" appears twice", advice: "give it a \"name\""))
    }
    return entries.map(\.value)
  }

  /// Checks that each viewer can walk through each feed.
  private static func meanDuration(
    _ configuration: LabConfiguration, _ feeds: [LabConfiguration.Entry<FeedInput>],
    _ viewers: [LabConfiguration.Entry<ViewerInput>], _ failures: inout [ReelError]
  ) -> Duration {
    var durations: [Duration] = []
    for viewer in viewers {
      for feed in feeds {
        do throws(ReelError) {
          let plan = try WalkPlan(
            feed.value.feed, swipeCount: configuration.swipeCount, viewer: viewer.value.spec,
            seed: configuration.seeds.first ?? 1)
          durations.append(plan.duration + WalkPlan.settleTime * plan.swipeCount)
        } catch {
          var failure = viewer.field.failure(error)
          if feeds.count > 1 { failure.reason += " (feed \(feed.value.name))" }
          failures.append(failure)
        }
      }
    }
    return durations.isEmpty ? .zero : durations.reduce(.zero, +) / durations.count
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
    let field: JSONField
  }

  private var items: [Item] = []

  /// Reads the recordings of an argument.
  mutating func add(
    _ entry: LabConfiguration.Entry<String>, of configuration: LabConfiguration
  ) throws(ReelError) {
    let argument = try LinkArgument(parsing: entry.value, resolve: configuration.origin.resolved)
    let head = String(entry.value.dropLast(argument.suffix.count))
    for link in try argument.links() {
      var (longName, folder, group) = (entry.value, String?.none, link.name)
      if argument.isFolder {
        let base = head.hasSuffix("/") ? String(head.dropLast()) : head
        let inner = link.name.split(separator: "/").dropLast().joined(separator: "/")
        longName = "\(base)/\(link.name)\(argument.suffix)"
        folder = (inner.isEmpty ? base : "\(base)/\(inner)") + argument.suffix
        group = inner.isEmpty ? Self.lastName(configuration.origin.resolved(head)) : inner
      } else if !argument.isConstant, let slash = head.lastIndex(of: "/") {
        folder = String(head[..<slash]) + argument.suffix
        group = Self.lastName(configuration.origin.resolved(String(head[..<slash])))
      }
      var spec = link.spec
      if configuration.modelsTCP { spec.modelsTCP = true }
      if configuration.modelsTLS { spec.modelsTLS = true }
      if configuration.modelsDNS { spec.modelsDNS = true }
      items.append(
        Item(
          link: LabInputs.LinkInput(name: link.name, group: group, text: link.text, spec: spec),
          longName: longName, folder: folder, field: entry.field))
    }
  }

  /// Returns the links with distinct names: that of the recording, or its whole argument if several have the
  /// same name. Groups of different folders or options also get different names.
  func named(_ failures: inout [ReelError]) -> [LabInputs.LinkInput] {
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
        failures.append(item.field.failure("the link \"\(link.name)\" appears twice"))
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
