import Foundation
import ReelCore

/// Rules for retrying failed requests: how often, and after which delay.
///
/// A policy only computes delays. `TransportFetcher` waits, and draws the random numbers.
public struct RetryPolicy: Sendable, Hashable {
  /// The number of retries of one transfer; 0 for none. The count starts again if at least 64 KiB have arrived since
  /// the last failure.
  package var attempts: Int
  /// The maximum number of these retries for failures to connect. It is low because a server that refuses connections
  /// rarely recovers within seconds.
  package var connectAttempts: Int
  /// The delay after the first failure.
  package var baseDelay: Duration
  /// The factor by which the delay grows with each further failure.
  package var factor: Double
  /// The maximum delay, unless the server asks for a longer one.
  package var maximumDelay: Duration
  /// The random share of a delay, from 0 to 1: the delay is multiplied by a random number between `1 - jitter` and 1.
  package var jitter: Double
  /// The longest `Retry-After` to honour (RFC 9110 §10.2.3). If the server asks for more, the transfer fails.
  package var maximumRetryAfter: Duration

  /// Creates a policy.
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

  /// A policy without retries.
  public static let never = RetryPolicy(attempts: 0)

  /// Returns the delay before the next request.
  ///
  /// `connectAttempts` has no effect here.
  ///
  /// - Parameters:
  ///   - failure: The number of failures so far, including this one; 1 for the first.
  ///   - retryAfter: The delay that the server asked for, if any (RFC 9110 §10.2.3). The result is at least as long.
  ///   - random: A random number from 0 to 1; 0 gives the longest delay.
  /// - Returns: The delay, or nil if there is no further retry: `attempts` is exceeded, or the server asks for a longer
  ///   delay than `maximumRetryAfter`.
  package func delay(afterFailure failure: Int, retryAfter: Duration? = nil, random: Double) -> Duration? {
    guard failure >= 1, failure <= attempts else { return nil }
    var delay = baseDelay
    for _ in 1..<failure where delay < maximumDelay { delay = delay * factor }
    delay = min(delay, maximumDelay) * (1 - min(max(jitter, 0), 1) * min(max(random, 0), 1))
    guard let retryAfter else { return delay }
    return retryAfter <= maximumRetryAfter ? max(delay, retryAfter) : nil
  }
}

/// The value of a `Retry-After` field (RFC 9110 §10.2.3): a number of seconds or a date.
enum RetryAfter {
  /// Returns how long to wait from `now`; nil for an invalid text.
  static func duration(_ text: String?, now: Date = Date()) -> Duration? {
    guard let text = text?.trimmingCharacters(in: .whitespaces), !text.isEmpty else { return nil }
    if text.allSatisfy({ $0.isASCII && $0.isNumber }) {
      return Int64(text).map { .seconds(min($0, 1 << 31)) } ?? .seconds(1 << 31)
    }
    guard let seconds = WallTime.secondsSince1970(httpDate: text) else { return nil }
    let delay = Date(timeIntervalSince1970: Double(seconds)).timeIntervalSince(now)
    return .milliseconds(Int64((max(0, delay) * 1000).rounded(.up)))
  }
}
