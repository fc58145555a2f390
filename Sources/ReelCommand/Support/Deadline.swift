import ReelCore
import ReelPool

/// Runs `body`, and cancels it when the time is up. A result that it returns nevertheless counts.
///
/// Throws what `body` throws, or `ReelError.timedOut`.
func withDeadline<Result: Sendable>(
  seconds: Double, source: String, _ body: @escaping @Sendable () async throws -> Result
) async throws -> Result {
  try await withLimit(seconds: seconds, source: source) { _ in try await body() }
}

/// Runs `body`, and cancels it when the time is up, unless it has lifted the limit. A result that it returns nevertheless
/// counts.
///
/// - Parameter body: Gets a closure that lifts the limit.
///
/// Throws what `body` throws, or `ReelError.timedOut`.
func withLimit<Result: Sendable>(
  seconds: Double, source: String,
  _ body: @escaping @Sendable (_ lift: @escaping @Sendable () -> Void) async throws -> Result
) async throws -> Result {
  let isLifted = Locked(false)
  let isLate = Locked(false)
  return try await withThrowingTaskGroup(of: Result?.self) { group in
    group.addTask {
      try await body { isLifted.withLock { $0 = true } }
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
        .timedOut, "not finished within \(DurationText.readable(.seconds(seconds)))", at: source,
        advice: "allow more time with --timeout")
    }
  }
}
