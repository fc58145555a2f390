public import ReelCore

/// Shows nothing; counts the pictures.
public final class NullOutput: FrameOutput {
  private struct State {
    var pictureCount = 0
    var lastTime: MediaTime?
  }

  public let isExternal = false
  private let state = Locked(State())

  public init() {}

  /// How many pictures have come.
  public var pictureCount: Int { state.withLock { $0.pictureCount } }

  /// The time of the last picture on the presentation's timeline; nil before there was one.
  public var lastTime: MediaTime? { state.withLock { $0.lastTime } }

  public func show(_ picture: borrowing TimedPicture) {
    let time = picture.time
    state.withLock { state in
      state.pictureCount += 1
      state.lastTime = time
    }
  }

  public func finish() {}
}
