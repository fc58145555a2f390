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
  private let input: Input
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
    input = Input(source, format, options)
    decryptor = ContainerDecryptor(source: input.protected, keys: options.keys)
    demuxer = try Demuxer(
      source: input.source, format: format, isSeekable: options.isSeekable,
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
    guard demuxer.endsInsidePacket || input.program?.endsInsidePacket == true else { return nil }
    return "the file is cut off: it ends inside a packet"
  }
  /// Returns a description of the bytes that could not be read as a part of the container, and were skipped since the last
  /// call; nil if there were none.
  package func takeSkippedBytes() -> String? {
    switch input {
    case .mp4(let source): source.takeDamage()
    case .transport(let source): source.takeDamage()
    case .packedAudio: nil
    case .plain: format == .matroska ? demuxer.takeDamage(origin: 0) : nil
    }
  }
  /// Returns a description of the damage to the container that was found since the last call; nil if none
  /// was.
  package func takeDamage() -> String? {
    takeSkippedBytes() ?? demuxer.takeDamage(origin: input.program?.origin ?? 0)
  }
  /// The position in the source after the returned units.
  package var position: Int64 { input.position(of: demuxer.position) }
  /// Returns the position in the source at which a unit begins; nil if the container does not say.
  package func position(of unit: Packet) -> Int64? { unit.position.map(input.position) }
  /// False for packed audio that does not begin with its time. Its timestamps count from 0.
  package var hasTimestamps: Bool { input.packed?.beginsWithTime ?? true }
  /// The bytes after `position` that were read but not used. With them and `position`, another reader can
  /// continue. Nil if this reader holds parts of units, as for containers that are split here.
  package var unread: [UInt8]? {
    guard ready.isEmpty, fieldPairs.isEmpty, !format.hasSystemClock, !hasEnded else { return nil }
    return demuxer.unread
  }

  /// Fragmented MP4: what another reader has to know to continue; nil for other formats.
  package var fragmentHistory: FragmentHistory? { input.protected?.history }

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

  /// False if the source is read forward only, and after a change of its program.
  package var isSeekable: Bool { options.isSeekable && !hasChangedProgram && input.packed == nil }

  /// Moves to the key frame at or before `ticks` of a stream. False if the container can't.
  package func seek(toKeyFrameAtOrBefore ticks: Int64, of stream: StreamInfo) throws -> Bool {
    guard !hasChangedProgram, input.packed == nil else { return false }
    try input.program?.setPassive(true)
    let isThere = try demuxer.seek(toKeyFrameAtOrBefore: ticks, stream: stream.index)
    try input.program?.setPassive(false)
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

  /// The source, with what its format needs in front of the demuxer.
  private enum Input {
    case mp4(ProtectedSource)
    case transport(ProgramSource)
    case packedAudio(PackedAudioSource)
    case plain(any ByteSource)

    init(_ source: any ByteSource, _ format: ContainerFormat, _ options: Options) {
      switch format {
      case .mp4:
        self = .mp4(
          ProtectedSource(
            source, isSeekable: options.isSeekable, renewalSampleCount: options.renewalSampleCount,
            history: options.fragmentHistory))
      case .mpegTS: self = .transport(ProgramSource(source))
      case .aac, .mp3, .ac3, .eac3: self = .packedAudio(PackedAudioSource(source))
      case .mpegPS, .matroska, .flv, .avi, .ivf, .h264, .hevc: self = .plain(source)
      }
    }

    var source: any ByteSource {
      switch self {
      case .mp4(let source): source
      case .transport(let source): source
      case .packedAudio(let source): source
      case .plain(let source): source
      }
    }

    var protected: ProtectedSource? { if case .mp4(let source) = self { source } else { nil } }
    var program: ProgramSource? { if case .transport(let source) = self { source } else { nil } }
    var packed: PackedAudioSource? { if case .packedAudio(let source) = self { source } else { nil } }

    /// Returns the offset in the source of an offset in the bytes that the demuxer gets.
    func position(of offset: Int64) -> Int64 {
      switch self {
      case .mp4, .plain: offset
      case .transport(let source): offset + source.origin
      case .packedAudio(let source): source.sourcePosition(of: offset)
      }
    }
  }

  private func nextUnit() throws -> Unit {
    while ready.isEmpty {
      if let refusal { throw refusal }
      if let packet = try splitVideo() {
        try takeTransportVideo(packet)
      } else if let packet = videoFiller?.next() {
        return .video(packet)
      } else if hasEnded {
        guard let program = input.program, program.isAtChange else { return .end }
        try changeProgram(program)
        return .programChanged
      } else if let packet = try demuxer.nextPacket() {
        try take(packet)
      } else if let protected = input.protected, protected.isAtRenewal {
        try renewDemuxer(protected)
      } else {
        try takeEnd()
      }
    }
    return ready.removeFirst()
  }

  /// Adds the units that a packet completes to those that are ready.
  private func take(_ packet: Packet) throws {
    recordStreams()
    input.protected?.complete(packet, track: demuxer.streams[packet.streamIndex].number)
    if let video, packet.streamIndex == video.index {
      if videoSplitter != nil { return appendVideo(packet) }
      try decrypt(packet, of: video)
      if videoFiller != nil { videoFiller?.append(packet) } else { try takeVideo(packet) }
    } else if let audio, packet.streamIndex == audio.index {
      if audioSplitter != nil {
        if let packed = input.packed {
          try appendPackedAudio(packet, packed)
        } else {
          audioSplitter?.append(packet)
        }
        return try takeAudio()
      }
      try decrypt(packet, of: audio)
      if hasFrameHeaders, let codec = audio.audioCodec {
        let frames = try AudioFrameSplitter.frames(of: packet, codec: codec, timeBase: audio.timeBase)
        ready += frames.map(Unit.audio)
      } else {
        ready.append(.audio(packet))
      }
    }
  }

  /// Adds the units that the end of the stream completes to those that are ready.
  private func takeEnd() throws {
    hasEnded = true
    while let packet = try videoSplitter?.flush() { try takeTransportVideo(packet) }
    if let field = fieldPairs.release() { ready.append(.video(field)) }
    while let packet = videoFiller?.flush() { ready.append(.video(packet)) }
    try takeAudio()
    while let packet = try audioSplitter?.flush() { ready.append(try transportAudio(packet)) }
  }

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
      let opening = input.program?.opening(
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
        let position = packet.position.map(input.position)
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
    input.program?.watch(pids: Set([video, audio].compactMap { $0?.number }))
  }
}
