internal import CFFmpeg
internal import CFFmpegShims
package import ReelCore

/// Encodes stills with libavcodec's encoders.
///
/// | format | a quality of 1 to 100 is |
/// |---|---|
/// | JPEG | libjpeg's: the tables of ITU-T T.81 Annex K, scaled. Chroma is halved in both directions below 90 |
/// | WebP | libwebp's |
/// | AVIF | libavif's: the quantizer is 63 at 0 and 0 at 100 |
package enum StillEncoder {
  /// Throws `ReelError.unsupported` with the encoder's name if this FFmpeg lacks what a format needs.
  ///
  /// - Parameter isAvailable: True for an encoder or a muxer that FFmpeg has.
  package static func check(
    _ format: StillFormat, isAvailable: (String) -> Bool = StillEncoder.isAvailable
  ) throws(ReelError) {
    switch format {
    case .ppm: return
    case .jpeg, .png, .webp:
      let name = format.encoderNames[0]
      guard isAvailable(name) else {
        throw ReelError(.unsupported, "this FFmpeg has no \(name) encoder", advice: "choose another --format")
      }
    case .avif:
      guard format.encoderNames.contains(where: isAvailable) else {
        throw ReelError(
          .unsupported, "this FFmpeg has no AV1 encoder: neither libaom-av1 nor libsvtav1",
          advice: "choose another --format")
      }
      guard isAvailable("avif") else {
        throw ReelError(.unsupported, "this FFmpeg has no avif muxer", advice: "choose another --format")
      }
    }
  }

  /// True if FFmpeg has an encoder or a muxer of this name.
  package static func isAvailable(_ name: String) -> Bool {
    avcodec_find_encoder_by_name(name) != nil || av_guess_format(name, nil, nil) != nil
  }

  /// Returns the file of a still.
  ///
  /// - Parameter quality: From 1 to 100; without effect for PNG and PPM. Nil for the format's default.
  /// - Throws: `ReelError` of kind `unsupported` if FFmpeg lacks the encoder or the format can't hold such pixels, or
  ///   `internalFault` if encoding fails.
  package static func encode(
    _ still: Still, as format: StillFormat, quality: Int? = nil
  ) throws(ReelError) -> [UInt8] {
    try check(format)
    guard still.color == .sRGB || format.canHoldHDR else {
      throw ReelError(.unsupported, "\(format.rawValue) files can't hold HDR", advice: "choose png or avif")
    }
    let quality = min(max(quality ?? format.defaultQuality ?? 100, 1), 100)
    switch format {
    case .ppm: return try pixmap(still)
    case .png: return try png(still)
    case .jpeg: return try jpeg(still, quality: quality)
    case .webp: return try webp(still, quality: quality)
    case .avif: return try avif(still, quality: quality)
    }
  }

  /// Returns the file of a still with the highest quality, up to `quality`, at which it has at most `byteLimit` bytes,
  /// and that quality. Returns nil if it has more at quality 1, and for a format without qualities.
  ///
  /// - Throws: As `encode(_:as:quality:)`.
  package static func encode(
    _ still: Still, as format: StillFormat, quality: Int? = nil, byteLimit: Int
  ) throws(ReelError) -> (bytes: [UInt8], quality: Int?)? {
    var best: (bytes: [UInt8], quality: Int?)?
    let first = try encode(still, as: format, quality: quality)
    guard let highest = quality ?? format.defaultQuality, first.count > byteLimit else {
      return first.count > byteLimit ? nil : (first, quality ?? format.defaultQuality)
    }
    // Fewer bytes at each lower quality, apart from a few bytes now and then.
    var (low, high) = (1, highest - 1)
    while low <= high {
      let middle = (low + high) / 2
      let bytes = try encode(still, as: format, quality: middle)
      if bytes.count <= byteLimit {
        best = (bytes, middle)
        low = middle + 1
      } else {
        high = middle - 1
      }
    }
    return best
  }

  // MARK: - Formats

  private static func pixmap(_ still: Still) throws(ReelError) -> [UInt8] {
    let header = "P6\n\(still.size.width) \(still.size.height)\n255\n"
    return Array(header.utf8) + (try eightBit(still))
  }

  private static func png(_ still: Still) throws(ReelError) -> [UInt8] {
    let frame = try rgbFrame(still, isBigEndian: true)
    frame.tag(still.color, isRGB: true)
    let codec = try ImageCodec(.png, frame: frame)
    codec.context.pointee.compression_level = 3
    return PNGChunks.adding(still.color, to: try codec.encode(frame))
  }

  private static func jpeg(_ still: Still, quality: Int) throws(ReelError) -> [UInt8] {
    let source = try rgbFrame(still)
    let format = quality < 90 ? AV_PIX_FMT_YUVJ420P : AV_PIX_FMT_YUVJ444P
    let frame = try ImageCodec.converted(source, to: format, matrix: SWS_CS_ITU601)
    frame.pointer.pointee.color_range = AVCOL_RANGE_JPEG
    frame.pointer.pointee.colorspace = AVCOL_SPC_BT470BG
    let codec = try ImageCodec(.jpeg, frame: frame)
    let tables = JPEGTables.tables(quality: quality)
    // libavcodec multiplies the tables with the quantizer, and divides by eight.
    codec.context.pointee.flags |= AV_CODEC_FLAG_QSCALE
    codec.context.pointee.global_quality = 8 * FF_QP2LAMBDA
    codec.context.pointee.intra_matrix = try ImageCodec.matrix(tables.luma)
    codec.context.pointee.chroma_intra_matrix = try ImageCodec.matrix(tables.chroma)
    frame.pointer.pointee.quality = 8 * FF_QP2LAMBDA
    return try codec.encode(frame)
  }

  private static func webp(_ still: Still, quality: Int) throws(ReelError) -> [UInt8] {
    let pixels = try eightBit(still)
    let frame = try ImageCodec.frame(size: still.size, format: AV_PIX_FMT_BGRA)
    var quads = [UInt8](repeating: 255, count: still.size.width * still.size.height * 4)
    for pixel in 0..<(still.size.width * still.size.height) {
      quads[pixel * 4] = pixels[pixel * 3 + 2]
      quads[pixel * 4 + 1] = pixels[pixel * 3 + 1]
      quads[pixel * 4 + 2] = pixels[pixel * 3]
    }
    frame.fill(quads, rowBytes: still.size.width * 4)
    return try ImageCodec(.webp, frame: frame).encode(frame, options: ["quality": "\(quality)"])
  }

  private static func avif(_ still: Still, quality: Int) throws(ReelError) -> [UInt8] {
    let isHDR = still.color != .sRGB
    let frame = try ImageCodec.converted(
      try rgbFrame(still), to: isHDR ? AV_PIX_FMT_YUV420P10LE : AV_PIX_FMT_YUV420P,
      matrix: isHDR ? SWS_CS_BT2020 : SWS_CS_ITU601)
    frame.tag(still.color, isRGB: false)
    let codec = try ImageCodec(.avif, frame: frame)
    let quantizer = ((100 - quality) * 63 + 50) / 100
    var options = ["crf": "\(quantizer)"]
    if codec.name == "libaom-av1" {
      options["still-picture"] = "1"
      options["cpu-used"] = "6"
    } else {
      options["preset"] = "8"
    }
    return try codec.encode(frame, options: options, muxer: "avif")
  }

  // MARK: - Pixels

  private static func eightBit(_ still: Still) throws(ReelError) -> [UInt8] {
    guard case .eightBit(let pixels) = still.pixels else {
      throw ReelError(.internalFault, "16-bit pixels for a format with 8")
    }
    return pixels
  }

  /// - Parameter isBigEndian: The order of the bytes of 16-bit samples.
  private static func rgbFrame(_ still: Still, isBigEndian: Bool = false) throws(ReelError) -> Frame {
    let frame: Frame
    switch still.pixels {
    case .eightBit(let pixels):
      frame = try ImageCodec.frame(size: still.size, format: AV_PIX_FMT_RGB24)
      frame.fill(pixels, rowBytes: still.size.width * 3)
    case .sixteenBit(let samples):
      frame = try ImageCodec.frame(
        size: still.size, format: isBigEndian ? AV_PIX_FMT_RGB48BE : AV_PIX_FMT_RGB48LE)
      let ordered = samples.map { isBigEndian ? $0.bigEndian : $0.littleEndian }
      frame.fill(ordered, rowBytes: still.size.width * 6)
    }
    return frame
  }
}

extension StillFormat {
  /// libavcodec's encoders, the preferred one first.
  var encoderNames: [String] {
    switch self {
    case .jpeg: ["mjpeg"]
    case .png: ["png"]
    case .webp: ["libwebp"]
    case .avif: ["libaom-av1", "libsvtav1"]
    case .ppm: []
    }
  }
}

extension Frame {
  /// Copies rows without padding into the only plane.
  func fill<Sample>(_ samples: [Sample], rowBytes: Int) {
    let (rows, stride) = (Int(pointer.pointee.height), Int(pointer.pointee.linesize.0))
    samples.withUnsafeBytes { bytes in
      guard let source = bytes.baseAddress, let target = pointer.pointee.data.0,
        bytes.count >= rows * rowBytes, stride >= rowBytes
      else { return }
      for row in 0..<rows {
        UnsafeMutableRawPointer(target + row * stride).copyMemory(
          from: source + row * rowBytes, byteCount: rowBytes)
      }
    }
  }

  /// Tags full-range pixels.
  func tag(_ color: Still.Color, isRGB: Bool) {
    let points = color.codePoints
    pointer.pointee.color_range = AVCOL_RANGE_JPEG
    pointer.pointee.color_primaries = AVColorPrimaries(UInt32(points.primaries))
    pointer.pointee.color_trc = AVColorTransferCharacteristic(UInt32(points.transfer))
    pointer.pointee.colorspace = isRGB ? AVCOL_SPC_RGB : AVColorSpace(UInt32(points.matrix))
  }
}
