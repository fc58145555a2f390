/// The bootstrap's 95 % interval of the mean of paired differences.
///
/// The unit of resampling is the pair: two walks that differ only in what is compared. Of n differences, n are drawn with
/// replacement, ``resampleCount`` times; the interval holds the middle 95 % of the means. Its ends are the k-th lowest and
/// the k-th highest mean, with k = (``resampleCount`` + 1) × 2.5 %.
///
/// Pairs count as independent. Walks over one recording with several seeds are less so, so an interval for links that
/// are not in the lab would be wider. With few pairs, percentile intervals are somewhat too narrow.
///
/// The draws come from a fixed seed, and sums are in the order of the draws, so the same differences give the same
/// interval on every machine.
///
/// Source: B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", Chapman & Hall 1993, chapter 13 (the
/// percentile interval, with the ranks of section 12.5).
package enum PairedBootstrap {
  /// The interval of a mean.
  package struct Interval: Sendable, Hashable {
    package let lower: Double
    package let upper: Double

    /// True if both ends are above 0, or both are below.
    package var excludesZero: Bool { lower > 0 || upper < 0 }

    package init(lower: Double, upper: Double) {
      self.lower = lower
      self.upper = upper
    }
  }

  /// The number of times that the pairs are drawn.
  package static let resampleCount = 1_999
  /// (1,999 + 1) × 2.5 %.
  private static let rank = 50
  private static let seed: UInt64 = 0x5EED

  /// The mean. It equals the differences if these are all equal, and is 0 for none.
  package static func mean(of differences: [Double]) -> Double {
    guard let first = differences.first else { return 0 }
    return first + differences.reduce(0) { $0 + ($1 - first) } / Double(differences.count)
  }

  /// The interval of the mean; `nil` with fewer than two differences.
  package static func interval(of differences: [Double]) -> Interval? {
    intervals(rows: differences, width: 1).first ?? nil
  }

  /// The intervals of several figures of the same pairs, from the same draws.
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
