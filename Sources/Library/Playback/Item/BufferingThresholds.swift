/// The amounts of buffered media at which playback starts and resumes, and at which loading pauses and continues.
///
/// All durations except ``audioPatience`` are media time.
public struct BufferingThresholds: Sendable, Hashable {
  /// The media that must be buffered before playback starts, also after a seek. 0.5 s by default.
  public var start = Duration.milliseconds(500)
  /// The media that must be buffered before playback resumes after a stall, and before it starts if the audio of the same
  /// file or segment has not arrived. 1.5 s by default.
  public var resume = Duration.milliseconds(1500)
  /// How long playback waits for a separate audio stream that delivers nothing. After that the item plays without
  /// audio. 10 s by default.
  public var audioPatience = Duration.seconds(10)
  /// The share of the forward buffer's target below which paused loading continues. 0.75 by default.
  public var refillShare = 0.75
  /// The bytes of undecoded media at which loading pauses, whatever the target is. 64 MiB by default.
  public var maximumByteCount = 64 << 20

  /// Creates the default thresholds.
  public init() {}

  /// Returns whether playback can start or resume and is then unlikely to stall.
  ///
  /// - Parameters:
  ///   - buffered: The media that is loaded ahead of the frame on show.
  ///   - target: The forward buffer's target. It is enough, even if a threshold is higher.
  ///   - isComplete: Whether the item is loaded to its end.
  ///   - isFull: Whether loading has paused, so that waiting would not bring more media.
  ///   - isAfterStall: Whether playback is stalled, or its audio is late, so that ``resume`` applies instead of ``start``.
  ///   - rate: The playback rate. A finite rate above 1 multiplies the threshold.
  public func isLikelyToKeepUp(
    buffered: Duration, target: Duration, isComplete: Bool, isFull: Bool, isAfterStall: Bool, rate: Double
  ) -> Bool {
    if isComplete || isFull { return true }
    // The rate is limited because multiplying a Duration can overflow.
    let needed = (isAfterStall ? resume : start) * (rate.isFinite ? min(max(rate, 1), 1000) : 1)
    return buffered >= min(needed, target)
  }
}
