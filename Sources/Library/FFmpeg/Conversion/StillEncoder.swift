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
  /// Throws `ReelError.unsupported` with the encoder's name if this FFmpeg lacks an encoder or muxer of a
  /// format.
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

  /// Returns true if FFmpeg has an encoder or a muxer of this name.
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
  /// - Throws: The same errors as `encode(_:as:quality:)`.
  package static func encode(
    _ still: Still, as format: StillFormat, quality: Int? = nil, byteLimit: Int
  ) throws(ReelError) -> (bytes: [UInt8], quality: Int?)? {
    var best: (bytes: [UInt8], quality: Int?)?
    let first = try encode(still, as: format, quality: quality)
    guard let highest = quality ?? format.defaultQuality, first.count > byteLimit else {
      return first.count > byteLimit ? nil : (first, quality ?? format.defaultQuality)
    }
    // Each lower quality has fewer bytes, with exceptions of a few bytes.
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
    let image = RGBImage(size: still.size, pixels: try eightBit(still))
    return image.ppmHeader + image.pixels
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
    let quads = RGBImage(size: still.size, pixels: pixels).quads(isBlueFirst: true)
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

  /// Returns a frame with the pixels of a still.
  package static func frame(of still: Still) throws(ReelError) -> Frame {
    let frame = try rgbFrame(still)
    frame.tag(still.color, isRGB: true)
    return frame
  }

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

/// Encodes RGB images as PNG (ISO/IEC 15948) with libavcodec.
package enum PNGEncoder {
  /// Returns `image` as a PNG file.
  ///
  /// - Throws: `ReelError` of kind `unsupported` if FFmpeg was built without its PNG encoder, or `internalFault` if
  ///   encoding fails.
  package static func encode(_ image: RGBImage) throws(ReelError) -> [UInt8] {
    let frame = try ImageCodec.frame(size: image.size, format: AV_PIX_FMT_RGB24)
    frame.fill(image.pixels, rowBytes: image.size.width * 3)
    let codec = try ImageCodec(.png, frame: frame)
    codec.context.pointee.compression_level = 3
    codec.context.pointee.sample_aspect_ratio = AVRational(num: 0, den: 1)
    return try codec.encode(frame)
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
  /// Copies rows without padding into the frame's only plane.
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

/// A file format for one image.
package enum StillFormat: String, Sendable, Hashable, CaseIterable {
  /// Baseline JPEG (ITU-T T.81) in a JFIF file: full-range Y'CbCr by the BT.601 matrix.
  case jpeg
  /// PNG (ISO/IEC 15948), 8 or 16 bits per component.
  case png
  /// Lossy WebP (RFC 9649).
  case webp
  /// AVIF: one AV1 intra frame, with its color properties in a `colr` box.
  case avif
  /// Binary portable pixmap (P6), 8 bits per component.
  case ppm

  /// True for the name of a file of media or of pictures, in any format.
  package static func isFileName(_ name: String) -> Bool {
    guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return false }
    let ending = name[name.index(after: dot)...].lowercased()
    return av_guess_format(nil, name.lowercased(), nil) != nil || othersEndings.contains(ending)
  }

  /// The extensions of formats that libavformat does not write.
  private static let othersEndings: Set<String> = [
    "heic", "heif", "jxl", "svg", "pdf", "ico", "psd", "webm", "jpe",
  ]

  package var fileExtension: String { self == .jpeg ? "jpg" : rawValue }

  /// The default quality, from 1 to 100; nil for lossless formats.
  package var defaultQuality: Int? {
    switch self {
    case .jpeg: 85
    case .webp: 80
    case .avif: 60
    case .png, .ppm: nil
    }
  }

  /// True if files of this format can state the colors of HDR and have enough bits for them.
  package var canHoldHDR: Bool { self == .png || self == .avif }
}

/// The quantization tables that libjpeg uses, so that a quality has the same meaning as in other programs.
enum JPEGTables {
  /// The example tables of ITU-T T.81, Annex K, for luma and chroma, row by row.
  private static let luma: [Int] = [
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56, 14, 17,
    22,
    29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92, 49, 64, 78, 87,
    103,
    121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
  ]
  private static let chroma: [Int] = [
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99, 47, 66,
    99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
    99,
    99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
  ]

  /// Returns the tables for a quality from 1 to 100, by the formula of libjpeg (jcparam.c,
  /// jpeg_quality_scaling). FFmpeg keeps 8 for the constant term, regardless of the table.
  static func tables(quality: Int) -> (luma: [UInt16], chroma: [UInt16]) {
    let scale = quality < 50 ? 5000 / quality : 200 - 2 * quality
    func scaled(_ table: [Int]) -> [UInt16] {
      table.map { UInt16(min(max(($0 * scale + 50) / 100, 1), 255)) }
    }
    return (scaled(luma), scaled(chroma))
  }
}

/// The chunks of a PNG file that state its colors.
enum PNGChunks {
  /// Adds a `cICP` chunk (PNG, third edition, §11.3.2.6) to an HDR image, unless the encoder has written one.
  /// SDR images have the encoder's `sRGB` chunk.
  static func adding(_ color: Still.Color, to png: [UInt8]) -> [UInt8] {
    // The signature, and IHDR with its 13 bytes.
    let start = 8 + 12 + 13
    guard color != .sRGB, png.count > start else { return png }
    let points = color.codePoints
    let body = Array("cICP".utf8) + [points.primaries, points.transfer, 0, 1]
    guard png.firstRange(of: body.prefix(4)) == nil else { return png }
    return png[..<start] + [0, 0, 0, 4] + body + crc(body).bigEndianBytes + png[start...]
  }

  /// Returns the checksum of ISO/IEC 15948, Annex D.
  static func crc(_ bytes: [UInt8]) -> UInt32 {
    var value: UInt32 = ~0
    for byte in bytes {
      value ^= UInt32(byte)
      for _ in 0..<8 { value = value & 1 == 0 ? value >> 1 : value >> 1 ^ 0xedb8_8320 }
    }
    return ~value
  }
}

/// An encoder of one image.
///
/// Ownership: owns the codec's context, and with it the quantization matrices.
struct ImageCodec: ~Copyable {
  let context: UnsafeMutablePointer<AVCodecContext>
  private let codec: UnsafePointer<AVCodec>

  /// Creates the first available encoder of `format`, with the properties of `frame`. It is opened by
  /// `encode`.
  init(_ format: StillFormat, frame: Frame) throws(ReelError) {
    guard let codec = format.encoderNames.lazy.compactMap({ avcodec_find_encoder_by_name($0) }).first else {
      throw ReelError(.unsupported, "this FFmpeg has no \(format.encoderNames.first ?? "") encoder")
    }
    guard let context = avcodec_alloc_context3(codec) else {
      throw ReelError(.internalFault, "out of memory")
    }
    self.codec = codec
    self.context = context
    context.pointee.width = frame.pointer.pointee.width
    context.pointee.height = frame.pointer.pointee.height
    context.pointee.pix_fmt = frame.format
    context.pointee.time_base = AVRational(num: 1, den: 1)
    context.pointee.sample_aspect_ratio = AVRational(num: 1, den: 1)
    context.pointee.thread_count = 1
    // Tool versions would make the file depend on more than its pixels.
    context.pointee.flags |= AV_CODEC_FLAG_BITEXACT
    context.pointee.color_range = frame.pointer.pointee.color_range
    context.pointee.color_primaries = frame.pointer.pointee.color_primaries
    context.pointee.color_trc = frame.pointer.pointee.color_trc
    context.pointee.colorspace = frame.pointer.pointee.colorspace
  }

  deinit {
    // libavcodec frees `intra_matrix` with the context, but in FFmpeg 5.1 not this one. A version that does finds nil.
    av_freep(&context.pointee.chroma_intra_matrix)
    var context: UnsafeMutablePointer<AVCodecContext>? = context
    avcodec_free_context(&context)
  }

  /// The encoder's name.
  var name: String { String(cString: codec.pointee.name) }

  /// Encodes the frame.
  ///
  /// - Parameters:
  ///   - options: The encoder's own options.
  ///   - muxer: Writes the file; nil if the packet is the file.
  func encode(
    _ frame: Frame, options: [String: String] = [:], muxer: String? = nil
  ) throws(ReelError) -> [UInt8] {
    if muxer != nil { context.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER }
    var dictionary: OpaquePointer?
    defer { av_dict_free(&dictionary) }
    for (key, value) in options { av_dict_set(&dictionary, key, value, 0) }
    try FFmpegError.check(avcodec_open2(context, codec, &dictionary), "avcodec_open2")
    frame.pointer.pointee.pts = 0
    try FFmpegError.check(avcodec_send_frame(context, frame.pointer), "avcodec_send_frame")
    try FFmpegError.check(avcodec_send_frame(context, nil), "avcodec_send_frame")
    let packet = try Packet()
    try FFmpegError.check(avcodec_receive_packet(context, packet.pointer), "avcodec_receive_packet")
    guard let muxer else { return packet.withBytes { Array($0) } }
    return try file(of: packet, muxer: muxer)
  }

  /// Returns a frame with memory for its pixels.
  static func frame(size: PixelSize, format: AVPixelFormat) throws(ReelError) -> Frame {
    let frame = try Frame()
    frame.pointer.pointee.width = Int32(clamping: size.width)
    frame.pointer.pointee.height = Int32(clamping: size.height)
    frame.pointer.pointee.format = format.rawValue
    try FFmpegError.check(av_frame_get_buffer(frame.pointer, 0), "av_frame_get_buffer")
    return frame
  }

  /// Returns a frame of RGB as full-range Y'CbCr.
  ///
  /// - Parameter matrix: An `SWS_CS` number.
  static func converted(
    _ source: Frame, to format: AVPixelFormat, matrix: Int32
  ) throws(ReelError) -> Frame {
    let frame = try frame(size: source.size, format: format)
    let (width, height) = (source.pointer.pointee.width, source.pointer.pointee.height)
    let flags = SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP
    guard
      let context = sws_getContext(
        width, height, source.format, width, height, format, Int32(flags), nil, nil, nil)
    else { throw ReelError(.internalFault, "the image can't be converted to \(frame.pixelFormat)") }
    defer { sws_freeContext(context) }
    sws_setColorspaceDetails(
      context, sws_getCoefficients(matrix), 1, sws_getCoefficients(matrix), 1, 0, 1 << 16, 1 << 16)
    try FFmpegError.check(reel_scale(context, source.pointer, frame.pointer), "sws_scale")
    return frame
  }

  /// Returns a quantization matrix to be owned by a context.
  static func matrix(_ values: [UInt16]) throws(ReelError) -> UnsafeMutablePointer<UInt16> {
    guard let memory = av_malloc(values.count * 2) else { throw ReelError(.internalFault, "out of memory") }
    let matrix = memory.assumingMemoryBound(to: UInt16.self)
    matrix.update(from: values, count: values.count)
    return matrix
  }

  // MARK: - Private

  private func file(of packet: Packet, muxer: String) throws(ReelError) -> [UInt8] {
    var made: UnsafeMutablePointer<AVFormatContext>?
    try FFmpegError.check(
      avformat_alloc_output_context2(&made, nil, muxer, nil), "avformat_alloc_output_context2")
    guard let format = made else { throw ReelError(.internalFault, "out of memory") }
    defer { avformat_free_context(format) }
    guard let stream = avformat_new_stream(format, nil) else {
      throw ReelError(.internalFault, "out of memory")
    }
    try FFmpegError.check(
      avcodec_parameters_from_context(stream.pointee.codecpar, context), "avcodec_parameters_from_context")
    stream.pointee.time_base = context.pointee.time_base
    format.pointee.flags |= AVFMT_FLAG_BITEXACT
    try FFmpegError.check(avio_open_dyn_buf(&format.pointee.pb), "avio_open_dyn_buf")
    var code = avformat_write_header(format, nil)
    if code >= 0 {
      packet.pointer.pointee.stream_index = 0
      packet.pointer.pointee.pts = 0
      packet.pointer.pointee.dts = 0
      packet.pointer.pointee.duration = 1
      code = av_write_frame(format, packet.pointer)
    }
    if code >= 0 { code = av_write_trailer(format) }
    var buffer: UnsafeMutablePointer<UInt8>?
    let count = avio_close_dyn_buf(format.pointee.pb, &buffer)
    format.pointee.pb = nil
    defer { av_free(buffer) }
    try FFmpegError.check(code, "av_write_frame")
    return Array(UnsafeBufferPointer(start: buffer, count: Int(max(0, count))))
  }
}
