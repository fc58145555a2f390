/// Chooses the highest rung at or below the cap, or else the lowest, whatever transfers measure.
///
/// Of rungs with the same bit rate, it chooses the first. Without a cap, it chooses the highest.
package struct FixedRung: RungAdaptation {
  package init() {}

  package var estimatedBandwidth: Double? { nil }

  package mutating func choose(among candidates: [RungCandidate], _ state: AdaptationState) -> RungCandidate {
    precondition(!candidates.isEmpty, "no candidates")
    return candidates.allowed(by: state).highest ?? candidates[0]
  }

  package mutating func noteTransfer(_ sample: TransferSample) {}
}
