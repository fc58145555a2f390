/// The figures of one pool's walks, in the order of the pairs that the walks belong to.
struct LabSamples: Sendable {
  static let figures = LabResult.Figure.allCases

  /// The numbers of the pairs, ascending.
  private(set) var pairs: [Int] = []
  /// The number of walks that failed.
  private(set) var failedCount = 0
  /// For each walk, all figures in the order of `figures`; one that the walk lacks is not a number.
  private var values: [Double] = []

  mutating func append(_ result: LabResult, pair: Int) {
    pairs.append(pair)
    if result.error != nil { failedCount += 1 }
    for figure in Self.figures {
      let value = result.figures[figure] ?? .nan
      values.append(value.isFinite ? value : .nan)
    }
  }

  /// The figure of all walks that have it, in the order of pairs.
  func values(of figure: LabResult.Figure) -> [Double] {
    guard let column = Self.figures.firstIndex(of: figure) else { return [] }
    return stride(from: column, to: values.count, by: Self.figures.count).map { values[$0] }
      .filter { !$0.isNaN }
  }

  /// The places, here and there, of the walks of the same pairs.
  func matches(in other: LabSamples) -> [(own: Int, other: Int)] {
    var matches: [(own: Int, other: Int)] = []
    var (own, there) = (0, 0)
    while own < pairs.count, there < other.pairs.count {
      if pairs[own] == other.pairs[there] { matches.append((own, there)) }
      let isBehind = pairs[own] <= other.pairs[there]
      if pairs[own] >= other.pairs[there] { there += 1 }
      if isBehind { own += 1 }
    }
    return matches
  }

  /// The value at a place; not a number if the walk lacks it.
  func value(at place: Int, column: Int) -> Double { values[place * Self.figures.count + column] }
}
