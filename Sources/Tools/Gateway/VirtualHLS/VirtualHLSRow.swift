import ReelManifest

/// A rung through all periods.
struct VirtualHLSRow: Sendable {
  /// The track in the period that sets the pattern: its language, its rank.
  var anchor: VirtualHLSCandidate
  /// The rung in each period; nil if there is none of its kind.
  var items: [VirtualHLSCandidate?]
}
