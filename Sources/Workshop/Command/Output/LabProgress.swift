import ReelCore

/// How far `reel lab` is, for the line on a terminal.
final class LabProgress: Sendable {
  private struct State {
    var total = 0
    var done = 0
    var failed = 0
    /// The runs that have ended since `began`.
    var ended = 0
    var began = ContinuousClock.now
  }

  private let state = Locked(State())

  /// - Parameter done: The runs that were done before.
  func begin(total: Int, done: Int) {
    state.withLock { $0 = State(total: total, done: done) }
  }

  /// A run has ended.
  func note(hasFailed: Bool) {
    state.withLock { state in
      state.ended += 1
      if hasFailed { state.failed += 1 } else { state.done += 1 }
    }
  }

  /// `120 of 400 runs, 2 failed, about 3 min left`.
  var text: String {
    let now = state.withLock { $0 }
    guard now.total > 0 else { return "" }
    var text = "\(now.done) of \(now.total) runs"
    if now.failed > 0 { text += ", \(now.failed) failed" }
    let seconds = (ContinuousClock.now - now.began) / .seconds(1)
    let rest = now.total - now.done - now.failed
    if now.ended > 0, rest > 0 {
      text += ", about \(Self.time(seconds / Double(now.ended) * Double(rest))) left"
    }
    return text
  }

  /// A time for a person: `40 s`, `12 min`, `3.5 h`.
  static func time(_ seconds: Double) -> String {
    switch seconds {
    case ..<100: "\(max(1, seconds).formatted(places: 0)) s"
    case ..<6000: "\((seconds / 60).formatted(places: 0)) min"
    case ..<360_000: "\((seconds / 3600).formatted(places: 1)) h"
    default: "\((seconds / 86_400).formatted(places: 0)) days"
    }
  }
}
