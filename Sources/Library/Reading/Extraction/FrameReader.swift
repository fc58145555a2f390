package import ReelCore
internal import ReelFFmpeg
internal import ReelManifest
package import ReelSources
internal import Synchronization

/// Reads the frames of one source in presentation order. It reads and decodes like a player, but without a
/// forward buffer.
///
/// Confined to a thread that may block.
package final class FrameReader {
  /// Media that could not be read, and was left out or loaded from elsewhere.
  package var faults: [ReelError] { log.faults }

  private let opening: OpenSource
  private let context: TrackContext
  private let packets: ReadPackets
  let decoder: TrackDecoder
  private let log: ExtractionLog
  private var isFailureThrown = false
  /// The end of the last frame; nil before the first one.
  private var lastEnd: MediaTime?

  /// Creates a reader. Nothing is read before the first frame is requested.
  ///
  /// - Parameters:
  ///   - shared: Playlists and initializations that another reader of the same presentation has read.
  ///   - scope: Ends reading until the first seek to a key frame; nil for the scope of the opening.
  ///   - beginsAsPlayer: True to begin with the segment in which a player begins (EXT-X-START), not with the first one.
  package init(
    _ opening: OpenSource, sharing shared: SharedTracks? = nil, scope: LoadScope? = nil,
    beginsAsPlayer: Bool = false
  ) {
    self.opening = opening
    let context = opening.context
    let readingScope = scope ?? context.scope
    self.context = context
    let log = ExtractionLog()
    self.log = log
    let reader = opening.source.packetReader(
      for: .main(wantsAudio: false), manifests: opening.manifests, context: context,
      controller: RungController(
        context.configuration, clock: context.recorder.clock, location: ServiceLocation(roams: true)),
      offsets: shared?.offsets ?? TimestampOffsets(), isAlone: true, beginsByDefault: beginsAsPlayer,
      log: { log.add($0) }, scope: readingScope,
      shared: shared)
    packets = ReadPackets(LandingReader(reader, scope: readingScope), clock: context.recorder.clock)
    let whole = context.scope
    decoder = TrackDecoder(
      packets,
      options: TrackDecoder.Options(
        name: context.name, logger: context.logger, gate: context.gate, clock: context.recorder.clock,
        shownSize: context.configuration.skipsDeblocking ? context.configuration.shownSize : nil,
        isCancelled: { whole.isCancelled }))
  }

  /// The earliest frame from the current position, read from as few bytes as possible; nil if there is none.
  /// Only for the first call, and after a seek.
  package func firstFrame() throws -> VideoFrame? { try frame(isFirst: true) }

  /// Returns the next frame; nil at the end.
  ///
  /// A fault of the source is thrown after the frames before it have been returned.
  func nextFrame() throws -> VideoFrame? { try frame(isFirst: false) }

  /// Seeks to a key frame at or before `time`, or as near to it as the source allows.
  ///
  /// - Parameter scope: Ends reading until the next seek; nil for the scope of the opening.
  package func seek(to time: MediaTime, scope: LoadScope? = nil) throws {
    try packets.seek(to: time, scope: scope ?? context.scope)
    try decoder.begin()
    isFailureThrown = false
    lastEnd = nil
  }

  /// Returns the next key frame, decoded by itself; packets before it are skipped. Nil at the end.
  ///
  /// After it, only further key frames can be read, until the next seek.
  ///
  /// - Parameter isOnly: Nil also if the first key frame can't be decoded (`failedKeyFrameCount`). Nothing after it is read.
  package func keyFrame(isOnly: Bool = false) throws -> VideoFrame? {
    let failedCount = failedKeyFrameCount
    return try frame(threads: 1, endsAtHoles: false) { decoder in
      switch try decoder.nextKeyFrame(isOnly: isOnly) {
      case .frame(let frame): return .frame(frame)
      case .discarded: return .discarded
      case .spanEnded: return isOnly && decoder.failedKeyFrameCount > failedCount ? .end : .spanEnded
      case .needsPacket: return .needsPacket
      case .end: return .end
      }
    }
  }

  /// Seeks to a key frame.
  ///
  /// - Parameter scope: Ends reading until the next seek; nil for the scope of the opening.
  package func seek(to place: KeyFramePlace, scope: LoadScope? = nil) throws {
    try packets.seek(to: place, scope: scope ?? context.scope)
    try decoder.begin()
    isFailureThrown = false
    lastEnd = nil
  }

  /// Opens the source. Throws its error.
  package func prepare() throws {
    if let stream = try packets.open() { decoder.prepare(stream, threads: 1) }
    if let failure = packets.failure { throw failure }
  }

  /// Leaves out packets before `time` from here on, until the next seek.
  package func skipPackets(before time: MediaTime) { packets.firstTime = time }

  /// Notes the times of packets that are named key frames, from here on (`takeKeyTimes()`).
  package func recordKeyTimes() { packets.notesKeyTimes = true }

  /// The times of packets named key frames that were read since the last call, in order of reading.
  package func takeKeyTimes() -> [MediaTime] { packets.takeKeyTimes() }

  // MARK: Status

  /// The reader of the packets: its places of key frames, plans and status. Only the frame reader reads and seeks.
  package var source: any PacketReader { packets.base }
  /// The rung that was opened last, with its segments; nil for a media file.
  package var track: RungTrack? { source.status.track }
  /// True for the segments of a live presentation.
  package var isLive: Bool { track?.supply.timing != nil }
  /// The number of faults so far, those that are not kept included.
  package var faultCount: Int { log.faultCount }
  /// The number of key frames that could not be decoded.
  package var failedKeyFrameCount: Int { decoder.failedKeyFrameCount }
  /// False if no packet was read since the last seek.
  package var hasPackets: Bool { packets.hasPackets }
  /// True if the container names one of these a key frame.
  package var hasKeyPackets: Bool { packets.hasKeyPackets }
  /// The number of bytes of the container up to the end of the first frame's packet.
  package var firstFrameEnd: Int64? { packets.firstEnd }
  /// The number of frames that are held back to bring them into order; 0 before the first one.
  package var reorderDepth: Int { decoder.decoder?.facts.reorderDepth ?? 0 }
  /// The number of bytes of the last key frame's packet.
  package var keyByteCount: Int { decoder.keyByteCount ?? packets.keyByteCount }
  /// The latest end of a video packet that was read; nil before the first one.
  package var readEnd: MediaTime? { packets.readEnd }
  /// The number of bytes read from a media file.
  package var readByteCount: Int64 { log.readByteCount }
  /// The time spent so far, by activity.
  package var timing: StartupReport.Timing {
    StartupReport.Timing(source: source.waits.media, demux: packets.busy, decode: decoder.duration)
  }

  // MARK: - Private

  private var threads: Int { context.readsAhead ? context.configuration.decoderThreads : 1 }

  private func frame(isFirst: Bool) throws -> VideoFrame? {
    let threads = threads
    return try frame(threads: threads, endsAtHoles: true) { try $0.next(isFirst: isFirst, threads: threads) }
  }

  private func frame(
    threads: Int, endsAtHoles: Bool, _ step: (TrackDecoder) throws -> TrackDecoder.Step
  ) throws -> VideoFrame? {
    if let stream = try packets.open() { decoder.prepare(stream, threads: threads) }
    while true {
      switch try step(decoder) {
      case .frame(let frame):
        if endsAtHoles, try hasHole(before: frame) { return try end() }
        lastEnd = frame.time + frame.displayTime
        return frame
      case .discarded: continue
      case .spanEnded: continue
      // Reading blocks until there is a packet.
      case .needsPacket: return try end()
      case .end: return try end()
      }
    }
  }

  /// Returns true if frames before this one may be missing. This is possible for a frame that the decoder
  /// still held when reading failed: earlier frames might have been decoded after it.
  ///
  /// Throws the failure if it is not certain that the frame is the first one.
  private func hasHole(before frame: VideoFrame) throws -> Bool {
    guard let failure = packets.failure else { return false }
    guard let lastEnd else {
      if failure.kind != .unsupported { throw failure }
      return false
    }
    return frame.time - lastEnd > MediaTime(seconds: frame.displayTime.seconds / 2)
  }

  /// Ends the track. Throws the source's fault here, once.
  private func end() throws -> VideoFrame? {
    guard !isFailureThrown else { return nil }
    isFailureThrown = true
    if let failure = packets.failure { throw failure }
    if decoder.frameCount == 0, let fault = decoder.fault { throw fault.located(at: context.name) }
    if let fault = source.endFault { throw fault }
    return nil
  }
}

/// The video packets of a reader, for which it waits.
private final class ReadPackets: PacketSource {
  /// The error that ended reading before the end of the source.
  private(set) var failure: ReelError?
  /// The position in the container where the first packet ends.
  private(set) var firstEnd: Int64?
  /// The number of bytes of the last packet with a key frame.
  private(set) var keyByteCount = 0
  /// The time spent reading, without waiting.
  private(set) var busy = Duration.zero
  /// The latest end of a packet.
  private(set) var readEnd: MediaTime?
  /// Packets before this time are skipped.
  var firstTime: MediaTime?

  private let reader: LandingReader
  private let clock: any MonotonicClock
  private var ahead: MediaPacket?
  private var hasEnded = false
  private var isOpen = false
  /// False if no packet was read since the last seek.
  private(set) var hasPackets = false
  private(set) var hasKeyPackets = false
  var notesKeyTimes = false
  private var keyTimes: [MediaTime] = []

  init(_ reader: LandingReader, clock: any MonotonicClock) {
    self.reader = reader
    self.clock = clock
  }

  var base: any PacketReader { reader.base }

  func seek(to time: MediaTime, scope: LoadScope) throws {
    forget()
    try measured {
      try reader.seek(to: time, needsKeyFrame: time > .zero, loop: LoopIteration(), scope: scope)
    }
  }

  func seek(to place: KeyFramePlace, scope: LoadScope) throws {
    forget()
    try measured { try reader.seek(to: place, scope: scope) }
  }

  private func forget() {
    ahead = nil
    hasEnded = false
    hasPackets = false
    hasKeyPackets = false
    failure = nil
    firstTime = nil
  }

  func takeKeyTimes() -> [MediaTime] {
    defer { keyTimes = [] }
    return keyTimes
  }

  /// Opens the source, once; returns its video stream.
  func open() throws -> StreamInfo? {
    guard !isOpen else { return nil }
    isOpen = true
    do {
      try measured { try base.prepare() }
    } catch let error as ReelError {
      failure = error
      hasEnded = true
    }
    return base.streams.video
  }

  func peek() throws -> Pulled<MediaPacket> {
    if ahead == nil, !hasEnded { try measured { ahead = try read() } }
    return ahead.map(Pulled.element) ?? .end
  }

  func next(of span: StreamSpan?) throws -> Pulled<MediaPacket> {
    guard case .element(let packet) = try peek(), span.map({ $0 === packet.span }) ?? true else {
      return .end
    }
    ahead = nil
    if packet.isKey { keyByteCount = packet.byteCount }
    return .element(packet)
  }

  func recordEnough() { base.recordEnough() }

  // MARK: - Private

  private func read() throws -> MediaPacket? {
    do {
      while let packet = try reader.next() {
        guard packet.kind == .video else { continue }
        hasPackets = true
        hasKeyPackets = hasKeyPackets || packet.isKey
        if notesKeyTimes, packet.isKey { keyTimes.append(packet.time) }
        firstEnd = firstEnd ?? base.status.position
        readEnd = max(readEnd ?? packet.end, packet.end)
        if let firstTime, packet.time < firstTime { continue }
        return packet
      }
    } catch let error as ReelError {
      // The decoder first returns the frames that it holds.
      failure = error
    }
    hasEnded = true
    return nil
  }

  private func measured<Result>(_ body: () throws -> Result) rethrows -> Result {
    try base.timed(by: clock, body) { busy += $1 }
  }
}

/// Collects the faults reported by readers.
private final class ExtractionLog: Sendable {
  private let state = Locked((faults: [ReelError](), count: 0))
  private let readBytes = Atomic<Int64>(0)
  /// The number of faults that are kept.
  private static let limit = 100

  var faults: [ReelError] { state.withLock { $0.faults } }
  var faultCount: Int { state.withLock { $0.count } }
  var readByteCount: Int64 { readBytes.load(ordering: .relaxed) }

  func add(_ report: ReadingReport) {
    switch report {
    case .failure(let error, _, _), .damage(let error, _, _):
      state.withLock { state in
        state.count += 1
        if state.faults.count < Self.limit { state.faults.append(error) }
      }
    case .file(_, let byteCount): readBytes.add(byteCount, ordering: .relaxed)
    case .rung, .transfer, .hole, .passedOver, .absence, .segment: break
    }
  }
}
