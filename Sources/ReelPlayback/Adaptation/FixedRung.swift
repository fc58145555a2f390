/// The highest rung at or under the cap, else the lowest; what transfers measure changes nothing.
///
/// Of rungs with the same bit rate the first is taken. Without a cap it is the highest.
package struct FixedRung: RungAdaptation {
  package init() {}

  package var estimatedBandwidth: Double? { nil }

  package mutating func choose(among candidates: [RungCandidate], _ state: AdaptationState) -> RungCandidate {
    precondition(!candidates.isEmpty, "no candidates")
    return candidates.allowed(by: state).highest ?? candidates[0]
  }

  package mutating func noteTransfer(_ sample: TransferSample) {}
}
