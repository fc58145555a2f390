internal import CFFmpeg
internal import CFFmpegShims
package import ReelCore

/// Muxes raw video, and optionally 16-bit PCM, with libavformat's muxer for NUT.
///
/// The packets of both streams are written in the order of their times. The muxer waits for a stream until
/// the other one is half a second ahead of it.
///
/// Ownership: owns the muxer, its I/O context and that context's buffer. Confined to one thread at a time.
package final class NUTMuxer {
  package struct Video: Sendable {
    package var format: PlanarConverter.Format
    /// The unit of the frames' times, in seconds. The stream uses this unit, or a fraction of it.
    package var timeBase: Rational
    package var frameRate: Rational

    package init(format: PlanarConverter.Format, timeBase: Rational, frameRate: Rational) {
      self.format = format
      self.timeBase = timeBase
      self.frameRate = frameRate
    }
  }

  private let context: UnsafeMutablePointer<AVFormatContext>
  private let sink: Sink
  private var hasHeader = false
  private var isFinished = false
  /// The time of the last frame, in the stream's time base.
  private var lastTicks: Int64 = -1

  /// In microseconds.
  private static let interleavingLimit: Int64 = 500_000
  private static let bufferSize: Int32 = 64 << 10

  /// Begins a file.
  ///
  /// - Parameters:
  ///   - audio: The format of the audio; nil for a file without.
  ///   - write: Called with the bytes of the file, in order.
  ///
  /// Throws `ReelError.unsupported` if NUT has no name for the pixel format, or the error of `write`.
  package init(
    _ video: Video, audio: PCMFormat?,
    to write: @escaping (UnsafeRawBufferPointer) throws(ReelError) -> Void
  ) throws(ReelError) {
    var made: UnsafeMutablePointer<AVFormatContext>?
    let code = avformat_alloc_output_context2(&made, nil, "nut", nil)
    try FFmpegError.check(code, "avformat_alloc_output_context2")
    guard let made else { throw ReelError(.internalFault, "out of memory") }
    context = made
    sink = Sink(write)
    context.pointee.pb = try Self.makeIO(sink)
    // The name and version of the library would make files differ between versions.
    context.pointee.flags |= AVFMT_FLAG_BITEXACT | AVFMT_FLAG_FLUSH_PACKETS
    context.pointee.max_interleave_delta = Self.interleavingLimit
    try add(video)
    if let audio { try add(audio) }
    try check(avformat_write_header(context, nil), "avformat_write_header")
    hasHeader = true
  }

  deinit {
    if hasHeader, !isFinished {
      // Frees the packets that the muxer holds.
      sink.isClosed = true
      av_write_trailer(context)
    }
    if let io = context.pointee.pb {
      av_freep(&io.pointee.buffer)
      avio_context_free(&context.pointee.pb)
    }
    avformat_free_context(context)
  }

  /// True if there is a stream for audio.
  package var hasAudio: Bool { context.pointee.nb_streams > 1 }

  /// Writes a frame in the format of the video stream. Omits it if its time is not after that of the previous
  /// frame.
  ///
  /// Throws the error of the muxer's sink.
  package func write(_ image: PlanarImage, at time: MediaTime) throws(ReelError) {
    guard let stream = stream(0) else { return }
    let ticks = av_rescale_q(
      time.value, AVRational(num: 1, den: time.timescale), stream.pointee.time_base)
    guard ticks > lastTicks else { return }
    lastTicks = ticks
    let byteCount = image.planes.reduce(0) { $0 + $1.count }
    try write(stream, at: ticks, byteCount: byteCount) { target in
      var offset = 0
      for plane in image.planes {
        UnsafeMutableRawBufferPointer(rebasing: target[offset...]).copyBytes(from: plane)
        offset += plane.count
      }
    }
  }

  /// Writes samples in the format of the audio stream.
  ///
  /// - Parameter position: The number of samples before them, from the beginning of the file.
  ///
  /// Throws the error of the muxer's sink.
  package func write(_ audio: PCMBuffer, at position: Int64) throws(ReelError) {
    guard let stream = stream(1), audio.frameCount > 0 else { return }
    let samples = audio.int16Samples.map(\.littleEndian)
    let ticks = av_rescale_q(
      position, AVRational(num: 1, den: Int32(clamping: audio.sampleRate)), stream.pointee.time_base)
    try write(stream, at: ticks, byteCount: samples.count * 2) { target in
      samples.withUnsafeBytes { target.copyMemory(from: $0) }
    }
  }

  /// Writes the end of the file. Nothing may be written after that.
  package func finish() throws(ReelError) {
    isFinished = true
    try check(av_write_trailer(context), "av_write_trailer")
  }

  // MARK: - Private

  /// The receiver of the bytes. FFmpeg's callback gets a pointer to it.
  private final class Sink {
    private let write: (UnsafeRawBufferPointer) throws(ReelError) -> Void
    private(set) var error: ReelError?
    /// True to drop all bytes.
    var isClosed = false

    init(_ write: @escaping (UnsafeRawBufferPointer) throws(ReelError) -> Void) { self.write = write }

    /// Writes bytes. Returns their number, or a negative code.
    func take(_ bytes: UnsafeRawBufferPointer) -> Int32 {
      if isClosed { return Int32(bytes.count) }
      guard error == nil else { return reel_averror_exit() }
      do throws(ReelError) {
        try write(bytes)
        return Int32(bytes.count)
      } catch {
        self.error = error
        return reel_averror_exit()
      }
    }
  }

  private static func makeIO(_ sink: Sink) throws(ReelError) -> UnsafeMutablePointer<AVIOContext> {
    guard let buffer = av_malloc(Int(bufferSize)) else { throw ReelError(.internalFault, "out of memory") }
    let io = avio_alloc_context(
      buffer.assumingMemoryBound(to: UInt8.self), bufferSize, 1, Unmanaged.passUnretained(sink).toOpaque(),
      nil,
      { opaque, bytes, count in
        guard let opaque else { return reel_averror_io() }
        let bytes = UnsafeRawBufferPointer(start: bytes, count: Int(count))
        return Unmanaged<Sink>.fromOpaque(opaque).takeUnretainedValue().take(bytes)
      }, nil)
    guard let io else {
      av_free(buffer)
      throw ReelError(.internalFault, "out of memory")
    }
    return io
  }

  private func add(_ video: Video) throws(ReelError) {
    let (stream, parameters) = try addStream()
    let format = video.format
    guard
      let pixelFormat = PlanarConverter.pixelFormat(chroma: format.chroma, of: format, orientation: .upright),
      case let tag = avcodec_pix_fmt_to_codec_tag(pixelFormat), tag != 0
    else { throw ReelError(.unsupported, "NUT has no name for the pixel format of the frames") }
    let aspect = AVRational(
      num: format.sampleAspectRatio.numerator, den: format.sampleAspectRatio.denominator)
    parameters.pointee.codec_type = AVMEDIA_TYPE_VIDEO
    parameters.pointee.codec_id = AV_CODEC_ID_RAWVIDEO
    parameters.pointee.codec_tag = tag
    parameters.pointee.format = pixelFormat.rawValue
    parameters.pointee.width = Int32(clamping: format.size.width)
    parameters.pointee.height = Int32(clamping: format.size.height)
    parameters.pointee.sample_aspect_ratio = aspect
    stream.pointee.sample_aspect_ratio = aspect
    stream.pointee.time_base = AVRational(num: video.timeBase.numerator, den: video.timeBase.denominator)
    stream.pointee.avg_frame_rate = AVRational(
      num: video.frameRate.numerator, den: video.frameRate.denominator)
  }

  private func add(_ audio: PCMFormat) throws(ReelError) {
    let (stream, parameters) = try addStream()
    parameters.pointee.codec_type = AVMEDIA_TYPE_AUDIO
    parameters.pointee.codec_id = AV_CODEC_ID_PCM_S16LE
    parameters.pointee.format = AV_SAMPLE_FMT_S16.rawValue
    parameters.pointee.sample_rate = Int32(clamping: audio.sampleRate)
    parameters.pointee.bits_per_coded_sample = 16
    parameters.pointee.block_align = Int32(clamping: audio.channelCount * 2)
    let code = audio.withLayout { av_channel_layout_copy(&parameters.pointee.ch_layout, &$0) }
    try check(code, "av_channel_layout_copy")
    stream.pointee.time_base = AVRational(num: 1, den: parameters.pointee.sample_rate)
  }

  private func addStream() throws(ReelError) -> (
    UnsafeMutablePointer<AVStream>, UnsafeMutablePointer<AVCodecParameters>
  ) {
    guard let stream = avformat_new_stream(context, nil), let parameters = stream.pointee.codecpar else {
      throw ReelError(.internalFault, "out of memory")
    }
    return (stream, parameters)
  }

  private func stream(_ index: Int) -> UnsafeMutablePointer<AVStream>? {
    index < Int(context.pointee.nb_streams) ? context.pointee.streams[index] : nil
  }

  private func write(
    _ stream: UnsafeMutablePointer<AVStream>, at ticks: Int64, byteCount: Int,
    _ fill: (UnsafeMutableRawBufferPointer) -> Void
  ) throws(ReelError) {
    let packet = try Packet()
    guard av_new_packet(packet.pointer, Int32(clamping: byteCount)) == 0 else {
      throw ReelError(.internalFault, "out of memory")
    }
    fill(UnsafeMutableRawBufferPointer(start: packet.pointer.pointee.data, count: byteCount))
    packet.pointer.pointee.stream_index = stream.pointee.index
    packet.pointer.pointee.flags |= AV_PKT_FLAG_KEY
    packet.pointer.pointee.pts = ticks
    packet.pointer.pointee.dts = ticks
    try check(av_interleaved_write_frame(context, packet.pointer), "av_interleaved_write_frame")
  }

  private func check(_ code: Int32, _ call: String) throws(ReelError) {
    if let error = sink.error { throw error }
    try FFmpegError.check(code, call)
  }
}
