public import ReelCore
internal import ReelFFmpeg
public import ReelPlayback

/// A decoded frame of an item in a pool.
///
/// All references share the pixels, which never change. Releasing the last one frees the memory.
public final class VideoFrame: Sendable {
  /// The item that the frame belongs to.
  public let item: FeedItem.ID
  /// The frame with its time, colour, orientation and geometry. The pixels are in `timed.decoded`.
  public let timed: TimedFrame

  /// Takes over a frame of an item.
  public init(_ frame: consuming TimedFrame, item: FeedItem.ID) {
    self.item = item
    self.timed = frame
  }

  /// The frame's time on the presentation's timeline, which begins at 0.
  public var time: MediaTime { timed.time }

  /// The size of the frame when shown upright with square pixels.
  public var size: PixelSize { timed.geometry().output }
}

extension VideoFrame: CustomStringConvertible {
  /// `256x144 at 0.066 s`.
  public var description: String { "\(size.width)x\(size.height) at \(time)" }
}
