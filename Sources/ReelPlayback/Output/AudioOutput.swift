public import ReelCore
public import ReelFFmpeg

/// Where a player sends its sound.
public protocol AudioOutput: AnyObject, Sendable {
  /// Called with all samples as they are to be heard, in order, on one thread at a time; volume has been applied. The
  /// buffer's own ticks say nothing here.
  ///
  /// - Parameter time: when the first sample is heard, on the presentation's timeline. It steps where the player was
  ///   sought.
  func write(_ buffer: PCMBuffer, at time: MediaTime) throws

  /// No more samples come. A second call does nothing more.
  func finish() throws

  /// Called when all audio of the item has been handed out. Frames may still follow. More audio comes only if the
  /// player seeks or gets another item.
  func soundEnded()
}

extension AudioOutput {
  public func soundEnded() {}
}
