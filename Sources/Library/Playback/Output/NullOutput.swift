public import ReelCore

/// An output that only counts frames.
public final class NullOutput: FrameOutput {
  private struct State {
    var frameCount = 0
    var lastTime: MediaTime?
  }

  /// False.
  public let isExternal = false
  private let state = Locked(State())

  /// Creates an output that has counted no frames.
  public init() {}

  /// The number of frames received.
  public var frameCount: Int { state.withLock { $0.frameCount } }

  /// The time of the last frame, on the item's timeline. Nil before the first frame.
  public var lastTime: MediaTime? { state.withLock { $0.lastTime } }

  /// Counts the frame.
  public func show(_ frame: borrowing TimedFrame) {
    let time = frame.time
    state.withLock { state in
      state.frameCount += 1
      state.lastTime = time
    }
  }

  /// Does nothing.
  public func finish() {}
}
