public import ReelCore
public import ReelFFmpeg
internal import ReelManifest

/// A decoded frame with its time on the timeline.
public struct TimedFrame: ~Copyable, Sendable {
  /// The pixels.
  public let decoded: Frame
  /// The time at which the frame is shown, on the timeline of the source, which begins at 0.
  public internal(set) var time: MediaTime
  /// The running time of a player's outputs: it begins at 0 with the player's first frame, and continues over
  /// loops, seeks, jumps and items. A gap in the media is a gap here too, of at most 60 s. For a frame that
  /// does not come from a player, it is `time`.
  public package(set) var outputTime: MediaTime
  /// The stream that the frame belongs to, with its time base, rotation and aspect ratio.
  public let stream: StreamInfo
  /// The frame rate in frames per second. Nil if neither the container nor the bitstream states it.
  public let frameRate: Rational?
  /// The media time that the player left out between the end of the previously shown frame and this one, at a gap in
  /// the timeline or in a jump towards the live edge.
  public internal(set) var skipped = MediaTime.zero
  /// The media between the end of the previously shown frame and this one, of which nothing was shown. Nil if
  /// no loss is known: the previous frame was to be shown until now.
  public internal(set) var loss: MediaLoss?
  /// True if something just before the frame, or a few frames earlier, could not be decoded.
  var followsDamage = false
  /// The span that the frame was read from.
  var span: StreamSpan?

  /// Creates a frame with its time, in the stream that it belongs to.
  public init(_ decoded: consuming Frame, time: MediaTime, stream: StreamInfo, frameRate: Rational?) {
    self.decoded = decoded
    self.time = time
    outputTime = time
    self.stream = stream
    self.frameRate = frameRate
  }

  /// Returns a second owner of the same pixels. No pixels are copied.
  public borrowing func clone() throws(ReelError) -> TimedFrame {
    var copy = TimedFrame(try decoded.clone(), time: time, stream: stream, frameRate: frameRate)
    copy.outputTime = outputTime
    copy.skipped = skipped
    copy.loss = loss
    copy.followsDamage = followsDamage
    copy.span = span
    return copy
  }

  /// Like `clone()`, but with a copy of the pixels that takes less memory; nil if none is possible.
  borrowing func compacted(for account: MemoryAccount?) -> TimedFrame? {
    guard let frame = decoded.compacted(for: account) else { return nil }
    var copy = TimedFrame(frame, time: time, stream: stream, frameRate: frameRate)
    copy.outputTime = outputTime
    copy.skipped = skipped
    copy.loss = loss
    copy.followsDamage = followsDamage
    copy.span = span
    return copy
  }

  /// The display time of the frame: its own duration, or else that of a frame at the stream's rate, or else
  /// 100 ms.
  package var displayTime: MediaTime {
    if decoded.durationTicks > 0 { return stream.time(ticks: decoded.durationTicks) }
    if let rate = frameRate {
      return MediaTime(value: Int64(rate.denominator), timescale: rate.numerator)
    }
    return MediaTime(value: 1, timescale: 10)
  }

  /// The rate of a file with a constant frame rate that begins with this frame: the stream's rate. If that is
  /// below 25 and differs from the frame's own rate, it is only an average. The result is then the frame's
  /// own rate, or a multiple of it that is at least 25, so that no frame is more than 20 ms from its time. If
  /// the stream has no rate, it is the frame's own, or 25.
  package var constantRate: Rational {
    let stated = frameRate.flatMap { $0.isPositive ? $0 : nil }
    guard decoded.durationTicks > 0 else { return stated ?? Self.usualRate }
    let length = stream.time(ticks: decoded.durationTicks)
    if let stated {
      let difference = (length - MediaTime(frameCount: 1, at: stated)).seconds
      guard abs(difference) > 0.002, stated.value < Self.usualRate.value else { return stated }
    }
    let count = stated == nil ? 1 : (Self.usualRate.value * length.seconds).rounded(.up)
    guard count / length.seconds <= Self.greatestRate, let denominator = Int32(exactly: length.value),
      let numerator = Int32(exactly: Double(length.timescale) * count)
    else { return stated ?? Self.usualRate }
    return Rational(numerator, denominator).reduced
  }

  private static let usualRate = Rational(25, 1)
  private static let greatestRate = 120.0

  /// The rung that the frame was read from, and its bit rate as the manifest states it; nil for a media file.
  package var rung: (id: String, bitRate: Int?)? {
    span?.rung.map { ($0.id, $0.bitsPerSecond ?? $0.averageBitsPerSecond) }
  }

  /// The rotation and mirroring that make the frame upright.
  public var orientation: Orientation {
    Orientation(rotation: stream.rotation, isMirrored: stream.isMirrored)
  }

  /// The ratio of pixel width to pixel height: the container's if it states one, as in FFmpeg, otherwise the
  /// bitstream's.
  public var sampleAspectRatio: Rational? { stream.sampleAspectRatio ?? decoded.sampleAspectRatio }

  /// Returns the position and size of the frame's pixels in an output.
  ///
  /// - Parameters:
  ///   - target: The output's size. Nil for the frame's own upright size with square pixels.
  ///   - gravity: How the frame fits into `target`.
  public func geometry(target: PixelSize? = nil, gravity: VideoGravity = .resizeAspect) -> FrameGeometry {
    FrameGeometry(
      stored: decoded.size, sampleAspectRatio: sampleAspectRatio, orientation: orientation, target: target,
      gravity: gravity)
  }
}
