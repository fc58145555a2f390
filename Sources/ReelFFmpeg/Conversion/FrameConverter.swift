internal import CFFmpeg
public import ReelCore

/// Converts decoded frames to upright RGB images with square pixels.
///
/// The conversion uses the frame's matrix and range (`ColorDescription`). It converts neither the transfer function nor
/// the primaries, so HDR is not tone mapped.
///
/// A converter keeps its swscale context for frames of the same size and format: use one converter for many frames. Use
/// it from one thread at a time.
public final class FrameConverter {
  private struct Key: Hashable {
    var stored: PixelSize
    var scaled: PixelSize
    var format: Int32
    var output: Int32
    var matrix: Int32
    var isFullRange: Bool
  }

  private var key: Key?
  private var context: OpaquePointer?
  private var scratch: UnsafeMutableRawBufferPointer?

  /// Creates a converter. It allocates nothing until the first frame.
  public init() {}

  deinit {
    sws_freeContext(context)
    scratch?.deallocate()
  }

  /// Converts a frame into a new image.
  ///
  /// - Parameters:
  ///   - frame: The frame to convert.
  ///   - geometry: The size of the image, and the position of the frame in it.
  ///   - orientation: How to turn the frame. Must be the orientation that `geometry` was made with.
  /// - Throws: `ReelError` of kind `unsupported` for a pixel format that swscale can't read, or `internalFault` if the
  ///   conversion fails.
  public func convert(
    _ frame: borrowing Frame, geometry: FrameGeometry, orientation: Orientation
  ) throws(ReelError) -> RGBImage {
    var image = RGBImage.empty
    try convert(frame, geometry: geometry, orientation: orientation, into: &image)
    return image
  }

  /// Converts a frame into `image`, and reuses its memory if the size is the same.
  ///
  /// - Throws: As `convert(_:geometry:orientation:)`. `image` is then undefined.
  public func convert(
    _ frame: borrowing Frame, geometry: FrameGeometry, orientation: Orientation, into image: inout RGBImage
  ) throws(ReelError) {
    let (scaled, output) = (geometry.scaled, geometry.output)
    let context = try context(for: frame, scaled: scaled, output: AV_PIX_FMT_RGB24)
    let byteCount = output.width * output.height * 3
    if image.pixels.count != byteCount { image.pixels = [UInt8](repeating: 0, count: byteCount) }
    image.size = output
    // Without scaling, swscale stays within rows of a multiple of eight pixels, so it can write to the image
    // directly.
    if orientation == .upright, scaled == output, scaled == frame.size, scaled.width % 8 == 0 {
      let done = image.pixels.withUnsafeMutableBufferPointer { pixels in
        pixels.baseAddress.map {
          scale(frame, with: context, to: $0, stride: scaled.width * 3, rows: scaled.height)
        }
      }
      guard done == true else { throw Self.failure }
      return
    }
    let (base, stride) = try scaledRows(frame, with: context, size: scaled, pixelBytes: 3)
    image.pixels.withUnsafeMutableBufferPointer { pixels in
      place(base, stride: stride, geometry: geometry, orientation: orientation, in: pixels)
    }
  }

  /// Like `convert(_:geometry:orientation:)`, but returns 16 bits per component, for frames with more than 8.
  package func convertDeep(
    _ frame: borrowing Frame, geometry: FrameGeometry, orientation: Orientation
  ) throws(ReelError) -> [UInt16] {
    let (scaled, output) = (geometry.scaled, geometry.output)
    let isLittleEndian = UInt16(1).littleEndian == 1
    let context = try context(
      for: frame, scaled: scaled, output: isLittleEndian ? AV_PIX_FMT_RGB48LE : AV_PIX_FMT_RGB48BE)
    let (base, stride) = try scaledRows(frame, with: context, size: scaled, pixelBytes: 6)
    var samples = [UInt16](repeating: 0, count: output.width * output.height * 3)
    samples.withUnsafeMutableBytes { bytes in
      place(
        base, stride: stride, geometry: geometry, orientation: orientation,
        in: bytes.bindMemory(to: UInt8.self), pixelBytes: 6)
    }
    return samples
  }

  // MARK: - Private

  /// Scales a frame to rows in the scratch buffer.
  private func scaledRows(
    _ frame: borrowing Frame, with context: OpaquePointer, size: PixelSize, pixelBytes: Int
  ) throws(ReelError) -> (base: UnsafePointer<UInt8>, stride: Int) {
    // Rows need padding: swscale's vector code may write past the last pixel of a row.
    let stride = (size.width * pixelBytes + 63) & ~63
    let buffer = scratch(byteCount: stride * size.height + 64)
    guard let base = buffer.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
      throw ReelError(.internalFault, "out of memory")
    }
    guard scale(frame, with: context, to: base, stride: stride, rows: size.height) else { throw Self.failure }
    return (UnsafePointer(base), stride)
  }

  private func context(
    for frame: borrowing Frame, scaled: PixelSize, output: AVPixelFormat
  ) throws(ReelError) -> OpaquePointer {
    let color = frame.color
    let matrix = Self.matrixCode(color.assumedMatrix)
    let wanted = Key(
      stored: frame.size, scaled: scaled, format: frame.format.rawValue, output: output.rawValue,
      matrix: matrix, isFullRange: color.isFullRange)
    if wanted == key, let context { return context }
    sws_freeContext(context)
    context = nil
    key = nil
    let isDeep = output != AV_PIX_FMT_RGB24
    let flags = isDeep ? SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT : SWS_BICUBIC
    guard
      let made = sws_getContext(
        Int32(wanted.stored.width), Int32(wanted.stored.height), Self.withoutRange(frame.format),
        Int32(scaled.width), Int32(scaled.height), output, Int32(flags), nil, nil, nil)
    else { throw ReelError(.unsupported, "frames of \(frame.pixelFormat) can't be converted to RGB") }
    // swscale ignores the frame's own properties and assumes BT.601 unless told here.
    sws_setColorspaceDetails(
      made, sws_getCoefficients(matrix), color.isFullRange ? 1 : 0, sws_getCoefficients(SWS_CS_DEFAULT), 1, 0,
      1 << 16, 1 << 16)
    context = made
    key = wanted
    return made
  }

  private func scratch(byteCount: Int) -> UnsafeMutableRawBufferPointer {
    if let scratch, scratch.count >= byteCount { return scratch }
    scratch?.deallocate()
    let made = UnsafeMutableRawBufferPointer.allocate(byteCount: byteCount, alignment: 64)
    scratch = made
    return made
  }

  private static let failure = ReelError(.internalFault, "the frame can't be scaled")

  private func scale(
    _ frame: borrowing Frame, with context: OpaquePointer, to base: UnsafeMutablePointer<UInt8>, stride: Int,
    rows: Int
  ) -> Bool {
    var planes: [UnsafePointer<UInt8>?] = []
    var strides: [Int32] = []
    withUnsafeBytes(of: frame.pointer.pointee.data) { data in
      planes = data.bindMemory(to: UnsafeMutablePointer<UInt8>?.self).prefix(4).map {
        $0.map { UnsafePointer($0) }
      }
    }
    withUnsafeBytes(of: frame.pointer.pointee.linesize) { sizes in
      strides = Array(sizes.bindMemory(to: Int32.self).prefix(4))
    }
    let done = sws_scale(
      context, planes, strides, 0, frame.pointer.pointee.height, [base, nil, nil, nil],
      [Int32(stride), 0, 0, 0])
    return done == Int32(rows)
  }

  /// Copies the scaled frame to its place, turned, and fills the rest with black.
  private func place(
    _ source: UnsafePointer<UInt8>, stride: Int, geometry: FrameGeometry, orientation: Orientation,
    in pixels: UnsafeMutableBufferPointer<UInt8>, pixelBytes: Int = 3
  ) {
    guard let target = pixels.baseAddress else { return }
    let (output, scaled) = (geometry.output, geometry.scaled)
    let upright = orientation.swapsAxes ? scaled.transposed : scaled
    // The part of the output that the frame covers.
    let columns = max(0, geometry.origin.x)..<min(output.width, geometry.origin.x + upright.width)
    let rows = max(0, geometry.origin.y)..<min(output.height, geometry.origin.y + upright.height)
    if columns.count < output.width || rows.count < output.height { pixels.update(repeating: 0) }
    for row in rows {
      let (x, y) = (columns.lowerBound - geometry.origin.x, row - geometry.origin.y)
      let first = orientation.storedOffset(x: x, y: y, stored: scaled, stride: stride, pixelBytes: pixelBytes)
      let step =
        orientation.storedOffset(x: x + 1, y: y, stored: scaled, stride: stride, pixelBytes: pixelBytes)
        - first
      let line = target + (row * output.width + columns.lowerBound) * pixelBytes
      if step == pixelBytes {
        line.update(from: source + first, count: columns.count * pixelBytes)
        continue
      }
      var (from, to) = (source + first, line)
      if pixelBytes != 3 {
        for _ in columns {
          to.update(from: from, count: pixelBytes)
          from += step
          to += pixelBytes
        }
        continue
      }
      for _ in columns {
        to[0] = from[0]
        to[1] = from[1]
        to[2] = from[2]
        from += step
        to += 3
      }
    }
  }

  private static func matrixCode(_ name: String) -> Int32 {
    switch name {
    case "bt709": SWS_CS_ITU709
    case "fcc": SWS_CS_FCC
    case "smpte240m": SWS_CS_SMPTE240M
    case "bt2020nc", "bt2020c": SWS_CS_BT2020
    default: SWS_CS_ITU601
    }
  }

  /// Replaces the full-range `yuvj` formats by their plain forms: the range is passed separately.
  private static func withoutRange(_ format: AVPixelFormat) -> AVPixelFormat {
    switch format {
    case AV_PIX_FMT_YUVJ420P: AV_PIX_FMT_YUV420P
    case AV_PIX_FMT_YUVJ422P: AV_PIX_FMT_YUV422P
    case AV_PIX_FMT_YUVJ444P: AV_PIX_FMT_YUV444P
    case AV_PIX_FMT_YUVJ440P: AV_PIX_FMT_YUV440P
    default: format
    }
  }
}
