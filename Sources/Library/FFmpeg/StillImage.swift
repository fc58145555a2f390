internal import CFFmpeg
internal import CFFmpegShims
package import Logging
package import ReelCore

/// A single image: a poster, as JPEG, PNG or WebP.
package struct StillImage: Sendable {
  package let frame: Frame
  /// The stream for showing the frame: its aspect ratio, without rotation.
  package let stream: StreamInfo

  /// The maximum number of pixels, checked before memory is allocated: 64 million.
  private static let maximumPixels: Int64 = 64 << 20

  /// Decodes the bytes of a file. Throws `ReelError`: `unsupported` for another format, `badMedia` for data
  /// that can't be decoded.
  package init(decoding bytes: [UInt8], name: String, logger: Logger) throws(ReelError) {
    guard let id = Self.codec(of: bytes), let codec = avcodec_find_decoder(id) else {
      throw ReelError(
        .unsupported, "the image format is not supported", at: name, advice: "use JPEG, PNG or WebP")
    }
    var context = avcodec_alloc_context3(codec)
    guard let opened = context else { throw ReelError(.internalFault, "out of memory") }
    let scope = LogScope(name: name, logger: logger)
    let prepared = reel_codec_prepare(opened, scope.token)
    defer {
      avcodec_free_context(&context)
      if let prepared { reel_codec_release(prepared) }
    }
    guard prepared != nil else { throw ReelError(.internalFault, "out of memory") }
    opened.pointee.max_pixels = Self.maximumPixels
    opened.pointee.thread_count = 1
    var code = avcodec_open2(opened, codec, nil)
    guard code >= 0 else { throw Self.error("avcodec_open2", code, scope, name) }
    let packet = try Packet()
    guard av_new_packet(packet.pointer, Int32(clamping: bytes.count)) >= 0 else {
      throw ReelError(.internalFault, "out of memory")
    }
    if let data = packet.pointer.pointee.data { data.update(from: bytes, count: bytes.count) }
    code = avcodec_send_packet(opened, packet.pointer)
    guard code >= 0 else { throw Self.error("avcodec_send_packet", code, scope, name) }
    avcodec_send_packet(opened, nil)
    let frame = try Frame()
    code = avcodec_receive_frame(opened, frame.pointer)
    guard code >= 0 else { throw Self.error("avcodec_receive_frame", code, scope, name) }
    stream = try StreamInfo(still: opened)
    self.frame = frame
  }

  // MARK: - Private

  /// Determines the codec from the first bytes: JPEG (ITU-T T.81 §B.1.1.3), PNG (ISO/IEC 15948 §5.2), WebP
  /// (RFC 9649 §2.4).
  private static func codec(of bytes: [UInt8]) -> AVCodecID? {
    if bytes.starts(with: [0xff, 0xd8, 0xff]) { return AV_CODEC_ID_MJPEG }
    if bytes.starts(with: [0x89, 0x50, 0x4e, 0x47]) { return AV_CODEC_ID_PNG }
    if bytes.starts(with: "RIFF".utf8), bytes.dropFirst(8).starts(with: "WEBP".utf8) {
      return AV_CODEC_ID_WEBP
    }
    return nil
  }

  private static func error(_ call: String, _ code: Int32, _ scope: LogScope, _ name: String) -> ReelError {
    FFmpegError(call: call, code: code, detail: scope.takeLastError()).reelError(.badMedia).located(at: name)
  }
}
