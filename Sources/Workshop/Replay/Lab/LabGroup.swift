/// A pool of a lab.
package struct LabPool: Sendable, Hashable {
  package var slotCount: Int
  package var policy: String

  package init(slotCount: Int, policy: String) {
    self.slotCount = slotCount
    self.policy = policy
  }
}

/// The walks of a lab that have some dimensions in common, by pool.
package struct LabGroup: Sendable {
  /// What the walks have in common; `nil` for any.
  package struct Key: Sendable, Hashable {
    package var feed: String?
    package var linkGroup: String?
    package var viewer: String?
    package var device: String?
    package var slotCount: Int?
  }

  /// How many dimensions the walks have in common.
  package enum Extent: Sendable, Hashable {
    /// None: all walks.
    case all
    /// One of feed, link group, viewer and device.
    case dimension
    /// All, with the number of slots.
    case cell
  }

  /// A figure over the walks of a pool that have it.
  package struct Distribution: Sendable, Hashable {
    /// The number of walks that have the figure.
    package let count: Int
    package let mean: Double
    /// By nearest rank, as ``LatencySummary`` has it.
    package let median: Double
    /// The 95th percentile, by nearest rank.
    package let p95: Double

    init?(_ values: [Double]) {
      guard !values.isEmpty else { return nil }
      let sorted = values.sorted()
      count = values.count
      mean = PairedBootstrap.mean(of: values)
      median = sorted[(sorted.count * 50 + 99) / 100 - 1]
      p95 = sorted[(sorted.count * 95 + 99) / 100 - 1]
    }
  }

  /// The walks of a pool.
  package struct Row: Sendable, Hashable {
    package let pool: LabPool
    package let runCount: Int
    /// The number of these that failed and have no figures.
    package let failedCount: Int
    /// The figures that at least one walk has.
    package let figures: [LabResult.Figure: Distribution]
    /// True if no other pool of the group has means of ``LabGroup/frontFigures`` that are all at least as good, and one
    /// better. A pool that lacks one of the figures is not on the front, unless all pools do.
    package fileprivate(set) var isOnFront = false

    /// The mean of a figure; `nil` if no walk has it.
    package func mean(_ figure: LabResult.Figure) -> Double? { figures[figure]?.mean }
  }

  /// How a pool compares with the one that has the best mean of a figure.
  package enum Standing: Sendable, Hashable {
    case best
    /// The interval of the difference from the best holds 0, or there are too few pairs for one.
    case indistinguishable
    case worse
  }

  /// The costs that the Pareto front weighs up.
  package static let frontFigures: [LabResult.Figure] = [
    .secondFrameP95, .rebufferingRatio, .wastedByteCount, .peakMemory,
  ]

  package let key: Key
  package let extent: Extent
  /// By number of slots, then by policy.
  package private(set) var rows: [Row]
  /// For each pool whose policy is not the baseline, the difference from the baseline with as many slots.
  package let differences: [LabDifference]
  /// For each policy in pools of several sizes, the differences from the smallest.
  package let sizeDifferences: [LabDifference]
  private let samples: [LabPool: LabSamples]

  /// The number of walks.
  package var runCount: Int { rows.reduce(0) { $0 + $1.runCount } }

  /// - Parameters:
  ///   - samples: For each of `pools`, its walks.
  ///   - baseline: The policy to subtract; `nil` for none.
  init(
    _ key: Key, _ extent: Extent, pools: [LabPool], samples: [LabPool: LabSamples], baseline: String?
  ) {
    (self.key, self.extent, self.samples) = (key, extent, samples)
    rows = pools.map { pool in
      let own = samples[pool] ?? LabSamples()
      let figures = LabSamples.figures.compactMap { figure in
        Distribution(own.values(of: figure)).map { (figure, $0) }
      }
      return Row(
        pool: pool, runCount: own.pairs.count, failedCount: own.failedCount,
        figures: Dictionary(uniqueKeysWithValues: figures))
    }
    func difference(_ pool: LabPool, minus other: LabPool) -> LabDifference? {
      guard let own = samples[pool], let others = samples[other] else { return nil }
      let difference = LabDifference(pool, own, minus: other, others, figures: LabSamples.figures)
      return difference.pairCount > 0 ? difference : nil
    }
    differences = pools.filter { $0.policy != baseline }.compactMap { pool in
      baseline.flatMap { difference(pool, minus: LabPool(slotCount: pool.slotCount, policy: $0)) }
    }
    sizeDifferences = pools.compactMap { pool in
      let smallest = pools.first { $0.policy == pool.policy }
      return smallest.flatMap { $0 == pool ? nil : difference(pool, minus: $0) }
    }
    markFront()
  }

  /// The difference of any two pools; `nil` if the group lacks one.
  package func difference(
    of pool: LabPool, minus other: LabPool, figures: [LabResult.Figure] = LabResult.Figure.allCases
  ) -> LabDifference? {
    guard let own = samples[pool], let others = samples[other] else { return nil }
    return LabDifference(pool, own, minus: other, others, figures: figures)
  }

  /// The figure of each walk of a pool that has it, in no order that means anything but the same each time.
  package func values(_ figure: LabResult.Figure, of pool: LabPool) -> [Double] {
    samples[pool]?.values(of: figure) ?? []
  }

  /// For each of ``rows``, how its mean of a figure compares with the best; `nil` if it lacks the figure.
  ///
  /// The intervals are not corrected for the number of comparisons.
  ///
  /// - Parameter slotCount: Compares only pools of this size; others are `nil`.
  package func standings(_ figure: LabResult.Figure, slotCount: Int? = nil) -> [Standing?] {
    let means = rows.map { row in
      slotCount == nil || row.pool.slotCount == slotCount ? row.mean(figure) : nil
    }
    let sign: Double = figure.isHigherBetter ? -1 : 1
    let found = rows.indices.compactMap { place in means[place].map { (place: place, cost: $0 * sign) } }
    guard let best = found.min(by: { ($0.cost, $0.place) < ($1.cost, $1.place) })?.place else {
      return Array(repeating: nil, count: rows.count)
    }
    return rows.indices.map { place in
      guard means[place] != nil else { return nil }
      if place == best { return .best }
      let difference = difference(of: rows[place].pool, minus: rows[best].pool, figures: [figure])
      return difference?.figures[figure]?.excludesZero == true ? .worse : .indistinguishable
    }
  }

  // MARK: - Private

  private mutating func markFront() {
    let figures = Self.frontFigures.filter { figure in rows.contains { $0.mean(figure) != nil } }
    guard !figures.isEmpty else { return }
    let found = rows.indices.compactMap { place in
      let costs = figures.compactMap { rows[place].mean($0) }
      return costs.count == figures.count ? (place: place, costs: costs) : nil
    }
    for (member, isOnFront) in zip(found, ParetoFront.members(found.map(\.costs))) {
      rows[member.place].isOnFront = isOnFront
    }
  }
}

extension LabResult.Figure {
  /// True for the mean bit rate.
  package var isHigherBetter: Bool { self == .meanBitRate }
}
