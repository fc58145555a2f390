internal import CFFmpeg
internal import CFFmpegShims
package import ReelCore

/// Converts frames to upright RGB images with square pixels. Programs use `VideoFrame.rgba` and the like.
///
/// The conversion uses the frame's matrix and range (`ColorDescription`). It converts neither the transfer function nor
/// the primaries, so HDR is not tone mapped.
///
/// A converter keeps its swscale context for frames of the same size and format: use one converter for many frames. Use
/// it from one thread at a time.
package final class FrameConverter {
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
  package init() {}

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
  package func convert(
    _ frame: Frame, geometry: FrameGeometry, orientation: Orientation
  ) throws(ReelError) -> RGBImage {
    var image = RGBImage.empty
    try convert(frame, geometry: geometry, orientation: orientation, into: &image)
    return image
  }

  /// Converts a frame into `image`, and reuses its memory if the size is the same.
  ///
  /// - Throws: The same as `convert(_:geometry:orientation:)`. `image` is then undefined.
  package func convert(
    _ frame: Frame, geometry: FrameGeometry, orientation: Orientation, into image: inout RGBImage
  ) throws(ReelError) {
    // swscale is fast, but less exact, for 8-bit frames that keep their size.
    let isFast = geometry.scaled == frame.size && frame.color.bitDepth <= 8
    try convert(
      frame, geometry: geometry, orientation: orientation, isPlanar: !isFast, into: &image)
  }

  /// Like `convert(_:geometry:orientation:)`, but as exact as 8 bits allow, even without scaling.
  package func convertExactly(
    _ frame: Frame, geometry: FrameGeometry, orientation: Orientation
  ) throws(ReelError) -> RGBImage {
    var image = RGBImage.empty
    try convert(frame, geometry: geometry, orientation: orientation, isPlanar: true, into: &image)
    return image
  }

  /// Like `convert(_:geometry:orientation:)`, but returns 16 bits per component, for frames with more than 8.
  package func convertDeep(
    _ frame: Frame, geometry: FrameGeometry, orientation: Orientation
  ) throws(ReelError) -> [UInt16] {
    let (scaled, output) = (geometry.scaled, geometry.output)
    let isLittleEndian = UInt16(1).littleEndian == 1
    let context = try context(
      for: frame, scaled: scaled, output: isLittleEndian ? AV_PIX_FMT_GBRP16LE : AV_PIX_FMT_GBRP16BE)
    let samples = try scaledSamples(frame, with: context, size: scaled, of: UInt16.self, isPlanar: true)
    var placed = [UInt16](repeating: 0, count: output.width * output.height * 3)
    placed.withUnsafeMutableBufferPointer { pixels in
      place(samples, geometry: geometry, orientation: orientation, in: pixels)
    }
    return placed
  }

  // MARK: - Private

  private func convert(
    _ frame: Frame, geometry: FrameGeometry, orientation: Orientation, isPlanar: Bool,
    into image: inout RGBImage
  ) throws(ReelError) {
    let (scaled, output) = (geometry.scaled, geometry.output)
    let context = try context(
      for: frame, scaled: scaled, output: isPlanar ? AV_PIX_FMT_GBRP : AV_PIX_FMT_RGB24)
    let byteCount = output.width * output.height * 3
    if image.pixels.count != byteCount { image.pixels = [UInt8](repeating: 0, count: byteCount) }
    image.size = output
    // swscale's vector code writes up to 64 pixels at a time, also past the last row's end. It can write directly to the
    // image only if there is nothing past it.
    if orientation == .upright, !isPlanar, scaled == output, scaled.width % 64 == 0 {
      return try image.pixels.withUnsafeMutableBufferPointer { pixels throws(ReelError) in
        try scale(
          frame, with: context, to: [pixels.baseAddress], stride: scaled.width * 3, rows: scaled.height)
      }
    }
    let samples = try scaledSamples(frame, with: context, size: scaled, of: UInt8.self, isPlanar: isPlanar)
    image.pixels.withUnsafeMutableBufferPointer { pixels in
      place(samples, geometry: geometry, orientation: orientation, in: pixels)
    }
  }

  /// A scaled frame, with its components planar or interleaved. All distances are in samples.
  private struct ScaledSamples<Sample> {
    let red: UnsafePointer<Sample>
    let green: UnsafePointer<Sample>
    let blue: UnsafePointer<Sample>
    /// The distance from one pixel to the next.
    let step: Int
    /// The distance from one row to the next.
    let stride: Int
  }

  /// Scales a frame into the scratch buffer.
  private func scaledSamples<Sample: FixedWidthInteger>(
    _ frame: Frame, with context: OpaquePointer, size: PixelSize, of _: Sample.Type, isPlanar: Bool
  ) throws(ReelError) -> ScaledSamples<Sample> {
    let (planeCount, step) = isPlanar ? (3, 1) : (1, 3)
    // Rows and planes need padding: swscale's vector code may write past the last pixel of a row.
    let rowByteCount = (size.width * step * MemoryLayout<Sample>.stride + 63) & ~63
    let planeByteCount = rowByteCount * size.height + 64 * step * MemoryLayout<Sample>.stride
    let buffer = scratch(byteCount: planeByteCount * planeCount)
    guard let base = buffer.baseAddress else { throw ReelError(.internalFault, "out of memory") }
    let planes = (0..<planeCount).map { base + $0 * planeByteCount }
    try scale(
      frame, with: context, to: planes.map { $0.assumingMemoryBound(to: UInt8.self) }, stride: rowByteCount,
      rows: size.height)
    let samples = planes.map { UnsafePointer($0.assumingMemoryBound(to: Sample.self)) }
    let stride = rowByteCount / MemoryLayout<Sample>.stride
    return isPlanar
      // The planes of FFmpeg's GBRP.
      ? ScaledSamples(red: samples[2], green: samples[0], blue: samples[1], step: step, stride: stride)
      : ScaledSamples(
        red: samples[0], green: samples[0] + 1, blue: samples[0] + 2, step: step, stride: stride)
  }

  private func context(
    for frame: Frame, scaled: PixelSize, output: AVPixelFormat
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
    // Frames of the same size have a fast routine for RGB24. For others, RGB24 output gets one chroma sample
    // for two pixels, while planar output gets one for each, in half the time.
    var flags = SWS_BICUBIC
    if output != AV_PIX_FMT_RGB24 { flags |= SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP }
    guard
      let made = sws_getContext(
        Int32(wanted.stored.width), Int32(wanted.stored.height), PlanarConverter.withoutRange(frame.format),
        Int32(scaled.width), Int32(scaled.height), output, Int32(flags), nil, nil, nil)
    else { throw ReelError(.unsupported, "frames of \(frame.pixelFormat) can't be converted to RGB") }
    // Without this call, swscale ignores the frame's own properties and assumes BT.601.
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

  /// - Parameters:
  ///   - targets: The first byte of each plane.
  ///   - stride: The distance from one row to the next, in bytes.
  private func scale(
    _ frame: Frame, with context: OpaquePointer, to targets: [UnsafeMutablePointer<UInt8>?],
    stride: Int, rows: Int
  ) throws(ReelError) {
    // Without buffers, it does not own the pixels.
    let target = try Frame()
    let pointer = target.pointer
    let sizes = targets.map { _ in Int32(stride) }
    withUnsafeMutableBytes(of: &pointer.pointee.data) { data in
      targets.withUnsafeBytes { data.copyMemory(from: $0) }
    }
    withUnsafeMutableBytes(of: &pointer.pointee.linesize) { lines in
      sizes.withUnsafeBytes { lines.copyMemory(from: $0) }
    }
    guard reel_scale(context, frame.pointer, pointer) == Int32(rows) else {
      throw ReelError(.internalFault, "the frame can't be scaled")
    }
  }

  /// Copies the scaled and turned frame to its place, and fills the rest with black.
  private func place<Sample: FixedWidthInteger>(
    _ source: ScaledSamples<Sample>, geometry: FrameGeometry, orientation: Orientation,
    in pixels: UnsafeMutableBufferPointer<Sample>
  ) {
    guard let target = pixels.baseAddress else { return }
    let (output, scaled) = (geometry.output, geometry.scaled)
    let upright = orientation.swapsAxes ? scaled.transposed : scaled
    // The part of the output that the frame covers.
    let columns = max(0, geometry.origin.x)..<min(output.width, geometry.origin.x + upright.width)
    let rows = max(0, geometry.origin.y)..<min(output.height, geometry.origin.y + upright.height)
    if columns.count < output.width || rows.count < output.height { pixels.update(repeating: 0) }
    func offset(_ x: Int, _ y: Int) -> Int {
      orientation.storedOffset(x: x, y: y, stored: scaled, stride: source.stride, pixelBytes: source.step)
    }
    for row in rows {
      let (x, y) = (columns.lowerBound - geometry.origin.x, row - geometry.origin.y)
      let first = offset(x, y)
      let line = target + (row * output.width + columns.lowerBound) * 3
      switch offset(x + 1, y) - first {
      case 3 where source.step == 3: line.update(from: source.red + first, count: columns.count * 3)
      case 1: copy(source, from: first, step: 1, count: columns.count, to: line)
      case let step: copy(source, from: first, step: step, count: columns.count, to: line)
      }
    }
  }

  /// With the common step as a constant, the compiler generates better code.
  @inline(__always)
  private func copy<Sample>(
    _ source: ScaledSamples<Sample>, from first: Int, step: Int, count: Int,
    to line: UnsafeMutablePointer<Sample>
  ) {
    var (from, to) = (first, line)
    for _ in 0..<count {
      to[0] = source.red[from]
      to[1] = source.green[from]
      to[2] = source.blue[from]
      from &+= step
      to += 3
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
}

/// An image in 8-bit RGB: rows from top to bottom without padding, three bytes per pixel.
package struct RGBImage: Sendable, Hashable {
  /// The size in pixels.
  package internal(set) var size: PixelSize
  /// The pixels: `size.width * size.height * 3` bytes, in the order red, green, blue.
  package internal(set) var pixels: [UInt8]

  /// An image without pixels, to convert a frame into.
  package static let empty = RGBImage(size: PixelSize(width: 0, height: 0), pixels: [])

  /// Creates an image. `pixels` must have `size.width * size.height * 3` bytes.
  package init(size: PixelSize, pixels: [UInt8]) {
    self.size = size
    self.pixels = pixels
  }

  /// The header of a binary portable pixmap (PPM, P6). Header and `pixels` together are a complete file.
  package var ppmHeader: [UInt8] { Array("P6\n\(size.width) \(size.height)\n255\n".utf8) }

  /// Returns four bytes for each pixel: red, green and blue, or blue, green and red, and then 255.
  package func quads(isBlueFirst: Bool) -> [UInt8] {
    let (red, blue) = isBlueFirst ? (2, 0) : (0, 2)
    let count = pixels.count / 3
    return [UInt8](unsafeUninitializedCapacity: count * 4) { quads, filled in
      pixels.withUnsafeBufferPointer { pixels in
        for pixel in 0..<count {
          quads[pixel * 4 + red] = pixels[pixel * 3]
          quads[pixel * 4 + 1] = pixels[pixel * 3 + 1]
          quads[pixel * 4 + blue] = pixels[pixel * 3 + 2]
          quads[pixel * 4 + 3] = 255
        }
      }
      filled = count * 4
    }
  }
}
