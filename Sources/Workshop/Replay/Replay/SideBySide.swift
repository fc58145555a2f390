internal import Foundation

/// Runs jobs side by side, a few at a time.
package enum SideBySide {
  /// Runs a job for each input.
  ///
  /// - Parameters:
  ///   - count: The jobs that run at a time; nil for one a processor.
  ///   - next: Makes the next input; nil if there are no more. It is called when a job can begin.
  ///   - job: The job.
  ///   - ended: Called for each job that has ended, in the order in which they end. One call at a time. If it throws, all
  ///     jobs are cancelled.
  /// - Throws: The errors of `next` and `ended`; `CancellationError` if the task is cancelled: `ended` is then called for
  ///   the jobs that ended before.
  package static func run<Input: Sendable, Output: Sendable>(
    _ count: Int? = nil, next: () throws -> Input?,
    job: @escaping @Sendable (Input) async throws -> Output,
    ended: (Input, Result<Output, any Error>) throws -> Void
  ) async throws {
    let count = max(1, count ?? ProcessInfo.processInfo.activeProcessorCount)
    try await withThrowingTaskGroup(of: (Input, Result<Output, any Error>).self) { group in
      func begin() throws {
        guard !Task.isCancelled, let input = try next() else { return }
        group.addTask {
          do {
            return (input, .success(try await job(input)))
          } catch {
            return (input, .failure(error))
          }
        }
      }
      for _ in 0..<count { try begin() }
      while let (input, result) = try await group.next() {
        // The failure of a job that was cancelled is not its own.
        if case .failure = result, Task.isCancelled { continue }
        try ended(input, result)
        try begin()
      }
    }
    try Task.checkCancellation()
  }
}
