package import ReelCore

/// A wall clock that runs faster or slower than this machine's, starting when it is made.
package struct ScaledClock: WallClock {
  private let start: WallTime
  private let speed: Double
  private let origin = ContinuousClock.now

  /// Makes a clock that shows `start` now and runs `speed` times as fast as real time.
  package init(start: WallTime = .now, speed: Double) {
    self.start = start
    self.speed = speed
  }

  package var now: WallTime {
    let (seconds, attoseconds) = (ContinuousClock.now - origin).components
    let elapsed = Double(seconds) + Double(attoseconds) / 1e18
    return start + MediaTime(seconds: elapsed * speed, timescale: 1_000_000_000)
  }

  package func sleep(for duration: Duration) async throws {
    try await Task.sleep(for: duration / speed)
  }
}
