import ArgumentParser
import ReelCore
import ReelLab
import ReelPool

/// The options of several visits to a feed, with a cache on a modelled disk.
struct VisitOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Simulate a cache on disk of this size: media is fresh for a day, a manifest costs a round trip each time. Default: 0, none.",
      valueName: "size"))
  var simulatedCache: String?

  @Option(
    help: ArgumentHelp(
      "Repeat the walk with a new pool and what the simulated cache has kept. Default: 1.", valueName: "n"))
  var visits: Int?

  @Option(
    help: ArgumentHelp(
      "The time from one visit to the next, as 30min, 12h or 1d. Default: 1h.", valueName: "time"))
  var between: String?

  /// The options that are given, by name.
  var given: [String] {
    [
      ("--between", between != nil), ("--simulated-cache", simulatedCache != nil),
      ("--visits", visits != nil),
    ].filter(\.1).map(\.0)
  }

  /// Returns nil for one visit without a cache.
  func plan() throws(ReelError) -> VisitPlan? {
    try VisitPlan.plan(cache: simulatedCache, visits: visits, between: between)
  }
}

extension Table {
  /// The figures of visits: a row for each visit, and one without the cache. A single pool is not named.
  static func visits(_ pools: [(name: String, visits: ReturnVisits)], indentation: Int = 0) -> Table {
    let names = pools.count > 1 ? ["pool"] : []
    var table = Table(names.map { _ in .left } + [.left], indentation: indentation)
    table.add(
      names + [
        "visit", "first frame p50", "p95", "second frame p50", "p95", "hits", "stalls", "from disk",
        "network", "on disk",
      ])
    for (name, visits) in pools {
      var rows = visits.visits.enumerated().map { ("\($0 + 1)", $1) }
      if let without = visits.without { rows.append(("no cache", without)) }
      for (visit, figures) in rows {
        table.add((names.isEmpty ? [] : [name]) + [visit] + cells(figures))
      }
    }
    return table
  }

  private static func cells(_ figures: VisitFigures) -> [String] {
    func text(_ name: VisitFigures.Name, _ text: (Double) -> String) -> String {
      figures[name].map(text) ?? "-"
    }
    func time(_ name: VisitFigures.Name) -> String { text(name) { LabAnswer.time($0) } }
    func size(_ name: VisitFigures.Name) -> String {
      text(name) { ByteSize(byteCount: Int($0.rounded())).description }
    }
    return [
      time(.firstMedian), time(.first95), time(.secondMedian), time(.second95),
      text(.hits) { "\(($0 * 100).formatted(places: 1)) %" }, text(.stalls) { $0.formatted(places: 1) },
      size(.disk), size(.network), size(.stored),
    ]
  }
}
