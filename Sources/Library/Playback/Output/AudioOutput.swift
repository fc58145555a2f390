public import ReelCore

/// A destination for a player's audio. It can be attached and detached during playback.
public protocol AudioOutput: AnyObject, Sendable {
  /// Receives samples when they are due, in order, on one thread at a time. The player's volume is already applied.
  ///
  /// If it throws, the player detaches the output and sends ``PlayerEvent/outputFailed(_:)``.
  func write(_ audio: TimedAudio) throws

  /// Called before ``finish()`` with the end of the frames and the audio that were handed out, in
  /// ``TimedAudio/outputTime``.
  func ended(at outputTime: MediaTime)

  /// Ends the output: no samples follow. A second call must have no effect.
  func finish() throws

  /// Called when all audio of the item has been written. Frames may still follow. More audio follows only if the
  /// player seeks or gets another item.
  func soundEnded()
}

extension AudioOutput {
  /// Does nothing.
  public func ended(at outputTime: MediaTime) {}

  /// Does nothing.
  public func soundEnded() {}
}
