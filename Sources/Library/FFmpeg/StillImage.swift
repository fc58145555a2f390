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
    let scope = LogScope(name: name, logger: logger)
    let parameters = try CodecParameters()
    parameters.pointer.pointee.codec_type = AVMEDIA_TYPE_VIDEO
    parameters.pointer.pointee.codec_id = id
    let frame = try Frame()
    do throws(ReelError) {
      let context = try CodecContext(codec, parameters: parameters, scope: scope) { context in
        context.pointee.max_pixels = Self.maximumPixels
        context.pointee.thread_count = 1
      }
      let packet = try Packet()
      try packet.setBytes(copying: bytes[...], streamIndex: 0)
      try scope.check(avcodec_send_packet(context.pointer, packet.pointer), "avcodec_send_packet")
      avcodec_send_packet(context.pointer, nil)
      try scope.check(avcodec_receive_frame(context.pointer, frame.pointer), "avcodec_receive_frame")
      stream = try StreamInfo(still: context.pointer)
    } catch {
      throw error.located(at: name)
    }
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
}
