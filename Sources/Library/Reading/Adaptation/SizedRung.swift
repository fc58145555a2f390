package import ReelCore
internal import ReelFFmpeg

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
