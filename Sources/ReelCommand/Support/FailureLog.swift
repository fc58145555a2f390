import ReelCore

/// The errors of the sources that failed, from any thread.
final class FailureLog: Sendable {
  private let errors = Locked<[ReelError]>([])

  var all: [ReelError] { errors.withLock { $0 } }

  func append(_ error: ReelError) { errors.withLock { $0.append(error) } }
}
