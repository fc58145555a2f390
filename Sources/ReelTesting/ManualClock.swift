package import ReelCore

/// A wall clock that stands still until it is told to go on: an hour of a live stream takes a test as long as its
/// requests take.
package final class ManualClock: WallClock {
  private let time: Locked<WallTime>

  package init(_ time: WallTime) {
    self.time = Locked(time, rank: .clock)
  }

  package var now: WallTime { time.withLock { $0 } }

  package func advance(by length: MediaTime) {
    time.withLock { $0 = $0 + length }
  }

  /// Moves the clock on and returns at once: who waits alone waits no real time.
  package func sleep(for duration: Duration) async throws {
    try Task.checkCancellation()
    advance(by: MediaTime(seconds: duration / .seconds(1), timescale: 1_000_000_000))
    await Task.yield()
  }

  package func set(_ time: WallTime) {
    self.time.withLock { $0 = time }
  }
}
