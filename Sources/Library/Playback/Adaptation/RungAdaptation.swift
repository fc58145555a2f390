/// Decides at each segment boundary which rung to load the next segment from.
///
/// A value without I/O or clock: it knows only what it is told.
package protocol RungAdaptation: Sendable {
  /// Chooses the rung of the next segment.
  ///
  /// - Parameter candidates: Never empty; sorted by rising bit rate, without rungs under a penalty.
  /// - Returns: One of `candidates`.
  mutating func choose(among candidates: [RungCandidate], _ state: AdaptationState) -> RungCandidate

  /// Adds a measurement of a transfer. May be called during a transfer too, with what has arrived since the
  /// last call.
  mutating func noteTransfer(_ sample: TransferSample)

  /// In bits per second; nil until something is known.
  var estimatedBandwidth: Double? { get }
}
