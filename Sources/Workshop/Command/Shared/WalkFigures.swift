import ReelCore
import ReelLab
import ReelPool
import ReelSimulation

extension WalkSettings {
  /// The pool in words: `adaptive with 3 players`.
  var pool: String { "\(policy) with \(slotCount.counted("player"))" }

  /// The link and what is modelled of it: `lte (12 Mbit/s, 70 ms; slow start, TLS, DNS)`. Nil for the real network.
  var linkWords: String? {
    link.map { link in linkSpec.map { "\(link) (\($0); \($0.modelledWords))" } ?? link }
  }

  /// The moment from which waits count.
  var waitWords: String {
    settle == .zero
      ? "waits from the end of the drag"
      : "waits from the settle, \(DurationText.readable(settle)) after the drag"
  }

  /// Whose players they are, before their number and policy: empty for a modelled player, which its policy names.
  var ownerWords: String { player == nil ? "Reel's own pool, " : "" }
}

extension WalkReport {
  /// The pool in words, after the link if the label names one: `adaptive with 3 players`.
  var poolName: String {
    let short = "\(settings.slotCount) \(settings.policy)"
    return label.hasSuffix(short) ? "\(label.dropLast(short.count))\(settings.pool)" : label
  }
}

extension Figure {
  /// The text of a figure with its unit; nil if the run lacks it.
  func text(in run: Run, as kind: WalkValue.Kind? = nil) -> String? { value(in: run, as: kind)?.description }
}

extension WalkTotals {
  /// The text of the figure with this name; a dash if the walk lacks it.
  func text(_ name: String, as kind: WalkValue.Kind? = nil) -> String {
    WalkFigures[name].text(in: self, as: kind) ?? "-"
  }
}
