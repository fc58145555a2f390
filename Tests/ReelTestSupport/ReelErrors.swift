public import ReelCore

/// The error that `body` throws, as a `ReelError`; nil if it throws none, or another.
public func reelError(_ body: () async throws -> Void) async -> ReelError? {
  do {
    try await body()
    return nil
  } catch {
    return error as? ReelError
  }
}
