package import ReelCore

/// A wall clock that only moves when told to, so that an hour of a live stream takes a test no longer than its
/// requests.
package final class ManualClock: WallClock {
  private let time: Locked<WallTime>

  package init(_ time: WallTime) {
    self.time = Locked(time, rank: .clock)
  }

  package var now: WallTime { time.withLock { $0 } }

  package func advance(by length: MediaTime) {
    time.withLock { $0 = $0 + length }
  }

  /// Advances the clock and returns at once, so a single sleeper takes no real time.
  package func sleep(for duration: Duration) async throws {
    try Task.checkCancellation()
    advance(by: MediaTime(seconds: duration / .seconds(1), timescale: 1_000_000_000))
    await Task.yield()
  }

  package func set(_ time: WallTime) {
    self.time.withLock { $0 = time }
  }
}
