internal import CFFmpeg
public import ReelCore

/// Encodes RGB images as PNG (ISO/IEC 15948) with libavcodec.
public enum PNGEncoder {
  /// Returns `image` as a PNG file.
  ///
  /// - Throws: `ReelError` of kind `unsupported` if FFmpeg was built without its PNG encoder, or `internalFault` if
  ///   encoding fails.
  public static func encode(_ image: RGBImage) throws(ReelError) -> [UInt8] {
    guard let codec = avcodec_find_encoder(AV_CODEC_ID_PNG), let context = avcodec_alloc_context3(codec)
    else {
      throw ReelError(.unsupported, "this FFmpeg has no PNG encoder")
    }
    defer {
      var context: UnsafeMutablePointer<AVCodecContext>? = context
      avcodec_free_context(&context)
    }
    context.pointee.width = Int32(clamping: image.size.width)
    context.pointee.height = Int32(clamping: image.size.height)
    context.pointee.pix_fmt = AV_PIX_FMT_RGB24
    context.pointee.time_base = AVRational(num: 1, den: 1)
    context.pointee.compression_level = 3
    context.pointee.thread_count = 1
    try check(avcodec_open2(context, codec, nil), "avcodec_open2")
    let frame = try Frame()
    frame.pointer.pointee.width = context.pointee.width
    frame.pointer.pointee.height = context.pointee.height
    frame.pointer.pointee.format = AV_PIX_FMT_RGB24.rawValue
    try check(av_frame_get_buffer(frame.pointer, 0), "av_frame_get_buffer")
    let (rowBytes, stride) = (image.size.width * 3, Int(frame.pointer.pointee.linesize.0))
    image.pixels.withUnsafeBufferPointer { pixels in
      guard let source = pixels.baseAddress, let target = frame.pointer.pointee.data.0 else { return }
      for row in 0..<image.size.height {
        (target + row * stride).update(from: source + row * rowBytes, count: rowBytes)
      }
    }
    try check(avcodec_send_frame(context, frame.pointer), "avcodec_send_frame")
    try check(avcodec_send_frame(context, nil), "avcodec_send_frame")
    let packet = try Packet()
    try check(avcodec_receive_packet(context, packet.pointer), "avcodec_receive_packet")
    return packet.withBytes { Array($0) }
  }

  private static func check(_ code: Int32, _ call: String) throws(ReelError) {
    if code < 0 { throw FFmpegError(call: call, code: code).reelError(.internalFault) }
  }
}
