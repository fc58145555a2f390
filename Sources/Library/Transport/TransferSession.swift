import Foundation
import ReelCore

/// The state of one `FetchRequest` across all requests sent for it: its metrics, reported once, and its
/// budget of retries.
final class TransferSession: Sendable {
  let request: FetchRequest
  let startedAt = ContinuousClock.now

  private struct State {
    var metrics: RequestMetrics
    var firstByteAt: ContinuousClock.Instant?
    var failureCount = 0
    var connectFailureCount = 0
    var isReported = false
  }

  private let state: Locked<State>

  init(_ request: FetchRequest) {
    self.request = request
    state = Locked(
      State(
        metrics: RequestMetrics(
          url: request.url, purpose: request.purpose, status: nil, timeToFirstByte: nil, transferTime: .zero,
          byteCount: 0, reusedConnection: nil, redirectCount: 0, requestCount: 0)))
  }

  var requestCount: Int { state.withLock { $0.metrics.requestCount } }

  func recordRequest() {
    state.withLock { $0.metrics.requestCount += 1 }
  }

  func recordRedirect() {
    state.withLock { $0.metrics.redirectCount += 1 }
  }

  func recordAnswer(status: Int, reusedConnection: Bool?) {
    state.withLock { state in
      state.metrics.status = status
      if let reusedConnection {
        // The result is "no" if any connection had to be opened.
        state.metrics.reusedConnection = reusedConnection && state.metrics.reusedConnection ?? true
      }
    }
  }

  func recordFirstByte() {
    state.withLock { state in
      guard state.firstByteAt == nil else { return }
      let now = ContinuousClock.now
      state.firstByteAt = now
      state.metrics.timeToFirstByte = now - startedAt
    }
  }

  func recordBytes(_ count: Int) {
    state.withLock { $0.metrics.byteCount += Int64(count) }
  }

  /// Restores the budget of retries after enough bytes since the last failure.
  func forgetFailures() { state.withLock { $0.failureCount = 0 } }

  /// Returns the pause before the next request after `failure`; nil for no retry.
  func delay(after failure: TransferFailure, policy: RetryPolicy) -> Duration? {
    let count: Int? = state.withLock { state in
      guard failure.isTransient else { return nil }
      state.failureCount += 1
      if failure.isConnectFailure {
        state.connectFailureCount += 1
        guard state.connectFailureCount <= policy.connectAttempts else { return nil }
      }
      return state.failureCount
    }
    guard let count else { return nil }
    return policy.delay(
      afterFailure: count, retryAfter: failure.retryAfter, random: Double.random(in: 0..<1))
  }

  /// Reports the metrics once.
  func finish() {
    let metrics: RequestMetrics? = state.withLock { state in
      guard !state.isReported else { return nil }
      state.isReported = true
      if let first = state.firstByteAt { state.metrics.transferTime = .now - first }
      return state.metrics
    }
    if let metrics { request.report?(metrics) }
  }
}
