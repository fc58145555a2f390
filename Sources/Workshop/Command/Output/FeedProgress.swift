import ReelCore
import ReelPool
import ReelReplay

/// How far `reel feed` is, for the line on a terminal.
final class FeedProgress: Sendable {
  private struct State {
    var label = ""
    var walkCount = 0
    /// How long a walk lasts by its own clock, and its swipes.
    var length = Duration.zero
    var swipeCount = 0
    /// The time that each walk has reached, and its swipes so far.
    var times: [Duration] = []
    var swipes: [Int] = []
    /// The items that are opened again after a walk; 0 while a walk goes on.
    var checkCount = 0
    var began = ContinuousClock.now
  }

  private let state = Locked(State())

  /// Names a step before the walks, such as reading the feed.
  func prepare(_ label: String) { state.withLock { $0.label = label } }

  /// The walks begin, one after the other or side by side.
  func begin(_ labels: [String], plan: WalkPlan) {
    state.withLock { state in
      state.label = labels.count == 1 ? labels[0] : "\(labels.count) walks"
      state.walkCount = labels.count
      state.times = Array(repeating: .zero, count: labels.count)
      state.swipes = Array(repeating: 0, count: labels.count)
      state.swipeCount = plan.swipeCount
      state.length = plan.duration + WalkPlan.settleTime * plan.swipeCount
      state.began = ContinuousClock.now
    }
  }

  /// An event of the walk at a place among them.
  func note(_ event: WalkEvent, of place: Int) {
    state.withLock { state in
      guard state.times.indices.contains(place) else { return }
      state.times[place] = max(state.times[place], event.time)
      if event.kind == .swipe { state.swipes[place] += 1 }
      state.checkCount = event.kind == .check ? event.count ?? 0 : 0
    }
  }

  var text: String {
    let now = state.withLock { $0 }
    guard now.walkCount > 0 else { return now.label }
    let time = now.times.reduce(.zero, +)
    let rest = now.length * now.walkCount - time
    let swipes = now.swipes.reduce(0, +)
    var text =
      "\(now.label): swipe \(swipes) of \(now.swipeCount * now.walkCount), \(DurationText.readable(time))"
    let speed = time / (ContinuousClock.now - now.began)
    if now.checkCount > 0 {
      text += ", opening \(now.checkCount == 1 ? "1 item" : "\(now.checkCount) items") again"
    } else if speed > 0, rest > .zero {
      text += ", about \(Int((rest / .seconds(1) / speed).rounded(.up))) s left"
    }
    return text
  }
}
