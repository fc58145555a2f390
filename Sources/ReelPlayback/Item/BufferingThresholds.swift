/// How much media has to be buffered for what.
///
/// All durations are media time; `buffered` is what is loaded and not yet presented.
public struct BufferingThresholds: Sendable, Hashable {
  /// Before a presentation begins. 0.5 s.
  public var start = Duration.milliseconds(500)
  /// Before one goes on that stood still for want of media. 1.5 s.
  public var resume = Duration.milliseconds(1500)
  /// How long no sound may come that is a stream of its own, while the frame waits for it; then the item is played
  /// without. 10 s.
  public var audioPatience = Duration.seconds(10)
  /// Loading goes on under this share of the target. 0.75.
  public var refillShare = 0.75
  /// Loading pauses at so many bytes, whatever the target is. 64 MiB.
  public var maximumByteCount = 64 << 20

  public init() {}

  /// True where the presentation may begin, or go on, and is likely to need no further stop.
  ///
  /// - Parameters:
  ///   - target: How much the player tries to hold. No more than that is waited for.
  ///   - isComplete: All of the item is loaded.
  ///   - isFull: Loading has paused, so that no more would come.
  ///   - isAfterStall: The presentation stands still for want of media: `resume` is waited for instead of `start`.
  ///   - rate: The playback rate. One above 1 needs as much more.
  public func isLikelyToKeepUp(
    buffered: Duration, target: Duration, isComplete: Bool, isFull: Bool, isAfterStall: Bool, rate: Double
  ) -> Bool {
    if isComplete || isFull { return true }
    // A Duration can't be multiplied without bound.
    let needed = (isAfterStall ? resume : start) * (rate.isFinite ? min(max(rate, 1), 1000) : 1)
    return buffered >= min(needed, target)
  }
}
