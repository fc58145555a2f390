/// A source of wall-clock time that can also sleep. Code that follows live presentations takes one, so that
/// tests need not wait.
package protocol WallClock: Sendable {
  var now: WallTime { get }

  /// Returns after `duration` of this clock's time. Throws `CancellationError`.
  func sleep(for duration: Duration) async throws
}

/// This machine's clock.
package struct SystemWallClock: WallClock {
  package init() {}

  package var now: WallTime { .now }

  package func sleep(for duration: Duration) async throws { try await Task.sleep(for: duration) }
}
