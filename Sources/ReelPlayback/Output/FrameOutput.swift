/// Where a player shows its frames. Attached and detached while it plays.
public protocol FrameOutput: AnyObject, Sendable {
  /// True for one that shows the frames outside of the process (a file, a pipe): refused by a player that does not
  /// allow external playback (`allowsExternalPlayback`).
  var isExternal: Bool { get }

  /// Called with each frame when its time has come, on one thread at a time. The frame may be kept by `clone()`.
  /// A call that takes long holds the presentation up: later frames become late.
  ///
  /// What it throws detaches the output, and is reported.
  func show(_ frame: borrowing TimedFrame) throws

  /// No more frames come: the output was detached, or the player has ended. Called once.
  func finish() throws
}
