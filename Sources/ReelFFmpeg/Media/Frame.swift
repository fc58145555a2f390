internal import CFFmpeg
internal import CFFmpegShims
public import ReelCore

/// One decoded frame.
///
/// Ownership: the frame owns its `AVFrame`; the pixels are reference-counted by FFmpeg, `clone()` takes one more
/// reference and copies no pixel. Planes are read through `withPlane`, valid during the call. Freed when the value
/// ends.
public struct Frame: ~Copyable, @unchecked Sendable {
  // Sendable: the only owner of its AVFrame; a decoder does not write to a frame that it has handed out.
  let pointer: UnsafeMutablePointer<AVFrame>

  /// True where a reference was missing, or parts were concealed: the frame is not what was encoded.
  public internal(set) var isDamaged = false

  init() throws(ReelError) {
    guard let pointer = av_frame_alloc() else { throw ReelError(.internalFault, "out of memory") }
    self.pointer = pointer
  }

  private init(owning pointer: UnsafeMutablePointer<AVFrame>) { self.pointer = pointer }

  deinit {
    var pointer: UnsafeMutablePointer<AVFrame>? = pointer
    av_frame_free(&pointer)
  }

  /// Another owner of the same pixels.
  public borrowing func clone() throws(ReelError) -> Frame {
    var copy = try Frame()
    guard av_frame_ref(copy.pointer, pointer) == 0 else { throw ReelError(.internalFault, "out of memory") }
    copy.isDamaged = isDamaged
    return copy
  }

  /// A copy without what decoders want between and behind the rows of a frame, for one that is held for long. Nil where
  /// it would be no smaller, and for formats that do not lie in memory plane by plane.
  ///
  /// - Parameter account: What the copy is counted on.
  package borrowing func compacted(for account: MemoryAccount?) -> Frame? {
    guard let made = reel_frame_compact(pointer, account?.account) else { return nil }
    var copy = Frame(owning: made)
    copy.isDamaged = isDamaged
    return copy
  }

  /// Width and height in stored pixels, cropping applied, before sample aspect ratio and rotation.
  public var size: PixelSize {
    PixelSize(width: Int(pointer.pointee.width), height: Int(pointer.pointee.height))
  }

  /// Presentation time in ticks of the stream's time base, as near as the decoder knows it.
  public var presentationTicks: Int64? {
    let own = pointer.pointee.pts
    // The decoder's guess turns to decoding times where some timestamps were odd: it is for frames without one.
    let ticks = own == reel_nopts() ? pointer.pointee.best_effort_timestamp : own
    return ticks == reel_nopts() ? nil : ticks
  }

  /// In ticks; 0 where it is unknown.
  public var durationTicks: Int64 { reel_frame_duration(pointer) }

  public var isKey: Bool { reel_frame_is_key(pointer) }

  public var isInterlaced: Bool { reel_frame_is_interlaced(pointer) }

  /// Pixel width to pixel height; nil where the bitstream does not tell.
  public var sampleAspectRatio: Rational? {
    let ratio = pointer.pointee.sample_aspect_ratio
    return ratio.num > 0 && ratio.den > 0 ? Rational(ratio.num, ratio.den) : nil
  }

  /// FFmpeg's name of the pixel format, as `yuv420p10le`.
  public var pixelFormat: String {
    String(cString: av_get_pix_fmt_name(format) ?? av_get_pix_fmt_name(AV_PIX_FMT_NONE))
  }

  /// Colour as the bitstream states it, and as Reel takes it.
  public var color: ColorDescription { ColorDescription(pointer) }

  /// The number of planes.
  public var planeCount: Int { max(0, Int(av_pix_fmt_count_planes(format))) }

  /// Bytes of the frame's pixels as FFmpeg allocated them, padding included. A clone has as many: the same ones.
  public var byteCount: Int {
    let buffers = pointer.pointee.buf
    let all = [
      buffers.0, buffers.1, buffers.2, buffers.3, buffers.4, buffers.5, buffers.6, buffers.7,
    ]
    return all.reduce(0) { $0 + Int($1?.pointee.size ?? 0) }
  }

  /// One plane: `rows` rows of `bytesPerRow` bytes of pixels, `stride` bytes apart (stride may be negative).
  /// `body` gets the address of the first row; what it returns is the result. Nil where there is no such plane.
  public borrowing func withPlane<Result, Failure: Error>(
    _ index: Int,
    _ body: (_ base: UnsafeRawPointer, _ rows: Int, _ bytesPerRow: Int, _ stride: Int) throws(Failure) ->
      Result
  ) throws(Failure) -> Result? {
    guard index >= 0, index < planeCount, let base = planePointer(index) else { return nil }
    let bytesPerRow = Int(av_image_get_linesize(format, pointer.pointee.width, Int32(index)))
    return try body(base, rowCount(ofPlane: index), bytesPerRow, planeStride(index))
  }

  /// The md5 of the frame's pixels, plane by plane without padding: what `ffmpeg -f framemd5` gives for it. 32
  /// hexadecimal digits.
  public borrowing func md5() throws(ReelError) -> String {
    let hash = try MD5Hash()
    for plane in 0..<planeCount {
      withPlane(plane) { base, rows, bytesPerRow, stride in
        for row in 0..<rows {
          hash.update(base.advanced(by: row * stride), count: bytesPerRow)
        }
      }
    }
    return hash.digest()
  }

  // MARK: - Internal

  var format: AVPixelFormat { AVPixelFormat(pointer.pointee.format) }

  /// The tag of the packet that the frame came from.
  var tag: Int64 { reel_frame_tag(pointer) }

  // MARK: - Private

  private func planePointer(_ index: Int) -> UnsafeMutablePointer<UInt8>? {
    switch index {
    case 0: pointer.pointee.data.0
    case 1: pointer.pointee.data.1
    case 2: pointer.pointee.data.2
    default: pointer.pointee.data.3
    }
  }

  private func planeStride(_ index: Int) -> Int {
    switch index {
    case 0: Int(pointer.pointee.linesize.0)
    case 1: Int(pointer.pointee.linesize.1)
    case 2: Int(pointer.pointee.linesize.2)
    default: Int(pointer.pointee.linesize.3)
    }
  }

  private func rowCount(ofPlane index: Int) -> Int {
    let height = Int(pointer.pointee.height)
    guard index == 1 || index == 2, let descriptor = av_pix_fmt_desc_get(format) else { return height }
    let shift = Int(descriptor.pointee.log2_chroma_h)
    return (height + (1 << shift) - 1) >> shift
  }
}
