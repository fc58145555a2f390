internal import ReelCore

/// An output that passes each frame to a closure.
public final class CallbackOutput: FrameOutput {
  /// Whether the closure shows frames outside of the process.
  public let isExternal: Bool
  private let onFrame: @Sendable (borrowing TimedFrame) throws -> Void
  private let onFinish: @Sendable () throws -> Void
  private let isFinished = Locked(false)

  /// Creates an output.
  ///
  /// - Parameters:
  ///   - isExternal: Whether the closure shows frames outside of the process.
  ///   - onFinish: Called once, when no more frames follow.
  ///   - onFrame: Called with each frame when it is due, on one thread at a time. The frame is only valid during the
  ///     call; keep it with ``TimedFrame/clone()``. If it throws, the player detaches the output.
  public init(
    isExternal: Bool = false, onFinish: @escaping @Sendable () throws -> Void = {},
    onFrame: @escaping @Sendable (borrowing TimedFrame) throws -> Void
  ) {
    self.isExternal = isExternal
    self.onFrame = onFrame
    self.onFinish = onFinish
  }

  /// Calls the closure with the frame. Throws what the closure throws.
  public func show(_ frame: borrowing TimedFrame) throws { try onFrame(frame) }

  /// Calls `onFinish`, the first time only. Throws what it throws.
  public func finish() throws {
    let wasFinished = isFinished.withLock { value in
      defer { value = true }
      return value
    }
    if !wasFinished { try onFinish() }
  }
}
