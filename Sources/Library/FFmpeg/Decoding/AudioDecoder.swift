internal import CFFmpeg
internal import CFFmpegShims
package import Logging
package import ReelCore

/// Decodes the packets of one audio stream to floating-point samples.
///
/// A packet is one audio frame, as in MP4, Matroska and FLV; PES packets of MPEG-TS go through
/// `AudioFrameSplitter` first. As in the ffmpeg tool, libavcodec leaves out samples that the container
/// excludes (encoder delay, padding at the end). Neither rate nor channels are converted: if they change in
/// the stream, so do those of the buffers.
///
/// Ownership: owns its codec context, its only output frame, and its resampler.
///
/// Confined to one thread at a time.
package final class AudioDecoder {
  /// The number of packets that libavcodec rejected as invalid since the decoder was created, and of frames of which it
  /// concealed errors.
  package private(set) var rejectedPacketCount = 0

  private var opened: CodecContext
  private let stream: StreamInfo
  private let scope: LogScope
  /// The output frame, which is reused for every frame.
  private let frame: Frame
  /// Converts frames of `resampledKind` to interleaved floats.
  private var resampler: OpaquePointer?
  private var resampledKind: Kind?
  private var resampledLayout = AVChannelLayout()
  private var format = PCMFormat(sampleRate: 0, channelCount: 0)
  private var clock: AudioClock
  /// The number of the first decrypted packets that were decoded, and how many of them were invalid.
  private var decrypted = (count: 0, invalidCount: 0)

  private struct Kind: Hashable {
    var sampleFormat: Int32
    var sampleRate: Int32
  }

  /// The limit of a frame's samples, checked before memory is allocated. The longest frames of any codec here
  /// have 65536 samples.
  private static let maximumFrameCount: Int64 = 1 << 20

  /// Opens a decoder. Throws `ReelError.unsupported` for a codec that is not on the allow list.
  package init(stream: StreamInfo, name: String, logger: Logger) throws(ReelError) {
    self.stream = stream
    frame = try Frame()
    scope = LogScope(name: name, logger: logger)
    clock = AudioClock(timeBase: stream.timeBase)
    opened = try Self.open(stream, scope: scope)
  }

  deinit {
    swr_free(&resampler)
    av_channel_layout_uninit(&resampledLayout)
  }

  /// libavcodec's name for the profile, such as `LC` or `HE-AAC`; nil before it is known.
  package var profileName: String? {
    avcodec_profile_name(context.pointee.codec_id, context.pointee.profile).map { String(cString: $0) }
  }

  /// Returns all output of the packet, in order; often one buffer, at the start of a stream none. A packet
  /// that libavcodec rejects as invalid is counted and skipped, as in players. After `drain()`, the decoder
  /// accepts packets again only after `flush()`.
  ///
  /// Throws `ReelError.unsupported` for audio that can't be converted, and `badMedia` if half of the first
  /// decrypted packets are invalid, which means that the key is wrong.
  package func decode(_ packet: Packet) throws(ReelError) -> [PCMBuffer] {
    var buffers: [PCMBuffer] = []
    if packet.isNoise {
      rejectedPacketCount += 1
      return buffers
    }
    let rejectedCount = rejectedPacketCount
    var code = avcodec_send_packet(context, packet.pointer)
    if code == reel_averror_again() {
      try receive(into: &buffers)
      code = avcodec_send_packet(context, packet.pointer)
    }
    try check(code, call: "avcodec_send_packet")
    try receive(into: &buffers)
    if packet.isDecrypted { try recordDecrypted(isInvalid: rejectedPacketCount > rejectedCount) }
    return buffers
  }

  /// Returns the held-back output, at the end of the stream.
  package func drain() throws(ReelError) -> [PCMBuffer] {
    var buffers: [PCMBuffer] = []
    avcodec_send_packet(context, nil)
    try receive(into: &buffers)
    return buffers
  }

  /// Discards all decoder state before a packet from another position. That packet then decodes as in a new decoder.
  ///
  /// `avcodec_flush_buffers` is not enough: AAC and AC-3 keep the state of their noise generators, AC-3 and
  /// E-AC-3 also their overlap, and an error may leave more behind. (MP2, MP3, Vorbis, FLAC, ALAC and PCM
  /// decode as in a new decoder.) Therefore, a new decoder is opened, except for Opus. A new Opus decoder
  /// would skip the encoder's delay a second time. If an Opus stream in Matroska is flushed at its beginning,
  /// that delay becomes audible, partly at negative times.
  ///
  /// Throws `ReelError` if a new decoder is needed and can't be opened.
  package func flush() throws(ReelError) {
    if stream.audioCodec == .opus, !scope.hasReportedError {
      avcodec_flush_buffers(context)
    } else {
      opened = try Self.open(stream, scope: scope)
      scope.forgetReportedError()
    }
    clock.reset()
  }

  // MARK: - Private

  private var context: UnsafeMutablePointer<AVCodecContext> { opened.pointer }

  private static func open(_ stream: StreamInfo, scope: LogScope) throws(ReelError) -> CodecContext {
    guard let codec = stream.audioCodec else {
      throw ReelError(.unsupported, "the audio codec \(stream.codecName) is not supported")
    }
    // PCM decoders are named like their codecs.
    let names = codec == .pcm ? [stream.codecName] : codec.decoderNames
    guard let implementation = names.lazy.compactMap({ avcodec_find_decoder_by_name($0) }).first else {
      throw ReelError(.unsupported, "this FFmpeg has no decoder for \(stream.codecName)")
    }
    return try CodecContext(implementation, parameters: stream.parameters, scope: scope) { context in
      // Without it, libavcodec can't adjust the time of a frame whose first samples it skips.
      context.pointee.pkt_timebase = AVRational(
        num: stream.timeBase.numerator, den: stream.timeBase.denominator)
      context.pointee.thread_count = 1
      context.pointee.max_samples = maximumFrameCount
      av_opt_set(context, "codec_whitelist", AudioCodec.allowList, 0)
    }
  }

  /// Decrypting with a wrong key gives noise. Some noise packets decode as audio, but most do not.
  private func recordDecrypted(isInvalid: Bool) throws(ReelError) {
    guard decrypted.count < 16 else { return }
    decrypted.count += 1
    if isInvalid { decrypted.invalidCount += 1 }
    guard decrypted.invalidCount >= 4, decrypted.invalidCount * 2 >= decrypted.count else { return }
    throw ReelError(.badMedia, "the encrypted audio can't be decoded", advice: KeyTrust.advice)
  }

  private func receive(into buffers: inout [PCMBuffer]) throws(ReelError) {
    while true {
      let code = avcodec_receive_frame(context, frame.pointer)
      if code == reel_averror_again() || code == reel_averror_eof() { return }
      if code < 0 {
        try check(code, call: "avcodec_receive_frame")
        continue
      }
      defer { av_frame_unref(frame.pointer) }
      if frame.pointer.pointee.decode_error_flags != 0 { rejectedPacketCount += 1 }
      if let buffer = try convert() { buffers.append(buffer) }
    }
  }

  /// Returns the samples of `frame`; nil if it has none.
  private func convert() throws(ReelError) -> PCMBuffer? {
    let count = Int(frame.pointer.pointee.nb_samples)
    guard count > 0, frame.pointer.pointee.ch_layout.nb_channels > 0 else { return nil }
    // A damaged packet may produce a frame with a nonsensical header.
    guard frame.pointer.pointee.sample_rate > 0 else {
      rejectedPacketCount += 1
      return nil
    }
    let resampler = try resamplerForFrame()
    var converted: Int32 = 0
    let samples = [Float](unsafeUninitializedCapacity: count * format.channelCount) { buffer, filled in
      buffer.withMemoryRebound(to: UInt8.self) { bytes in
        converted = reel_resample_frame(resampler, bytes.baseAddress, Int32(clamping: count), frame.pointer)
      }
      filled = max(0, Int(converted)) * format.channelCount
    }
    guard converted == Int32(clamping: count) else {
      throw FFmpegError(call: "swr_convert", code: min(converted, 0)).reelError(.internalFault)
    }
    if let ticks = frame.presentationTicks { clock.set(ticks) }
    defer { clock.advance(sampleCount: count, sampleRate: format.sampleRate) }
    return PCMBuffer(ticks: clock.ticks, format: format, samples: samples)
  }

  /// Returns the resampler for frames like this one: the previous one, if nothing has changed.
  private func resamplerForFrame() throws(ReelError) -> OpaquePointer {
    let source = frame.pointer
    let kind = Kind(sampleFormat: source.pointee.format, sampleRate: source.pointee.sample_rate)
    if kind == resampledKind, let resampler,
      av_channel_layout_compare(&resampledLayout, &source.pointee.ch_layout) == 0
    {
      return resampler
    }
    swr_free(&resampler)
    resampledKind = nil
    var made: OpaquePointer?
    guard
      swr_alloc_set_opts2(
        &made, &source.pointee.ch_layout, AV_SAMPLE_FMT_FLT, kind.sampleRate, &source.pointee.ch_layout,
        AVSampleFormat(kind.sampleFormat), kind.sampleRate, 0, nil) >= 0,
      swr_init(made) >= 0, let made
    else {
      swr_free(&made)
      throw ReelError(
        .unsupported,
        "audio with \(source.pointee.ch_layout.nb_channels) channels at \(kind.sampleRate) Hz can't be converted"
      )
    }
    resampler = made
    guard av_channel_layout_copy(&resampledLayout, &source.pointee.ch_layout) >= 0 else {
      throw ReelError(.internalFault, "out of memory")
    }
    format = PCMFormat(sampleRate: Int(kind.sampleRate), layout: &source.pointee.ch_layout)
    resampledKind = kind
    return made
  }

  /// Ignores errors of one packet; throws errors of the decoder.
  private func check(_ code: Int32, call: String) throws(ReelError) {
    guard code < 0 else { return }
    try scope.checkDecoder(code, call: call)
    rejectedPacketCount += 1
  }
}
