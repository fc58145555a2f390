import ReelCore

/// Runs `body`, and cancels it when the time is up.
///
/// Throws what `body` throws, or `ReelError.timedOut`.
func withDeadline<Result: Sendable>(
  seconds: Double, source: String, _ body: @escaping @Sendable () async throws -> Result
) async throws -> Result {
  try await withThrowingTaskGroup(of: Result?.self) { group in
    group.addTask { try await body() }
    group.addTask {
      try await Task.sleep(for: .seconds(seconds))
      return nil
    }
    defer { group.cancelAll() }
    guard let first = try await group.next(), let result = first else {
      throw ReelError(
        .timedOut, "not done within \(seconds.formatted(places: 1)) s", at: source,
        advice: "--timeout allows more")
    }
    return result
  }
}
