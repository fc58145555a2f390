internal import ReelCore

/// Policies that real decoding ranks in another order than the arithmetic of chunks does, and why.
///
/// Compared are groups of runs that differ only in policy, link and seed. A policy's place is that of its mean over the
/// runs that all policies of the group have at both levels.
package struct RankingDifference: Sendable, Hashable {
  /// What the runs of a group have in common.
  package struct Group: Sendable, Hashable {
    package var feed: String
    package var linkGroup: String
    package var viewer: String
    package var device: String
    package var slotCount: Int
  }

  /// A policy in the order of a level.
  package struct Place: Sendable, Hashable {
    package let policy: String
    package let mean: Double
  }

  /// Two policies in another order.
  package struct Reversal: Sendable, Hashable {
    /// The policy that is better by chunks and worse with decoding.
    package let policy: Place
    /// The policy that is worse by chunks and better with decoding.
    package let other: Place
    /// The mean of `policy` with decoding.
    package let decodedMean: Double
    /// The mean of `other` with decoding.
    package let otherDecodedMean: Double
    /// The largest first within a unit; empty if the figures do not explain it.
    package let causes: [Cause]
  }

  /// A figure that decoding raises more, or lowers less, for one policy than for the other.
  package struct Cause: Sendable, Hashable {
    package let figure: LabResult.Figure
    /// For `Reversal.policy`, the mean with decoding less that by chunks.
    package let change: Double
    /// The same for `Reversal.other`; less than `change`.
    package let otherChange: Double

    package init(figure: LabResult.Figure, change: Double, otherChange: Double) {
      self.figure = figure
      self.change = change
      self.otherChange = otherChange
    }

    /// The difference of the two changes.
    package var excess: Double { change - otherChange }
  }

  package let group: Group
  package let figure: LabResult.Figure
  /// The best policy first. Equal means are in the order of names.
  package let chunk: [Place]
  package let decoded: [Place]
  /// Never empty; in the order by chunks.
  package let reversals: [Reversal]

  /// The figures that are ranked. For each, lower is better.
  package static let figures: [LabResult.Figure] = [.secondFrameP95, .rebufferingRatio, .wastedByteCount]

  /// The differences of all groups, in the order in which `results` begin with them.
  ///
  /// Results without a figure do not take part in its ranking.
  package static func all(in results: [LabResult]) -> [RankingDifference] {
    var groups: [Group] = []
    var members: [Group: [LabResult]] = [:]
    for result in results {
      let group = Group(result.run)
      if members[group] == nil { groups.append(group) }
      members[group, default: []].append(result)
    }
    return groups.flatMap { group in
      figures.compactMap { RankingDifference(group, $0, members[group] ?? []) }
    }
  }

  // MARK: - Private

  /// Nil if the order is the same.
  private init?(_ group: Group, _ figure: LabResult.Figure, _ results: [LabResult]) {
    let paired = PairedResults(results.filter { $0.figures[figure] != nil })
    let chunk = paired.ranking(by: figure, .chunk)
    let decoded = paired.ranking(by: figure, .decoded)
    let after = Dictionary(decoded.map { ($0.policy, $0.mean) }) { first, _ in first }
    var reversals: [Reversal] = []
    for (place, ahead) in chunk.enumerated() {
      for behind in chunk[(place + 1)...] where behind.mean > ahead.mean {
        guard let own = after[ahead.policy], let other = after[behind.policy], own > other else { continue }
        reversals.append(
          Reversal(
            policy: ahead, other: behind, decodedMean: own, otherDecodedMean: other,
            causes: Self.causes(of: figure, ahead.policy, behind.policy, paired)))
      }
    }
    guard !reversals.isEmpty else { return nil }
    (self.group, self.figure, self.chunk, self.decoded) = (group, figure, chunk, decoded)
    self.reversals = reversals
  }

  /// Figures that chunks leave out or change, by the figure that they have an effect on.
  private static func causes(
    of figure: LabResult.Figure, _ policy: String, _ other: String, _ results: PairedResults
  ) -> [Cause] {
    let candidates: [LabResult.Figure] =
      switch figure {
      case .secondFrameP95: [.meanBitRate] + LabResult.Figure.waits
      case .wastedByteCount: [.fetchedByteCount, .meanBitRate, .abandonedSwipeCount]
      default: [.meanBitRate, .stallCount] + LabResult.Figure.waits
      }
    let causes = candidates.compactMap { candidate -> Cause? in
      guard let own = results.change(of: candidate, policy),
        let others = results.change(of: candidate, other)
      else { return nil }
      let cause = Cause(figure: candidate, change: own, otherChange: others)
      return cause.excess >= candidate.noticeable ? cause : nil
    }
    let (waits, others) = (causes.filter { $0.figure.isWait }, causes.filter { !$0.figure.isWait })
    return others + waits.sorted { $0.excess > $1.excess }.prefix(3)
  }
}

extension RankingDifference.Group {
  init(_ run: LabRun) {
    (feed, linkGroup, viewer) = (run.feed, run.linkGroup, run.viewer)
    (device, slotCount) = (run.device, run.slotCount)
  }
}

/// The results of those runs that all policies have at both levels.
private struct PairedResults {
  private struct Run: Hashable {
    let link: String
    let seed: UInt64
  }

  private struct Key: Hashable {
    let policy: String
    let level: LabRun.Level
  }

  private let policies: [String]
  /// In the same order of runs for each key.
  private var results: [Key: [LabResult]] = [:]

  init(_ all: [LabResult]) {
    var byRun: [Key: [Run: LabResult]] = [:]
    for result in all {
      let key = Key(policy: result.run.policy, level: result.run.level)
      byRun[key, default: [:]][Run(link: result.run.link, seed: result.run.seed)] = result
    }
    policies = Set(all.map(\.run.policy)).sorted().filter { policy in
      LabRun.Level.allCases.allSatisfy { byRun[Key(policy: policy, level: $0)] != nil }
    }
    let keys = policies.flatMap { policy in LabRun.Level.allCases.map { Key(policy: policy, level: $0) } }
    var seen: Set<Run> = []
    for result in all {
      let run = Run(link: result.run.link, seed: result.run.seed)
      guard seen.insert(run).inserted, keys.allSatisfy({ byRun[$0]?[run] != nil }) else { continue }
      for key in keys {
        if let member = byRun[key]?[run] { results[key, default: []].append(member) }
      }
    }
  }

  func mean(of figure: LabResult.Figure, _ policy: String, _ level: LabRun.Level) -> Double? {
    let values = (results[Key(policy: policy, level: level)] ?? []).compactMap { $0.figures[figure] }
    return values.isEmpty ? nil : values.reduce(0, +) / Double(values.count)
  }

  /// The mean with decoding less that by chunks; nil if decoding does not measure it. Chunks have no waits for what they
  /// leave out.
  func change(of figure: LabResult.Figure, _ policy: String) -> Double? {
    guard let decoded = mean(of: figure, policy, .decoded) else { return nil }
    guard let chunk = mean(of: figure, policy, .chunk) else { return figure.isWait ? decoded : nil }
    return decoded - chunk
  }

  func ranking(by figure: LabResult.Figure, _ level: LabRun.Level) -> [RankingDifference.Place] {
    policies.compactMap { policy in
      mean(of: figure, policy, level).map { RankingDifference.Place(policy: policy, mean: $0) }
    }.sorted { ($0.mean, $0.policy) < ($1.mean, $1.policy) }
  }
}

// MARK: - Text

extension RankingDifference {
  /// A line for each reversal: the policies, their means at both levels, and the causes.
  package var lines: [String] {
    reversals.map { reversal in
      let (policy, other) = (reversal.policy.policy, reversal.other.policy)
      let causes = reversal.causes.map { $0.text(policy, other) }
      return "\(figure.rankedName): \(policy) before \(other) by chunks "
        + "(\(figure.text(reversal.policy.mean)), \(figure.text(reversal.other.mean))); "
        + "with decoding \(other) is ahead "
        + "(\(figure.text(reversal.otherDecodedMean)), \(figure.text(reversal.decodedMean))): "
        + (causes.isEmpty ? "no measured part explains it" : causes.joined(separator: ", "))
    }
  }
}

extension RankingDifference.Group: CustomStringConvertible {
  package var description: String {
    "\(feed), \(linkGroup), \(viewer), \(device), \(slotCount == 1 ? "1 slot" : "\(slotCount) slots")"
  }
}

extension RankingDifference.Cause {
  fileprivate func text(_ policy: String, _ other: String) -> String {
    let value = figure.text(excess)
    // By chunks, the other policy pays for what decoding spares it.
    let isSaving = otherChange < 0 && -otherChange > change
    switch figure {
    case .meanBitRate: return "with decoding, the mean bit rate of \(policy) rises by \(value) more"
    case .fetchedByteCount:
      return isSaving
        ? "\(other) fetches \(value) less because swipes cancel downloads" : "\(policy) fetches \(value) more"
    case .stallCount:
      return isSaving
        ? "\(other) is spared \(value) stalls because segments play while they arrive"
        : "\(policy) has \(value) more stalls"
    case .abandonedSwipeCount:
      return isSaving
        ? "\(other) has \(value) fewer abandoned swipes" : "\(policy) has \(value) more abandoned swipes"
    case .waitTransfer where isSaving:
      return "\(other) is spared \(value) per swipe because frames are shown before their segment is complete"
    case .waitPreparing where isSaving:
      return "\(other) is spared \(value) per swipe because downloads run side by side and are cancelled"
    default: return "\(policy) waits \(value) longer per swipe \(figure.waitName)"
    }
  }
}

extension LabResult.Figure {
  fileprivate var isWait: Bool { Self.waits.contains(self) }

  /// A difference from which on it can be a cause.
  fileprivate var noticeable: Double {
    switch self {
    case .meanBitRate, .fetchedByteCount: 10_000
    case .stallCount, .abandonedSwipeCount: 0.1
    default: 1
    }
  }

  fileprivate var rankedName: String {
    switch self {
    case .secondFrameP95: "second frame, p95"
    case .rebufferingRatio: "rebuffering"
    case .wastedByteCount: "wasted bytes"
    default: rawValue
    }
  }

  fileprivate var waitName: String {
    switch self {
    case .waitManifest: "for manifests"
    case .waitInitialization: "for initialization segments"
    case .waitAnswer: "for round trips and connections"
    case .waitTransfer: "for the bytes of segments"
    case .waitDecode: "for decoding"
    case .waitPreparing: "for other downloads"
    default: "from the first frame to the second"
    }
  }

  fileprivate func text(_ value: Double) -> String {
    switch self {
    case .rebufferingRatio: WalkValue.share(value).description
    case .wastedByteCount, .fetchedByteCount: WalkValue.size(Int64(value.rounded())).description
    case .meanBitRate: WalkValue.bitRate(value).description
    case .stallCount, .abandonedSwipeCount: value.formatted(places: 1)
    default: "\(value.formatted(places: value.magnitude < 10 ? 1 : 0)) ms"
    }
  }
}
