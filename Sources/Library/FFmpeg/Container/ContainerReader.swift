package import Logging
package import ReelCore

/// The access units of one container's best video stream, and of an audio stream beside it, in the order of the file.
///
/// The streams are the ones that ffmpeg chooses; of audio, one in a preferred language goes before. Streams that were not
/// chosen are dropped inside the demuxer.
///
/// Confined to one thread at a time; the calls block as its `ByteSource` does.
package final class ContainerReader {
  package struct Options: Sendable {
    /// False reads the source forward only.
    package var isSeekable = true
    /// MP4: the header is complete before the media, and nothing after the media is needed.
    package var startsAtMedia = false
    package var wantsVideo = true
    package var wantsAudio = false
    /// ISO 639 or RFC 5646, the most wanted first.
    package var audioLanguages: [String] = []
    /// Supplies the keys of encrypted samples. If nil, reading stops at the first encrypted sample.
    package var keys: (any SampleKeys)?
    /// The clock that measures waits for bytes.
    package var clock: any MonotonicClock = SystemMonotonicClock()

    package init() {}
  }

  package enum Unit {
    case video(SharedPacket)
    case audio(SharedPacket)
    /// The streams are others from here on, and so are their units' timestamps (MPEG-TS, another program map).
    case programChanged
    case end
  }

  package let format: ContainerFormat
  /// Nil only if no video is wanted.
  package private(set) var video: StreamInfo?
  /// Nil if none is wanted, or none was announced so far.
  package private(set) var audio: StreamInfo?

  private var demuxer: Demuxer
  private let options: Options
  private let name: String
  private let logger: Logger
  /// MPEG-TS.
  private let program: ProgramSource?
  /// MP4.
  private let protected: ProtectedSource?
  private let decryptor: ContainerDecryptor
  /// Why reading has stopped at an encrypted sample. All earlier samples were returned.
  package private(set) var refusal: ReelError?
  /// Of the demuxers before.
  private var closedSourceWait: Duration = .zero
  /// The demuxer began in the middle of the source, and counts from there.
  private var hasChangedProgram = false
  private var videoSplitter: AccessUnitSplitter?
  /// The PES packet that was last passed to the splitter, and how many of its bytes were.
  private var videoPES: (position: Int64, byteCount: Int)?
  private var videoFiller: PresentationFiller?
  private var audioSplitter: AudioFrameSplitter?
  /// The in-band parameter sets; nil for codecs that have none.
  private var parameterSets: ParameterSets?
  /// Units that were split off already.
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
    protected = format == .mp4 ? ProtectedSource(source, isSeekable: options.isSeekable) : nil
    decryptor = ContainerDecryptor(source: protected, keys: options.keys)
    demuxer = try Demuxer(
      source: program ?? protected ?? source, format: format, isSeekable: options.isSeekable,
      startsAtMedia: options.startsAtMedia, clock: options.clock, name: name, logger: logger)
    if decryptor.isNeeded || demuxer.streams.contains(where: { $0.contentEncryptionKeyID != nil }) {
      demuxer.disableParsers()
    }
    try chooseStreams()
  }

  /// All streams of the container that are known so far.
  package var streams: [StreamInfo] { demuxer.streams }
  /// Time spent waiting for bytes.
  package var sourceWait: Duration { closedSourceWait + demuxer.sourceWait }
  /// The duration in microseconds, if the container's header states it.
  package var durationMicroseconds: Int64? { demuxer.durationMicroseconds }
  /// True if the end came before what the container's index names, or inside of an element of Matroska.
  package var isTruncated: Bool { demuxer.isTruncated }
  /// How a container that `isTruncated` is cut off, in words.
  package var truncation: String {
    format == .matroska
      ? "the file is cut off: it ends inside of an element"
      : "the file is cut off: its index names media beyond its end"
  }
  /// How the file is cut off, in words; nil if it is not, as far as is known: for MP4 from the index, else after the end
  /// was read.
  package var cut: String? {
    if isTruncated || demuxer.isIndexBeyondEnd { return truncation }
    guard demuxer.endsInsidePacket || program?.endsInsidePacket == true else { return nil }
    return "the file is cut off: it ends inside of a packet"
  }
  /// A description of the damage to the container that was found since the last call; nil if none was.
  package func takeDamage() -> String? {
    protected?.takeDamage() ?? demuxer.takeDamage(origin: program?.origin ?? 0)
  }
  /// The place in the source's bytes behind the units given.
  package var position: Int64 { (program?.origin ?? 0) + demuxer.position }
  /// The bytes after `position` that were read but not used. With them and `position`, another reader can
  /// continue. Nil if this reader holds parts of units, as for containers that are split here.
  package var unread: [UInt8]? {
    guard ready.isEmpty, !format.isMPEGSystem, !hasEnded else { return nil }
    return demuxer.unread
  }

  /// The last error line of the demuxer.
  package func takeLastError() -> String? { demuxer.takeLastError() }

  /// The next unit of either stream.
  ///
  /// Throws `ReelError.badMedia`, whatever the source threw, and whatever `keys` throws for an encrypted sample. If
  /// there is no key, that is `unsupported`, and `refusal` is set.
  package func next() throws -> Unit {
    while true {
      if !ready.isEmpty { return ready.removeFirst() }
      if let refusal { throw refusal }
      if let packet = try splitVideo() { return try transportVideo(packet) }
      if let box = videoFiller?.next() { return .video(box) }
      if hasEnded {
        guard let program, program.isAtChange else { return .end }
        try changeProgram(program)
        return .programChanged
      }
      guard let packet = try demuxer.nextPacket() else {
        hasEnded = true
        while let packet = try videoSplitter?.flush() { ready.append(try transportVideo(packet)) }
        while let box = videoFiller?.flush() { ready.append(.video(box)) }
        try takeAudio()
        while let packet = try audioSplitter?.flush() { ready.append(try transportAudio(packet)) }
        continue
      }
      noteStreams()
      if packet.streamIndex == video?.index {
        guard let video else { continue }
        if videoSplitter != nil {
          appendVideo(packet)
          continue
        }
        let packet = try decrypted(packet, of: video)
        guard videoFiller != nil else { return try videoUnit(packet) }
        videoFiller?.append(SharedPacket(packet))
      } else if let audio, packet.streamIndex == audio.index {
        guard audioSplitter != nil else { return .audio(SharedPacket(try decrypted(packet, of: audio))) }
        audioSplitter?.append(packet)
        try takeAudio()
      }
    }
  }

  /// False if the source is read forward only, and behind a change of its program.
  package var isSeekable: Bool { options.isSeekable && !hasChangedProgram }

  /// Goes to the key frame at or before `ticks` of a stream. False if the container can't.
  package func seek(toKeyFrameAtOrBefore ticks: Int64, of stream: StreamInfo) throws -> Bool {
    guard !hasChangedProgram else { return false }
    try program?.setPassive(true)
    let isThere = try demuxer.seek(toKeyFrameAtOrBefore: ticks, stream: stream.index)
    try program?.setPassive(false)
    if isThere { restart() }
    return isThere
  }

  /// Lets seeks in a Matroska file go by its index alone: none looks for key frames that the index does not name.
  package func closeIndex() {
    if let video { demuxer.closeIndex(of: video.index) }
  }

  /// Calls `body` with each key frame of the video that the container's index names, in order, until it returns false.
  package func forEachIndexedKeyFrame(_ body: (IndexedFrame) -> Bool) {
    guard let video, !hasChangedProgram else { return }
    demuxer.forEachIndexedKeyFrame(of: video.index, body)
  }

  /// Calls `body` with the place of each sample of the chosen streams in the source's bytes, in the order in which they are
  /// read. Nothing is known of other formats than MP4.
  package func forEachSample(_ body: (Range<Int64>) -> Void) { demuxer.forEachSample(body) }

  /// Drops the audio from here on, or takes it up again.
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
    parameterSets = video.flatMap { ParameterSets(codec: $0.videoCodec, framing: $0.nalFraming) }
    restart()
    selectStreams()
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

  private func videoUnit(_ packet: consuming Packet) throws(ReelError) -> Unit {
    guard var sets = parameterSets.take() else { return .video(SharedPacket(packet)) }
    defer { parameterSets = sets }
    return .video(SharedPacket(try sets.completed(packet)))
  }

  private func appendVideo(_ packet: borrowing Packet) {
    if let position = packet.position {
      let before = videoPES?.position == position ? videoPES?.byteCount ?? 0 : 0
      videoPES = (position, before + packet.byteCount)
    } else {
      videoPES = nil
    }
    videoSplitter?.append(packet)
  }

  /// The next access unit that is certain to be complete.
  ///
  /// A unit that may lack bytes is not decoded to see whether it works, as missing bytes need not cause an error. Two
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

  private func takeAudio() throws {
    while let packet = try audioSplitter?.next() { ready.append(try transportAudio(packet)) }
  }

  // MARK: Decryption

  // MPEG-TS is decrypted after splitting, because the headers of slices and audio frames are not encrypted.

  private func transportVideo(_ packet: consuming Packet) throws -> Unit {
    guard let video else { return .video(SharedPacket(packet)) }
    return try videoUnit(decryptedTransport(packet, of: video))
  }

  private func transportAudio(_ packet: consuming Packet) throws -> Unit {
    guard let audio else { return .audio(SharedPacket(packet)) }
    return .audio(SharedPacket(try decryptedTransport(packet, of: audio)))
  }

  private func decrypted(_ packet: consuming Packet, of stream: StreamInfo) throws -> Packet {
    var packet = packet
    do {
      try decryptor.decrypt(&packet, of: stream)
    } catch let error as ReelError {
      throw refused(error)
    }
    return packet
  }

  private func decryptedTransport(_ packet: consuming Packet, of stream: StreamInfo) throws -> Packet {
    var packet = packet
    do {
      try decryptor.decryptTransport(
        &packet, of: stream, at: packet.position.map { $0 + (program?.origin ?? 0) })
    } catch let error as ReelError {
      throw refused(error)
    }
    return packet
  }

  /// Notes that an encrypted sample can't be read.
  private func refused(_ error: ReelError) -> ReelError {
    if error.kind == .unsupported { refusal = error }
    return error
  }

  /// Starts again at another position.
  private func restart() {
    ready = []
    hasEnded = false
    refusal = nil
    videoSplitter = nil
    videoPES = nil
    // MPEG-TS is demuxed without libavformat's parser: its packets are PES packets.
    if format == .mpegTS, let video, let codec = video.videoCodec, codec == .h264 || codec == .hevc {
      videoSplitter = AccessUnitSplitter(codec: codec, streamIndex: video.index)
    }
    videoFiller = video?.videoCodec.flatMap { PresentationFiller(codec: $0, format: format) }
    audioSplitter = nil
    if format == .mpegTS, let audio, let codec = audio.audioCodec {
      audioSplitter = AudioFrameSplitter(codec: codec, streamIndex: audio.index, timeBase: audio.timeBase)
    }
  }

  /// Some containers announce streams on the way.
  private func noteStreams() {
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
  /// The error for samples whose encryption metadata can't be read.
  static func encrypted(codecName: String) -> ReelError {
    ReelError(
      .unsupported,
      "the \(codecName) samples are encrypted (Common Encryption) with metadata that can't be read")
  }
}
