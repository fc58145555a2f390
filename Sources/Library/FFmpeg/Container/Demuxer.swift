internal import CFFmpeg
internal import CFFmpegShims
package import Logging
package import ReelCore

/// Splits the bytes of one container into packets.
///
/// libavformat gets only bytes, never a URL: references to other files are refused. Streams are not probed
/// (`avformat_find_stream_info` is never called): only the header, or the first packets, describe them.
///
/// Ownership: owns the `AVFormatContext`. Streams leave it as values (`StreamInfo`), never as pointers into it.
///
/// Confined to one thread at a time; the calls block like those of its `ByteSource`.
package final class Demuxer {
  /// The streams known so far. Some containers announce more of them later (MPEG-TS, FLV).
  package private(set) var streams: [StreamInfo] = []
  package let format: ContainerFormat

  /// True if the file ended before bytes that the container's index names, or inside a Matroska element.
  package private(set) var isTruncated = false
  /// True if the source ended inside a packet of a container without an index.
  private(set) var endsInsidePacket = false
  private var damage: String?

  private var context: UnsafeMutablePointer<AVFormatContext>?
  private let io: ByteSourceIO
  private let scope: LogScope
  /// The packets that were read to detect streams, to be returned first.
  private var readAhead: [Packet] = []

  /// mpegts splits a PES packet without a stated length when it would get longer, and has a buffer of this size
  /// for each stream, otherwise 200 KiB.
  ///
  /// It must not be smaller than the largest `PES_packet_length`. Buffers have at most this size, but a PES packet with
  /// a stated length is copied into one whole (libavformat/mpegts.c, buffer_pool_get and mpegts_push_data, FFmpeg 5.1
  /// to 8).
  static let longestPart = 65_535

  /// The maximum number of bytes of a stream to examine for its headers.
  private static let probeByteCount: Int64 = 1 << 20

  /// Reads the header. Throws `ReelError.badMedia`, or the source's error.
  ///
  /// - Parameters:
  ///   - source: The container's bytes from its first one.
  ///   - isSeekable: If false, the source is only read forward.
  ///   - startsAtMedia: MP4: do not search after the media. Otherwise a seekable source is read to its end.
  ///   - position: The position of the first byte, for a source that is only read forward.
  ///   - clock: Measures waits for bytes.
  ///   - name: The source's name in log lines.
  package init(
    source: any ByteSource, format: ContainerFormat, isSeekable: Bool = true, startsAtMedia: Bool = false,
    position: Int64 = 0, clock: any MonotonicClock = SystemMonotonicClock(), name: String, logger: Logger
  ) throws {
    self.format = format
    scope = LogScope(name: name, logger: logger)
    io = try ByteSourceIO(source: source, isSeekable: isSeekable, position: position, clock: clock)
    guard let inputFormat = Self.inputFormats[format] else {
      throw ReelError(.unsupported, "this FFmpeg has no demuxer for \(format.rawValue)")
    }
    guard let context = avformat_alloc_context() else { throw ReelError(.internalFault, "out of memory") }
    context.pointee.pb = io.context
    context.pointee.probesize = Self.probeByteCount
    context.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
    context.pointee.max_streams = 256
    // libavformat/mov.c, mov_read_default: it returns at the media.
    if format == .mp4, startsAtMedia { context.pointee.flags |= AVFMT_FLAG_IGNIDX }
    if format.isSplitByReel {
      // The parser would hold back each frame until the next one has begun, and often longer: a frame of 80 kB
      // came out after 155,648 bytes instead of 86,016. AccessUnitSplitter splits access units instead.
      // (NOFILLIN belongs to it.)
      context.pointee.flags |= AVFMT_FLAG_NOPARSE | AVFMT_FLAG_NOFILLIN
    }
    reel_format_refuse_io_open(context)
    reel_format_set_token(context, scope.token)
    av_opt_set(context, "format_whitelist", ContainerFormat.allowList, 0)
    av_opt_set(context, "codec_whitelist", "\(VideoCodec.allowList),\(AudioCodec.allowList)", 0)
    av_opt_set(context, "protocol_whitelist", "", 0)
    var opened: UnsafeMutablePointer<AVFormatContext>? = context
    var own: OpaquePointer?
    defer { av_dict_free(&own) }
    if format == .mpegTS { av_dict_set_int(&own, "max_packet_size", Int64(Self.longestPart), 0) }
    if format == .h264 { av_dict_set_int(&own, "framerate", Self.pictureRate, 0) }
    // avformat_open_input frees the context if it fails.
    let code = avformat_open_input(&opened, nil, inputFormat, &own)
    self.context = code >= 0 ? opened : nil
    try io.rethrow()
    guard code >= 0 else {
      throw FFmpegError(call: "avformat_open_input", code: code, detail: scope.takeLastError()).reelError()
    }
    // libavformat/mp3dec.c, mp3_parse_vbr_tags: without such a tag, it leaves a checksum over the buffer, which is replaced.
    if format == .mp3 { context.pointee.pb.pointee.update_checksum = nil }
    try refreshStreams()
  }

  /// The rate of raw H.264 that states none, for 25 frames a second. libavformat/demux.c, compute_frame_duration: before
  /// FFmpeg 6.1, an unopened decoder has one tick a frame, and the parser counts two for each.
  private static let pictureRate: Int64 = avformat_version() < 60 << 16 | 16 << 8 | 100 ? 50 : 25

  /// libavformat's demuxers. Each is looked up once, because that compares its name with some 300 others.
  /// They are constant.
  private nonisolated(unsafe) static let inputFormats: [ContainerFormat: UnsafePointer<AVInputFormat>] =
    ContainerFormat.allCases.reduce(into: [:]) { $0[$1] = av_find_input_format($1.demuxerName) }

  deinit {
    avformat_close_input(&context)
  }

  /// The duration in microseconds, if the header states it.
  package var durationMicroseconds: Int64? {
    guard let duration = context?.pointee.duration, duration != reel_nopts(), duration > 0 else { return nil }
    return duration
  }

  /// The demuxer's position in the source, not counting bytes that were read ahead.
  package var position: Int64 { context.map { $0.pointee.pb.pointee.pos - unread($0.pointee.pb) } ?? 0 }

  /// The bytes of the source after `position` that were read but not used; nil if the demuxer holds more than
  /// that.
  var unread: [UInt8]? { readAhead.isEmpty ? io.unread : nil }

  /// The total time spent waiting for the source.
  package var sourceWait: Duration { io.readDuration }

  /// Delivers packets as the container stores them. Parsers can't read encrypted packets.
  func disableParsers() { context?.pointee.flags |= AVFMT_FLAG_NOPARSE }

  /// Drops packets of all other streams inside the demuxer, without copying them.
  package func select(streams selected: Set<Int>) {
    guard let context else { return }
    for index in 0..<Int(context.pointee.nb_streams) {
      context.pointee.streams[index]?.pointee.discard =
        selected.contains(index) ? AVDISCARD_DEFAULT : AVDISCARD_ALL
    }
  }

  /// Returns the next packet of the selected streams; nil at the end. Throws `ReelError.badMedia`, or the
  /// source's error.
  package func nextPacket() throws -> Packet? {
    readAhead.isEmpty ? try readPacket() : readAhead.removeFirst()
  }

  private func readPacket() throws -> Packet? {
    guard let context else { return nil }
    let packet = try Packet()
    io.shrinkBuffer()
    while true {
      let code = av_read_frame(context, packet.pointer)
      if Int(context.pointee.nb_streams) != streams.count { try refreshStreams() }
      if code >= 0 {
        // The source failed: the demuxer first returned its packets.
        try io.rethrow()
        recordDamage(of: packet)
        return packet
      }
      try io.rethrow()
      if code == reel_averror_eof() {
        // mov only logs that samples lie beyond the end, and not for seekable sources.
        if scope.lastError?.contains("partial file") == true || isIndexBeyondEnd { isTruncated = true }
        if !hasIndex, scope.takeCorruptPacket() { endsInsidePacket = true }
        // libavformat/matroskadec.c, ebml_read_num: in the middle of an element.
        if format == .matroska, scope.lastError?.contains("ended prematurely") == true { isTruncated = true }
        recordElementDamage()
        return nil
      }
      if code == reel_averror_again() { continue }
      // libavformat/aacdec.c, adts_aac_read_packet: the next call searches for a header.
      if format == .aac, code == reel_averror_invaliddata() {
        damage = "a frame has no header"
        continue
      }
      // The source ended inside a header.
      if format == .aac, code == reel_averror_io() {
        endsInsidePacket = true
        return nil
      }
      throw Self.error(FFmpegError(call: "av_read_frame", code: code, detail: scope.takeLastError()))
    }
  }

  /// Reads on until a stream fulfils `condition`, and returns it; nil at the end of the input or of the part
  /// that may be probed. For containers that announce streams late; the packets read meanwhile are kept.
  func awaitStream(where condition: (StreamInfo) -> Bool) throws -> StreamInfo? {
    while true {
      if let stream = streams.first(where: condition) { return stream }
      // Other formats have announced all their streams in the header.
      guard let context, context.pointee.ctx_flags & AVFMTCTX_NOHEADER != 0,
        position < Self.probeByteCount * 5, let packet = try readPacket()
      else { return nil }
      readAhead.append(packet)
    }
  }

  /// Lets libavformat split MPEG-TS packets into access units and audio frames and fill in their timestamps, as it
  /// does for other containers. Call it before the first packet is read.
  func parsePackets() { context?.pointee.flags &= ~(AVFMT_FLAG_NOPARSE | AVFMT_FLAG_NOFILLIN) }

  /// Reads on until a packet of a stream arrives, and returns the stream as it is known then: FLV sends codec
  /// parameters just before the first packet, and in MPEG-PS the packets determine the codec.
  func streamAtFirstPacket(_ index: Int) throws -> StreamInfo {
    _ = try firstPackets(of: index, count: 1)
    try refreshStreams()
    return streams[index]
  }

  /// Reads on until `count` packets of a stream were read ahead, and returns the first ones; fewer at the end of the input
  /// or of the part that may be probed.
  func firstPackets(of index: Int, count: Int) throws -> [Packet] {
    while readAhead.count(where: { $0.streamIndex == index }) < count, position < Self.probeByteCount * 5,
      let packet = try readPacket()
    {
      readAhead.append(packet)
    }
    return Array(readAhead.lazy.filter { $0.streamIndex == index }.prefix(count))
  }

  /// Clears an interruption that ended a read, so that reading can continue after a seek.
  func forgetInterruption() {
    io.forgetError()
    // Discard the log's message that the file is truncated, which an interrupted read causes.
    _ = scope.takeLastError()
    guard let context else { return }
    context.pointee.pb.pointee.eof_reached = 0
    context.pointee.pb.pointee.error = 0
  }

  /// Returns a description of the damage that was found since the last call; nil if none was.
  ///
  /// - Parameter origin: The position in the source of the demuxer's first byte.
  func takeDamage(origin: Int64) -> String? {
    guard let damage = damage.take() else { return nil }
    return "\(damage) near byte \(origin + position)"
  }

  /// Returns the last error line of the demuxer.
  func takeLastError() -> String? { scope.takeLastError() }

  /// Moves to the key frame at or before `ticks` of a stream. False if the container can't.
  package func seek(toKeyFrameAtOrBefore ticks: Int64, stream: Int) throws -> Bool {
    guard let context else { return false }
    readAhead = []
    let code = av_seek_frame(context, Int32(stream), ticks, AVSEEK_FLAG_BACKWARD)
    try io.rethrow()
    return code >= 0
  }

  /// Restricts seeks in a Matroska file to its index (Cues).
  ///
  /// Otherwise a seek to the last key frame of the index, or after it, reads all clusters up to the end,
  /// searching for more (libavformat/matroskadec.c, matroska_read_seek). An index entry after all others, not
  /// marked as a key frame, prevents that.
  func closeIndex(of stream: Int) {
    guard format == .matroska, let context, stream < Int(context.pointee.nb_streams), let end = io.byteCount
    else { return }
    av_add_index_entry(context.pointee.streams[stream], end, .max / 2, 0, 0, 0)
  }

  /// Calls `body` with each key frame of a stream in the container's index, in order, until it returns false.
  package func forEachIndexedKeyFrame(of stream: Int, _ body: (IndexedFrame) -> Bool) {
    guard let context, stream < Int(context.pointee.nb_streams), let stream = context.pointee.streams[stream]
    else { return }
    for index in 0..<avformat_index_get_entries_count(stream) {
      guard let entry = avformat_index_get_entry(stream, index)?.pointee else { return }
      let flags = Int32(entry.flags)
      guard flags & AVINDEX_KEYFRAME != 0, flags & AVINDEX_DISCARD_FRAME == 0, entry.pos >= 0 else {
        continue
      }
      let frame = IndexedFrame(
        decodingTicks: entry.timestamp, bytes: entry.pos..<(entry.pos + Int64(max(0, entry.size))))
      guard body(frame) else { return }
    }
  }

  /// Calls `body` with the range of bytes in the source of each sample of the selected streams, in reading
  /// order. Only MP4 is supported, without fragments that were not read.
  ///
  /// libavformat/mov.c, mov_find_next_sample: of the samples that are due within a second, the first in the
  /// file.
  func forEachSample(_ body: (Range<Int64>) -> Void) {
    guard format == .mp4, let context else { return }
    var tracks: [IndexedTrack] = []
    for index in 0..<Int(context.pointee.nb_streams) {
      guard let stream = context.pointee.streams[index], stream.pointee.discard != AVDISCARD_ALL else {
        continue
      }
      if let track = IndexedTrack(stream) { tracks.append(track) }
    }
    while !tracks.isEmpty {
      var best = 0
      for index in tracks.indices.dropFirst() {
        let distance = tracks[index].microseconds - tracks[best].microseconds
        if abs(distance) <= 1_000_000
          ? tracks[index].place.lowerBound < tracks[best].place.lowerBound : distance < 0
        {
          best = index
        }
      }
      body(tracks[best].place)
      if !tracks[best].advance() { tracks.remove(at: best) }
    }
  }

  /// Updates the streams' parameters: some containers learn them from the first packets.
  func refreshStreams() throws(ReelError) {
    guard let context else { return }
    var fresh: [StreamInfo] = []
    for index in 0..<Int(context.pointee.nb_streams) {
      if let stream = context.pointee.streams[index] { fresh.append(try StreamInfo(stream)) }
    }
    streams = fresh
  }

  /// True if the index of a selected stream of an MP4 file refers to bytes beyond the end.
  var isIndexBeyondEnd: Bool {
    guard format == .mp4, let context, let end = io.byteCount else { return false }
    return (0..<Int(context.pointee.nb_streams)).contains { index in
      guard let stream = context.pointee.streams[index], stream.pointee.discard != AVDISCARD_ALL else {
        return false
      }
      // Samples of one stream are nearly always stored in order.
      let count = avformat_index_get_entries_count(stream)
      guard count > 0, let entry = avformat_index_get_entry(stream, count - 1) else { return false }
      return entry.pointee.pos + Int64(entry.pointee.size) > end
    }
  }

  // MARK: - Private

  /// True if the format has its own check for truncation (MP4, Matroska), or damage need not mean the end
  /// (MPEG-TS).
  private var hasIndex: Bool { [.mp4, .matroska, .mpegTS].contains(format) }

  private func recordDamage(of packet: Packet) {
    switch format {
    case .mp4: if packet.isCorrupt { isTruncated = true }
    // libavformat/mpegts.c: a gap in the continuity counter, or a PES packet that is too short.
    case .mpegTS: if packet.isCorrupt { damage = "transport packets are missing or damaged" }
    case .matroska: recordElementDamage()
    // libavformat/utils.c, append_packet_chunked: fewer bytes than the packet has.
    case .mpegPS, .flv, .avi, .ivf, .h264, .hevc, .aac, .mp3, .ac3, .eac3:
      if scope.takeCorruptPacket() { endsInsidePacket = true }
    }
  }

  /// libavformat/matroskadec.c, ebml_parse: it continues with the next cluster, if there is one.
  private func recordElementDamage() {
    guard format == .matroska, let line = scope.lastError,
      Self.elementErrors.contains(where: { line.contains($0) })
    else { return }
    damage = "an element is damaged"
    _ = scope.takeLastError()
  }

  private static let elementErrors = [
    "invalid as first byte of an EBML number", "exceeds containing master element", "exceeds max length",
    "Invalid length",
  ]

  /// Reports boxes of Common Encryption that mov can't read as encryption.
  private static func error(_ error: FFmpegError) -> ReelError {
    let boxes = ["saio", "saiz", "senc", "Incorrect number of samples in encryption info"]
    guard let detail = error.detail, boxes.contains(where: { detail.contains($0) }) else {
      return error.reelError()
    }
    return ReelError(
      .unsupported, found: .encrypted,
      "the samples are encrypted (Common Encryption), and there is no key for them")
  }

  private func unread(_ io: UnsafeMutablePointer<AVIOContext>) -> Int64 {
    guard let end = io.pointee.buf_end, let next = io.pointee.buf_ptr else { return 0 }
    return Int64(end - next)
  }
}

/// The samples of a stream in the order of its index.
private struct IndexedTrack {
  private let stream: UnsafeMutablePointer<AVStream>
  private let count: Int32
  private var index: Int32 = 0
  /// The range of bytes of the current sample in the source.
  private(set) var place: Range<Int64> = 0..<0
  /// The decoding time of the current sample.
  private(set) var microseconds: Int64 = 0

  /// Nil for a stream without samples.
  init?(_ stream: UnsafeMutablePointer<AVStream>) {
    self.stream = stream
    count = avformat_index_get_entries_count(stream)
    guard read() else { return nil }
  }

  /// Advances to the next sample; false after the last.
  mutating func advance() -> Bool {
    index += 1
    return read()
  }

  private mutating func read() -> Bool {
    guard index < count, let entry = avformat_index_get_entry(stream, index)?.pointee, entry.pos >= 0 else {
      return false
    }
    place = entry.pos..<(entry.pos + Int64(max(0, entry.size)))
    microseconds = av_rescale_q(entry.timestamp, stream.pointee.time_base, AVRational(num: 1, den: 1_000_000))
    return true
  }
}

/// A frame in the index of a container.
package struct IndexedFrame: Sendable, Hashable {
  /// The decoding time in ticks of the stream's time base.
  package let decodingTicks: Int64
  /// The range of bytes in the source; empty if the index does not state the size.
  package let bytes: Range<Int64>
}

extension Demuxer {
  /// Returns the best video stream by the order of `av_find_best_stream`. Waits for a stream that is announced late.
  func videoStream() throws -> StreamInfo {
    let isVideo = { (stream: StreamInfo) in stream.kind == .video && !stream.isAttachedFrame }
    guard try awaitStream(where: isVideo) != nil else {
      throw noStream("no video in the media", .otherStreams)
    }
    let candidates = streams.filter(isVideo)
    // By disposition, number of frames and bit rate; the first of equals. libavformat counts the frames that it has
    // probed: most files with a second video stream have a still of one or two frames there.
    let rank = { (stream: StreamInfo) in
      (
        (stream.isDefault ? 1 : 0) - (stream.isForImpaired ? 1 : 0), min(5, stream.frameCount ?? .max),
        stream.bitsPerSecond ?? 0
      )
    }
    let decodable = candidates.filter { $0.videoCodec != nil }
    guard let best = decodable.max(by: { rank($0) < rank($1) }) ?? candidates.first else {
      throw ReelError(.badMedia, "no video in the media")
    }
    if best.videoCodec?.isMPEGVideo == true, format == .mpegTS || !best.hasExtradata {
      return try mpegStream(best.index)
    }
    switch format {
    case .flv: return try streamAtFirstPacket(best.index)
    case .mpegPS: return try mpegStream(best.index)
    default: return best
    }
  }

  /// Returns a stream of MPEG video. If the container has no headers, they are taken from the first packet: a
  /// decoder that starts later in the stream needs them, and decoding Xvid depends on them.
  private func mpegStream(_ index: Int) throws -> StreamInfo {
    parsePackets()
    let stream = try streamAtFirstPacket(index)
    guard let codec = stream.videoCodec, !stream.hasExtradata,
      let headers = try firstPackets(of: index, count: 1).first?.withBytes({ bytes in
        MPEGPicture(codec: codec, bytes: bytes).map { bytes.prefix($0.offset).map { $0 } } ?? []
      }), !headers.isEmpty
    else { return stream }
    return try stream.with(extradata: headers)
  }

  /// Returns the best audio stream of a container that is opened for its audio.
  func audioStream(languages: [String]) throws -> StreamInfo {
    let hasAudio = try awaitStream(where: { $0.kind == .audio }) != nil
    guard hasAudio, let best = Self.bestAudio(of: streams, languages: languages) else {
      let hasVideo = streams.contains { $0.kind == .video && !$0.isAttachedFrame }
      throw noStream(
        "no audio that can be decoded", hasAudio ? .otherStreams : hasVideo ? nil : .neitherVideoNorAudio)
    }
    return best
  }

  /// Returns an error that names the missing kind of stream, and the existing streams.
  private func noStream(_ text: String, _ found: ReelError.Found? = nil) -> ReelError {
    let names = streams.map { stream in
      if stream.kind == .other { return "a stream of another kind" }
      return "\(stream.isAttachedFrame ? "cover art" : stream.kind.rawValue) (\(stream.codecName))"
    }
    guard !names.isEmpty else { return ReelError(.badMedia, "no streams in the media") }
    return ReelError(found: found, "\(text), only \(names.joined(separator: ", "))")
  }

  /// Returns the audio stream to play: of the most preferred language, then the default one, then the one
  /// with the most channels; the first of equals. Nil if none can be decoded.
  static func bestAudio(of streams: [StreamInfo], languages: [String]) -> StreamInfo? {
    let preferences = LanguagePreferences(languages)
    return
      streams
      .filter { $0.kind == .audio && $0.audioCodec != nil }
      .min { left, right in
        let (first, second) = (preferences.rank(of: left.language), preferences.rank(of: right.language))
        if first != second { return first < second }
        if left.isDefault != right.isDefault { return left.isDefault }
        return (left.channelCount ?? 0) > (right.channelCount ?? 0)
      }
  }
}
