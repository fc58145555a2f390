/// Decides, at each segment boundary, which rung the next segment is loaded from.
///
/// A value without I/O and clock: what it knows it was told.
package protocol RungAdaptation: Sendable {
  /// The rung of the next segment.
  ///
  /// - Parameter candidates: Never empty; sorted by rising bit rate; those under a penalty are left out already.
  /// - Returns: One of `candidates`.
  mutating func choose(among candidates: [RungCandidate], _ state: AdaptationState) -> RungCandidate

  /// Takes in what a transfer measured. It may be called during a transfer too, with what has come since the last
  /// call.
  mutating func noteTransfer(_ sample: TransferSample)

  /// In bits per second; nil before anything is known.
  var estimatedBandwidth: Double? { get }
}
