/// How the figures of one pool differ from those of another, over the pairs of walks that differ only in the pool.
package struct LabDifference: Sendable, Hashable {
  /// The difference of one figure.
  package struct Figure: Sendable, Hashable {
    /// The number of pairs whose walks both have the figure.
    package let pairCount: Int
    /// The number of pairs left out because a walk lacks the figure.
    package let leftOutCount: Int
    /// The mean of the differences.
    package let mean: Double
    /// The 95 % interval of the mean; `nil` with fewer than two pairs.
    package let interval: PairedBootstrap.Interval?

    /// True if the interval excludes 0; false if there is none.
    package var excludesZero: Bool { interval?.excludesZero ?? false }
  }

  /// The pool whose figures these are…
  package let pool: LabPool
  /// …less those of this one.
  package let baseline: LabPool
  /// The number of pairs.
  package let pairCount: Int
  /// The figures that at least one pair has.
  package let figures: [LabResult.Figure: Figure]

  init(
    _ pool: LabPool, _ samples: LabSamples, minus baseline: LabPool, _ baselineSamples: LabSamples,
    figures wanted: [LabResult.Figure]
  ) {
    self.pool = pool
    self.baseline = baseline
    let matches = samples.matches(in: baselineSamples)
    pairCount = matches.count
    var columns: [(figure: LabResult.Figure, differences: [Double])] = []
    for figure in wanted {
      guard let column = LabSamples.figures.firstIndex(of: figure) else { continue }
      let differences = matches.map { own, other in
        samples.value(at: own, column: column) - baselineSamples.value(at: other, column: column)
      }.filter { !$0.isNaN }
      if !differences.isEmpty { columns.append((figure, differences)) }
    }
    // Figures that all pairs have share their draws.
    let whole = columns.filter { $0.differences.count == matches.count }
    var rows: [Double] = []
    rows.reserveCapacity(whole.count * matches.count)
    for place in matches.indices {
      for column in whole { rows.append(column.differences[place]) }
    }
    let intervals = zip(
      whole.map(\.figure), PairedBootstrap.intervals(rows: rows, width: whole.count))
    var found = Dictionary(uniqueKeysWithValues: intervals.map { ($0, $1) })
    var figures: [LabResult.Figure: Figure] = [:]
    for (figure, differences) in columns {
      figures[figure] = Figure(
        pairCount: differences.count, leftOutCount: matches.count - differences.count,
        mean: PairedBootstrap.mean(of: differences),
        interval: found.removeValue(forKey: figure) ?? PairedBootstrap.interval(of: differences))
    }
    self.figures = figures
  }
}
