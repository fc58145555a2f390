/// What tells the time of day, and lets it pass: injected, so that what follows a live presentation is tested without
/// waiting.
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
