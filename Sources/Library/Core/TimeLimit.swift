package enum TimeLimit {
  /// Runs `body`, and returns its result; nil if there is none by `end`.
  ///
  /// Nobody waits for the body after that, or after the cancellation of this task: it is cancelled, and work that does
  /// not react to that, such as a long computation, ends later by itself.
  ///
  /// - Parameters:
  ///   - end: A time of `clock`; nil for no limit.
  ///   - extended: Asked at the end. Returns a later one, or nil if that was the last.
  ///
  /// Throws the errors of `body`, or `CancellationError`.
  package static func run<Result: Sendable>(
    until end: Duration?, on clock: any MonotonicClock = SystemMonotonicClock(),
    extended: @escaping @Sendable () -> Duration? = { nil },
    _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result? {
    guard let end else { return try await body() }
    let (outcomes, outcome) = AsyncThrowingStream<Result?, any Error>.makeStream()
    let work = Task {
      do {
        outcome.yield(try await body())
      } catch {
        outcome.finish(throwing: error)
      }
    }
    let timer = Task {
      var next: Duration? = end
      while let end = next {
        try await clock.sleep(for: max(.zero, end - clock.now))
        next = extended()
      }
      outcome.yield(nil)
    }
    defer {
      work.cancel()
      timer.cancel()
    }
    for try await first in outcomes { return first }
    throw CancellationError()
  }
}
