package import ReelCore
package import ReelModels
internal import ReelPool

/// Visits of one walk, with a cache on a modelled disk or without: `--simulated-cache 200MB --visits 3 --between 1d`.
package struct VisitPlan: Sendable, Hashable {
  /// The size of the cache in bytes; 0 for none.
  package var byteLimit: Int64
  package var count: Int
  /// The time from the end of a visit to the next.
  package var between: Duration

  private static let countLimit = 100
  private static let betweenLimit = 365 * 86_400.0
  private static let usualBetween = Duration.seconds(3600)

  package init(byteLimit: Int64, count: Int, between: Duration = .seconds(3600)) {
    (self.byteLimit, self.count, self.between) = (byteLimit, count, between)
  }

  /// Reads the values of options, or of the fields of a lab.
  ///
  /// - Parameter names: Those of the three, for errors.
  /// - Returns: Nil for one visit without a cache.
  /// - Throws: `ReelError` of kind `usage`.
  package static func plan(
    cache: String?, visits: Int?, between: String?,
    names: [String] = ["--simulated-cache", "--visits", "--between"]
  ) throws(ReelError) -> VisitPlan? {
    var byteLimit: Int64 = 0
    if let cache {
      do throws(ReelError) { byteLimit = Int64(try ByteSize(parsing: cache).byteCount) } catch {
        throw ReelError(.usage, "\(names[0]): \(error.reason)", advice: error.advice)
      }
    }
    let count = visits ?? 1
    guard (1...countLimit).contains(count) else {
      throw ReelError(.usage, "\(names[1]) must be from 1 to \(countLimit), not \(count)")
    }
    var pause = usualBetween
    if let between {
      guard count > 1 else { throw ReelError(.usage, "\(names[2]) requires \(names[1]) of 2 or more") }
      guard let seconds = TimeText.seconds(between, needsUnit: true), (0...betweenLimit).contains(seconds)
      else {
        throw ReelError(
          .usage, "\(names[2]): \"\(between)\" is not a time from 0 to 365 days with a unit",
          advice: "write 30min, 12h or 1d")
      }
      pause = .seconds(seconds)
    }
    return byteLimit == 0 && count == 1
      ? nil : VisitPlan(byteLimit: byteLimit, count: count, between: pause)
  }

  /// Throws for a model of a player that keeps nothing on disk.
  package func check(_ model: PlayerModel) throws(ReelError) {
    guard byteLimit > 0, !model.stores else { return }
    throw ReelError(
      .usage, "\(model.name) keeps nothing on disk, so it has no use for a simulated cache",
      advice: "its model has \"cache\": false and no preload.disk")
  }
}

/// The figures of a visit, or their means over several walks: waits, and where the bytes came from.
package struct VisitFigures: Sendable, Hashable, Codable {
  package enum Name: String, Sendable, CaseIterable {
    case firstMedian = "first_frame_p50_ms"
    case first95 = "first_frame_p95_ms"
    case secondMedian = "second_frame_p50_ms"
    case second95 = "second_frame_p95_ms"
    case hits = "hit_ratio"
    case stalls
    case stalled = "stalled_ms"
    /// The bytes that were read from the disk, and those that crossed the network.
    case disk = "disk_bytes"
    case network = "network_bytes"
    /// The bytes on disk at the end of the visit.
    case stored = "stored_bytes"

    /// The figure of walks that it is; nil for bytes.
    fileprivate var figure: String? {
      switch self {
      case .firstMedian: "first_frame.p50"
      case .first95: "first_frame.p95"
      case .secondMedian: "second_frame.p50"
      case .second95: "second_frame.p95"
      case .hits: "hit.ratio"
      case .stalls: "stalls.count"
      case .stalled: "stalls.total"
      case .disk, .network, .stored: nil
      }
    }
  }

  private var values: [String: Double] = [:]

  package init(_ report: WalkReport) {
    let totals = report.totals
    for name in Name.allCases {
      values[name.rawValue] = name.figure.flatMap { WalkFigures[$0].value(in: totals)?.scalar }
    }
    values[Name.disk.rawValue] = Double(report.traffic.diskByteCount)
    values[Name.network.rawValue] = Double(report.traffic.networkByteCount)
    values[Name.stored.rawValue] = Double(report.traffic.storedByteCount)
  }

  /// The means over the walks that have a figure.
  init(meansOf walks: [VisitFigures]) {
    for name in Name.allCases {
      let found = walks.compactMap { $0[name] }
      values[name.rawValue] = found.isEmpty ? nil : PairedBootstrap.mean(of: found)
    }
  }

  package init(from decoder: any Decoder) throws {
    values = try decoder.singleValueContainer().decode([String: Double].self)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(values)
  }

  /// Nil if the visit lacks the figure.
  package subscript(name: Name) -> Double? { values[name.rawValue] }
}

/// The visits of a walk, and the same walk without the cache.
package struct ReturnVisits: Sendable, Hashable, Codable {
  package let visits: [VisitFigures]
  /// Nil if no cache was simulated.
  package let without: VisitFigures?

  private enum CodingKeys: String, CodingKey {
    case visits
    case without = "without_cache"
  }

  init(_ reports: [WalkReport], without: WalkReport?) {
    visits = reports.map(VisitFigures.init)
    self.without = without.map(VisitFigures.init)
  }

  package init(meansOf walks: [ReturnVisits]) {
    visits = (walks.first?.visits.indices ?? 0..<0).map { place in
      VisitFigures(meansOf: walks.compactMap { $0.visits.indices.contains(place) ? $0.visits[place] : nil })
    }
    let without = walks.compactMap(\.without)
    self.without = without.isEmpty ? nil : VisitFigures(meansOf: without)
  }

  /// What the cache saves of a figure in a later visit, by mean; of the only visit, if there is one.
  package func saved(_ name: VisitFigures.Name) -> Double? {
    let later = (visits.count > 1 ? visits.dropFirst() : visits[...]).compactMap { $0[name] }
    guard let without = without?[name], !later.isEmpty else { return nil }
    return without - PairedBootstrap.mean(of: later)
  }

  /// The bytes that the first visit fetches more than one without a cache.
  package var extraByteCount: Double? {
    guard let first = visits.first?[.network], let without = without?[.network] else { return nil }
    return first - without
  }

  package var storedByteCount: Double { visits.compactMap { $0[.stored] }.max() ?? 0 }

  /// What the cache saves and costs, for JSON; nil without one.
  package var cache: Cache? { without == nil ? nil : Cache(of: self) }

  package struct Cache: Encodable, Sendable {
    let of: ReturnVisits

    package func encode(to encoder: any Encoder) throws {
      let saved: JSONFields = [
        "first_frame_p50_ms": of.saved(.firstMedian), "first_frame_p95_ms": of.saved(.first95),
        "second_frame_p50_ms": of.saved(.secondMedian), "second_frame_p95_ms": of.saved(.second95),
        "network_bytes": of.saved(.network),
      ]
      try encoder.encode([
        "without_cache": of.without, "saved": saved, "extra_network_bytes": of.extraByteCount,
        "stored_bytes": of.storedByteCount,
      ])
    }
  }
}

extension VisitPlan {
  /// Whether a cache is worth it, with what it saves and costs, as a sentence; the intervals are those over several walks.
  package func verdict(_ walks: [ReturnVisits]) -> String {
    let mean = ReturnVisits(meansOf: walks)
    guard byteLimit > 0 else {
      let byteCount = mean.visits.first?[.network] ?? 0
      return "Without a cache, each of \(count.counted("visit")) fetches \(Self.size(byteCount)) again."
    }
    let times = Self.waits.compactMap { name, place -> String? in
      Self.saved(name, walks).map { "\(LabAnswer.time($0.mean, $0.interval)) at \(place)" }
    }
    let savings = LabAnswer.list(times + ["\(Self.size(mean.saved(.network) ?? 0)) of the network"])
    let extra = mean.extraByteCount ?? 0
    return "A cache of \(Self.size(Double(byteLimit))) is \(isWorth(walks) ? "" : "not ")worth it: "
      + "it saves \(savings) in \(count > 1 ? "each later visit" : "the visit"), "
      + "for \(Self.size(mean.storedByteCount)) on disk and "
      + "\(Self.size(extra.magnitude)) \(extra < 0 ? "less" : "more") of the network in the first visit."
  }

  /// True if a viewer notices what the cache saves of the waits, or if it saves more than 1 % of the bytes.
  package func isWorth(_ walks: [ReturnVisits]) -> Bool {
    let isNoticed = Self.waits.contains { name, _ in
      Self.saved(name, walks).map { ($0.interval?.lower ?? $0.mean) > LabVerdict.unnoticed } ?? false
    }
    let mean = ReturnVisits(meansOf: walks)
    let isLess = mean.saved(.network) ?? 0 > (mean.without?[.network] ?? 0) * LabVerdict.sameShare
    return byteLimit > 0 && (isNoticed || isLess)
  }

  private static let waits: [(VisitFigures.Name, String)] = [(.secondMedian, "p50"), (.second95, "p95")]

  private static func saved(
    _ name: VisitFigures.Name, _ walks: [ReturnVisits]
  ) -> (mean: Double, interval: PairedBootstrap.Interval?)? {
    let values = walks.compactMap { $0.saved(name) }
    return values.isEmpty
      ? nil : (PairedBootstrap.mean(of: values), PairedBootstrap.interval(of: values))
  }

  private static func size(_ byteCount: Double) -> String {
    (byteCount < 0 ? "−" : "") + ByteSize(byteCount: Int(byteCount.magnitude.rounded())).description
  }
}
