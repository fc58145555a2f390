/// The results of a lab: figures by group and pool, and the differences between pools.
///
/// A group over walks of several pool sizes has a row for each size and policy. The order of the results
/// determines only the order of names.
package struct LabSummary: Sendable {
  /// The values of the lab's dimensions, in the order of the results; numbers of slots ascend.
  package struct Dimensions: Sendable, Hashable {
    package var feeds: [String] = []
    package var links: [String] = []
    package var linkGroups: [String] = []
    package var dwells: [String] = []
    package var devices: [String] = []
    package var slotCounts: [Int] = []
    package var policies: [String] = []
    package var seeds: [UInt64] = []
  }

  package let dimensions: Dimensions
  /// The policy with which others are compared; `nil` for none.
  package let baseline: String?
  /// The number of results; those of a repeated walk count once.
  package let runCount: Int
  /// The number of walks that the lab has; more than `runCount` if it was interrupted.
  package let plannedCount: Int
  /// All walks, then those that have one of feed, link group, dwell time and device in common if the lab varies
  /// more than one of these, then those that have all of these and the number of slots in common.
  package let groups: [LabGroup]
  /// The items that failed, each once for each error, in the order of the feeds and items.
  package let failures: [Failure]
  /// For each pool the visits of its walks; empty for walks with one visit and no simulated cache.
  package let visits: [PoolVisits]

  package struct PoolVisits: Sendable, Hashable {
    package let pool: LabPool
    package let walks: [ReturnVisits]
  }

  /// An item that failed in some walks.
  package struct Failure: Sendable, Hashable {
    package let feed: String
    package let item: Int
    package let error: String
    /// The number of walks in which it failed.
    package fileprivate(set) var runCount: Int
  }

  /// - Parameters:
  ///   - results: If a walk is repeated, its first result counts.
  ///   - baseline: The policy with which others are compared, as in ``LabRun/policy``. Without one, or with
  ///     one that no result has, no differences from a baseline are computed.
  ///   - plannedCount: The number of walks that the lab has; nil if these are all.
  package init(_ results: [LabResult], baseline: String?, plannedCount: Int? = nil) {
    var known: Set<LabRun> = []
    let results = results.filter { known.insert($0.run).inserted }
    let dimensions = Self.dimensions(of: results)
    let baseline = baseline.flatMap { dimensions.policies.contains($0) ? $0 : nil }
    (self.dimensions, self.baseline, runCount) = (dimensions, baseline, results.count)
    self.plannedCount = plannedCount ?? results.count
    groups = Self.groups(results, dimensions, baseline: baseline)
    failures = Self.failures(results, dimensions)
    visits = dimensions.slotCounts.flatMap { slotCount in
      dimensions.policies.map { LabPool(slotCount: slotCount, policy: $0) }
    }.compactMap { pool in
      let walks = results.filter { $0.run.pool == pool }.compactMap(\.visits)
      return walks.isEmpty ? nil : PoolVisits(pool: pool, walks: walks)
    }
  }

  /// The name of a failed item: `item 3`, with its feed if there are several.
  package func name(of failure: Failure) -> String {
    "item \(failure.item)" + (dimensions.feeds.count > 1 ? " of \(failure.feed)" : "")
  }

  /// All walks together; `nil` if there are none.
  package var overall: LabGroup? { groups(.all).first }

  package func groups(_ extent: LabGroup.Extent) -> [LabGroup] { groups.filter { $0.extent == extent } }

  /// The groups that add information to that of all walks.
  package var partialGroups: [LabGroup] {
    let cells = groups(.cell)
    // With pools alone, the rows of all walks say the same.
    let areSeveral =
      Set(
        cells.map { cell in
          var key = cell.key
          key.slotCount = nil
          return key
        }
      ).count > 1
    return groups(.dimension) + (areSeveral ? cells : [])
  }

  // MARK: - Private

  private static func dimensions(of results: [LabResult]) -> Dimensions {
    func distinct<Value: Hashable>(_ value: (LabRun) -> Value) -> [Value] {
      var known: Set<Value> = []
      return results.map { value($0.run) }.filter { known.insert($0).inserted }
    }
    return Dimensions(
      feeds: distinct(\.feed), links: distinct(\.link), linkGroups: distinct(\.linkGroup),
      dwells: distinct(\.dwell), devices: distinct(\.device), slotCounts: distinct(\.slotCount).sorted(),
      policies: distinct(\.policy), seeds: distinct(\.seed))
  }

  private static func failures(_ results: [LabResult], _ dimensions: Dimensions) -> [Failure] {
    struct Place: Hashable {
      let feed: Int
      let item: Int
      let error: String
    }
    var counts: [Place: Int] = [:]
    for result in results {
      guard let items = result.failedItems else { continue }
      let feed = dimensions.feeds.firstIndex(of: result.run.feed) ?? 0
      for item in items { counts[Place(feed: feed, item: item.index, error: item.error), default: 0] += 1 }
    }
    return counts.sorted { one, other in
      (one.key.feed, one.key.item, one.key.error) < (other.key.feed, other.key.item, other.key.error)
    }.map { place, count in
      Failure(
        feed: dimensions.feeds[place.feed], item: place.item, error: place.error, runCount: count)
    }
  }

  private static func groups(
    _ results: [LabResult], _ dimensions: Dimensions, baseline: String?
  ) -> [LabGroup] {
    let pairs = Set(results.map(\.run.pair)).sorted { one, other in
      (one.feed, one.linkGroup, one.link, one.dwell, one.device, one.seed)
        < (other.feed, other.linkGroup, other.link, other.dwell, other.device, other.seed)
    }
    let numbers = Dictionary(uniqueKeysWithValues: pairs.enumerated().map { ($1, $0) })
    let numbered = results.map { (pair: numbers[$0.run.pair] ?? 0, result: $0) }.sorted { $0.pair < $1.pair }
    let hasMargins =
      [dimensions.feeds, dimensions.linkGroups, dimensions.dwells, dimensions.devices]
      .count { $0.count > 1 } > 1
    var samples: [LabGroup.Key: [LabPool: LabSamples]] = [:]
    for (pair, result) in numbered {
      let run = result.run
      var keys = [
        LabGroup.Key(),
        LabGroup.Key(
          feed: run.feed, linkGroup: run.linkGroup, dwell: run.dwell, device: run.device,
          slotCount: run.slotCount),
      ]
      if hasMargins {
        keys += [
          LabGroup.Key(feed: run.feed), LabGroup.Key(linkGroup: run.linkGroup),
          LabGroup.Key(dwell: run.dwell), LabGroup.Key(device: run.device),
        ]
      }
      for key in keys {
        samples[key, default: [:]][run.pool, default: LabSamples()].append(result, pair: pair)
      }
    }
    return keys(dimensions).compactMap { key, extent in
      guard let samples = samples[key] else { return nil }
      let pools = dimensions.slotCounts.flatMap { slotCount in
        dimensions.policies.map { LabPool(slotCount: slotCount, policy: $0) }
      }.filter { samples[$0] != nil }
      return LabGroup(key, extent, pools: pools, samples: samples, baseline: baseline)
    }
  }

  /// Returns the keys of all possible groups, in order.
  private static func keys(_ dimensions: Dimensions) -> [(LabGroup.Key, LabGroup.Extent)] {
    func keys<Value>(
      of keys: [LabGroup.Key] = [LabGroup.Key()], _ values: [Value],
      _ field: WritableKeyPath<LabGroup.Key, Value?>
    ) -> [LabGroup.Key] {
      keys.flatMap { key in
        values.map { value in
          var key = key
          key[keyPath: field] = value
          return key
        }
      }
    }
    let margins = [
      keys(dimensions.feeds, \.feed), keys(dimensions.linkGroups, \.linkGroup),
      keys(dimensions.dwells, \.dwell), keys(dimensions.devices, \.device),
    ]
    var cells = keys(of: margins[0], dimensions.linkGroups, \.linkGroup)
    cells = keys(of: cells, dimensions.dwells, \.dwell)
    cells = keys(of: cells, dimensions.devices, \.device)
    cells = keys(of: cells, dimensions.slotCounts, \.slotCount)
    return [(LabGroup.Key(), .all)]
      + margins.filter { $0.count > 1 }.joined().map { ($0, .dimension) } + cells.map { ($0, .cell) }
  }
}

/// In JSON:
///
/// - `baseline`, `runs`, `planned` (the walks of the whole lab), and `resamples`, the number of the bootstrap's draws.
/// - `feeds`, `links`, `link_groups`, `dwells`, `devices`, `slots`, `policies`, `seeds`: the dimensions.
/// - `failed_items`: for each item that failed `feed`, `item_index`, `error` and `runs`, the walks in which it failed.
/// - `visits`: with several visits or a simulated cache, for each pool `slots`, `policy`, `runs`, `visits` (the means of each
///   visit), and `cache` (what it saves and costs).
/// - `groups`: for each group
///   - those of `feed`, `link_group`, `dwell`, `device` and `slots` that its walks have in common; `runs`.
///   - `pools`: for each pool `slots`, `policy`, `runs`, `failed` (of these), and `figures`: for each of
///     ``WalkFigures`` that labs have, by name, `runs` (walks that have it), `mean`, `median` and `p95` over walks.
///   - `differences` from the smallest pool with the baseline's policy: for each `slots`, `policy`, `minus_slots`, `minus_policy`, `pairs`, and `figures`: for each figure `pairs` (whose walks both
///     have it), `left_out` (other pairs), `mean`, and with two pairs or more `lower` and `upper`, the ends of the 95 %
///     interval, and `excludes_zero`.
extension LabSummary: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "baseline": baseline, "runs": runCount, "planned": plannedCount,
      "resamples": PairedBootstrap.resampleCount,
      "feeds": dimensions.feeds, "links": dimensions.links, "link_groups": dimensions.linkGroups,
      "dwells": dimensions.dwells, "devices": dimensions.devices, "slots": dimensions.slotCounts,
      "policies": dimensions.policies, "seeds": dimensions.seeds, "groups": groups,
      "failed_items": failures.isEmpty ? nil : failures, "visits": visits.isEmpty ? nil : visits,
    ])
  }
}

extension LabSummary.PoolVisits: Encodable {
  package func encode(to encoder: any Encoder) throws {
    let mean = ReturnVisits(meansOf: walks)
    try encoder.encode([
      "slots": pool.slotCount, "policy": pool.policy, "runs": walks.count, "visits": mean.visits,
      "cache": mean.cache,
    ])
  }
}

extension LabSummary.Failure: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode(["feed": feed, "item_index": item, "error": error, "runs": runCount])
  }
}

extension LabGroup: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "feed": key.feed, "link_group": key.linkGroup, "dwell": key.dwell, "device": key.device,
      "slots": key.slotCount, "runs": runCount, "pools": rows, "differences": differences,
    ])
  }
}

extension LabGroup.Row: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "slots": pool.slotCount, "policy": pool.policy, "runs": runCount, "failed": failedCount,
      "figures": figures,
    ])
  }
}

extension LabGroup.Distribution: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode(["runs": count, "mean": mean, "median": median, "p95": p95])
  }
}

extension LabDifference: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "slots": pool.slotCount, "policy": pool.policy, "minus_slots": baseline.slotCount,
      "minus_policy": baseline.policy, "pairs": pairCount, "figures": figures,
    ])
  }
}

extension LabDifference.Figure: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "pairs": pairCount, "left_out": leftOutCount, "mean": mean, "lower": interval?.lower,
      "upper": interval?.upper, "excludes_zero": interval?.excludesZero,
    ])
  }
}
