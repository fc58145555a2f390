import ReelSimulation

package struct LabPool: Sendable, Hashable {
  package var slotCount: Int
  package var policy: String
}

/// The walks of a lab that have some dimensions in common, by pool.
package struct LabGroup: Sendable {
  /// The common dimensions of the walks; `nil` for any.
  package struct Key: Sendable, Hashable {
    package var feed: String?
    package var linkGroup: String?
    package var dwell: String?
    package var device: String?
    package var slotCount: Int?
  }

  /// The number of dimensions that the walks have in common.
  package enum Extent: Sendable, Hashable {
    /// None: all walks.
    case all
    /// One of feed, link group, dwell time and device.
    case dimension
    /// All, with the number of slots.
    case cell
  }

  /// A figure over the walks of a pool that have it.
  package struct Distribution: Sendable, Hashable {
    /// The number of walks that have the figure.
    package let count: Int
    package let mean: Double
    /// The median by nearest rank, as in ``LatencySummary``.
    package let median: Double
    /// The 95th percentile, by nearest rank.
    package let p95: Double

    init?(_ values: [Double]) {
      guard !values.isEmpty else { return nil }
      let sorted = values.sorted()
      count = values.count
      mean = PairedBootstrap.mean(of: values)
      median = sorted.percentile(50)
      p95 = sorted.percentile(95)
    }
  }

  /// The walks of a pool.
  package struct Row: Sendable, Hashable {
    package let pool: LabPool
    package let runCount: Int
    /// The number of these that failed and have no figures.
    package let failedCount: Int
    /// By name, the figures that at least one walk has.
    package let figures: [String: Distribution]
    /// The mean of a figure; `nil` if no walk has it.
    package func mean(_ figure: WalkFigure) -> Double? { figures[figure.name]?.mean }
  }

  package let key: Key
  package let extent: Extent
  /// The rows, by number of slots, then by policy.
  package let rows: [Row]
  /// The pool with which others are compared: the smallest with the baseline's policy; `nil` without one.
  package let reference: LabPool?
  /// For each other pool, the difference from ``reference``.
  package private(set) var differences: [LabDifference] = []
  private let samples: [LabPool: LabSamples]

  /// The number of walks.
  package var runCount: Int { rows.reduce(0) { $0 + $1.runCount } }

  /// - Parameters:
  ///   - samples: For each of `pools`, its walks.
  ///   - baseline: The policy of the reference; `nil` for none.
  init(
    _ key: Key, _ extent: Extent, pools: [LabPool], samples: [LabPool: LabSamples], baseline: String?
  ) {
    (self.key, self.extent, self.samples) = (key, extent, samples)
    rows = pools.map { pool in
      let own = samples[pool] ?? LabSamples()
      let figures = LabSamples.figures.compactMap { figure in
        Distribution(own.values(of: figure)).map { (figure.name, $0) }
      }
      return Row(
        pool: pool, runCount: own.pairs.count, failedCount: own.failedCount,
        figures: Dictionary(uniqueKeysWithValues: figures))
    }
    reference = pools.first { $0.policy == baseline }
    guard let reference else { return }
    differences = pools.compactMap { $0 == reference ? nil : difference(of: $0, minus: reference) }
  }

  /// Returns the difference of any two pools; `nil` if the group lacks one, or if they have no pair of walks.
  package func difference(
    of pool: LabPool, minus other: LabPool, figures: [WalkFigure] = LabSamples.figures
  ) -> LabDifference? {
    guard let own = samples[pool], let others = samples[other] else { return nil }
    let difference = LabDifference(pool, own, minus: other, others, figures: figures)
    return difference.pairCount > 0 ? difference : nil
  }

  /// The mean of a figure over the walks of a pool; 0 without one.
  func mean(_ figure: WalkFigure, of pool: LabPool) -> Double {
    rows.first { $0.pool == pool }?.mean(figure) ?? 0
  }

  func difference(_ figure: WalkFigure, of pool: LabPool, minus other: LabPool) -> LabDifference.Figure? {
    difference(of: pool, minus: other, figures: [figure])?.figures[figure.name]
  }

  /// The figure of each walk of a pool that has it, in no order that means anything but the same each time.
  package func values(_ figure: WalkFigure, of pool: LabPool) -> [Double] {
    samples[pool]?.values(of: figure) ?? []
  }
}

/// How the figures of one pool differ from those of another, over the pairs of walks that differ only in the pool.
package struct LabDifference: Sendable, Hashable {
  package struct Figure: Sendable, Hashable {
    /// The number of pairs whose walks both have the figure.
    package let pairCount: Int
    /// The number of pairs left out because a walk lacks the figure.
    package let leftOutCount: Int
    package let mean: Double
    /// The 95 % interval of the mean; `nil` with fewer than two pairs.
    package let interval: PairedBootstrap.Interval?

    /// True if the interval excludes 0; false if there is none.
    package var excludesZero: Bool { interval?.excludesZero ?? false }
  }

  /// The pool that the figures belong to…
  package let pool: LabPool
  /// …minus those of this one.
  package let baseline: LabPool
  package let pairCount: Int
  /// By name, the figures that at least one pair has.
  package let figures: [String: Figure]

  init(
    _ pool: LabPool, _ samples: LabSamples, minus baseline: LabPool, _ baselineSamples: LabSamples,
    figures wanted: [WalkFigure]
  ) {
    self.pool = pool
    self.baseline = baseline
    let matches = samples.matches(in: baselineSamples)
    pairCount = matches.count
    var columns: [(figure: String, differences: [Double])] = []
    for figure in wanted {
      guard let column = LabSamples.column(of: figure) else { continue }
      let differences = matches.map { own, other in
        samples.value(at: own, column: column) - baselineSamples.value(at: other, column: column)
      }.filter { !$0.isNaN }
      if !differences.isEmpty { columns.append((figure.name, differences)) }
    }
    // Figures available for all pairs share their draws.
    let whole = columns.filter { $0.differences.count == matches.count }
    var rows: [Double] = []
    rows.reserveCapacity(whole.count * matches.count)
    for place in matches.indices {
      for column in whole { rows.append(column.differences[place]) }
    }
    let intervals = zip(
      whole.map(\.figure), PairedBootstrap.intervals(rows: rows, width: whole.count))
    var found = Dictionary(uniqueKeysWithValues: intervals.map { ($0, $1) })
    var figures: [String: Figure] = [:]
    for (figure, differences) in columns {
      figures[figure] = Figure(
        pairCount: differences.count, leftOutCount: matches.count - differences.count,
        mean: PairedBootstrap.mean(of: differences),
        interval: found.removeValue(forKey: figure) ?? PairedBootstrap.interval(of: differences))
    }
    self.figures = figures
  }
}

/// The bootstrap's 95 % interval of the mean of paired differences.
///
/// The unit of resampling is the pair: two walks that differ only in the compared property. Of n differences,
/// n are drawn with replacement, ``resampleCount`` times; the interval contains the middle 95 % of the means.
/// Its ends are the k-th lowest and the k-th highest mean, with k = (``resampleCount`` + 1) × 2.5 %.
///
/// Pairs count as independent. Walks over one recording with several seeds are less independent, so an
/// interval for links that are not in the lab would be wider. With few pairs, percentile intervals are
/// somewhat too narrow.
///
/// The draws come from a fixed seed, and sums are in the order of the draws, so the same differences give the same
/// interval on every machine.
///
/// Source: B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", Chapman & Hall 1993, chapter 13 (the
/// percentile interval, with the ranks of section 12.5).
package enum PairedBootstrap {
  package struct Interval: Sendable, Hashable {
    package let lower: Double
    package let upper: Double

    /// True if both ends are above 0, or both are below.
    package var excludesZero: Bool { lower > Self.nothing || upper < -Self.nothing }

    /// A value that is 0 but for the rounding of sums.
    private static let nothing = 1e-6
  }

  /// The number of times that the pairs are drawn.
  package static let resampleCount = 1_999
  /// (1,999 + 1) × 2.5 %.
  private static let rank = 50
  private static let seed: UInt64 = 0x5EED

  /// Returns the mean. It equals the differences if these are all equal, and is 0 for none.
  package static func mean(of differences: [Double]) -> Double {
    guard let first = differences.first else { return 0 }
    return first + differences.reduce(0) { $0 + ($1 - first) } / Double(differences.count)
  }

  /// Returns the interval of the mean; `nil` with fewer than two differences.
  package static func interval(of differences: [Double]) -> Interval? {
    intervals(rows: differences, width: 1).first ?? nil
  }

  /// Returns the intervals of several figures of the same pairs, from the same draws.
  ///
  /// - Parameters:
  ///   - rows: For each pair, its differences, one per figure.
  ///   - width: The number of figures.
  /// - Returns: An interval for each figure; `nil` with fewer than two pairs.
  package static func intervals(rows: [Double], width: Int) -> [Interval?] {
    guard width > 0 else { return [] }
    let count = rows.count / width
    guard count > 1 else { return Array(repeating: nil, count: width) }
    // Differences from the first pair: the mean of equal values is then exact.
    let first = Array(rows[..<width])
    let shifted = rows.indices.map { rows[$0] - first[$0 % width] }
    var means = [Double](repeating: 0, count: width * resampleCount)
    var sums = [Double](repeating: 0, count: width)
    var random = SplitMix64(seed: seed)
    shifted.withUnsafeBufferPointer { shifted in
      sums.withUnsafeMutableBufferPointer { sums in
        for resample in 0..<resampleCount {
          sums.update(repeating: 0)
          for _ in 0..<count {
            let place = Int(random.next().multipliedFullWidth(by: UInt64(count)).high) * width
            for column in 0..<width { sums[column] += shifted[place + column] }
          }
          for column in 0..<width { means[column * resampleCount + resample] = sums[column] / Double(count) }
        }
      }
    }
    return (0..<width).map { column in
      let sorted = means[(column * resampleCount)..<((column + 1) * resampleCount)].sorted()
      return Interval(
        lower: first[column] + sorted[rank - 1], upper: first[column] + sorted[resampleCount - rank])
    }
  }
}
