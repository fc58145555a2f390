public import ReelCore

/// Shows nothing; counts the frames.
public final class NullOutput: FrameOutput {
  private struct State {
    var frameCount = 0
    var lastTime: MediaTime?
  }

  public let isExternal = false
  private let state = Locked(State())

  public init() {}

  /// How many frames have come.
  public var frameCount: Int { state.withLock { $0.frameCount } }

  /// The time of the last frame on the presentation's timeline; nil before there was one.
  public var lastTime: MediaTime? { state.withLock { $0.lastTime } }

  public func show(_ frame: borrowing TimedFrame) {
    let time = frame.time
    state.withLock { state in
      state.frameCount += 1
      state.lastTime = time
    }
  }

  public func finish() {}
}
