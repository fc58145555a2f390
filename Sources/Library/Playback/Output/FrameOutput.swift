public import ReelCore

/// A destination for a player's frames. It can be attached and detached during playback.
public protocol FrameOutput: AnyObject, Sendable {
  /// Whether the output shows frames outside of the process, such as in a file or a pipe. A player refuses it unless
  /// ``Player/allowsExternalPlayback`` is true.
  var isExternal: Bool { get }

  /// Shows a frame. The player calls this with each frame when it is due, on one thread at a time.
  ///
  /// The frame is only valid during the call; keep it with ``TimedFrame/clone()``. A call that takes long makes later
  /// frames late. If it throws, the player detaches the output and sends ``PlayerEvent/outputFailed(_:)``.
  func show(_ frame: borrowing TimedFrame) throws

  /// Called before ``finish()`` with the end of the frames and the audio that were handed out, in
  /// ``TimedFrame/outputTime``. The last frame was on show until then.
  func ended(at outputTime: MediaTime)

  /// Ends the output. The player calls this once, when it has detached the output; no frames follow.
  func finish() throws
}

extension FrameOutput {
  /// Does nothing.
  public func ended(at outputTime: MediaTime) {}
}
