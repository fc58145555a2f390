internal import ReelCore

/// Bounds the wait for something that is useful, but not needed.
enum Patience {
  /// How long to wait for one more playlist when everything that is needed is known.
  static let limit = Duration.seconds(5)

  /// Returns the result of `body`, or nil if it takes longer than `limit`; then it is cancelled.
  static func wait<Result: Sendable>(
    clock: any MonotonicClock, for body: @escaping @Sendable () async throws -> Result?
  ) async throws -> Result? {
    try await withThrowingTaskGroup(of: Result?.self) { group in
      group.addTask { try await body() }
      group.addTask {
        try await clock.sleep(for: limit)
        return nil
      }
      defer { group.cancelAll() }
      return try await group.next() ?? nil
    }
  }
}
