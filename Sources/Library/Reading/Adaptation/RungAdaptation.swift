package import ReelCore

/// Chooses the rung of the next segment at each segment boundary.
///
/// A value without I/O or clock: all its information comes from its callers.
package protocol RungAdaptation: Sendable {
  /// Chooses the rung of the next segment.
  ///
  /// - Parameter candidates: Never empty; sorted by rising bit rate, without rungs under a penalty.
  /// - Returns: One of `candidates`.
  mutating func choose(among candidates: [RungCandidate], _ state: AdaptationState) -> RungCandidate

  /// Adds a measurement of a transfer. May also be called during a transfer, with the bytes that have arrived
  /// since the last call.
  mutating func recordTransfer(_ sample: TransferSample)

  /// The estimate in bits per second; nil until something is known.
  var estimatedBandwidth: Double? { get }
}

/// A rung of the period's ladder that an adaptation may choose.
package struct RungCandidate: Sendable, Hashable {
  /// The index in the ladder, which is sorted by rising bit rate.
  package var index: Int
  package var id: String
  /// The peak in bits per second, as stated by HLS's BANDWIDTH and DASH's @bandwidth; 0 if unknown.
  package var bitsPerSecond: Int
  package var averageBitsPerSecond: Int?
  /// The size of the frames as stored.
  package var size: PixelSize?
  /// True for a playlist of I-frames.
  package var holdsKeyFramesOnly = false

  package init(
    index: Int, id: String, bitsPerSecond: Int, averageBitsPerSecond: Int? = nil, size: PixelSize? = nil
  ) {
    self.index = index
    self.id = id
    self.bitsPerSecond = bitsPerSecond
    self.averageBitsPerSecond = averageBitsPerSecond
    self.size = size
  }

  /// The bandwidth that the rung needs, in bits per second: the peak, or else the average, or else 0.
  package var demand: Int { bitsPerSecond > 0 ? bitsPerSecond : max(averageBitsPerSecond ?? 0, 0) }
}

extension [RungCandidate] {
  /// Returns the candidates that the caps of `state` allow, in the same order; never empty unless `self` is.
  ///
  /// Rungs that are higher or wider than the maximum are excluded; if all are, those that are higher than the lowest.
  /// Of the rest, rungs above the bandwidth cap are excluded; if all are above it, all but the lowest.
  func allowed(by state: AdaptationState) -> [RungCandidate] {
    var allowed = self
    if state.maximumHeight != nil || state.maximumWidth != nil {
      let (height, width) = (state.maximumHeight ?? .max, state.maximumWidth ?? .max)
      allowed = filter { ($0.size?.height ?? 0) <= height && ($0.size?.width ?? 0) <= width }
      if allowed.isEmpty {
        let least = compactMap { $0.size?.height }.min()
        allowed = filter { $0.size?.height == least }
      }
    }
    guard let cap = state.peakBitRate else { return allowed }
    let affordable = allowed.filter { $0.demand <= cap }
    return affordable.isEmpty ? Array(allowed.lowest.map { [$0] } ?? []) : affordable
  }

  /// The candidate with the lowest demand; of equals, the first.
  var lowest: RungCandidate? { self.min { $0.demand < $1.demand } }

  /// The candidate with the highest demand; of equals, the first.
  var highest: RungCandidate? { self.max { $0.demand < $1.demand } }
}

/// Chooses the highest rung at or below the cap, or else the lowest, regardless of transfer measurements.
///
/// Of rungs with the same bit rate, it chooses the first. Without a cap, it chooses the highest.
package struct FixedRung: RungAdaptation {
  package init() {}

  package var estimatedBandwidth: Double? { nil }

  package mutating func choose(among candidates: [RungCandidate], _ state: AdaptationState) -> RungCandidate {
    precondition(!candidates.isEmpty, "no candidates")
    return candidates.allowed(by: state).highest ?? candidates[0]
  }

  package mutating func recordTransfer(_ sample: TransferSample) {}
}

/// Chooses the cheapest rung whose frames need not be enlarged to be shown at a size, whatever the bandwidth cap; if there is none,
/// the largest one. A playlist of I-frames is preferred if its frames are large enough and no larger than those.
///
/// If the manifest states no sizes, it chooses as `FixedRung` does.
package struct SizedRung: RungAdaptation {
  private let size: SizeLimit

  package init(size: SizeLimit) { self.size = size }

  package var estimatedBandwidth: Double? { nil }

  package mutating func choose(among candidates: [RungCandidate], _ state: AdaptationState) -> RungCandidate {
    precondition(!candidates.isEmpty, "no candidates")
    var uncapped = state
    uncapped.peakBitRate = nil
    let iFrames = candidates.filter(\.holdsKeyFramesOnly).filter { $0.size.map(size.isReached) ?? false }
    let others = candidates.filter { !$0.holdsKeyFramesOnly }
    let chosen = choose(among: others.isEmpty ? candidates : others, state, uncapped: uncapped)
    let most = chosen.size?.pixelCount ?? 0
    let fewer = iFrames.allowed(by: uncapped).filter { $0.size.map { $0.pixelCount <= most } ?? false }
    return fewer.min { ($0.size?.pixelCount ?? 0, $0.demand) < ($1.size?.pixelCount ?? 0, $1.demand) }
      ?? chosen
  }

  package mutating func recordTransfer(_ sample: TransferSample) {}

  // MARK: - Private

  private func choose(
    among candidates: [RungCandidate], _ state: AdaptationState, uncapped: AdaptationState
  ) -> RungCandidate {
    let allowed = candidates.allowed(by: uncapped)
    if let enough = allowed.filter({ $0.size.map(size.isReached) ?? false }).lowest { return enough }
    let most = allowed.compactMap { $0.size?.pixelCount }.max()
    if let most, let largest = allowed.filter({ $0.size?.pixelCount == most }).lowest { return largest }
    var fixed = FixedRung()
    return fixed.choose(among: candidates, state)
  }
}

extension PixelSize {
  fileprivate var pixelCount: Int { width * height }
}
