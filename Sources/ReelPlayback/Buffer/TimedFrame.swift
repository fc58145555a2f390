public import ReelCore
public import ReelFFmpeg

/// A decoded frame with its place on the presentation's timeline.
public struct TimedFrame: ~Copyable, Sendable {
  /// The pixels.
  public let decoded: Frame
  /// On the presentation's timeline, which begins at 0.
  public internal(set) var time: MediaTime
  /// The stream that it belongs to: time base, rotation, aspect ratio.
  public let stream: StreamInfo
  /// Frames per second, where container or bitstream tell.
  public let frameRate: Rational?
  /// The media time that the player left out between the end of the previously shown frame and this one, at a hole in
  /// the timeline or in a jump towards the live edge.
  public internal(set) var skipped = MediaTime.zero
  /// What a player read it with.
  var span: StreamSpan?

  public init(_ decoded: consuming Frame, time: MediaTime, stream: StreamInfo, frameRate: Rational?) {
    self.decoded = decoded
    self.time = time
    self.stream = stream
    self.frameRate = frameRate
  }

  /// Another owner of the same frame.
  public borrowing func clone() throws(ReelError) -> TimedFrame {
    var copy = TimedFrame(try decoded.clone(), time: time, stream: stream, frameRate: frameRate)
    copy.skipped = skipped
    copy.span = span
    return copy
  }

  /// As `clone()`, but with a smaller copy of the pixels; nil where there is none.
  borrowing func compacted(for account: MemoryAccount?) -> TimedFrame? {
    guard let frame = decoded.compacted(for: account) else { return nil }
    var copy = TimedFrame(frame, time: time, stream: stream, frameRate: frameRate)
    copy.skipped = skipped
    copy.span = span
    return copy
  }

  /// How long it is on show: its own duration, or a frame of the stream's rate, or a moment.
  var displayTime: MediaTime {
    if decoded.durationTicks > 0 { return stream.time(ticks: decoded.durationTicks) }
    if let rate = frameRate {
      return MediaTime(value: Int64(rate.denominator), timescale: rate.numerator)
    }
    return MediaTime(value: 1, timescale: 10)
  }

  /// How the frame is turned to stand upright.
  public var orientation: Orientation {
    Orientation(rotation: stream.rotation, isMirrored: stream.isMirrored)
  }

  /// The container's aspect ratio where it has one, as ffmpeg takes it, else the bitstream's.
  public var sampleAspectRatio: Rational? { stream.sampleAspectRatio ?? decoded.sampleAspectRatio }

  /// Where the frame's pixels go in an output; `target` nil for the frame's own upright size.
  public func geometry(target: PixelSize? = nil, gravity: VideoGravity = .resizeAspect) -> FrameGeometry {
    FrameGeometry(
      stored: decoded.size, sampleAspectRatio: sampleAspectRatio, orientation: orientation, target: target,
      gravity: gravity)
  }
}
