internal import CFFmpeg
internal import CFFmpegShims
package import ReelCore

/// The owner of one decoded frame. Programs know it as `VideoFrame`.
///
/// Ownership: owns its `AVFrame`, which holds a reference to the pixels, and frees it at the end. FFmpeg counts the
/// references to the pixels, so several frames may share them (`retimed(by:)`).
package final class Frame: @unchecked Sendable {
  // Sendable: the maker of a frame, such as a decoder, fills it in before handing it out. From then on nothing writes to
  // it, nor to its pixels: FFmpeg's decoders reuse pixels only when no frame refers to them.
  let pointer: UnsafeMutablePointer<AVFrame>

  /// True if the frame differs from the encoded one: a reference was missing, or the decoder concealed errors.
  package internal(set) var isDamaged = false

  init() throws(ReelError) {
    guard let pointer = av_frame_alloc() else { throw ReelError(.internalFault, "out of memory") }
    self.pointer = pointer
  }

  private init(owning pointer: UnsafeMutablePointer<AVFrame>) { self.pointer = pointer }

  deinit {
    var pointer: UnsafeMutablePointer<AVFrame>? = pointer
    av_frame_free(&pointer)
  }

  /// Returns another frame that shares the same pixels, with the times of another packet.
  ///
  /// - Throws: `ReelError` of kind `internalFault` if memory runs out.
  package func retimed(by packet: Packet) throws(ReelError) -> Frame {
    let copy = try Frame()
    guard av_frame_ref(copy.pointer, pointer) == 0 else { throw ReelError(.internalFault, "out of memory") }
    copy.isDamaged = isDamaged
    if let ticks = packet.presentationTicks {
      reel_frame_set_times(copy.pointer, ticks, packet.decodingTicks ?? ticks, packet.durationTicks)
    }
    return copy
  }

  /// Returns a copy without the padding that decoders need, for a frame that is kept for long. Returns nil if the copy
  /// would not be smaller, and for formats that are not stored plane by plane.
  ///
  /// - Parameter account: The account that the memory of the copy is counted on.
  package func compacted(for account: MemoryAccount?) -> Frame? {
    guard let made = reel_frame_compact(pointer, account?.account) else { return nil }
    let copy = Frame(owning: made)
    copy.isDamaged = isDamaged
    return copy
  }

  /// The size in stored pixels after cropping, before sample aspect ratio and rotation.
  package var size: PixelSize {
    PixelSize(width: Int(pointer.pointee.width), height: Int(pointer.pointee.height))
  }

  /// The presentation time in ticks of the stream's time base, or the decoder's estimate of it; nil if unknown.
  package var presentationTicks: Int64? {
    let own = pointer.pointee.pts
    // FFmpeg's estimate switches to decoding times after odd timestamps: use it only for frames without a timestamp.
    let ticks = own == reel_nopts() ? pointer.pointee.best_effort_timestamp : own
    return ticks == reel_nopts() ? nil : ticks
  }

  /// The duration in ticks; 0 if unknown.
  package var durationTicks: Int64 { reel_frame_duration(pointer) }

  /// True if FFmpeg marks this frame itself as damaged.
  var isFlaggedDamaged: Bool {
    pointer.pointee.flags & AV_FRAME_FLAG_CORRUPT != 0 || pointer.pointee.decode_error_flags != 0
  }

  /// True for a key frame, which decodes without other frames.
  package var isKey: Bool { reel_frame_is_key(pointer) }

  /// True if the frame consists of two interlaced fields.
  package var isInterlaced: Bool { reel_frame_is_interlaced(pointer) }

  /// The ratio of pixel width to pixel height; nil if the bitstream does not state it.
  package var sampleAspectRatio: Rational? {
    let ratio = pointer.pointee.sample_aspect_ratio
    return ratio.num > 0 && ratio.den > 0 ? Rational(ratio.num, ratio.den) : nil
  }

  /// FFmpeg's name for the pixel format, such as `yuv420p10le`.
  package var pixelFormat: String {
    String(cString: av_get_pix_fmt_name(format) ?? av_get_pix_fmt_name(AV_PIX_FMT_NONE))
  }

  /// The colour properties, as the bitstream states them and as Reel uses them.
  package var color: ColorDescription { ColorDescription(pointer) }

  /// The number of planes of the pixel format.
  package var planeCount: Int { max(0, Int(av_pix_fmt_count_planes(format))) }

  /// The size in bytes of the pixel buffers, including padding. Frames that share the buffers report the same size.
  package var byteCount: Int {
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
  package func withPlane<Result, Failure: Error>(
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
  package func md5() throws(ReelError) -> String {
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

/// The way a stored frame is mirrored and turned to be upright: a display matrix (ISO/IEC 14496-12 §8.5.2),
/// reduced to quarter turns.
public struct Orientation: Sendable, Hashable {
  /// The clockwise rotation in degrees: 0, 90, 180 or 270.
  public let rotation: Int
  /// True if the frame is mirrored left to right before it is turned.
  public let isMirrored: Bool

  /// The orientation that neither turns nor mirrors.
  public static let upright = Orientation(rotation: 0, isMirrored: false)

  /// Creates an orientation. `rotation` must be 0, 90, 180 or 270.
  package init(rotation: Int, isMirrored: Bool) {
    self.rotation = rotation
    self.isMirrored = isMirrored
  }

  /// True for a rotation of 90 or 270 degrees, which exchanges width and height.
  package var swapsAxes: Bool { rotation == 90 || rotation == 270 }

  /// Reads the nine fixed-point numbers (16.16 and 2.30) of a display matrix. Angles are rounded to the nearest quarter
  /// turn.
  init(matrix: UnsafePointer<Int32>?) {
    guard let matrix else {
      self = .upright
      return
    }
    // The upper left 2x2 part [a b; c d]; a negative determinant mirrors.
    let (a, b, c, d) = (Double(matrix[0]), Double(matrix[1]), Double(matrix[3]), Double(matrix[4]))
    let mirrors = a * d - b * c < 0
    var copy = (0..<9).map { matrix[$0] }
    if mirrors { av_display_matrix_flip(&copy, 1, 0) }
    let angle = av_display_rotation_get(copy)
    guard angle.isFinite else {
      self = .upright
      return
    }
    // FFmpeg's angle is counter-clockwise.
    let quarters = Int((-angle / 90).rounded())
    let rotation = ((quarters % 4) + 4) % 4 * 90
    // The remaining matrix rotates before it mirrors. To mirror first, rotate the other way.
    self.init(rotation: mirrors ? (360 - rotation) % 360 : rotation, isMirrored: mirrors)
  }
}

/// The colour of a frame: the properties that its bitstream states, and those that a conversion to RGB uses.
///
/// If the bitstream does not state the matrix, Reel assumes BT.601 below 720 lines and BT.709 from 720 lines, as
/// players commonly do.
public struct ColorDescription: Sendable, Hashable {
  /// FFmpeg's name for the matrix coefficients, such as `bt709` (ISO/IEC 23091-2 §8.3); nil if unspecified.
  package let matrix: String?
  /// FFmpeg's name for the primaries, such as `bt2020` (ISO/IEC 23091-2 §8.1); nil if unspecified.
  public let primaries: String?
  /// FFmpeg's name for the transfer characteristics, such as `smpte2084` (ISO/IEC 23091-2 §8.2); nil if unspecified.
  public let transfer: String?
  /// True if samples use the full range of values; false for the limited range, and if unspecified.
  public let isFullRange: Bool
  /// The number of bits per component.
  public let bitDepth: Int
  /// The matrix that conversions use: `matrix`, or the one assumed by the rule above.
  package let assumedMatrix: String

  /// True for the HDR transfer functions PQ (SMPTE ST 2084) and HLG. Conversions do not tone map them.
  public var isHDR: Bool { hdrTransfer != nil }

  /// The HDR transfer function, `pq` or `hlg`; nil for any other.
  package var hdrTransfer: String? {
    switch transfer {
    case "smpte2084": "pq"
    case "arib-std-b67": "hlg"
    default: nil
    }
  }

  init(_ frame: UnsafePointer<AVFrame>) {
    let space = frame.pointee.colorspace
    matrix =
      space == AVCOL_SPC_UNSPECIFIED || space == AVCOL_SPC_RESERVED
      ? nil : av_color_space_name(space).map { String(cString: $0) }
    let primaries = frame.pointee.color_primaries
    self.primaries =
      primaries == AVCOL_PRI_UNSPECIFIED
      ? nil : av_color_primaries_name(primaries).map { String(cString: $0) }
    let transfer = frame.pointee.color_trc
    self.transfer =
      transfer == AVCOL_TRC_UNSPECIFIED ? nil : av_color_transfer_name(transfer).map { String(cString: $0) }
    let format = AVPixelFormat(frame.pointee.format)
    isFullRange = frame.pointee.color_range == AVCOL_RANGE_JPEG || Self.impliesFullRange(format)
    bitDepth = av_pix_fmt_desc_get(format).map { Int($0.pointee.comp.0.depth) } ?? 8
    assumedMatrix = matrix ?? (frame.pointee.height < 720 ? "smpte170m" : "bt709")
  }

  /// Returns true for the `yuvj` formats, which are full range by definition.
  private static func impliesFullRange(_ format: AVPixelFormat) -> Bool {
    format == AV_PIX_FMT_YUVJ420P || format == AV_PIX_FMT_YUVJ422P || format == AV_PIX_FMT_YUVJ444P
      || format == AV_PIX_FMT_YUVJ440P
  }
}
