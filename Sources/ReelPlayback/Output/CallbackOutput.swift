internal import ReelCore

/// Hands each frame to a closure.
public final class CallbackOutput: FrameOutput {
  public let isExternal: Bool
  private let onFrame: @Sendable (borrowing TimedFrame) throws -> Void
  private let onFinish: @Sendable () throws -> Void
  private let isFinished = Locked(false)

  /// - Parameters:
  ///   - isExternal: true where the closure shows the frames outside of the process.
  ///   - onFinish: called once, when no more frames come.
  ///   - onFrame: called with each frame when its time has come, on one thread at a time. The frame is lent for
  ///     the call: `clone()` keeps it. What it throws detaches the output.
  public init(
    isExternal: Bool = false, onFinish: @escaping @Sendable () throws -> Void = {},
    onFrame: @escaping @Sendable (borrowing TimedFrame) throws -> Void
  ) {
    self.isExternal = isExternal
    self.onFrame = onFrame
    self.onFinish = onFinish
  }

  public func show(_ frame: borrowing TimedFrame) throws { try onFrame(frame) }

  public func finish() throws {
    let wasFinished = isFinished.withLock { value in
      defer { value = true }
      return value
    }
    if !wasFinished { try onFinish() }
  }
}
