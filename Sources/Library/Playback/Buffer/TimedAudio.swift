public import ReelCore
public import ReelFFmpeg

/// Decoded audio with its time on the timeline.
public struct TimedAudio: Sendable {
  /// The samples. Use ``time`` instead of the buffer's own ticks.
  public let buffer: PCMBuffer
  /// The time of the first sample, on the item's timeline. It jumps at seeks and loops.
  public let time: MediaTime
  /// The time of the first sample since the frame that was on show when the output was attached, or since the
  /// first frame if there was none. It continues over loops and seeks, like ``VideoFrame/outputTime``, and is
  /// negative for audio before that frame.
  public let outputTime: MediaTime

  /// Creates audio with its time. By default, the output time is `time` too.
  public init(_ buffer: PCMBuffer, time: MediaTime, outputTime: MediaTime? = nil) {
    self.buffer = buffer
    self.time = time
    self.outputTime = outputTime ?? time
  }
}
