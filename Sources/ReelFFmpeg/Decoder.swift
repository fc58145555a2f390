internal import CFFmpeg
internal import CFFmpegShims
public import Logging
public import ReelCore

/// Decodes the packets of one video stream.
///
/// `send` and `receive` alternate: `send` says `full` when a picture has to be received first, and has then not
/// taken the packet; `receive` says `needsInput` when a packet is wanted. After `finish()`, `receive` gives the
/// pictures that were held back, then `drained`; `flush()` makes it new again, and the next packet must be one that
/// decoding can start at.
///
/// Confined to one thread at a time; with frame threads, pictures come out `threads - 1` packets later.
public final class Decoder {
  public enum SendResult: Sendable {
    case accepted
    /// Receive first, then send the same packet again.
    case full
  }

  public enum ReceiveResult: ~Copyable {
    case frame(Frame)
    case needsInput
    case drained
  }

  /// Packets that libavcodec refused as invalid since the decoder was made.
  public private(set) var rejectedPacketCount = 0

  private let context: UnsafeMutablePointer<AVCodecContext>
  private let codec: OpaquePointer
  private let scope: LogScope
  private var nextTag: Int64 = 0

  /// Larger pictures than this are refused before memory is taken for them: 16384 × 8704.
  private static let maximumPixels: Int64 = 16384 * 8704

  /// Opens a decoder. Throws `ReelError.unsupported` for a codec that is not on the allow list.
  public init(stream: StreamInfo, threads: Int = 1, name: String, logger: Logger) throws(ReelError) {
    guard let codec = stream.videoCodec else {
      throw ReelError(.unsupported, "the video codec \(stream.codecName) is not supported")
    }
    guard let implementation = codec.decoderNames.lazy.compactMap({ avcodec_find_decoder_by_name($0) }).first
    else {
      throw ReelError(.unsupported, "this FFmpeg has no decoder for \(codec.rawValue)")
    }
    guard let context = avcodec_alloc_context3(implementation) else {
      throw ReelError(.internalFault, "out of memory")
    }
    self.context = context
    scope = LogScope(name: name, logger: logger)
    guard let prepared = reel_codec_prepare(context, scope.token) else {
      var context: UnsafeMutablePointer<AVCodecContext>? = context
      avcodec_free_context(&context)
      throw ReelError(.internalFault, "out of memory")
    }
    self.codec = prepared
    guard avcodec_parameters_to_context(context, stream.parameters.pointer) >= 0 else {
      throw ReelError(.badMedia, "codec parameters can't be used")
    }
    context.pointee.pkt_timebase = AVRational(
      num: stream.timeBase.numerator, den: stream.timeBase.denominator)
    context.pointee.thread_count = Int32(clamping: max(1, threads))
    context.pointee.thread_type = threads > 1 ? FF_THREAD_FRAME : FF_THREAD_SLICE
    context.pointee.max_pixels = Self.maximumPixels
    if codec == .h264 || codec == .hevc {
      // The bitstream has the size: a container's absurd one must not keep the decoder from opening.
      context.pointee.width = 0
      context.pointee.height = 0
    }
    // Compares HEVC pictures with the hashes that some streams carry for them.
    if codec == .hevc { context.pointee.err_recognition |= AV_EF_CRCCHECK }
    if codec == .h264 {
      // Without bitstream_restriction in the SPS the H.264 decoder starts with no reorder delay and drops pictures
      // as it learns; strict, it takes the delay that the level's picture buffer allows. A drain cuts it short.
      context.pointee.strict_std_compliance = FF_COMPLIANCE_STRICT
    }
    if codec == .av1, threads == 1 { context.pointee.flags |= AV_CODEC_FLAG_LOW_DELAY }
    av_opt_set(context, "codec_whitelist", VideoCodec.allowList, 0)
    reel_codec_enable_picture_tags(context)
    if codec == .h264 { noteParameterSets(of: stream) }
    let code = avcodec_open2(context, implementation, nil)
    guard code >= 0 else {
      if let fault = sizeFault { throw fault }
      throw FFmpegError(call: "avcodec_open2", code: code, detail: scope.takeLastError()).reelError()
    }
  }

  deinit {
    var context: UnsafeMutablePointer<AVCodecContext>? = context
    avcodec_free_context(&context)
    reel_codec_release(codec)
  }

  /// How many pictures may be held back to bring them into order (`has_b_frames`), as far as is known now.
  public var reorderDepth: Int { Int(context.pointee.has_b_frames) }

  /// The error for pictures of a size that is refused; nil where that is not what is wrong.
  var sizeFault: ReelError? {
    let size = PixelSize(
      width: Int(max(context.pointee.width, context.pointee.coded_width)),
      height: Int(max(context.pointee.height, context.pointee.coded_height)))
    let refused = scope.refusedSize
    guard Int64(size.width) * Int64(size.height) > Self.maximumPixels || refused != nil else { return nil }
    return ReelError(
      .unsupported,
      "pictures of \(refused ?? size.description) are larger than the limit of 16384x8704 pixels")
  }

  /// libavcodec's name of the profile, as `High` or `Main 10`; nil before it is known.
  public var profileName: String? {
    avcodec_profile_name(context.pointee.codec_id, context.pointee.profile).map { String(cString: $0) }
  }

  /// As the bitstream writes it: 31 is H.264's 3.1, 93 HEVC's 3.1; nil before it is known.
  public var level: Int? { context.pointee.level > 0 ? Int(context.pointee.level) : nil }

  /// Frames per second as the bitstream's timing information says; nil without it.
  public var frameRate: Rational? {
    let rate = context.pointee.framerate
    return rate.num > 0 && rate.den > 0 ? Rational(rate.num, rate.den) : nil
  }

  /// Gives a packet to the decoder. One that libavcodec calls invalid is counted and passed over, as players do.
  public func send(_ packet: borrowing Packet) throws(ReelError) -> SendResult {
    reel_codec_tag_packet(context, packet.pointer, nextTag)
    let code = avcodec_send_packet(context, packet.pointer)
    if code == reel_averror_again() { return .full }
    nextTag += 1
    try check(code, call: "avcodec_send_packet")
    return .accepted
  }

  /// Tells the decoder that no more packets come, until `flush()`.
  public func finish() {
    avcodec_send_packet(context, nil)
  }

  /// The next picture in presentation order, if one is ready.
  public func receive() throws(ReelError) -> ReceiveResult {
    while true {
      var frame = try Frame()
      let code = avcodec_receive_frame(context, frame.pointer)
      if code == reel_averror_again() { return .needsInput }
      if code == reel_averror_eof() { return .drained }
      if code < 0 {
        try check(code, call: "avcodec_receive_frame")
        continue
      }
      let flags = frame.pointer.pointee.flags
      let isFlagged = flags & AV_FRAME_FLAG_CORRUPT != 0 || frame.pointer.pointee.decode_error_flags != 0
      let (tag, isKey) = (frame.tag, frame.isKey)
      frame.isDamaged = scope.withDamage { $0.settle(tag, isKey: isKey, isFlagged: isFlagged) }
      return .frame(frame)
    }
  }

  /// Forgets all pictures and references.
  public func flush() {
    avcodec_flush_buffers(context)
    scope.withDamage { $0.reset() }
  }

  /// Takes note of an H.264 sequence parameter set: gaps in frame numbers are no damage where it allows them.
  func noteSequenceParameterSet(_ unit: UnsafeRawBufferPointer) {
    if let allowed = SequenceParameterSet.allowsFrameNumberGaps(unit) {
      scope.setAllowsFrameNumberGaps(allowed)
    }
  }

  /// No other picture is predicted from the one in the packet that is sent next.
  func noteNonReference() {
    let tag = nextTag
    scope.withDamage { $0.noteNonReference(tag) }
  }

  /// The last error line that the decoder logged.
  func takeLastError() -> String? { scope.takeLastError() }

  // MARK: - Private

  /// The sequence parameter sets of an `avcC` record (ISO/IEC 14496-15 §5.3.3.1), or of Annex B extradata.
  private func noteParameterSets(of stream: StreamInfo) {
    let parameters = stream.parameters.pointer.pointee
    let extradata = UnsafeRawBufferPointer(start: parameters.extradata, count: Int(parameters.extradata_size))
    guard case .lengthPrefixed = stream.nalFraming else {
      extradata.forEachNALUnit(framing: .annexB) { unit in
        if (unit.first ?? 0) & 0x1f == 7 { noteSequenceParameterSet(unit) }
        return true
      }
      return
    }
    guard extradata.count > 8 else { return }
    UnsafeRawBufferPointer(rebasing: extradata[6...]).forEachNALUnit(framing: .lengthPrefixed(2)) { unit in
      if (unit.first ?? 0) & 0x1f == 7 { noteSequenceParameterSet(unit) }
      return false
    }
  }

  /// Passes over what is wrong with one packet; throws what is wrong with the decoder.
  private func check(_ code: Int32, call: String) throws(ReelError) {
    guard code < 0 else { return }
    if code == reel_averror(ENOMEM) || code == reel_averror(ENOSYS) {
      throw FFmpegError(call: call, code: code, detail: scope.takeLastError()).reelError(
        code == reel_averror(ENOSYS) ? .unsupported : .internalFault)
    }
    rejectedPacketCount += 1
  }
}
