public import ReelCore

/// The time of day in a virtual world: its own clock, from a fixed day on.
public struct VirtualWallClock: WallClock {
  private let world: VirtualWorld
  private let beginning: WallTime

  /// - Parameter beginning: the time of day when the world's clock shows zero.
  public init(_ world: VirtualWorld, beginning: WallTime = Self.defaultBeginning) {
    self.world = world
    self.beginning = beginning
  }

  /// 2030-01-01T00:00:00Z.
  public static let defaultBeginning = WallTime(nanosecondsSince1970: 1_893_456_000_000_000_000)

  public var now: WallTime {
    let (seconds, attoseconds) = world.now.components
    let whole = beginning + MediaTime(value: seconds, timescale: 1)
    return whole + MediaTime(value: attoseconds / 1_000_000_000, timescale: 1_000_000_000)
  }

  public func sleep(for duration: Duration) async throws { try await world.sleep(for: duration) }
}
