package import ReelCore

/// The time of day in a simulation: its own clock, from a fixed day on.
package struct SimulatedWallClock: WallClock {
  private let simulation: SimulatedRuntime
  private let beginning: WallTime

  /// - Parameter beginning: the time of day when the simulation's clock shows zero.
  package init(_ simulation: SimulatedRuntime, beginning: WallTime = Self.defaultBeginning) {
    self.simulation = simulation
    self.beginning = beginning
  }

  /// 2030-01-01T00:00:00Z.
  package static let defaultBeginning = WallTime(nanosecondsSince1970: 1_893_456_000_000_000_000)

  package var now: WallTime {
    let (seconds, attoseconds) = simulation.now.components
    let whole = beginning + MediaTime(value: seconds, timescale: 1)
    return whole + MediaTime(value: attoseconds / 1_000_000_000, timescale: 1_000_000_000)
  }

  package func sleep(for duration: Duration) async throws { try await simulation.sleep(for: duration) }
}
