public import ReelCore

/// How often, and after which pauses, an item that failed is opened again.
///
/// Only failures that may pass (`ReelError.isTemporary`) are tried again. The first pause is `baseDelay`, each further
/// one twice as long, up to `maximumDelay`. Once the item has played the count is restored. A pure value: it does not
/// wait.
public struct ItemRetryPolicy: Sendable, Hashable {
  /// How often an item is opened again without having played in between; 0 for never.
  public let attempts: Int
  /// The pause after the first failure.
  public let baseDelay: Duration
  /// No pause is longer.
  public let maximumDelay: Duration
  /// How many of the attempts are left.
  public private(set) var remaining: Int

  public init(
    attempts: Int = 5, baseDelay: Duration = .milliseconds(500), maximumDelay: Duration = .seconds(8)
  ) {
    self.attempts = max(attempts, 0)
    self.baseDelay = baseDelay
    self.maximumDelay = maximumDelay
    remaining = max(attempts, 0)
  }

  /// The pause before the item is opened again after `error`, which uses up an attempt. Nil where it is not to be
  /// opened again: the error is final, or no attempt is left.
  public mutating func next(after error: ReelError) -> Duration? {
    guard error.isTemporary, remaining > 0 else { return nil }
    var delay = baseDelay
    for _ in 0..<(attempts - remaining) where delay < maximumDelay { delay = delay * 2 }
    remaining -= 1
    return min(delay, maximumDelay)
  }

  /// The item has played: all attempts are there again, and the pauses begin with the shortest.
  public mutating func succeed() {
    remaining = attempts
  }
}
