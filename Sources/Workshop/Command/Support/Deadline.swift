import ReelCore
import ReelPlayback
import ReelPool

/// Runs `body`, and cancels it when the time is up. A result that it returns nevertheless counts.
///
/// - Parameter body: Gets the fetcher to use instead of `fetcher`.
///
/// Throws what `body` throws, or `ReelError.timedOut`, which names the last failure of `fetcher`.
func withDeadline<Result: Sendable>(
  seconds: Double, source: String, fetcher: any Fetching,
  _ body: @escaping @Sendable (any Fetching) async throws -> Result
) async throws -> Result {
  try await withLimit(seconds: seconds, source: source, fetcher: fetcher) { fetcher, _ in
    try await body(fetcher)
  }
}

/// Runs `body`, and cancels it when the time is up, unless it has lifted the limit. A result that it returns nevertheless
/// counts.
///
/// - Parameter body: Gets the fetcher to use instead of `fetcher`, and a closure that lifts the limit.
///
/// Throws what `body` throws, or `ReelError.timedOut`, which names the last failure of `fetcher`.
func withLimit<Result: Sendable>(
  seconds: Double, source: String, fetcher: any Fetching,
  _ body:
    @escaping @Sendable (_ fetcher: any Fetching, _ lift: @escaping @Sendable () -> Void) async throws ->
    Result
) async throws -> Result {
  let traffic = TrafficCounter(fetcher)
  let isLifted = Locked(false)
  let isLate = Locked(false)
  return try await withThrowingTaskGroup(of: Result?.self) { group in
    group.addTask {
      try await body(traffic) { isLifted.withLock { $0 = true } }
    }
    group.addTask {
      // Of Task.sleep(for:), memory stays until its time is up, even if the task was cancelled long before.
      let clock = SystemMonotonicClock()
      do {
        try await clock.sleep(for: .seconds(seconds))
        while isLifted.withLock({ $0 }) { try await clock.sleep(for: .seconds(86_400)) }
        isLate.withLock { $0 = true }
      } catch {}
      return nil
    }
    do {
      while let outcome = try await group.next() {
        group.cancelAll()
        if let result = outcome { return result }
      }
      throw CancellationError()
    } catch {
      group.cancelAll()
      guard isLate.withLock({ $0 }) else { throw error }
      throw ReelError(
        lateness: "not finished within \(DurationText.readable(.seconds(seconds)))", of: source,
        after: traffic.lastFailure)
    }
  }
}

extension ReelError {
  /// The error when the time for a source is up.
  ///
  /// - Parameters:
  ///   - reason: What did not happen in time.
  ///   - failure: The last failure that was retried; nil if there was none.
  init(lateness reason: String, of source: String, after failure: ReelError?) {
    var reason = reason
    if let failure {
      reason += ": " + (failure.status == nil ? "" : "the server answered ") + failure.reason
      if let location = failure.location, location != source { reason += " (\(location))" }
    }
    self.init(
      .timedOut, reason, at: source, advice: failure?.advice ?? Self.moreTime)
  }

  /// What helps if a source is just slow.
  static let moreTime = "allow more time with --timeout"
}
