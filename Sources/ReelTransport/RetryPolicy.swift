/// When a failed request is sent again, and after which pause.
///
/// A pure value: it neither waits nor draws random numbers.
public struct RetryPolicy: Sendable, Hashable {
  /// How often a transfer is tried again, over all its failures; 0 for never. Where at least 64 KiB have come since the
  /// last one, they count anew.
  public var attempts: Int
  /// How often of those a connection that could not be made is tried again: a server that refuses connections
  /// is seldom back within seconds.
  public var connectAttempts: Int
  /// The pause after the first failure.
  public var baseDelay: Duration
  /// By what each further pause is longer than the one before.
  public var factor: Double
  /// No pause is longer, but for one that the server asks for.
  public var maximumDelay: Duration
  /// The share of a pause, 0 to 1, that is left to chance: a pause is between `1 - jitter` and 1 times its
  /// length.
  public var jitter: Double
  /// The longest `Retry-After` that is waited for; a server that asks for more gets no further request.
  public var maximumRetryAfter: Duration

  public init(
    attempts: Int = 3, connectAttempts: Int = 2, baseDelay: Duration = .milliseconds(250), factor: Double = 2,
    maximumDelay: Duration = .seconds(8), jitter: Double = 0.25, maximumRetryAfter: Duration = .seconds(20)
  ) {
    self.attempts = attempts
    self.connectAttempts = connectAttempts
    self.baseDelay = baseDelay
    self.factor = factor
    self.maximumDelay = maximumDelay
    self.jitter = jitter
    self.maximumRetryAfter = maximumRetryAfter
  }

  /// Sends nothing a second time.
  public static let never = RetryPolicy(attempts: 0)

  /// The pause before the next request.
  ///
  /// - Parameters:
  ///   - failure: How many failures there have been, this one included; 1 for the first.
  ///   - retryAfter: What the server asked for (RFC 9110 §10.2.3), where it did. The pause is at least as
  ///     long.
  ///   - random: A number from 0 up to 1 that stands for chance: 0 gives the longest pause.
  /// - Returns: Nil where no further request is to be sent: the attempts are used up, or the server asks for
  ///   a longer pause than `maximumRetryAfter`.
  public func delay(afterFailure failure: Int, retryAfter: Duration? = nil, random: Double) -> Duration? {
    guard failure >= 1, failure <= attempts else { return nil }
    var delay = baseDelay
    for _ in 1..<failure where delay < maximumDelay { delay = delay * factor }
    delay = min(delay, maximumDelay) * (1 - min(max(jitter, 0), 1) * min(max(random, 0), 1))
    guard let retryAfter else { return delay }
    return retryAfter <= maximumRetryAfter ? max(delay, retryAfter) : nil
  }
}
