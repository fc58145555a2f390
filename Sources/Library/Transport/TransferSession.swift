import Foundation
import HTTPTypes
import NIOHTTP1
import ReelCore

/// The state of one `FetchRequest` across all requests sent for it: its metrics, reported once, and its
/// budget of retries.
final class TransferSession: Sendable {
  let request: FetchRequest
  let startedAt = ContinuousClock.now

  private struct State {
    var metrics: RequestMetrics
    /// The last answer.
    var head: HTTPResponseHead?
    var firstByteAt: ContinuousClock.Instant?
    var failureCount = 0
    var connectFailureCount = 0
    var isReported = false
    /// True if a request was sent with credentials.
    var isPersonal = false
  }

  private let state: Locked<State>

  init(_ request: FetchRequest) {
    self.request = request
    state = Locked(
      State(
        metrics: RequestMetrics(url: request.url, purpose: request.purpose, requestCount: 0)))
  }

  var requestCount: Int { state.withLock { $0.metrics.requestCount } }

  /// The head of the last answer, if the request wants it.
  var answerHead: AnswerHead? {
    guard request.wantsHead else { return nil }
    let (head, isPersonal) = state.withLock { ($0.head, $0.isPersonal) }
    return head.map {
      AnswerHead(status: Int($0.status.code), fields: HTTPFields($0.headers), isPersonal: isPersonal)
    }
  }

  /// True if any request has been answered.
  var hasAnswer: Bool { state.withLock { $0.head != nil } }

  func recordRequest(isPersonal: Bool = false) {
    state.withLock { state in
      state.metrics.requestCount += 1
      state.isPersonal = state.isPersonal || isPersonal
    }
  }

  func recordRedirect() {
    state.withLock { $0.metrics.redirectCount += 1 }
  }

  func recordFailedAttempt() {
    state.withLock { $0.metrics.failedAttemptCount += 1 }
  }

  func recordAnswer(_ head: HTTPResponseHead, of transfer: HTTPTransfer) {
    let times = transfer.times
    let reusedConnection = transfer.connectionOpenedAt.map { $0 < times.started }
    state.withLock { state in
      state.head = head
      state.metrics.status = Int(head.status.code)
      state.metrics.connectTime = reusedConnection == false ? times.sent.map { $0 - times.started } : nil
      state.metrics.answerTime = times.sent.flatMap { sent in times.answered.map { $0 - sent } }
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
  func finish(_ result: Result<Void, any Error>) {
    let metrics: RequestMetrics? = state.withLock { state in
      guard !state.isReported else { return nil }
      state.isReported = true
      state.metrics.outcome = RequestMetrics.Outcome(result)
      if let first = state.firstByteAt { state.metrics.transferTime = .now - first }
      if request.report != nil, let head = state.head {
        state.metrics.fields = HTTPFields(head.headers)
        state.metrics.closesConnection = head.closesConnection(method: request.method)
      }
      return state.metrics
    }
    if let metrics { request.report?(metrics) }
  }
}

extension HTTPResponseHead {
  /// True if the connection ends after this answer to a request (RFC 9112 §6.3, §9.3).
  fileprivate func closesConnection(method: HTTPRequest.Method) -> Bool {
    guard version.major < 2 else { return false }
    guard isKeepAlive else { return true }
    let hasLength = headers.contains(name: "Content-Length") || headers.contains(name: "Transfer-Encoding")
    // A body of unknown length ends with its connection.
    return method == .get && status.mayHaveResponseBody && !hasLength
  }
}

extension HTTPFields {
  /// The fields of a head, in order. Fields with an invalid name are left out.
  fileprivate init(_ headers: HTTPHeaders) {
    self.init()
    for (name, value) in headers {
      if let name = HTTPField.Name(name) { append(HTTPField(name: name, value: value)) }
    }
  }
}
