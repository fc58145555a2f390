import ReelCore
import ReelPool

/// Runs `body`, and cancels it when the time is up. A result that it returns nevertheless counts.
///
/// Throws what `body` throws, or `ReelError.timedOut`.
func withDeadline<Result: Sendable>(
  seconds: Double, source: String, _ body: @escaping @Sendable () async throws -> Result
) async throws -> Result {
  let isLate = Locked(false)
  return try await withThrowingTaskGroup(of: Result?.self) { group in
    group.addTask { try await body() }
    group.addTask {
      try? await Task.sleep(for: .seconds(seconds))
      if !Task.isCancelled { isLate.withLock { $0 = true } }
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
        .timedOut, "not done within \(DurationText.readable(.seconds(seconds)))", at: source,
        advice: "allow more time with --timeout")
    }
  }
}
