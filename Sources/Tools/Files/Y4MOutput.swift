public import ReelCore
public import ReelPlayback
internal import ReelFFmpeg
public import ReelReading

/// An output that writes frames as YUV4MPEG2: samples as decoded, turned upright.
///
/// Size, pixel format, aspect ratio and frame rate are those of the first frame. Later frames that differ,
/// such as those of another rung, are converted and scaled to match, with black bars if their aspect ratio
/// differs. HDR is not tone mapped.
///
/// YUV4MPEG2 has no timestamps: the header's rate gives each frame its time. Therefore, a frame is written at
/// the position nearest to its `VideoFrame.outputTime`, and repeated until the next one: across gaps and
/// dropped frames, and at variable rates. Of two frames at one position, the first is written. The file
/// begins with the first frame, and is synchronous with that of a ``WAVOutput`` of the same player. If the
/// first frame's duration shows that the stream's rate is only an average below 25, the header has a multiple
/// of the frame's own rate instead.
public final class Y4MOutput: FrameOutput {
  /// True.
  public let isExternal = true
  private let state: Locked<State>

  private struct State {
    /// Nil once the output was finished or has failed.
    var sequence: Y4MSequence?
    /// The end of playback, in output time.
    var end: MediaTime?
  }

  /// Creates an output that writes to a file.
  ///
  /// The file is written under a temporary name and gets its own name from ``finish()``; without any frame there is no
  /// file. An existing named pipe or device at `path` is written to directly. Opening a named pipe waits for its
  /// reader.
  ///
  /// Throws `ReelError.cannotCreateOutput`.
  public convenience init(path: String) throws(ReelError) {
    self.init(try OutputFile(path: path))
  }

  private init(_ file: sending OutputFile) {
    state = Locked(State(sequence: Y4MSequence(to: file)), rank: .transfer)
  }

  /// Creates an output that writes to the process's standard output.
  ///
  /// If the reader closes the pipe, ``show(_:)`` throws, provided that the process ignores SIGPIPE. Otherwise the
  /// signal ends the process.
  public static func standardOutput() -> Y4MOutput { Y4MOutput(.standardOutput()) }

  /// Writes a frame at its position, after repetitions of the previous one.
  ///
  /// Throws `ReelError`:
  /// - `cannotWriteOutput` if writing fails. The file is removed.
  /// - `unsupported` if YUV4MPEG2 has no name for the frame's pixel format, or if the frame can't be converted to match
  ///   the first one. Earlier frames are kept.
  /// - `usage` after ``finish()`` or a failed write.
  public func show(_ frame: VideoFrame) throws {
    try state.withLock { state in
      guard state.sequence != nil else {
        throw ReelError(.usage, "the output has ended and can't show frames")
      }
      do throws(ReelError) {
        try state.sequence?.write(frame)
      } catch {
        if error.kind == .cannotWriteOutput { state.sequence = nil }
        throw error
      }
    }
  }

  /// Records the end, up to which ``finish()`` repeats the last frame.
  public func ended(at outputTime: MediaTime) { state.withLock { $0.end = outputTime } }

  /// Ends the file and gives it its name. Does nothing in a second call, or after a frame could not be
  /// written.
  ///
  /// Throws `ReelError.cannotWriteOutput` or `cannotCreateOutput`.
  public func finish() throws {
    try state.withLock { state in
      defer { state.sequence = nil }
      try state.sequence?.finish(at: state.end)
    }
  }
}

/// Writes frames by their output time in a YUV4MPEG2 file, which has a constant rate and no timestamps: each
/// at the position nearest to its time, and repeated up to the next one. `Y4MOutput` adds the lock.
struct Y4MSequence {
  /// The frames of the file.
  private struct Track {
    let rate: Rational
    /// The output time of the first frame.
    let start: MediaTime
    var count: Int64 = 1
    /// The last frame, which is repeated.
    var last: PlanarImage
    /// The end of the last frame.
    var end: MediaTime

    /// Returns the number of frames before the one at `time`. Times are often rounded to milliseconds, so the
    /// next position is used if it would be the nearest without that rounding.
    func place(of time: MediaTime) -> Int64 {
      let (time, rounding) = (time - start, MediaTime(value: 1, timescale: 1000))
      let isNext =
        (time - rounding).nearestFrame(at: rate) <= count && (time + rounding).nearestFrame(at: rate) >= count
      return isNext ? count : time.nearestFrame(at: rate)
    }
  }

  private let writer: Y4MWriter
  private var track: Track?

  /// Audio that is longer than the frames by up to this much is padding of its encoder. During longer audio,
  /// the last frame is repeated.
  private static let paddingLimit = MediaTime(value: 1, timescale: 10)

  init(to file: OutputFile) { writer = Y4MWriter(to: file) }

  /// Writes a frame after the repetitions of the previous one. Leaves it out if its position is occupied.
  ///
  /// Throws like `Y4MWriter.convert(_:rate:)` and `write(_:)`.
  mutating func write(_ frame: VideoFrame) throws(ReelError) {
    let time = frame.outputTime
    let end = time + min(frame.displayTime, OutputTimeline.longestHole)
    guard let track else {
      let rate = frame.constantRate
      let image = try writer.convert(frame, rate: rate)
      track = Track(rate: rate, start: time, last: image, end: end)
      return try writer.write(image)
    }
    let place = track.place(of: time)
    guard place >= track.count else { return }
    let image = try writer.convert(frame, rate: track.rate)
    try fill(to: place)
    try writer.write(image)
    self.track?.count += 1
    self.track?.last = image
    self.track?.end = end
  }

  /// Completes the file. Without a frame, there is none.
  ///
  /// - Parameter end: The end of playback in output time; nil for that of the last frame.
  mutating func finish(at end: MediaTime?) throws(ReelError) {
    guard let track else { return }
    let end = end ?? track.end
    try fill(to: track.place(of: end - track.end > Self.paddingLimit ? end : min(end, track.end)))
    try writer.finish()
  }

  // MARK: - Private

  /// Repeats the last frame until there are `count` frames.
  private mutating func fill(to count: Int64) throws(ReelError) {
    while let track, track.count < count {
      try writer.write(track.last)
      self.track?.count += 1
    }
  }
}

/// Writes frames as YUV4MPEG2: decoded samples, turned upright, with aspect ratio and range in the header.
///
/// Confined to one thread at a time.
package final class Y4MWriter {
  private let file: OutputFile
  private var header: [UInt8]?
  private let images = UniformImages()

  package init(to file: OutputFile) { self.file = file }

  /// Writes a frame and returns its size. Throws `ReelError.unsupported` for a frame that the format can't
  /// express, or that differs from the first, because Y4M has one header for all frames; `cannotWriteOutput` if writing
  /// fails.
  package func write(_ frame: VideoFrame) throws(ReelError) -> PixelSize {
    let image = try PlanarImage(frame.decoded, orientation: frame.orientation)
    try start(with: image, of: frame, rate: frame.frameRate ?? Rational(25, 1))
    try write(image)
    return image.size
  }

  /// Like `write(_:)`, but converts a frame that differs from the first: scaled, with bars if its aspect
  /// ratio differs.
  ///
  /// - Parameter rate: The rate of the header; only the first call's value has an effect.
  func convert(_ frame: VideoFrame, rate: Rational) throws(ReelError) -> PlanarImage {
    let image = try images.image(of: frame)
    if header == nil { try start(with: image, of: frame, rate: rate) }
    return image
  }

  /// Writes an image that `convert` has returned. Throws `ReelError.cannotWriteOutput`.
  func write(_ image: PlanarImage) throws(ReelError) {
    try file.write(Array("FRAME\n".utf8))
    for plane in image.planes { try file.write(plane) }
  }

  /// Completes the file. Throws like `OutputFile.commit()`.
  package func finish() throws(ReelError) { try file.commit() }

  // MARK: - Private

  /// Writes the header. For a later frame, compares it with the header.
  private func start(
    with image: PlanarImage, of frame: VideoFrame, rate: Rational
  ) throws(ReelError) {
    let wanted = Self.header(of: image, frame: frame, rate: rate)
    if let header {
      guard header == wanted else {
        throw ReelError(
          .unsupported, "the frames' size or format changes, which Y4M can't hold",
          at: frame.stream.codecName)
      }
      return
    }
    header = wanted
    try file.write(wanted)
  }

  private static func header(
    of image: PlanarImage, frame: VideoFrame, rate: Rational
  ) -> [UInt8] {
    var aspect = frame.sampleAspectRatio ?? Rational(1, 1)
    if frame.orientation.swapsAxes { aspect = Rational(aspect.denominator, aspect.numerator) }
    let range = image.isFullRange ? " XCOLORRANGE=FULL" : ""
    let text =
      "YUV4MPEG2 W\(image.size.width) H\(image.size.height) F\(rate.numerator):\(rate.denominator) Ip"
      + " A\(aspect.numerator):\(aspect.denominator) C\(colorTag(of: image))\(range)\n"
    return Array(text.utf8)
  }

  private static func colorTag(of image: PlanarImage) -> String {
    let depth = image.bitDepth > 8 ? "p\(image.bitDepth)" : ""
    switch image.chroma {
    case .none: return image.bitDepth > 8 ? "mono\(image.bitDepth)" : "mono"
    case .c422: return "422\(depth)"
    case .c444: return "444\(depth)"
    case .c420 where image.bitDepth > 8: return "420\(depth)"
    case .c420(.left): return "420mpeg2"
    case .c420(.topLeft): return "420paldv"
    case .c420(.other): return "420jpeg"
    }
  }
}
