/// What tells the time of day, and lets it pass: injected, so that what follows a live presentation is tested without
/// waiting.
public protocol WallClock: Sendable {
  var now: WallTime { get }

  /// Returns after `duration` of this clock's time. Throws `CancellationError`.
  func sleep(for duration: Duration) async throws
}

/// This machine's clock.
public struct SystemWallClock: WallClock {
  public init() {}

  public var now: WallTime { .now }

  public func sleep(for duration: Duration) async throws { try await Task.sleep(for: duration) }
}
