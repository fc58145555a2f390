/// The figures of one walk of a lab.
package struct LabResult: Sendable, Hashable, Codable {
  package var run: LabRun
  /// By name, those of ``WalkFigures`` that labs have and the walk has, each as ``Figure/cost(in:)``: for instance no bit
  /// rate without a ladder.
  package var figures: [String: Double]
  /// Why the walk failed; it then has no figures.
  package var error: String?
  /// The items that failed, at most ``failedItemLimit``; nil for none.
  package var failedItems: [WalkReport.FailedItem]?
  /// The visits; the figures are those of the first one. Nil for one visit without a simulated cache.
  package var visits: ReturnVisits?

  private enum CodingKeys: String, CodingKey {
    case run, figures, error, visits
    case failedItems = "failed_items"
  }

  /// The maximum number of failed items that are kept of a walk.
  package static let failedItemLimit = 20

  package init(run: LabRun, figures: [String: Double], error: String? = nil) {
    self.run = run
    self.figures = figures
    self.error = error
  }

  package init(run: LabRun, report: WalkReport) {
    let totals = report.totals
    let figures = WalkFigures.all(in: .lab).compactMap { figure in
      figure.cost(in: totals).map { (figure.name, $0) }
    }
    self.init(run: run, figures: Dictionary(uniqueKeysWithValues: figures))
    visits = report.visits
    if !report.failedItems.isEmpty { failedItems = Array(report.failedItems.prefix(Self.failedItemLimit)) }
  }
}

/// The figures of one pool's walks, in the order of the pairs that the walks belong to.
struct LabSamples: Sendable {
  static let figures = WalkFigures.all(in: .lab)

  /// The numbers of the pairs, ascending.
  private(set) var pairs: [Int] = []
  /// The number of walks that failed.
  private(set) var failedCount = 0
  /// For each walk, all figures in the order of `figures`; NaN for a missing one.
  private var values: [Double] = []

  mutating func append(_ result: LabResult, pair: Int) {
    pairs.append(pair)
    if result.error != nil { failedCount += 1 }
    for figure in Self.figures {
      let value = result.figures[figure.name] ?? .nan
      values.append(value.isFinite ? value : .nan)
    }
  }

  /// The figure of all walks that have it, in the order of pairs.
  func values(of figure: WalkFigure) -> [Double] {
    guard let column = Self.column(of: figure) else { return [] }
    return stride(from: column, to: values.count, by: Self.figures.count).map { values[$0] }
      .filter { !$0.isNaN }
  }

  /// The place of a figure among `figures`.
  static func column(of figure: WalkFigure) -> Int? { figures.firstIndex { $0.name == figure.name } }

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

  /// Returns the value at a position; NaN if the walk lacks it.
  func value(at place: Int, column: Int) -> Double { values[place * Self.figures.count + column] }
}
