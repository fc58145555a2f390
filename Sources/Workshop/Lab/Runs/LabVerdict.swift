/// The pools of a group by their waits: which one waits shortest, and which one is worth its bytes.
///
/// Pools are chosen by the mean wait for the second frame, which counts each swipe. Sentences state the 95th percentile.
package struct LabVerdict {
  package static let delay = WalkFigures["second_frame.p95"]
  package static let mean = WalkFigures["second_frame.mean"]
  package static let median = WalkFigures["second_frame.p50"]
  package static let bytes = WalkFigures["bytes.fetched"]
  /// A share by which bytes may differ and still be as many.
  static let sameShare = 0.01
  /// A difference that no viewer notices, in milliseconds: less than a frame at 60 Hz.
  package static let unnoticed = 10.0
  /// The least number of pairs of walks whose interval is sure: of five pairs, all differ in the same direction by chance
  /// once in 16 times.
  package static let surePairCount = 6

  package let group: LabGroup
  /// The pools that are judged: they have a wait.
  package let pools: [LabPool]
  /// The pool that others are compared with: the reference of the group, or its first pool.
  package let reference: LabPool
  /// The pool with the shortest wait at p95.
  package let best: LabPool
  /// The pool that fetches least among those whose mean wait can't be told from the least one, or is longer by less than
  /// ``unnoticed``.
  package let advised: LabPool

  /// - Parameter isCandidate: Whether a pool is judged.
  /// - Returns: Nil without waits.
  package init?(_ group: LabGroup, among isCandidate: (LabPool) -> Bool = { _ in true }) {
    let pools = group.rows.filter { $0.mean(Self.delay) != nil }.map(\.pool).filter(isCandidate)
    func least(_ pools: [LabPool], _ figure: WalkFigure) -> LabPool? {
      pools.min { group.mean(figure, of: $0) < group.mean(figure, of: $1) }
    }
    guard let best = least(pools, Self.delay), let quickest = least(pools, Self.mean) else { return nil }
    (self.group, self.pools, self.best) = (group, pools, best)
    reference = group.reference.flatMap { pools.contains($0) ? $0 : nil } ?? pools[0]
    func isLonger(_ pool: LabPool, than other: LabPool, _ figure: WalkFigure) -> Bool {
      guard let found = group.difference(figure, of: pool, minus: other) else { return false }
      return (found.interval?.lower ?? found.mean) > Self.unnoticed
    }
    let equal = pools.filter { !isLonger($0, than: quickest, Self.mean) }
    // For as many bytes, the shorter wait.
    let bytes = { group.mean(Self.bytes, of: $0) }
    let limit = (equal.map(bytes).min() ?? 0) * (1 + Self.sameShare)
    let cheap = equal.filter { bytes($0) <= limit }
    let waits = { group.mean(Self.delay, of: $0) }
    let longest = (cheap.map(waits).min() ?? 0) + Self.unnoticed
    advised = least(cheap.filter { waits($0) <= longest }, Self.bytes) ?? best
  }

  /// The mean over the walks of a pool; 0 without one.
  package func mean(_ figure: WalkFigure, of pool: LabPool) -> Double {
    group.mean(figure, of: pool)
  }

  package func difference(
    _ figure: WalkFigure, of pool: LabPool, minus other: LabPool
  ) -> LabDifference.Figure? { group.difference(figure, of: pool, minus: other) }
}
