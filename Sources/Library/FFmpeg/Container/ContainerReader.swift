package import Logging
package import ReelCore

/// The access units of one container's best video stream, and of one audio stream, in the order of the file. Two fields of
/// H.264 that make a frame are one unit.
///
/// The streams are the ones that ffmpeg chooses, except that audio in a preferred language takes precedence.
/// The demuxer drops all other streams.
///
/// Confined to one thread at a time; the calls block like those of its `ByteSource`.
package final class ContainerReader {
  package struct Options: Sendable {
    /// False to read the source forward only.
    package var isSeekable = true
    /// MP4: true if the header is complete before the media, and nothing after the media is needed.
    package var startsAtMedia = false
    package var wantsVideo = true
    package var wantsAudio = false
    /// ISO 639 or RFC 5646 codes, in order of preference.
    package var audioLanguages: [String] = []
    /// Supplies the keys of encrypted samples. If nil, reading stops at the first encrypted sample.
    package var keys: (any SampleKeys)?
    /// The clock that measures waits for bytes.
    package var clock: any MonotonicClock = SystemMonotonicClock()
    /// Fragmented MP4 that is read forward only: the number of samples in the index of a demuxer, about 32 bytes each,
    /// after which another one continues at the next fragment.
    var renewalSampleCount = 4096
    /// Fragmented MP4: what another reader has read of the source, which this one continues.
    package var fragmentHistory: FragmentHistory?

    package init() {}
  }

  package enum Unit {
    case video(Packet)
    case audio(Packet)
    /// The streams and their units' timestamps are different from here on (MPEG-TS, another program map).
    case programChanged
    case end
  }

  package let format: ContainerFormat
  /// The video stream; nil only if no video is wanted.
  package private(set) var video: StreamInfo?
  /// The audio stream; nil if none is wanted, or none was announced so far.
  package private(set) var audio: StreamInfo?

  private var demuxer: Demuxer
  private let options: Options
  private let name: String
  private let logger: Logger
  /// The source, for MPEG-TS only.
  private let program: ProgramSource?
  /// The source, for MP4 only.
  private let protected: ProtectedSource?
  /// The source, for packed audio only.
  private let packed: PackedAudioSource?
  private let decryptor: ContainerDecryptor
  /// The reason why reading has stopped at an encrypted sample. All earlier samples were returned.
  package private(set) var refusal: ReelError?
  /// The waiting time of the previous demuxers.
  private var closedSourceWait: Duration = .zero
  /// True if the demuxer began in the middle of the source, and counts from there.
  private var hasChangedProgram = false
  private var videoSplitter: AccessUnitSplitter?
  /// The position of the PES packet last passed to the splitter, and the number of its bytes passed so far.
  private var videoPES: (position: Int64, byteCount: Int)?
  private var videoFiller: PresentationFiller?
  private var audioSplitter: AudioFrameSplitter?
  /// The in-band parameter sets; nil for codecs that have none.
  private var parameterSets: ParameterSets?
  private var fieldPairs = FieldPairs()
  /// Units that were split off but not returned yet.
  private var ready: [Unit] = []
  private var hasEnded = false
  private var isAudioDropped = false
  private var knownStreamCount = 0

  /// Opens the container.
  ///
  /// Throws `ReelError` (`badMedia` if there is no stream of a wanted kind; `unsupported` for a codec, by name)
  /// or the source's error.
  package init(
    source: any ByteSource, format: ContainerFormat, options: Options = Options(), name: String,
    logger: Logger
  ) throws {
    self.format = format
    self.options = options
    self.name = name
    self.logger = logger
    program = format == .mpegTS ? ProgramSource(source) : nil
    protected =
      format == .mp4
      ? ProtectedSource(
        source, isSeekable: options.isSeekable, renewalSampleCount: options.renewalSampleCount,
        history: options.fragmentHistory) : nil
    packed = format.isPackedAudio ? PackedAudioSource(source) : nil
    decryptor = ContainerDecryptor(source: protected, keys: options.keys)
    demuxer = try Demuxer(
      source: program ?? protected ?? packed ?? source, format: format, isSeekable: options.isSeekable,
      startsAtMedia: options.startsAtMedia, clock: options.clock, name: name, logger: logger)
    try chooseStreams()
    disableParsers()
    try countFrames()
  }

  /// All streams of the container that are known so far.
  package var streams: [StreamInfo] {
    demuxer.streams.map { stream in
      guard let video, stream.index == video.index, let rate = video.averageFrameRate else { return stream }
      return stream.with(averageFrameRate: rate)
    }
  }
  /// The time spent waiting for bytes.
  package var sourceWait: Duration { closedSourceWait + demuxer.sourceWait }
  /// The duration in microseconds, if the container's header states it.
  package var durationMicroseconds: Int64? { demuxer.durationMicroseconds }
  /// True if the file ended before bytes that the container's index names, or inside a Matroska element.
  package var isTruncated: Bool { demuxer.isTruncated }
  /// The description of how a container that `isTruncated` is cut off.
  package var truncation: String {
    format == .matroska
      ? "the file is cut off: it ends inside an element"
      : "the file is cut off: its index names media beyond its end"
  }
  /// The description of how the file is cut off; nil if it is not, as far as is known: for MP4 from the
  /// index, otherwise after the end was read.
  package var cut: String? {
    if isTruncated || demuxer.isIndexBeyondEnd { return truncation }
    guard demuxer.endsInsidePacket || program?.endsInsidePacket == true else { return nil }
    return "the file is cut off: it ends inside a packet"
  }
  /// Returns a description of the bytes that could not be read as a part of the container, and were skipped since the last
  /// call; nil if there were none.
  package func takeSkippedBytes() -> String? {
    protected?.takeDamage() ?? program?.takeDamage()
      ?? (format == .matroska ? demuxer.takeDamage(origin: 0) : nil)
  }
  /// Returns a description of the damage to the container that was found since the last call; nil if none
  /// was.
  package func takeDamage() -> String? {
    takeSkippedBytes() ?? demuxer.takeDamage(origin: program?.origin ?? 0)
  }
  /// The position in the source after the returned units.
  package var position: Int64 { sourcePosition(of: demuxer.position) }
  /// Returns the position in the source at which a unit begins; nil if the container does not say.
  package func position(of unit: Packet) -> Int64? { unit.position.map { sourcePosition(of: $0) } }
  /// False for packed audio that does not begin with its time. Its timestamps count from 0.
  package var hasTimestamps: Bool { packed?.beginsWithTime ?? true }
  /// The bytes after `position` that were read but not used. With them and `position`, another reader can
  /// continue. Nil if this reader holds parts of units, as for containers that are split here.
  package var unread: [UInt8]? {
    guard ready.isEmpty, fieldPairs.isEmpty, !format.hasSystemClock, !hasEnded else { return nil }
    return demuxer.unread
  }

  /// Fragmented MP4: what another reader has to know to continue; nil for other formats.
  package var fragmentHistory: FragmentHistory? { protected?.history }

  /// Returns the last error line of the demuxer.
  package func takeLastError() -> String? { demuxer.takeLastError() }

  /// Returns the next unit of either stream.
  ///
  /// Throws `ReelError.badMedia`, the source's errors, and for an encrypted sample the errors of `keys`. If
  /// there is no key, that is `unsupported`, and `refusal` is set.
  package func next() throws -> Unit {
    let unit = try nextUnit()
    switch unit {
    case .video(let packet), .audio(let packet): packet.store()
    case .programChanged, .end: break
    }
    return unit
  }

  private func nextUnit() throws -> Unit {
    while true {
      if !ready.isEmpty { return ready.removeFirst() }
      if let refusal { throw refusal }
      if let packet = try splitVideo() {
        try takeTransportVideo(packet)
        continue
      }
      if let packet = videoFiller?.next() { return .video(packet) }
      if hasEnded {
        guard let program, program.isAtChange else { return .end }
        try changeProgram(program)
        return .programChanged
      }
      guard let packet = try demuxer.nextPacket() else {
        if let protected, protected.isAtRenewal {
          try renewDemuxer(protected)
          continue
        }
        hasEnded = true
        while let packet = try videoSplitter?.flush() { try takeTransportVideo(packet) }
        if let field = fieldPairs.release() { ready.append(.video(field)) }
        while let packet = videoFiller?.flush() { ready.append(.video(packet)) }
        try takeAudio()
        while let packet = try audioSplitter?.flush() { ready.append(try transportAudio(packet)) }
        continue
      }
      recordStreams()
      protected?.complete(packet, track: demuxer.streams[packet.streamIndex].number)
      if packet.streamIndex == video?.index {
        guard let video else { continue }
        if videoSplitter != nil {
          appendVideo(packet)
          continue
        }
        try decrypt(packet, of: video)
        if videoFiller != nil { videoFiller?.append(packet) } else { try takeVideo(packet) }
      } else if let audio, packet.streamIndex == audio.index {
        if audioSplitter != nil {
          if let packed {
            try appendPackedAudio(packet, packed)
          } else {
            audioSplitter?.append(packet)
          }
          try takeAudio()
          continue
        }
        try decrypt(packet, of: audio)
        guard hasFrameHeaders, let codec = audio.audioCodec else { return .audio(packet) }
        let frames = try AudioFrameSplitter.frames(of: packet, codec: codec, timeBase: audio.timeBase)
        ready += frames.map(Unit.audio)
      }
    }
  }

  /// False if the source is read forward only, and after a change of its program.
  package var isSeekable: Bool { options.isSeekable && !hasChangedProgram && packed == nil }

  /// Moves to the key frame at or before `ticks` of a stream. False if the container can't.
  package func seek(toKeyFrameAtOrBefore ticks: Int64, of stream: StreamInfo) throws -> Bool {
    guard !hasChangedProgram, packed == nil else { return false }
    try program?.setPassive(true)
    let isThere = try demuxer.seek(toKeyFrameAtOrBefore: ticks, stream: stream.index)
    try program?.setPassive(false)
    if isThere { restart() }
    return isThere
  }

  /// Restricts seeks in a Matroska file to its index, so that none searches for other key frames.
  package func closeIndex() {
    if let video { demuxer.closeIndex(of: video.index) }
  }

  /// Calls `body` with each key frame of the video in the container's index, in order, until it returns
  /// false.
  package func forEachIndexedKeyFrame(_ body: (IndexedFrame) -> Bool) {
    guard let video, !hasChangedProgram else { return }
    demuxer.forEachIndexedKeyFrame(of: video.index, body)
  }

  /// Calls `body` with the range of bytes in the source of each sample of the chosen streams, in reading
  /// order. Only MP4 is supported.
  package func forEachSample(_ body: (Range<Int64>) -> Void) { demuxer.forEachSample(body) }

  /// Drops the audio from here on, or resumes it.
  package func setDropsAudio(_ drops: Bool) {
    guard drops != isAudioDropped else { return }
    isAudioDropped = drops
    audioSplitter?.reset()
    selectStreams()
  }

  /// Clears an interruption that ended a read, so that reading can continue after a seek.
  package func forgetInterruption() { demuxer.forgetInterruption() }

  // MARK: - Private

  private func chooseStreams() throws {
    video = options.wantsVideo ? try demuxer.videoStream() : nil
    audio = nil
    if options.wantsVideo {
      chooseAudio()
    } else if options.wantsAudio {
      audio = try demuxer.audioStream(languages: options.audioLanguages)
    }
    knownStreamCount = demuxer.streams.count
    parameterSets = video.flatMap { ParameterSets($0) }
    restart()
    selectStreams()
  }

  /// Corrects a frame rate by which the container counts fields that have packets of their own.
  private func countFrames() throws {
    guard let video, let rate = video.averageFrameRate, var sets = parameterSets, sets.allowFields else {
      return
    }
    let packets = try demuxer.firstPackets(of: video.index, count: 2)
    let fields = packets.compactMap { sets.read($0).field }
    guard fields.count == 2, fields[1].isSecond(of: fields[0]) else { return }
    let ticks = packets[0].distance(to: packets[1]) ?? packets[0].durationTicks
    guard Double(ticks) * video.timeBase.value * rate.value > 0.75, rate.denominator <= .max / 2 else {
      return
    }
    self.video = video.with(averageFrameRate: Rational(rate.numerator, 2 * rate.denominator).reduced)
  }

  /// Continues with the streams of another program map.
  private func changeProgram(_ program: ProgramSource) throws {
    program.proceed()
    hasChangedProgram = true
    closedSourceWait += demuxer.sourceWait
    demuxer = try Demuxer(
      source: program, format: format, isSeekable: false, clock: options.clock, name: name, logger: logger)
    try chooseStreams()
  }

  /// Continues with another demuxer at the next fragment, and the same streams.
  private func renewDemuxer(_ protected: ProtectedSource) throws {
    let position = protected.proceed()
    closedSourceWait += demuxer.sourceWait
    demuxer = try Demuxer(
      source: protected, format: format, isSeekable: false, startsAtMedia: options.startsAtMedia,
      position: position,
      clock: options.clock, name: name, logger: logger)
    disableParsers()
    selectStreams()
  }

  /// Disables libavformat's parsers where they can't read the samples, or drop those that are damaged.
  private func disableParsers() {
    let isEncrypted =
      decryptor.isNeeded || demuxer.streams.contains { $0.contentEncryptionKeyID != nil }
    if isEncrypted || hasWholeFrames { demuxer.disableParsers() }
  }

  /// True if each sample has whole frames, so that libavformat has nothing to split.
  private var hasWholeFrames: Bool {
    guard format == .mp4 || format == .matroska, let codec = audio?.audioCodec else { return false }
    let needsNoParser = video.map { $0.videoCodec == .h264 || $0.videoCodec == .hevc } ?? true
    return needsNoParser && (hasFrameHeaders || [.mp2, .mp3].contains(codec))
  }

  /// True if samples have headers with the duration, and libavformat's parser would drop damaged ones or join them.
  private var hasFrameHeaders: Bool {
    switch audio?.audioCodec {
    case .ac3, .eac3: format == .mp4
    case .opus: format == .matroska
    default: false
    }
  }

  /// Adds an access unit to those that are ready, as soon as its frame is whole.
  private func takeVideo(_ packet: Packet) throws(ReelError) {
    let contents = parameterSets?.read(packet)
    if let frame = try fieldPairs.join(packet, contents?.field) { return ready.append(.video(frame)) }
    if let field = fieldPairs.release() { ready.append(.video(field)) }
    var unit = packet
    if contents?.lacksSets == true, let sets = parameterSets { unit = try sets.prepended(to: packet) }
    if let field = contents?.field { fieldPairs.hold(unit, field) } else { ready.append(.video(unit)) }
  }

  private func appendVideo(_ packet: Packet) {
    if let position = packet.position {
      let before = videoPES?.position == position ? videoPES?.byteCount ?? 0 : 0
      videoPES = (position, before + packet.byteCount)
    } else {
      videoPES = nil
    }
    videoSplitter?.append(packet)
  }

  /// Returns the next access unit that is certain to be complete.
  ///
  /// A unit that may lack bytes is not decoded as a trial, because missing bytes need not cause an error. Two
  /// of 67 truncations of a CABAC frame decoded to other samples without one, and for HEVC libavcodec reports
  /// nothing at all if a slice is missing.
  private func splitVideo() throws(ReelError) -> Packet? {
    if let packet = try videoSplitter?.next() { return packet }
    guard let videoPES, let pid = video?.number,
      let opening = program?.opening(
        after: videoPES.position, pid: pid, byteCount: videoPES.byteCount)
    else { return nil }
    return try videoSplitter?.next(followedBy: opening)
  }

  /// Passes bytes of packed audio on to the splitter, apart where a tag states the time.
  private func appendPackedAudio(_ packet: Packet, _ packed: PackedAudioSource) throws(ReelError) {
    guard let audio, let position = packet.position else { return }
    let bytes = packet.withBytes { Array($0) }
    var start = 0
    while start < bytes.count {
      let (byteCount, ticks) = packed.takePart(at: position + Int64(start), of: bytes.count - start)
      let part = try Packet()
      try part.setBytes(copying: bytes[start..<start + byteCount], streamIndex: audio.index)
      let time = ticks.map {
        MediaTime(value: $0, timescale: 90_000).ticks(timescale: audio.timeBase.denominator)
          / Int64(max(1, audio.timeBase.numerator))
      }
      part.setTimestamps(presentationTicks: time, decodingTicks: nil, isKey: true, isCorrupt: false)
      part.setPosition(position + Int64(start))
      audioSplitter?.append(part)
      start += byteCount
    }
  }

  /// Returns the offset in the source of an offset in the bytes that the demuxer gets.
  private func sourcePosition(of position: Int64) -> Int64 {
    packed?.sourcePosition(of: position) ?? position + (program?.origin ?? 0)
  }

  private func takeAudio() throws {
    while let packet = try audioSplitter?.next() { ready.append(try transportAudio(packet)) }
  }

  // MARK: Decryption

  // MPEG-TS is decrypted after splitting, because the headers of slices and audio frames are not encrypted.

  private func takeTransportVideo(_ packet: Packet) throws {
    if let video { try decrypt(packet, of: video, isTransport: true) }
    try takeVideo(packet)
  }

  private func transportAudio(_ packet: Packet) throws -> Unit {
    if let audio, !packet.isNoise { try decrypt(packet, of: audio, isTransport: true) }
    return .audio(packet)
  }

  /// - Parameter isTransport: True for an access unit or an audio frame of MPEG-TS.
  private func decrypt(_ packet: Packet, of stream: StreamInfo, isTransport: Bool = false) throws {
    do {
      if isTransport {
        let position = packet.position.map { sourcePosition(of: $0) }
        try decryptor.decryptTransport(packet, of: stream, at: position)
      } else {
        try decryptor.decrypt(packet, of: stream)
      }
    } catch let error as ReelError {
      if error.kind == .unsupported { refusal = error }
      throw error
    }
  }

  /// Starts again at another position.
  private func restart() {
    ready = []
    hasEnded = false
    refusal = nil
    videoSplitter = nil
    videoPES = nil
    fieldPairs = FieldPairs()
    // MPEG-TS is demuxed without libavformat's parser: its packets are PES packets.
    if format == .mpegTS, let video, let codec = video.videoCodec, codec == .h264 || codec == .hevc {
      videoSplitter = AccessUnitSplitter(codec: codec, streamIndex: video.index)
    }
    videoFiller = video?.videoCodec.flatMap { PresentationFiller(codec: $0, format: format) }
    audioSplitter = nil
    if format.isSplitByReel, let audio, let codec = audio.audioCodec {
      audioSplitter = AudioFrameSplitter(codec: codec, streamIndex: audio.index, timeBase: audio.timeBase)
    }
  }

  /// Records new streams, because some containers announce them late.
  private func recordStreams() {
    guard demuxer.streams.count != knownStreamCount else { return }
    knownStreamCount = demuxer.streams.count
    guard options.wantsAudio, options.wantsVideo, audio == nil else { return }
    chooseAudio()
    if audio != nil { selectStreams() }
  }

  private func chooseAudio() {
    guard options.wantsAudio else { return }
    audio = Demuxer.bestAudio(of: demuxer.streams, languages: options.audioLanguages)
  }

  private func selectStreams() {
    var selected: Set<Int> = []
    if let video { selected.insert(video.index) }
    if let audio, !isAudioDropped { selected.insert(audio.index) }
    demuxer.select(streams: selected)
    program?.watch(pids: Set([video, audio].compactMap { $0?.number }))
  }
}

extension ReelError {
  /// Returns the error for samples whose encryption metadata can't be read.
  static func encrypted(codecName: String) -> ReelError {
    ReelError(
      .unsupported, found: .encrypted,
      "the \(codecName) samples are encrypted (Common Encryption) with metadata that can't be read")
  }
}

/// Sets the presentation times of MPEG video in containers that store only decoding times: AVI, Matroska tracks in
/// Video for Windows mode, and most frames of MPEG-PS.
///
/// A B frame is shown when it is decoded. An I or P frame is shown when the next I or P frame is decoded. It is
/// held until that one arrives, together with the B frames in between.
struct PresentationFiller {
  private let codec: VideoCodec
  /// True if the demuxer's presentation times are guesses, and so are replaced.
  private let replaces: Bool
  /// The packets held back; the first one still needs its presentation time.
  private var held: [Packet] = []
  private var ready: [Packet] = []

  /// The maximum number of packets held back.
  private static let maximumHeldCount = 32

  /// Nil for codecs other than MPEG video.
  init?(codec: VideoCodec, format: ContainerFormat) {
    guard codec.isMPEGVideo else { return nil }
    self.codec = codec
    replaces = format == .avi
  }

  mutating func append(_ packet: Packet) {
    let picture = packet.withBytes { MPEGPicture(codec: codec, bytes: $0) }
    let isBidirectional = picture?.isBidirectional ?? true
    let ticks = packet.decodingTicks
    if isBidirectional {
      if replaces || packet.presentationTicks == nil { packet.setPresentationTicks(ticks) }
    } else {
      release(presentedAt: ticks)
    }
    if !held.isEmpty || !isBidirectional && ticks != nil && (replaces || packet.presentationTicks == nil) {
      held.append(packet)
      if held.count > Self.maximumHeldCount { release(presentedAt: ticks) }
    } else {
      ready.append(packet)
    }
  }

  /// Returns the next unit in decoding order, if its time is known.
  mutating func next() -> Packet? { ready.isEmpty ? nil : ready.removeFirst() }

  /// Like `next()`, at the end of the stream: the last units get their times.
  mutating func flush() -> Packet? {
    if let first = held.first {
      let last = held.compactMap(\.decodingTicks).max()
      release(presentedAt: last.map { $0 &+ max(1, first.durationTicks) })
    }
    return next()
  }

  // MARK: - Private

  private mutating func release(presentedAt ticks: Int64?) {
    held.first?.setPresentationTicks(ticks)
    ready += held
    held = []
  }
}

/// Finds where video PES packets end in an MPEG-TS stream, and how the next one begins.
///
/// A PES packet usually ends with an access unit, but only the start of the next PES packet proves it. This reader sees
/// that start as soon as its transport packet arrives, while libavformat returns a PES packet only when it is complete.
///
/// Transport packets: ISO/IEC 13818-1 §2.4.3.2. PES packets: §2.4.3.6.
struct PESLookahead {
  /// A PES packet of video, from its first transport packet on.
  private struct Packet {
    /// The byte position of its first transport packet, as the demuxer counts.
    let position: Int64
    /// The PES header, until it is complete.
    var header: [UInt8] = []
    var isInPayload = false
    /// Payload bytes so far.
    var byteCount = 0
    /// Payload bytes according to `PES_packet_length`; nil if the length is not stated.
    var declaredByteCount: Int?
    /// The first bytes of the payload.
    var opening: [UInt8] = []

    /// True if the stated number of bytes has arrived.
    var isComplete: Bool { declaredByteCount.map { byteCount >= $0 } ?? false }

    mutating func append(_ bytes: ArraySlice<UInt8>, openingByteCount: Int) {
      var payload = bytes
      if !isInPayload {
        header += bytes
        guard header.count >= 9, header.count >= 9 + Int(header[8]) else { return }
        let headerByteCount = 9 + Int(header[8])
        let length = Int(header[4]) << 8 | Int(header[5])
        // The length counts the bytes after its field.
        if length > 0 { declaredByteCount = max(0, length - (headerByteCount - 6)) }
        payload = header[headerByteCount...]
        isInPayload = true
      }
      byteCount += payload.count
      opening += payload.prefix(max(0, openingByteCount - opening.count))
      if isInPayload { header = [] }
    }
  }

  private struct Pair {
    let pid: Int
    let ended: Packet
    var next: Packet
  }

  /// The packet being read, by PID.
  private var current: [Int: Packet] = [:]
  /// The latest completed packets, each with its successor.
  private var pairs: [Pair] = []

  /// Enough for a start code, zero bytes before it, and the beginning of a slice header.
  private static let openingByteCount = 32
  /// The demuxer lags behind by at most its buffer, so few pairs are needed.
  private static let maximumPairs = 64
  private static let maximumStreams = 64

  /// Discards everything, after a jump to another position in the stream.
  mutating func reset() { self = PESLookahead() }

  /// Records a transport packet of 188 bytes at `position`.
  ///
  /// Returns the PID if this completes a video PES packet whose length is stated. A demuxer returns such a packet at
  /// once, before anything is known about the next one.
  mutating func record(_ packet: ArraySlice<UInt8>, at position: Int64) -> Int? {
    let start = packet.startIndex
    let pid = Int(packet[start + 1] & 0x1f) << 8 | Int(packet[start + 2])
    let begins = packet[start + 1] & 0x40 != 0
    guard begins || current[pid] != nil, packet[start + 3] & 0x10 != 0 else { return nil }
    var payload = packet.dropFirst(4)
    if packet[start + 3] & 0x20 != 0 { payload = payload.dropFirst(1 + Int(packet[start + 4])) }
    if begins, !begin(payload, pid: pid, at: position) { return nil }
    return append(payload, pid: pid)
  }

  /// Returns the first payload bytes of the PES packet after the video packet at `position`, of which the
  /// demuxer has returned `byteCount` bytes. Nil if they have not arrived yet, or the packet has more bytes
  /// than that.
  func opening(after position: Int64, pid: Int, byteCount: Int) -> [UInt8]? {
    guard let pair = pairs.last(where: { $0.pid == pid && $0.ended.position == position }),
      pair.ended.byteCount == byteCount, pair.next.isInPayload
    else { return nil }
    return pair.next.opening
  }

  /// Returns true if enough bytes of the packet after the last complete one of `pid` have arrived.
  func knowsSuccessor(pid: Int) -> Bool {
    guard let packet = current[pid] else { return true }
    return !packet.isComplete && packet.opening.count >= Self.openingByteCount / 2
  }

  // MARK: - Private

  /// Returns false if the payload does not begin a video packet.
  private mutating func begin(_ payload: ArraySlice<UInt8>, pid: Int, at position: Int64) -> Bool {
    let ended = current.removeValue(forKey: pid)
    let bytes = Array(payload.prefix(4))
    guard bytes.count == 4, bytes[0] == 0, bytes[1] == 0, bytes[2] == 1,
      // Video streams, and those with an extended id (ISO/IEC 13818-1 table 2-22).
      bytes[3] & 0xf0 == 0xe0 || bytes[3] == 0xfd, current.count < Self.maximumStreams
    else { return false }
    let next = Packet(position: position)
    current[pid] = next
    if let ended, ended.isInPayload {
      if pairs.count >= Self.maximumPairs { pairs.removeFirst() }
      pairs.append(Pair(pid: pid, ended: ended, next: next))
    }
    return true
  }

  private mutating func append(_ payload: ArraySlice<UInt8>, pid: Int) -> Int? {
    guard var packet = current[pid] else { return nil }
    let wasComplete = packet.isComplete
    packet.append(payload, openingByteCount: Self.openingByteCount)
    current[pid] = packet
    if let index = pairs.lastIndex(where: { $0.pid == pid && $0.next.position == packet.position }),
      pairs[index].next.opening.count < Self.openingByteCount
    {
      pairs[index].next = packet
    }
    return packet.isComplete && !wasComplete ? pid : nil
  }
}
