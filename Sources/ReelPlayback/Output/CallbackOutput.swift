internal import ReelCore

/// Hands each picture to a closure.
public final class CallbackOutput: FrameOutput {
  public let isExternal: Bool
  private let onPicture: @Sendable (borrowing TimedPicture) throws -> Void
  private let onFinish: @Sendable () throws -> Void
  private let isFinished = Locked(false)

  /// - Parameters:
  ///   - isExternal: true where the closure shows the pictures outside of the process.
  ///   - onFinish: called once, when no more pictures come.
  ///   - onPicture: called with each picture when its time has come, on one thread at a time. The picture is lent for
  ///     the call: `clone()` keeps it. What it throws detaches the output.
  public init(
    isExternal: Bool = false, onFinish: @escaping @Sendable () throws -> Void = {},
    onPicture: @escaping @Sendable (borrowing TimedPicture) throws -> Void
  ) {
    self.isExternal = isExternal
    self.onPicture = onPicture
    self.onFinish = onFinish
  }

  public func show(_ picture: borrowing TimedPicture) throws { try onPicture(picture) }

  public func finish() throws {
    let wasFinished = isFinished.withLock { value in
      defer { value = true }
      return value
    }
    if !wasFinished { try onFinish() }
  }
}
