import ReelCore
import ReelPool

/// Runs `body`, and cancels it when the time is up. A result that it returns nevertheless counts.
///
/// Throws what `body` throws, or `ReelError.timedOut`.
func withDeadline<Result: Sendable>(
  seconds: Double, source: String, _ body: @escaping @Sendable () async throws -> Result
) async throws -> Result {
  try await withLimit(seconds: seconds, source: source, message: "not done within") { _ in try await body() }
}

/// Runs `body`, and cancels it when it has made no progress for a while. A result that it returns nevertheless counts.
///
/// - Parameter body: Gets a closure to call for each step.
///
/// Throws what `body` throws, or `ReelError.timedOut`.
func withStallLimit<Result: Sendable>(
  seconds: Double, source: String,
  _ body: @escaping @Sendable (_ noteProgress: @escaping @Sendable () -> Void) async throws -> Result
) async throws -> Result {
  try await withLimit(seconds: seconds, source: source, message: "nothing came for", body)
}

/// - Parameter message: The beginning of the error's message; the time follows.
private func withLimit<Result: Sendable>(
  seconds: Double, source: String, message: String,
  _ body: @escaping @Sendable (_ noteProgress: @escaping @Sendable () -> Void) async throws -> Result
) async throws -> Result {
  let deadline = Locked(ContinuousClock.now + .seconds(seconds))
  let isLate = Locked(false)
  return try await withThrowingTaskGroup(of: Result?.self) { group in
    group.addTask {
      try await body { deadline.withLock { $0 = ContinuousClock.now + .seconds(seconds) } }
    }
    group.addTask {
      while !Task.isCancelled {
        let end = deadline.withLock { $0 }
        if end <= ContinuousClock.now {
          isLate.withLock { $0 = true }
          break
        }
        try? await Task.sleep(until: end, clock: .continuous)
      }
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
        .timedOut, "\(message) \(DurationText.readable(.seconds(seconds)))", at: source,
        advice: "allow more time with --timeout")
    }
  }
}
