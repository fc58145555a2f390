internal import CFFmpeg
package import ReelCore

/// Converts decoded frames of any size, shape and pixel format to upright planar images of one format.
///
/// Frames that already have the format stay as decoded. Others are scaled to fit, with black bars if their
/// aspect ratio differs, and converted to the format's matrix and range (`ColorDescription`). Neither the
/// transfer function nor the primaries are converted. Keeps one swscale context for frames of one kind.
///
/// Ownership: owns the swscale context.
///
/// Confined to one thread at a time.
package final class PlanarConverter {
  /// The format of planar images.
  package struct Format: Sendable, Hashable {
    /// The size of the upright luma plane, in samples.
    package var size: PixelSize
    package var chroma: PlanarImage.Chroma
    /// 8, or 9 to 16.
    package var bitDepth: Int
    package var isFullRange: Bool
    /// FFmpeg's name for the matrix, such as `bt709`.
    package var matrix: String
    /// The ratio of sample width to sample height of the upright image.
    package var sampleAspectRatio: Rational

    package init(
      size: PixelSize, chroma: PlanarImage.Chroma, bitDepth: Int, isFullRange: Bool, matrix: String,
      sampleAspectRatio: Rational
    ) {
      self.size = size
      self.chroma = chroma
      self.bitDepth = bitDepth
      self.isFullRange = isFullRange
      self.matrix = matrix
      self.sampleAspectRatio = sampleAspectRatio
    }

    /// The format of `image`, which was made from `frame` with `orientation`. `sampleAspectRatio` is the stored
    /// frame's; nil for square samples.
    package init(
      of image: PlanarImage, frame: Frame, orientation: Orientation, sampleAspectRatio: Rational?
    ) {
      self.init(
        size: image.size, chroma: image.chroma, bitDepth: image.bitDepth, isFullRange: image.isFullRange,
        matrix: frame.color.assumedMatrix,
        sampleAspectRatio: Self.upright(sampleAspectRatio, orientation: orientation))
    }

    fileprivate static func upright(_ ratio: Rational?, orientation: Orientation) -> Rational {
      guard let ratio, ratio.isPositive else { return Rational(1, 1) }
      return orientation.swapsAxes ? Rational(ratio.denominator, ratio.numerator) : ratio
    }
  }

  private struct Key: Hashable {
    var stored: PixelSize
    var scaled: PixelSize
    var source: Int32
    var target: Int32
    var sourceMatrix: Int32
    var targetMatrix: Int32
    var isSourceFullRange: Bool
    var isTargetFullRange: Bool
    var sourceLocation: UInt32
    var targetLocation: UInt32
  }

  /// The position of a stored frame's pixels in an image.
  private struct Placement {
    /// The size that the stored frame is scaled to, before it is turned.
    let scaled: PixelSize
    /// The position of the turned frame's upper left corner in the luma plane.
    let origin: (x: Int, y: Int)
  }

  private var key: Key?
  private var context: OpaquePointer?

  package init() {}

  deinit { sws_freeContext(context) }

  /// `sampleAspectRatio` is the stored frame's, width to height; nil for square samples.
  ///
  /// Throws `ReelError.unsupported` for a pixel format that swscale can't read, and for a `format` that it can't
  /// write.
  package func convert(
    _ frame: Frame, orientation: Orientation, sampleAspectRatio: Rational?, to format: Format
  ) throws(ReelError) -> PlanarImage {
    let placement = Self.placement(
      of: frame.size, orientation: orientation,
      sampleAspectRatio: Format.upright(sampleAspectRatio, orientation: orientation), in: format)
    let source = Self.withoutRange(frame.format)
    let isAsWanted =
      frame.size == placement.scaled
      && source == Self.pixelFormat(chroma: format.chroma, of: format, orientation: orientation)
      && frame.color.isFullRange == format.isFullRange
      && (format.chroma == .none || frame.color.assumedMatrix == format.matrix)
    if isAsWanted {
      return Self.image(of: frame, orientation: orientation, origin: placement.origin, format: format)
    }
    let scaled = try scale(
      frame, source: source, to: placement.scaled, orientation: orientation, format: format)
    return Self.image(of: scaled, orientation: orientation, origin: placement.origin, format: format)
  }

  // MARK: - Private

  private func scale(
    _ frame: Frame, source: AVPixelFormat, to size: PixelSize, orientation: Orientation,
    format: Format
  ) throws(ReelError) -> Frame {
    // swscale treats grey as full range, whatever the settings. For the right luma plane, convert chroma as
    // well.
    let chroma = format.chroma == .none ? .c420(.other) : format.chroma
    guard let target = Self.pixelFormat(chroma: chroma, of: format, orientation: orientation) else {
      throw ReelError(.unsupported, "frames with \(format.bitDepth) bits per sample can't be produced")
    }
    let color = frame.color
    var wanted = Key(
      stored: frame.size, scaled: size, source: source.rawValue, target: target.rawValue,
      sourceMatrix: av_color_space_from_name(color.assumedMatrix),
      targetMatrix: av_color_space_from_name(format.matrix), isSourceFullRange: color.isFullRange,
      isTargetFullRange: format.isFullRange, sourceLocation: frame.pointer.pointee.chroma_location.rawValue,
      targetLocation: Self.location(of: format.chroma).rawValue)
    let isSourceGray = av_pix_fmt_desc_get(source)?.pointee.nb_components == 1
    if isSourceGray || format.chroma == .none { wanted.sourceMatrix = wanted.targetMatrix }
    // For the same reason, full to full leaves the samples unchanged, regardless of their range.
    if isSourceGray, color.isFullRange == format.isFullRange {
      wanted.isSourceFullRange = true
      wanted.isTargetFullRange = true
    }
    let context = try context(for: wanted, pixelFormat: frame.pixelFormat)
    let scaled = try ImageCodec.frame(size: size, format: target)
    try FFmpegError.check(sws_scale_frame(context, scaled.pointer, frame.pointer), "sws_scale_frame")
    return scaled
  }

  private func context(for wanted: Key, pixelFormat: String) throws(ReelError) -> OpaquePointer {
    if wanted == key, let context { return context }
    sws_freeContext(context)
    key = nil
    context = sws_alloc_context()
    guard let context else { throw ReelError(.internalFault, "out of memory") }
    let source = Self.position(AVChromaLocation(wanted.sourceLocation), in: AVPixelFormat(wanted.source))
    let target = Self.position(AVChromaLocation(wanted.targetLocation), in: AVPixelFormat(wanted.target))
    // The ranges are set here and below: these choose the routines, the others only their coefficients. Less
    // than accurate rounding causes coloured specks in grey.
    let options: [(String, Int)] = [
      ("srcw", wanted.stored.width), ("srch", wanted.stored.height), ("src_format", Int(wanted.source)),
      ("dstw", wanted.scaled.width), ("dsth", wanted.scaled.height), ("dst_format", Int(wanted.target)),
      ("src_range", wanted.isSourceFullRange ? 1 : 0), ("dst_range", wanted.isTargetFullRange ? 1 : 0),
      ("src_h_chr_pos", source.x), ("src_v_chr_pos", source.y),
      ("dst_h_chr_pos", target.x), ("dst_v_chr_pos", target.y),
      ("sws_flags", Int(SWS_BICUBIC | SWS_ACCURATE_RND)),
    ]
    for (name, value) in options { av_opt_set_int(UnsafeMutableRawPointer(context), name, Int64(value), 0) }
    guard sws_init_context(context, nil, nil) >= 0 else {
      throw ReelError(.unsupported, "frames of \(pixelFormat) can't be converted")
    }
    sws_setColorspaceDetails(
      context, sws_getCoefficients(wanted.sourceMatrix), wanted.isSourceFullRange ? 1 : 0,
      sws_getCoefficients(wanted.targetMatrix), wanted.isTargetFullRange ? 1 : 0, 0, 1 << 16, 1 << 16)
    key = wanted
    return context
  }

  private static func placement(
    of stored: PixelSize, orientation: Orientation, sampleAspectRatio: Rational, in format: Format
  ) -> Placement {
    let upright = orientation.swapsAxes ? stored.transposed : stored
    let ratio = sampleAspectRatio.value / format.sampleAspectRatio.value
    // In samples of the output format.
    let width = Double(upright.width) * ((0.01...100).contains(ratio) ? ratio : 1)
    let factor = min(Double(format.size.width) / width, Double(format.size.height) / Double(upright.height))
    let (stepX, stepY) = steps(of: format.chroma)
    let fitted = PixelSize(
      width: fit(width * factor, in: format.size.width, step: stepX),
      height: fit(Double(upright.height) * factor, in: format.size.height, step: stepY))
    return Placement(
      scaled: orientation.swapsAxes ? fitted.transposed : fitted,
      origin: (
        (format.size.width - fitted.width) / 2 / stepX * stepX,
        (format.size.height - fitted.height) / 2 / stepY * stepY
      ))
  }

  /// Bars of less than a fiftieth are omitted, because they come from a rounded size, not from another aspect
  /// ratio. Otherwise, the frame ends with a whole chroma sample.
  private static func fit(_ length: Double, in whole: Int, step: Int) -> Int {
    if length > Double(whole) * 0.98 { return whole }
    return min(whole, max(step, Int((length / Double(step)).rounded()) * step))
  }

  /// Returns the number of luma samples per chroma sample.
  private static func steps(of chroma: PlanarImage.Chroma) -> (x: Int, y: Int) {
    switch chroma {
    case .none, .c444: (1, 1)
    case .c422: (2, 1)
    case .c420: (2, 2)
    }
  }

  /// Returns the planes of `frame`, turned and placed between bars.
  private static func image(
    of frame: Frame, orientation: Orientation, origin: (x: Int, y: Int), format: Format
  ) -> PlanarImage {
    let sampleBytes = format.bitDepth > 8 ? 2 : 1
    let (stepX, stepY) = steps(of: format.chroma)
    var planes: [[UInt8]] = []
    for index in 0..<(format.chroma == .none ? 1 : 3) {
      let (stepX, stepY) = index == 0 ? (1, 1) : (stepX, stepY)
      var size = PixelSize(width: 0, height: 0)
      let plane = frame.withPlane(index) { base, rows, bytesPerRow, stride in
        let stored = PixelSize(width: bytesPerRow / sampleBytes, height: rows)
        size = orientation.swapsAxes ? stored.transposed : stored
        return orientation.apply(to: base, stored: stored, stride: stride, pixelBytes: sampleBytes)
      }
      let whole = PixelSize(
        width: (format.size.width + stepX - 1) / stepX, height: (format.size.height + stepY - 1) / stepY)
      guard let plane, size != whole else {
        planes.append(plane ?? [])
        continue
      }
      let black =
        index > 0 ? 1 << (format.bitDepth - 1) : format.isFullRange ? 0 : 16 << (format.bitDepth - 8)
      let rowBytes = size.width * sampleBytes
      var target = row(of: black, count: whole.width * whole.height, sampleBytes: sampleBytes)
      for y in 0..<size.height {
        let start = ((origin.y / stepY + y) * whole.width + origin.x / stepX) * sampleBytes
        target.replaceSubrange(
          start..<(start + rowBytes), with: plane[(y * rowBytes)..<((y + 1) * rowBytes)])
      }
      planes.append(target)
    }
    return PlanarImage(format, planes: planes)
  }

  private static func row(of sample: Int, count: Int, sampleBytes: Int) -> [UInt8] {
    var samples = [UInt8](repeating: UInt8(truncatingIfNeeded: sample), count: count * sampleBytes)
    guard sampleBytes == 2 else { return samples }
    for index in 0..<count { samples[index * 2 + 1] = UInt8(truncatingIfNeeded: sample >> 8) }
    return samples
  }

  /// Returns the pixel format that becomes `chroma` when turned, in the depth of `format`; nil if there is
  /// none.
  static func pixelFormat(
    chroma: PlanarImage.Chroma, of format: Format, orientation: Orientation
  ) -> AVPixelFormat? {
    let name =
      switch chroma {
      case .none: "gray"
      case .c420: "yuv420p"
      // A quarter turn exchanges rows and columns.
      case .c422: orientation.swapsAxes ? "yuv440p" : "yuv422p"
      case .c444: "yuv444p"
      }
    let pixelFormat = av_get_pix_fmt(format.bitDepth > 8 ? "\(name)\(format.bitDepth)le" : name)
    return pixelFormat == AV_PIX_FMT_NONE ? nil : pixelFormat
  }

  private static func location(of chroma: PlanarImage.Chroma) -> AVChromaLocation {
    switch chroma {
    case .c420(.topLeft): AVCHROMA_LOC_TOPLEFT
    case .c420(.other): AVCHROMA_LOC_CENTER
    default: AVCHROMA_LOC_LEFT
    }
  }

  /// Returns the position of chroma samples, in 256ths of a luma sample; swscale's default, the centre, if
  /// not stated.
  private static func position(_ location: AVChromaLocation, in format: AVPixelFormat) -> (x: Int, y: Int) {
    let own = -513
    guard let descriptor = av_pix_fmt_desc_get(format)?.pointee, descriptor.log2_chroma_w == 1 else {
      return (own, own)
    }
    let isHalved = descriptor.log2_chroma_h == 1
    return switch location {
    case AVCHROMA_LOC_LEFT: (0, isHalved ? 128 : own)
    case AVCHROMA_LOC_TOPLEFT: (0, isHalved ? 0 : own)
    case AVCHROMA_LOC_CENTER: (128, isHalved ? 128 : own)
    default: (own, own)
    }
  }

  /// Replaces the `yuvj` formats, whose names include the range, which Reel keeps separately.
  static func withoutRange(_ format: AVPixelFormat) -> AVPixelFormat {
    guard let name = av_get_pix_fmt_name(format).map({ String(cString: $0) }), name.hasPrefix("yuvj") else {
      return format
    }
    return av_get_pix_fmt("yuv" + name.dropFirst(4))
  }
}

extension PlanarImage {
  fileprivate init(_ format: PlanarConverter.Format, planes: [[UInt8]]) {
    size = format.size
    chroma = format.chroma
    bitDepth = format.bitDepth
    isFullRange = format.isFullRange
    self.planes = planes
  }
}

/// The samples of a decoded frame, upright, plane by plane without padding, in the colours as decoded.
package struct PlanarImage: Sendable {
  /// How the chroma planes relate to the luma plane.
  package enum Chroma: Sendable, Hashable {
    case none
    case c420(Location)
    case c422
    case c444

    /// The position of chroma samples (ISO/IEC 23091-2 §8.7).
    package enum Location: Sendable, Hashable {
      case left
      case topLeft
      case other
    }
  }

  /// The size of the luma plane, in samples.
  package let size: PixelSize
  package let chroma: Chroma
  /// 8, or 9 to 16 in little-endian samples of two bytes.
  package let bitDepth: Int
  package let isFullRange: Bool
  /// Y, Cb, Cr; or Y alone.
  package let planes: [[UInt8]]

  /// Throws `ReelError.unsupported` for frames that are not planar YUV, and for a quarter turn of 4:2:2.
  package init(_ frame: Frame, orientation: Orientation) throws(ReelError) {
    guard let descriptor = av_pix_fmt_desc_get(frame.format)?.pointee else {
      throw ReelError(.unsupported, "the pixel format of the frames is unknown")
    }
    let flags = Int32(truncatingIfNeeded: descriptor.flags)
    let isPlain =
      flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_ALPHA | AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BE) == 0
      && frame.planeCount == Int(descriptor.nb_components)
    guard isPlain, descriptor.nb_components == 1 || descriptor.nb_components == 3 else {
      throw ReelError(.unsupported, "frames of \(frame.pixelFormat) are not planar YUV")
    }
    switch (descriptor.nb_components, descriptor.log2_chroma_w, descriptor.log2_chroma_h) {
    case (1, _, _): chroma = .none
    case (_, 1, 1):
      switch frame.pointer.pointee.chroma_location {
      case AVCHROMA_LOC_LEFT: chroma = .c420(.left)
      case AVCHROMA_LOC_TOPLEFT: chroma = .c420(.topLeft)
      default: chroma = .c420(.other)
      }
    case (_, 1, 0) where !orientation.swapsAxes: chroma = .c422
    case (_, 0, 0): chroma = .c444
    default:
      throw ReelError(.unsupported, "frames of \(frame.pixelFormat) can't be rotated without conversion")
    }
    bitDepth = Int(descriptor.comp.0.depth)
    isFullRange = frame.color.isFullRange
    size = orientation.swapsAxes ? frame.size.transposed : frame.size
    let sampleBytes = bitDepth > 8 ? 2 : 1
    var planes: [[UInt8]] = []
    for index in 0..<frame.planeCount {
      let plane = frame.withPlane(index) { base, rows, bytesPerRow, stride in
        orientation.apply(
          to: base, stored: PixelSize(width: bytesPerRow / sampleBytes, height: rows), stride: stride,
          pixelBytes: sampleBytes)
      }
      planes.append(plane ?? [])
    }
    self.planes = planes
  }
}

extension Orientation {
  /// Returns the offset of the stored pixel that is shown at `x`, `y` of the upright frame.
  func storedOffset(x: Int, y: Int, stored: PixelSize, stride: Int, pixelBytes: Int) -> Int {
    var (column, row) =
      switch rotation {
      case 90: (y, stored.height - 1 - x)
      case 180: (stored.width - 1 - x, stored.height - 1 - y)
      case 270: (stored.width - 1 - y, x)
      default: (x, y)
      }
    if isMirrored { column = stored.width - 1 - column }
    return row * stride + column * pixelBytes
  }

  /// Returns the rows of a stored plane, upright and without padding.
  func apply(to base: UnsafeRawPointer, stored: PixelSize, stride: Int, pixelBytes: Int) -> [UInt8] {
    let upright = swapsAxes ? stored.transposed : stored
    let source = base.assumingMemoryBound(to: UInt8.self)
    let rowBytes = upright.width * pixelBytes
    return [UInt8](unsafeUninitializedCapacity: rowBytes * upright.height) { buffer, initialized in
      guard var target = buffer.baseAddress else { return }
      initialized = rowBytes * upright.height
      for y in 0..<upright.height {
        let first = storedOffset(x: 0, y: y, stored: stored, stride: stride, pixelBytes: pixelBytes)
        let step = storedOffset(x: 1, y: y, stored: stored, stride: stride, pixelBytes: pixelBytes) - first
        if step == pixelBytes {
          target.update(from: source + first, count: rowBytes)
          target += rowBytes
        } else {
          for x in 0..<upright.width {
            for byte in 0..<pixelBytes { target[byte] = source[first + x * step + byte] }
            target += pixelBytes
          }
        }
      }
    }
  }
}
