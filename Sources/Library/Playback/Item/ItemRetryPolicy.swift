public import ReelCore

/// How often, and after which delays, a player retries an item whose loading failed.
///
/// Only temporary failures (`ReelError.isTemporary`) are retried. The first delay is ``baseDelay``, and each further
/// one is twice as long, up to ``maximumDelay``. All attempts are available again once a packet was read beyond those
/// read before. A pure value: it does not wait.
public struct ItemRetryPolicy: Sendable, Hashable {
  /// The number of consecutive attempts without a new packet; 0 for no retries.
  public let attempts: Int
  /// The delay after the first failure.
  public let baseDelay: Duration
  /// The longest delay.
  public let maximumDelay: Duration
  /// The number of attempts that are left.
  public private(set) var remaining: Int

  /// Creates a policy with all attempts left. A negative number of attempts counts as 0.
  public init(
    attempts: Int = 5, baseDelay: Duration = .milliseconds(500), maximumDelay: Duration = .seconds(8)
  ) {
    self.attempts = max(attempts, 0)
    self.baseDelay = baseDelay
    self.maximumDelay = maximumDelay
    remaining = max(attempts, 0)
  }

  /// Uses up an attempt and returns the delay before it. Returns nil if the error is final or no attempt is left.
  public mutating func next(after error: ReelError) -> Duration? {
    guard error.isTemporary, remaining > 0 else { return nil }
    var delay = baseDelay
    for _ in 0..<(attempts - remaining) where delay < maximumDelay { delay = delay * 2 }
    remaining -= 1
    return min(delay, maximumDelay)
  }

  /// Makes all attempts available again, after new media was read. The next delay is ``baseDelay``.
  public mutating func succeed() {
    remaining = attempts
  }
}
