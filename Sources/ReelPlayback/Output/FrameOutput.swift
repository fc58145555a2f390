/// Where a player shows its pictures. Attached and detached while it plays.
public protocol FrameOutput: AnyObject, Sendable {
  /// True for one that shows the pictures outside of the process (a file, a pipe): refused by a player that does not
  /// allow external playback (`allowsExternalPlayback`).
  var isExternal: Bool { get }

  /// Called with each picture when its time has come, on one thread at a time. The picture may be kept by `clone()`.
  /// A call that takes long holds the presentation up: later pictures become late.
  ///
  /// What it throws detaches the output, and is reported.
  func show(_ picture: borrowing TimedPicture) throws

  /// No more pictures come: the output was detached, or the player has ended. Called once.
  func finish() throws
}
