/// A rung through all periods.
struct VirtualHLSRow: Sendable {
  /// What it is in the period that set the pattern: its language, its rank.
  var anchor: VirtualHLSCandidate
  /// What goes on for it in each period; nil where there is nothing of its kind.
  var items: [VirtualHLSCandidate?]
}
