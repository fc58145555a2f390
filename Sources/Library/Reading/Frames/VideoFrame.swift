public import ReelCore
public import ReelFFmpeg
internal import ReelManifest
package import ReelSources

/// A decoded frame with its time on the timeline.
///
/// Copies share the pixels, which never change and are freed with the last copy. You can keep a frame as long as you
/// want, but it holds its memory (``byteCount``).
///
/// ``rgba``, ``bgra``, ``jpeg(quality:)``, ``png()`` and ``scaled(toFit:)`` convert a frame to what a viewer sees:
/// upright, with square pixels, in sRGB, HDR mapped to SDR. ``withPlanes(_:)`` reads the pixels as decoded.
public struct VideoFrame: Sendable {
  /// The time at which the frame is shown, on the timeline of the source, which begins at 0.
  public package(set) var time: MediaTime
  /// The running time of a player's outputs: it begins at 0 with the player's first frame, and continues over
  /// loops, seeks, jumps and items. A gap in the media is a gap here too, of at most 60 s. For a frame that
  /// does not come from a player, it is `time`.
  public package(set) var outputTime: MediaTime
  /// The stream that the frame belongs to, with its time base, rotation and aspect ratio.
  package internal(set) var stream: StreamInfo
  /// The frame rate in frames per second. Nil if neither the container nor the bitstream states it.
  public let frameRate: Rational?
  /// The media time that the player left out between the end of the previously shown frame and this one, at a gap in
  /// the timeline or in a jump towards the live edge.
  package var skipped = MediaTime.zero
  /// The media that was lost between the end of the previously shown frame and this one. Nil if
  /// no loss is known: the previous frame was to be shown until now.
  package var loss: MediaLoss?
  /// The owner of the pixels: the same in all copies, and in no other frame.
  package internal(set) var decoded: Frame
  /// The identity of the feed's item that the frame belongs to, for pools.
  package var itemID: (any Hashable & Sendable)?
  /// The span that the frame was read from.
  package var span: StreamSpan?
  /// The most that the frame is shown, because its period ends; nil for no limit.
  package var displayLimit: MediaTime?

  package init(_ decoded: Frame, time: MediaTime, stream: StreamInfo, frameRate: Rational?) {
    self.decoded = decoded
    self.time = time
    outputTime = time
    self.stream = stream
    self.frameRate = frameRate
  }

  // MARK: Pixels

  /// The size in stored pixels after cropping, before sample aspect ratio and rotation.
  public var size: PixelSize { decoded.size }

  /// The size of the frame when shown upright with square pixels.
  public var presentationSize: PixelSize { geometry().output }

  /// FFmpeg's name for the pixel format, such as `yuv420p10le`.
  public var pixelFormat: String { decoded.pixelFormat }

  /// The colour properties, as the bitstream states them and as Reel uses them.
  public var color: ColorDescription { decoded.color }

  /// The size in bytes of the pixels in memory, including padding. Copies share them.
  public var byteCount: Int { decoded.byteCount }

  /// The pixels of one plane, in memory that is valid only while the closure of ``withPlanes(_:)`` runs.
  public struct Plane {
    /// The address of the first row.
    public let base: UnsafeRawPointer
    /// The number of rows.
    public let rowCount: Int
    /// The number of bytes of pixels in a row.
    public let rowByteCount: Int
    /// The distance in bytes from one row to the next, with padding. May be negative.
    public let stride: Int
  }

  /// Calls `body` with the decoded pixels, one plane after the other as ``pixelFormat`` has them, and returns its
  /// result.
  public func withPlanes<Result, Failure: Error>(
    _ body: ([Plane]) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let planes = (0..<decoded.planeCount).compactMap { index in
      decoded.withPlane(index) { Plane(base: $0, rowCount: $1, rowByteCount: $2, stride: $3) }
    }
    defer { withExtendedLifetime(decoded) {} }
    return try body(planes)
  }

  /// Returns the MD5 of the pixels, plane by plane without padding, as 32 hexadecimal digits: the value that
  /// `ffmpeg -f framemd5` prints.
  ///
  /// - Throws: `ReelError` of kind `internalFault` if memory runs out.
  package func md5() throws(ReelError) -> String { try decoded.md5() }

  // MARK: Properties of the bitstream

  /// The presentation time in ticks of the stream's time base, or the decoder's estimate of it; nil if unknown.
  package var presentationTicks: Int64? { decoded.presentationTicks }

  /// The duration in ticks of the stream's time base; 0 if unknown.
  package var durationTicks: Int64 { decoded.durationTicks }

  /// True for a key frame, which decodes without other frames.
  public var isKey: Bool { decoded.isKey }

  /// True if the frame consists of two interlaced fields.
  public var isInterlaced: Bool { decoded.isInterlaced }

  /// True if the frame differs from the encoded one: a reference was missing, or the decoder concealed errors.
  public var isDamaged: Bool { decoded.isDamaged }

  /// The rotation and mirroring that make the frame upright.
  public var orientation: Orientation {
    Orientation(rotation: stream.rotation, isMirrored: stream.isMirrored)
  }

  /// The ratio of pixel width to pixel height: the container's if it states one, as in FFmpeg, otherwise the
  /// bitstream's.
  public var sampleAspectRatio: Rational? { stream.sampleAspectRatio ?? decoded.sampleAspectRatio }

  // MARK: Inside the library

  /// Returns the frame with a copy of the pixels that takes less memory; nil if none is possible.
  ///
  /// - Parameter account: The account that the memory of the copy is counted on.
  package func compacted(for account: MemoryAccount?) -> VideoFrame? {
    guard let smaller = decoded.compacted(for: account) else { return nil }
    var copy = self
    copy.decoded = smaller
    return copy
  }

  /// The display time of the frame: its own duration, or else that of a frame at the stream's rate, or else
  /// 100 ms.
  package var displayTime: MediaTime {
    displayLimit.map { min($0, ownDisplayTime) } ?? ownDisplayTime
  }

  private var ownDisplayTime: MediaTime {
    if durationTicks > 0 { return stream.time(ticks: durationTicks) }
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
    guard durationTicks > 0 else { return stated ?? Self.usualRate }
    let length = stream.time(ticks: durationTicks)
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

  /// Returns the position and size of the frame's pixels in an output.
  ///
  /// - Parameters:
  ///   - target: The output's size. Nil for the frame's own upright size with square pixels.
  ///   - gravity: How the frame fits into `target`.
  package func geometry(target: PixelSize? = nil, gravity: VideoGravity = .resizeAspect) -> FrameGeometry {
    FrameGeometry(
      stored: size, sampleAspectRatio: sampleAspectRatio, orientation: orientation, target: target,
      gravity: gravity)
  }
}

extension VideoFrame: CustomStringConvertible {
  /// `256x144 at 0.066 s`.
  public var description: String { "\(presentationSize.width)x\(presentationSize.height) at \(time)" }
}

extension MediaTime {
  package init(frameCount: Int64, at rate: Rational) {
    self = MediaTime(value: Int64(rate.denominator), timescale: rate.numerator) * frameCount
  }

  /// Returns the number of frames until this time, rounded down.
  package func frameCount(at rate: Rational) -> Int64 {
    let ticks = ticks(timescale: rate.numerator)
    let (quotient, remainder) = ticks.quotientAndRemainder(dividingBy: Int64(max(1, rate.denominator)))
    return remainder < 0 ? quotient - 1 : quotient
  }

  /// The number of frames until this time, rounded to the nearest.
  package func nearestFrame(at rate: Rational) -> Int64 { ((self * 2).frameCount(at: rate) + 1) >> 1 }
}
