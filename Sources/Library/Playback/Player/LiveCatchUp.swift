/// Keeps a live presentation at its target latency by playing faster for a while, or by jumping.
///
/// The latency is the distance of the position from the live edge. The excess is the latency minus the
/// target. S is the duration of a segment:
///
/// - The presentation jumps to the target if the excess is more than 3 × S, but at least 3 s and at most 10
///   s, or if the position has left the window.
/// - Otherwise it plays faster from an excess of 1 s or half of S, whichever is more, but no more than half
///   of the excess that causes a jump, until the excess is 0.25 s: at 1.05 times the speed at the end and up
///   to 1.1 times from an excess of 5 s on, in steps of 0.01.
///
/// All this applies only to playback at rate 1. At another rate, which the user has chosen, it jumps only if
/// the position has left the window. Nothing happens at rate 0: if the position leaves the window during a
/// pause, the presentation jumps when playback resumes. A stalled presentation is not made faster, but may
/// jump.
///
/// If the user has gone back in the window, the caller passes that latency as the target.
package struct LiveCatchUp: Sendable, Hashable {
  package enum Action: Sendable, Hashable {
    /// The user's rate.
    case normal
    /// This rate in place of the user's.
    case rate(Double)
    /// Continue at this latency.
    case jump(toLatency: Duration)
  }

  /// True while playing faster, from the excess that starts it to the one that ends it.
  private var isCatchingUp = false

  package init() {}

  /// Returns the action to take.
  ///
  /// - Parameters:
  ///   - oldestLatency: The latency of the oldest media in the window; nil if no media leaves it.
  ///   - segmentDuration: Nil if unknown.
  ///   - userRate: The requested rate, not the one that this returned.
  ///   - isStalled: True while playback is stalled.
  package mutating func action(
    latency: Duration, target: Duration, oldestLatency: Duration? = nil, segmentDuration: Duration? = nil,
    userRate: Double = 1, isStalled: Bool = false
  ) -> Action {
    let excess = latency - target
    let segment = max(segmentDuration ?? .zero, .zero)
    let jumpExcess = min(max(segment * 3, Self.minimumJump), Self.maximumJump)
    let hasLeft = oldestLatency.map { latency > $0 } ?? false
    if userRate > 0, hasLeft || userRate == 1 && excess > jumpExcess {
      let goal = Self.goal(target: target, oldestLatency: oldestLatency, segment: segment)
      // In a window shorter than a segment there may be no position to jump to.
      if goal < latency {
        isCatchingUp = false
        return .jump(toLatency: goal)
      }
    }
    guard userRate == 1 else {
      isCatchingUp = false
      return .normal
    }
    if excess <= Self.endExcess {
      isCatchingUp = false
    } else if excess > min(max(segment / 2, Self.minimumBegin), jumpExcess / 2) {
      isCatchingUp = true
    }
    return isCatchingUp && !isStalled ? .rate(Self.rate(excess: excess)) : .normal
  }

  // MARK: - Private

  private static let minimumJump = Duration.seconds(3)
  private static let maximumJump = Duration.seconds(10)
  private static let minimumBegin = Duration.seconds(1)
  private static let endExcess = Duration.milliseconds(250)
  private static let fullExcess = Duration.seconds(5)

  /// Returns the target, but not too near the window's start.
  private static func goal(target: Duration, oldestLatency: Duration?, segment: Duration) -> Duration {
    guard let oldestLatency else { return target }
    let margin = min(max(segment, .seconds(1)), oldestLatency / 2)
    return max(min(target, oldestLatency - margin), .zero)
  }

  private static func rate(excess: Duration) -> Double {
    let share = (excess - endExcess) / (fullExcess - endExcess)
    // Each change of rate also affects the audio, so there are only a few.
    return ((1.05 + 0.05 * min(max(share, 0), 1)) * 100).rounded() / 100
  }
}
