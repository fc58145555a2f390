internal import CFFmpeg
internal import CFFmpegShims
internal import ReelCore

/// An encoder for one image.
///
/// Ownership: owns the codec's context, and with it the matrices.
struct ImageCodec: ~Copyable {
  let context: UnsafeMutablePointer<AVCodecContext>
  private let codec: UnsafePointer<AVCodec>

  /// Makes the first encoder of `format` that FFmpeg has, with the properties of `frame`. It is opened by `encode`.
  init(_ format: StillFormat, frame: borrowing Frame) throws(ReelError) {
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
    var context: UnsafeMutablePointer<AVCodecContext>? = context
    avcodec_free_context(&context)
  }

  /// The encoder's name.
  var name: String { String(cString: codec.pointee.name) }

  /// Encodes the frame.
  ///
  /// - Parameters:
  ///   - options: The encoder's own options.
  ///   - muxer: Makes the file; nil if the packet is the file.
  func encode(
    _ frame: borrowing Frame, options: [String: String] = [:], muxer: String? = nil
  ) throws(ReelError) -> [UInt8] {
    if muxer != nil { context.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER }
    var dictionary: OpaquePointer?
    defer { av_dict_free(&dictionary) }
    for (key, value) in options { av_dict_set(&dictionary, key, value, 0) }
    try Self.check(avcodec_open2(context, codec, &dictionary), "avcodec_open2")
    frame.pointer.pointee.pts = 0
    try Self.check(avcodec_send_frame(context, frame.pointer), "avcodec_send_frame")
    try Self.check(avcodec_send_frame(context, nil), "avcodec_send_frame")
    let packet = try Packet()
    try Self.check(avcodec_receive_packet(context, packet.pointer), "avcodec_receive_packet")
    guard let muxer else { return packet.withBytes { Array($0) } }
    return try file(of: packet, muxer: muxer)
  }

  /// A frame with room for pixels.
  static func frame(size: PixelSize, format: AVPixelFormat) throws(ReelError) -> Frame {
    let frame = try Frame()
    frame.pointer.pointee.width = Int32(clamping: size.width)
    frame.pointer.pointee.height = Int32(clamping: size.height)
    frame.pointer.pointee.format = format.rawValue
    try check(av_frame_get_buffer(frame.pointer, 0), "av_frame_get_buffer")
    return frame
  }

  /// A frame of RGB as full-range Y'CbCr.
  ///
  /// - Parameter matrix: An `SWS_CS` number.
  static func converted(
    _ source: borrowing Frame, to format: AVPixelFormat, matrix: Int32
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
    try check(
      reel_scale(context, source.pointer, frame.pointer), "sws_scale")
    return frame
  }

  /// A quantization matrix, for a context to own.
  static func matrix(_ values: [UInt16]) throws(ReelError) -> UnsafeMutablePointer<UInt16> {
    guard let memory = av_malloc(values.count * 2) else { throw ReelError(.internalFault, "out of memory") }
    let matrix = memory.assumingMemoryBound(to: UInt16.self)
    matrix.update(from: values, count: values.count)
    return matrix
  }

  // MARK: - Private

  private func file(of packet: borrowing Packet, muxer: String) throws(ReelError) -> [UInt8] {
    var made: UnsafeMutablePointer<AVFormatContext>?
    try Self.check(
      avformat_alloc_output_context2(&made, nil, muxer, nil), "avformat_alloc_output_context2")
    guard let format = made else { throw ReelError(.internalFault, "out of memory") }
    defer { avformat_free_context(format) }
    guard let stream = avformat_new_stream(format, nil) else {
      throw ReelError(.internalFault, "out of memory")
    }
    try Self.check(
      avcodec_parameters_from_context(stream.pointee.codecpar, context), "avcodec_parameters_from_context")
    stream.pointee.time_base = context.pointee.time_base
    format.pointee.flags |= AVFMT_FLAG_BITEXACT
    try Self.check(avio_open_dyn_buf(&format.pointee.pb), "avio_open_dyn_buf")
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
    try Self.check(code, "av_write_frame")
    return Array(UnsafeBufferPointer(start: buffer, count: Int(max(0, count))))
  }

  private static func check(_ code: Int32, _ call: String) throws(ReelError) {
    if code < 0 { throw FFmpegError(call: call, code: code).reelError(.internalFault) }
  }
}
