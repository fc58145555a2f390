internal import ReelCore

/// Limits the wait for something that is useful, but not needed.
enum Patience {
  /// The maximum wait for one more playlist when everything needed is known.
  static let limit = Duration.seconds(5)

  private enum Event<Result: Sendable>: Sendable {
    case finished(Int, Result)
    case timeUp
  }

  /// Runs jobs in order, several in parallel, and returns the results of those that finished.
  ///
  /// The jobs from `neededCount` on are optional: once all others have finished, and no optional one has
  /// finished for `limit`, the rest is cancelled.
  static func gather<Result: Sendable>(
    count: Int, neededCount: Int, concurrency: Int, clock: any MonotonicClock,
    job: @escaping @Sendable (Int) async throws -> Result
  ) async throws -> [Int: Result] {
    try await withThrowingTaskGroup(of: Event<Result>.self) { group in
      defer { group.cancelAll() }
      var results: [Int: Result] = [:]
      var (next, finishedNeededCount) = (0, 0)
      // The number of results when the time limit started.
      var timedCount: Int?
      while results.count < count {
        while next < count, next - results.count < concurrency {
          let index = next
          group.addTask { .finished(index, try await job(index)) }
          next += 1
        }
        if timedCount == nil, finishedNeededCount == neededCount, neededCount > 0 {
          timedCount = results.count
          group.addTask {
            try await clock.sleep(for: limit)
            return .timeUp
          }
        }
        switch try await group.next() {
        case .finished(let index, let result):
          results[index] = result
          if index < neededCount { finishedNeededCount += 1 }
        case .timeUp where timedCount == results.count: return results
        case .timeUp: timedCount = nil
        case nil: return results
        }
      }
      return results
    }
  }
}
