public import ReelCore

/// A wall clock that stands still until it is told to go on: an hour of a live stream takes a test as long as its
/// requests take.
public final class ManualClock: Sendable {
  private let time: Locked<WallTime>

  public init(_ time: WallTime) {
    self.time = Locked(time)
  }

  public var now: WallTime { time.withLock { $0 } }

  public func advance(by length: MediaTime) {
    time.withLock { $0 = $0 + length }
  }

  public func set(_ time: WallTime) {
    self.time.withLock { $0 = time }
  }
}
