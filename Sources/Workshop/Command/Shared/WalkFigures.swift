import ReelCore
import ReelLab

extension WalkSettings {
  /// The pool in words: `adaptive with 3 players`.
  var pool: String { "\(policy) with \(slotCount.counted("player"))" }
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
