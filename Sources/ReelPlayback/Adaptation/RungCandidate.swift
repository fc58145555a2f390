package import ReelCore

/// What an adaptation may choose among: one rung of the period's ladder.
package struct RungCandidate: Sendable, Hashable {
  /// Its place in the ladder, which rises in bit rate.
  package var index: Int
  package var id: String
  /// The peak, as HLS's BANDWIDTH and DASH's @bandwidth state it; 0 where it is unknown.
  package var bitsPerSecond: Int
  package var averageBitsPerSecond: Int?
  /// Of the frames as they are stored.
  package var size: PixelSize?

  package init(
    index: Int, id: String, bitsPerSecond: Int, averageBitsPerSecond: Int? = nil, size: PixelSize? = nil
  ) {
    self.index = index
    self.id = id
    self.bitsPerSecond = bitsPerSecond
    self.averageBitsPerSecond = averageBitsPerSecond
    self.size = size
  }

  /// What a link has to carry, in bits per second: the peak, the average where no peak is known, else 0.
  package var demand: Int { bitsPerSecond > 0 ? bitsPerSecond : max(averageBitsPerSecond ?? 0, 0) }
}

extension [RungCandidate] {
  /// Those that the caps of `state` allow, in the same order; never empty where `self` is not.
  ///
  /// Rungs with more lines than the maximum are left out, or where all have more, those with more than the least.
  /// Of the rest those above the bandwidth cap are left out, or where all are above it, all but the lowest.
  func allowed(by state: AdaptationState) -> [RungCandidate] {
    var allowed = self
    if let maximum = state.maximumHeight {
      allowed = filter { ($0.size?.height ?? 0) <= maximum }
      if allowed.isEmpty {
        let least = compactMap { $0.size?.height }.min()
        allowed = filter { $0.size?.height == least }
      }
    }
    guard let cap = state.bandwidthCap else { return allowed }
    let affordable = allowed.filter { $0.demand <= cap }
    return affordable.isEmpty ? Array(allowed.lowest.map { [$0] } ?? []) : affordable
  }

  /// The one with the least demand; of equals the first.
  var lowest: RungCandidate? { self.min { $0.demand < $1.demand } }

  /// The one with the largest demand; of equals the first.
  var highest: RungCandidate? { self.max { $0.demand < $1.demand } }
}
