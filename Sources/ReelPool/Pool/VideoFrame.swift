public import ReelCore
internal import ReelFFmpeg
public import ReelPlayback

/// A decoded frame of an item of a pool.
///
/// Copies of a reference share the pixels, which nobody changes any more. The last one frees them, so a program that
/// keeps frames keeps their memory.
public final class VideoFrame: Sendable {
  /// The item that the frame belongs to.
  public let item: FeedItem.ID
  /// The frame itself: its pixels (`timed.decoded`), colour, orientation and geometry.
  public let timed: TimedFrame

  public init(_ frame: consuming TimedFrame, item: FeedItem.ID) {
    self.item = item
    self.timed = frame
  }

  /// On the presentation's timeline, which begins at 0.
  public var time: MediaTime { timed.time }

  /// The size of the upright frame with square pixels.
  public var size: PixelSize { timed.geometry().output }
}

extension VideoFrame: CustomStringConvertible {
  /// `256x144 at 0.066 s`.
  public var description: String { "\(size.width)x\(size.height) at \(time)" }
}
