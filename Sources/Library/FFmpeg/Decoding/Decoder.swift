internal import CFFmpeg
internal import CFFmpegShims
package import Logging
package import ReelCore

/// Decodes the packets of one video stream.
///
/// `send` and `receive` alternate: `receive` returns `wait` when a packet is needed. After `finish()`, it returns
/// the frames that were held back, then `end`. `flush()` resets it; the next packet must be a random access
/// point.
///
/// `flush()` replaces a decoder that has reported an error, because libavcodec's H.264 decoder can decode a later
/// frame wrongly after an error in CAVLC data, without reporting it (FFmpeg 5.1 and 8). It parses the residual of a
/// macroblock into the slice context's coefficient buffer (`sl->mb`, libavcodec/h264_cavlc.c), and the inverse
/// transform clears the coefficients that it uses. If parsing fails halfway, the coefficients stay in the buffer and
/// are added to the next macroblock that has coefficients at the same place; intra prediction spreads the difference
/// across the frame. `avcodec_flush_buffers` does not clear the buffer. `DecoderRenewalTests` truncates one access
/// unit in 67 ways: after 62 of them the whole unit decodes wrongly, with `decode_error_flags` 0.
///
/// CABAC is not affected, because its errors are found before the residual or after the transform. HEVC, VP9 and AV1
/// are not either: in 40 clips with 40 attempts each, a flushed decoder behaved like a new one. Opening a decoder
/// takes 0.1 to 0.3 ms, and happens only after an error.
///
/// Confined to one thread at a time; with frame threads, frames come out `threads - 1` packets later.
package final class Decoder: FrameDecoding {
  /// The number of packets that libavcodec rejected as invalid since the decoder was created.
  package private(set) var rejectedPacketCount = 0

  /// True if libavcodec has reported an error since the decoder was opened: it rejected a packet, flagged a frame, or
  /// logged an error.
  package var hasReportedError: Bool { hasFailed || scope.hasReportedError }

  private var opened: CodecContext
  private let stream: StreamInfo
  private let framing: NALFraming
  private let threads: Int
  private let scope: LogScope
  private var nextTag: Int64 = 0
  private var hasFailed = false
  /// Extradata from a packet, which replaces the stream's.
  private var newExtradata: [UInt8]?
  /// H.264: true if a picture parameter set selects CAVLC, whose errors corrupt later macroblocks.
  private var usesCAVLC = false

  /// The limit of a frame's pixels, checked before memory is allocated: 16384 × 8704.
  private static let maximumPixels: Int64 = 16384 * 8704

  /// Opens a decoder. Throws `ReelError.unsupported` for a codec that is not on the allow list.
  package init(stream: StreamInfo, threads: Int = 1, name: String, logger: Logger) throws(ReelError) {
    self.stream = stream
    framing = stream.nalFraming
    self.threads = threads
    scope = LogScope(name: name, logger: logger)
    opened = try Self.open(stream, extradata: nil, threads: threads, scope: scope)
    guard stream.videoCodec == .h264 else { return }
    stream.configuration.withUnsafeBytes { bytes in
      bytes.forEachConfigurationUnit(framing: framing) { recordParameterSet($0) }
    }
  }

  private var context: UnsafeMutablePointer<AVCodecContext> { opened.pointer }

  package var facts: DecoderFacts {
    let context = context.pointee
    let (pixels, rate) = (Int64(context.width) * Int64(context.height), context.framerate)
    return DecoderFacts(
      reorderDepth: Int(context.has_b_frames), referenceCount: max(1, Int(context.refs)),
      profileName: avcodec_profile_name(context.codec_id, context.profile).map { String(cString: $0) },
      level: context.level > 0 ? Int(context.level) : nil,
      frameRate: rate.num > 0 && rate.den > 0 ? Rational(rate.num, rate.den) : nil,
      pixelCount: pixels > 0 ? Int(pixels) : nil)
  }

  /// The error for frames that exceed the size limit; nil if that is not the cause.
  package var sizeFault: ReelError? { Self.sizeFault(context, scope: scope) }

  private static func sizeFault(
    _ context: UnsafeMutablePointer<AVCodecContext>, scope: LogScope
  ) -> ReelError? {
    let size = PixelSize(
      width: Int(max(context.pointee.width, context.pointee.coded_width)),
      height: Int(max(context.pointee.height, context.pointee.coded_height)))
    let refused = scope.refusedSize
    guard Int64(size.width) * Int64(size.height) > maximumPixels || refused != nil else { return nil }
    return ReelError(
      .unsupported,
      "frames of \(refused ?? size.description) are larger than the limit of 16384x8704 pixels")
  }

  /// Records the properties of a packet by which the decoder's log is interpreted: whether gaps in frame
  /// numbers are allowed, and whether other frames are predicted from this one. Call it before the packet is
  /// sent.
  private func record(_ packet: Packet) {
    guard let codec = stream.videoCodec else { return }
    if codec == .h264 { recordUnits(of: packet) }
    if codec.isMPEGVideo,
      packet.withBytes({ MPEGPicture(codec: codec, bytes: $0) })?.isBidirectional == true
    {
      recordNonReference()
    }
  }

  /// Sends a packet to the decoder. All frames must have been received before, so it is not full. A packet that
  /// libavcodec rejects as invalid is counted and skipped, as in players.
  package func send(_ packet: Packet) throws(ReelError) {
    record(packet)
    reel_codec_tag_packet(context, packet.pointer, nextTag)
    let code = avcodec_send_packet(context, packet.pointer)
    if code == reel_averror_again() { return }
    nextTag += 1
    if let extradata = packet.newExtradata { newExtradata = extradata }
    try check(code, call: "avcodec_send_packet")
  }

  /// Switches deblocking off, or on, for the packets that are sent next. Not for packets that others refer
  /// to, and not with frame threads.
  package func setSkipsDeblocking(_ skips: Bool) {
    context.pointee.skip_loop_filter = skips ? AVDISCARD_ALL : AVDISCARD_DEFAULT
  }

  /// Signals that no more packets follow, until `flush()`.
  package func finish() {
    avcodec_send_packet(context, nil)
  }

  /// Returns the next frame in presentation order; `wait` if it needs a packet, and `end` after `finish()`.
  package func receive() throws(ReelError) -> Pulled<Frame> {
    while true {
      let frame = try Frame()
      let code = avcodec_receive_frame(context, frame.pointer)
      if code == reel_averror_again() { return .wait }
      if code == reel_averror_eof() { return .end }
      if code < 0 {
        try check(code, call: "avcodec_receive_frame")
        continue
      }
      let isFlagged = frame.isFlaggedDamaged
      if isFlagged { hasFailed = true }
      // An intact key frame is undamaged, unless an earlier error may have corrupted the decoder's state.
      let (tag, isKey) = (frame.tag, frame.isKey && !(usesCAVLC && hasReportedError))
      frame.isDamaged = scope.withDamage { $0.settle(tag, isKey: isKey, isFlagged: isFlagged) }
      return .element(frame)
    }
  }

  /// Discards all frames and references. The next packet decodes as in a new decoder.
  ///
  /// Throws `ReelError` if a new decoder is needed and can't be opened.
  package func flush() throws(ReelError) {
    if hasReportedError {
      opened = try Self.open(stream, extradata: newExtradata, threads: threads, scope: scope)
      hasFailed = false
      scope.forgetReportedError()
    } else {
      flushWithoutRenewal()
    }
    scope.withDamage { $0.reset() }
  }

  /// libavcodec's own flush, which is unsafe after an error.
  func flushWithoutRenewal() { avcodec_flush_buffers(context) }

  /// Records an H.264 parameter set: whether gaps in frame numbers are no damage, and whether errors spread.
  private func recordParameterSet(_ unit: UnsafeRawBufferPointer) {
    switch (unit.first ?? 0) & 0x1f {
    case 7:
      if let set = SequenceParameterSet(unit) { scope.setAllowsFrameNumberGaps(set.allowsFrameNumberGaps) }
    case 8:
      if PictureParameterSet(unit)?.usesCAVLC == true { usesCAVLC = true }
    default: break
    }
  }

  /// Records that no other frame is predicted from the one in the packet that is sent next.
  func recordNonReference() {
    let tag = nextTag
    scope.withDamage { $0.recordNonReference(tag) }
  }

  /// Returns the last error line that the decoder logged, and clears it.
  package func takeLastError() -> String? { scope.takeLastError() }

  // MARK: - Private

  private func recordUnits(of packet: Packet) {
    packet.firstSlice(codec: .h264, framing: framing) { header, unit in
      recordParameterSet(unit)
      // nal_ref_idc
      if header.isPictureSlice, (unit.first ?? 0) & 0x60 == 0 { recordNonReference() }
    }
  }

  private static func open(
    _ stream: StreamInfo, extradata: [UInt8]?, threads: Int, scope: LogScope
  ) throws(ReelError) -> CodecContext {
    guard let codec = stream.videoCodec else {
      throw ReelError(.unsupported, "the video codec \(stream.codecName) is not supported")
    }
    let id = stream.parameters.pointer.pointee.codec_id
    guard
      let implementation = codec.decoderNames.lazy.compactMap({ avcodec_find_decoder_by_name($0) })
        .first(where: { $0.pointee.id == id })
    else {
      throw ReelError(.unsupported, "this FFmpeg has no decoder for \(codec.rawValue)")
    }
    return try CodecContext(implementation, parameters: stream.parameters, scope: scope) {
      context throws(ReelError) in
      if let extradata, !reel_codec_set_extradata(context, extradata, Int32(clamping: extradata.count)) {
        throw ReelError(.internalFault, "out of memory")
      }
      configure(context, codec: codec, timeBase: stream.timeBase, threads: threads)
    } fault: {
      sizeFault($0, scope: scope)
    }
  }

  private static func configure(
    _ context: UnsafeMutablePointer<AVCodecContext>, codec: VideoCodec, timeBase: Rational, threads: Int
  ) {
    context.pointee.pkt_timebase = AVRational(num: timeBase.numerator, den: timeBase.denominator)
    context.pointee.thread_count = Int32(clamping: max(1, threads))
    // If both kinds of threads are allowed, libavcodec prefers frame threads. The MPEG-4 Part 2 decoder does not use
    // them here: its output for interlaced frames depends on the number of frame threads.
    let usesFrameThreads = threads > 1 && codec != .mpeg4
    context.pointee.thread_type = usesFrameThreads ? FF_THREAD_FRAME | FF_THREAD_SLICE : FF_THREAD_SLICE
    context.pointee.max_pixels = maximumPixels
    if codec == .hevc || !canDecode(width: context.pointee.width, height: context.pointee.height) {
      // The bitstream states the size, so an absurd size in the container must not prevent the decoder from opening.
      // H.264 is the exception: libavcodec crops to the container's size if that is smaller by less than a macroblock
      // (libavcodec/h264_slice.c, init_dimensions). Cameras store 1080 lines as 1088 and state 1080 only in the
      // container.
      context.pointee.width = 0
      context.pointee.height = 0
    }
    // Compares HEVC frames with the hashes that some streams contain.
    if codec == .hevc { context.pointee.err_recognition |= AV_EF_CRCCHECK }
    if codec == .h264 {
      // Without bitstream_restriction in the SPS the H.264 decoder starts with no reorder delay and drops frames
      // as it learns; strict, it takes the delay that the level's frame buffer allows. A drain cuts it short.
      context.pointee.strict_std_compliance = FF_COMPLIANCE_STRICT
    }
    if codec == .av1, threads == 1 { context.pointee.flags |= AV_CODEC_FLAG_LOW_DELAY }
    av_opt_set(context, "codec_whitelist", VideoCodec.allowList, 0)
    reel_codec_enable_frame_tags(context)
  }

  /// Returns true if a decoder can be opened with this size.
  private static func canDecode(width: Int32, height: Int32) -> Bool {
    guard let width = UInt32(exactly: width), let height = UInt32(exactly: height) else { return false }
    return av_image_check_size2(width, height, maximumPixels, AV_PIX_FMT_NONE, 0, nil) >= 0
  }

  /// Ignores errors of one packet; throws errors of the decoder.
  private func check(_ code: Int32, call: String) throws(ReelError) {
    guard code < 0 else { return }
    hasFailed = true
    try scope.checkDecoder(code, call: call)
    rejectedPacketCount += 1
  }
}

/// An open decoder of libavcodec.
///
/// Ownership: owns and frees the `AVCodecContext` and the `reel_codec` that `reel_codec_prepare` made for it. Frames
/// that it returned stay valid. A decoder that needs a new context replaces the whole object.
final class CodecContext {
  let pointer: UnsafeMutablePointer<AVCodecContext>
  private let codec: OpaquePointer

  /// Opens the decoder.
  ///
  /// Throws `ReelError.badMedia` for parameters that libavcodec rejects, the errors of `configure`, and the error
  /// from `fault` if the context can't be opened.
  ///
  /// - Parameters:
  ///   - configure: Sets fields of the context before it is opened. The stream's parameters are already set.
  ///   - fault: Returns a specific error for a context that can't be opened, or nil to use libavcodec's error.
  init(
    _ implementation: UnsafePointer<AVCodec>, parameters: CodecParameters, scope: LogScope,
    configure: (UnsafeMutablePointer<AVCodecContext>) throws(ReelError) -> Void,
    fault: (UnsafeMutablePointer<AVCodecContext>) -> ReelError? = { _ in nil }
  ) throws(ReelError) {
    guard let context = avcodec_alloc_context3(implementation) else {
      throw ReelError(.internalFault, "out of memory")
    }
    guard let prepared = reel_codec_prepare(context, scope.token) else {
      var context: UnsafeMutablePointer<AVCodecContext>? = context
      avcodec_free_context(&context)
      throw ReelError(.internalFault, "out of memory")
    }
    // From here on, `deinit` frees both, even if `init` throws.
    pointer = context
    codec = prepared
    guard avcodec_parameters_to_context(context, parameters.pointer) >= 0 else {
      throw ReelError(.badMedia, "codec parameters can't be used")
    }
    try configure(context)
    let code = avcodec_open2(context, implementation, nil)
    guard code >= 0 else {
      throw fault(context)
        ?? FFmpegError(call: "avcodec_open2", code: code, detail: scope.takeLastError()).reelError()
    }
  }

  deinit {
    var context: UnsafeMutablePointer<AVCodecContext>? = pointer
    avcodec_free_context(&context)
    reel_codec_release(codec)
  }
}

/// Opens the decoders for `VideoDecoder`s.
package protocol DecoderMaking: Sendable {
  /// Opens a decoder. Throws `ReelError.unsupported` for a codec that is not on the allow list.
  ///
  /// - Parameter threads: The number of frame threads.
  func makeDecoder(
    of stream: StreamInfo, threads: Int, name: String, logger: Logger
  ) throws(ReelError) -> any FrameDecoding
}

/// Opens decoders of libavcodec.
package struct LibavDecoders: DecoderMaking {
  package init() {}

  package func makeDecoder(
    of stream: StreamInfo, threads: Int, name: String, logger: Logger
  ) throws(ReelError) -> any FrameDecoding {
    try Decoder(stream: stream, threads: threads, name: name, logger: logger)
  }
}

/// Turns the packets of a stream into frames: libavcodec (`Decoder`), or a model of it.
///
/// Confined to one thread at a time.
package protocol FrameDecoding: AnyObject {
  var facts: DecoderFacts { get }
  /// The number of packets that were rejected as invalid since the decoder was created.
  var rejectedPacketCount: Int { get }
  /// True if an error was reported since the decoder was opened.
  var hasReportedError: Bool { get }
  /// The error for frames that exceed the size limit; nil if that is not the cause.
  var sizeFault: ReelError? { get }

  /// Returns the last error line that the decoder logged, and clears it.
  func takeLastError() -> String?
  /// Switches deblocking off, or on, for the packets that are sent next. Not for packets that others refer
  /// to, and not with frame threads.
  func setSkipsDeblocking(_ skips: Bool)
  /// Sends a packet to the decoder. All frames must have been received before.
  func send(_ packet: Packet) throws(ReelError)
  /// Signals that no more packets follow, until `flush()`.
  func finish()
  /// Returns the next frame in presentation order; `wait` if it needs a packet, and `end` after `finish()`.
  func receive() throws(ReelError) -> Pulled<Frame>
  /// Discards all frames and references. The next packet decodes as in a new decoder.
  func flush() throws(ReelError)
}

/// A decoder's information about its stream, which may change with each packet.
package struct DecoderFacts: Sendable, Hashable {
  /// The number of frames that may be held back to bring them into order (`has_b_frames`).
  package var reorderDepth = 0
  /// The number of frames that the stream keeps as references, according to libavcodec: 1 for codecs other
  /// than H.264.
  package var referenceCount = 1
  /// libavcodec's name for the profile, such as `High` or `Main 10`.
  package var profileName: String?
  /// The level as the bitstream states it: 31 is H.264's 3.1, 93 HEVC's 3.1.
  package var level: Int?
  /// The frames per second according to the bitstream's timing information.
  package var frameRate: Rational?
  /// The number of pixels of a frame after cropping.
  package var pixelCount: Int?
  /// The size of the last frame in bytes; 0 before the first.
  package var frameByteCount = 0

  /// Returns an estimate of the bytes of the frames that a decoder holds: the frame that is being decoded,
  /// and the larger of the number of frames held back for their order and the number of references. The
  /// actual amount includes spare frames, and depends on libavcodec's version.
  ///
  /// - Parameter outsideCount: The number of the decoder's latest frames that are held elsewhere: references
  ///   among them are not the decoder's alone.
  package func heldByteCount(outsideCount: Int) -> Int {
    frameByteCount * (1 + max(reorderDepth, referenceCount - outsideCount))
  }
}

/// Limits how many decoders use the processor at once. A permit is held for one call into a decoder, or while
/// one is opened, never while waiting for bytes.
package protocol DecodingGate: Sendable {
  /// Waits for a permit.
  func acquire()
  /// Returns the permit.
  func release()
}
