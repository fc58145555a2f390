internal import CFFmpeg
internal import CFFmpegShims
public import ReelCore

/// One decoded frame.
///
/// A frame owns a reference to its pixels, which FFmpeg counts, and releases it at the end of its life. `clone()` takes
/// another reference without copying pixels. To read pixels, use `withPlane(_:_:)`.
public struct Frame: ~Copyable, @unchecked Sendable {
  // Sendable: the sole owner of its AVFrame. A decoder does not write to a frame that it has handed out.
  let pointer: UnsafeMutablePointer<AVFrame>

  /// True if the frame differs from the encoded one: a reference was missing, or the decoder concealed errors.
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

  /// Returns another frame that shares the same pixels.
  ///
  /// - Throws: `ReelError` of kind `internalFault` if memory runs out.
  public borrowing func clone() throws(ReelError) -> Frame {
    var copy = try Frame()
    guard av_frame_ref(copy.pointer, pointer) == 0 else { throw ReelError(.internalFault, "out of memory") }
    copy.isDamaged = isDamaged
    return copy
  }

  /// Another frame that shares the same pixels, with the times of another packet.
  package borrowing func retimed(by packet: borrowing Packet) throws(ReelError) -> Frame {
    let copy = try clone()
    if let ticks = packet.presentationTicks {
      reel_frame_set_times(copy.pointer, ticks, packet.decodingTicks ?? ticks, packet.durationTicks)
    }
    return copy
  }

  /// Returns a copy without the padding that decoders need, for a frame that is kept for long. Returns nil if the copy
  /// would not be smaller, and for formats that are not stored plane by plane.
  ///
  /// - Parameter account: The account that the memory of the copy is counted on.
  package borrowing func compacted(for account: MemoryAccount?) -> Frame? {
    guard let made = reel_frame_compact(pointer, account?.account) else { return nil }
    var copy = Frame(owning: made)
    copy.isDamaged = isDamaged
    return copy
  }

  /// The size in stored pixels after cropping, before sample aspect ratio and rotation.
  public var size: PixelSize {
    PixelSize(width: Int(pointer.pointee.width), height: Int(pointer.pointee.height))
  }

  /// The presentation time in ticks of the stream's time base, or the decoder's estimate of it; nil if unknown.
  public var presentationTicks: Int64? {
    let own = pointer.pointee.pts
    // FFmpeg's estimate switches to decoding times after odd timestamps: use it only for frames without a timestamp.
    let ticks = own == reel_nopts() ? pointer.pointee.best_effort_timestamp : own
    return ticks == reel_nopts() ? nil : ticks
  }

  /// The duration in ticks; 0 if unknown.
  public var durationTicks: Int64 { reel_frame_duration(pointer) }

  /// True if FFmpeg marks this very frame as damaged.
  var isFlaggedDamaged: Bool {
    pointer.pointee.flags & AV_FRAME_FLAG_CORRUPT != 0 || pointer.pointee.decode_error_flags != 0
  }

  /// True for a key frame, which decodes without other frames.
  public var isKey: Bool { reel_frame_is_key(pointer) }

  /// True if the frame consists of two interlaced fields.
  public var isInterlaced: Bool { reel_frame_is_interlaced(pointer) }

  /// The ratio of pixel width to pixel height; nil if the bitstream does not state it.
  public var sampleAspectRatio: Rational? {
    let ratio = pointer.pointee.sample_aspect_ratio
    return ratio.num > 0 && ratio.den > 0 ? Rational(ratio.num, ratio.den) : nil
  }

  /// FFmpeg's name for the pixel format, such as `yuv420p10le`.
  public var pixelFormat: String {
    String(cString: av_get_pix_fmt_name(format) ?? av_get_pix_fmt_name(AV_PIX_FMT_NONE))
  }

  /// The colour properties, as the bitstream states them and as Reel uses them.
  public var color: ColorDescription { ColorDescription(pointer) }

  /// The number of planes of the pixel format.
  public var planeCount: Int { max(0, Int(av_pix_fmt_count_planes(format))) }

  /// The size in bytes of the pixel buffers, including padding. Clones share the buffers and report the same size.
  public var byteCount: Int {
    let buffers = pointer.pointee.buf
    let all = [
      buffers.0, buffers.1, buffers.2, buffers.3, buffers.4, buffers.5, buffers.6, buffers.7,
    ]
    return all.reduce(0) { $0 + Int($1?.pointee.size ?? 0) }
  }

  /// Calls `body` with the pixels of one plane and returns its result, or nil if there is no such plane.
  ///
  /// - Parameters:
  ///   - index: The plane, counted from 0.
  ///   - body: Receives the address of the first row, the number of rows, the number of bytes of pixels per row, and
  ///     the distance in bytes from one row to the next, which may be negative. The address is valid during the call.
  public borrowing func withPlane<Result, Failure: Error>(
    _ index: Int,
    _ body: (_ base: UnsafeRawPointer, _ rows: Int, _ bytesPerRow: Int, _ stride: Int) throws(Failure) ->
      Result
  ) throws(Failure) -> Result? {
    guard index >= 0, index < planeCount, let base = planePointer(index) else { return nil }
    let bytesPerRow = Int(av_image_get_linesize(format, pointer.pointee.width, Int32(index)))
    return try body(base, rowCount(ofPlane: index), bytesPerRow, planeStride(index))
  }

  /// Returns the MD5 of the pixels, plane by plane without padding, as 32 hexadecimal digits: the value that
  /// `ffmpeg -f framemd5` prints.
  ///
  /// - Throws: `ReelError` of kind `internalFault` if memory runs out.
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
