internal import CFFmpeg
public import Logging
public import ReelCore

/// Reads the pictures of one container's video stream in presentation order: demuxer, access units and decoder as one.
///
/// `firstPicture()` gives the earliest picture for the fewest bytes: it does not wait until the decoder's reorder
/// delay has run out, but drains the decoder as soon as no later packet can hold an earlier picture. A decoder that
/// was drained can't go on, so its packets are kept and fed again before the next picture.
///
/// Confined to one thread at a time.
public final class PictureReader {
  public struct Options: Sendable {
    /// Frame threads of the decoder. With more than one, the first picture waits for their pipeline.
    public var threads = 1
    /// False reads the source forward only.
    public var isSeekable = true
    /// Asked between packets; true ends the work with `CancellationError`.
    public var isCancelled: @Sendable () -> Bool = { false }
    public var gate: (any DecodingGate)?

    public init() {}
  }

  /// Time spent by stage since the reader was made.
  public struct Timing: Sendable {
    /// Waiting for bytes.
    public var source: Duration = .zero
    public var demux: Duration = .zero
    public var decode: Duration = .zero

    public init(source: Duration = .zero, demux: Duration = .zero, decode: Duration = .zero) {
      self.source = source
      self.demux = demux
      self.decode = decode
    }
  }

  /// The stream whose pictures are read.
  public let stream: StreamInfo
  /// Bytes of the source up to the end of the first picture's packet; nil before there was one.
  public private(set) var firstPictureEnd: Int64?
  /// How the stream begins; nil before its first packet was read.
  public private(set) var opening: OpeningPicture?
  /// Pictures handed out that missed a reference or were concealed.
  public private(set) var damagedCount = 0

  private let demuxer: Demuxer
  private let decoder: Decoder
  private let options: Options
  private let framing: NALFraming
  private var units: AccessUnitReader
  private var decodeDuration: Duration = .zero
  private var demuxDuration: Duration = .zero
  private var isFinished = false
  private var hasToldTruncation = false
  private var handedCount = 0
  /// The decoder was drained for a first picture: it is flushed, and gets these packets again, before it goes on.
  private var refeed: [PacketBox]?
  /// After a seek: packets before the first random access point are dropped. HEVC pictures would be decoded there with
  /// references that are missing.
  private var awaitsRandomAccess = false
  /// Pictures that come again with them and have been handed out.
  private var skip = Skip.nothing

  private enum Skip {
    case nothing
    case onePicture
    case through(Int64)
  }

  /// A stream that has shown nothing after so many packets is decoded on without keeping them.
  private static let maximumFirstPackets = 64

  /// Opens the container and a decoder for its best video stream, the one that ffmpeg
  /// chooses.
  ///
  /// Throws `ReelError` (`badMedia`; `unsupported` for a codec or encryption, by name) or what the source threw.
  public init(
    source: any ByteSource, format: ContainerFormat, options: Options = Options(), name: String,
    logger: Logger
  ) throws {
    self.options = options
    let start = ContinuousClock.now
    demuxer = try Demuxer(
      source: source, format: format, isSeekable: options.isSeekable, name: name, logger: logger)
    let selected = try Self.selectStream(demuxer)
    stream = format == .flv ? try demuxer.streamAtFirstPacket(selected.index) : selected
    decoder = try Decoder(stream: stream, threads: options.threads, name: name, logger: logger)
    demuxer.select(streams: [stream.index])
    units = AccessUnitReader(demuxer: demuxer, stream: stream)
    framing = stream.nalFraming
    demuxDuration = ContinuousClock.now - start - demuxer.sourceWait
  }

  /// All streams of the container that are known so far.
  public var streams: [StreamInfo] { demuxer.streams }
  public var timing: Timing {
    Timing(source: demuxer.sourceWait, demux: demuxDuration, decode: decodeDuration)
  }
  /// How many pictures the decoder may hold back to bring them into order, as far as is known.
  public var reorderDepth: Int { decoder.reorderDepth }
  public var profileName: String? { decoder.profileName }
  /// As the bitstream writes it: 31 is H.264's 3.1, 93 HEVC's 3.1.
  public var level: Int? { decoder.level }
  /// The container's average frame rate where it has one, else the bitstream's.
  public var frameRate: Rational? { stream.averageFrameRate ?? decoder.frameRate }
  /// The whole length in microseconds, where the container's header tells.
  public var durationMicroseconds: Int64? { demuxer.durationMicroseconds }
  /// Packets that the decoder refused as invalid.
  public var rejectedPacketCount: Int { decoder.rejectedPacketCount }

  /// The earliest picture in presentation order, as soon as it can be known; nil where there is none. To be called
  /// before any other picture is read, or after a seek.
  public func firstPicture() throws -> Frame? {
    guard options.threads == 1 else { return try nextPicture() }
    while true {
      try checkCancelled()
      switch try demux({ try units.next(allowingTentative: true) }) {
      case .end:
        return try endWithoutPicture()
      case .tentative(let box):
        // Drained for nothing where the picture turns out to go on in the next PES packet: it is then damaged.
        guard try open(with: box.packet).canBeDecodedAlone,
          let frame = try picture(of: [box], keeping: [], acceptsDamage: false)
        else { continue }
        return frame
      case .packet(let box):
        let opening = try open(with: box.packet)
        if opening.canBeDecodedAlone, let frame = try picture(of: [box], keeping: [box], acceptsDamage: true)
        {
          return frame
        }
        return try firstPictureInOrder(from: box, opening: opening)
      }
    }
  }

  /// The next picture in presentation order; nil at the end. Throws once where the end comes before what the
  /// container's index names.
  public func nextPicture() throws -> Frame? {
    if let boxes = refeed {
      resetDecoder()
      units.putBack(boxes)
    }
    while true {
      switch try receive() {
      case .frame(let frame):
        if shouldSkip(frame) { continue }
        return count(frame)
      case .drained:
        if handedCount == 0, decoder.sizeFault != nil || !demuxer.isTruncated {
          return try endWithoutPicture()
        }
        guard demuxer.isTruncated, !hasToldTruncation else { return nil }
        hasToldTruncation = true
        throw ReelError(.badMedia, "the file is cut off: its index names media beyond its end")
      case .needsInput:
        try checkCancelled()
        if let box = try demux({ try units.next() }) {
          if opening == nil { _ = try open(with: box.packet) }
          if awaitsRandomAccess {
            guard try describe(box.packet).isRandomAccess else { continue }
            awaitsRandomAccess = false
          }
          try send(box)
        } else {
          finish()
        }
      }
    }
  }

  /// Goes to the key frame at or before `ticks` of the stream. False where the container can't.
  public func seek(toKeyFrameAtOrBefore ticks: Int64) throws -> Bool {
    guard try demuxer.seek(toKeyFrameAtOrBefore: ticks, stream: stream.index) else { return false }
    resetDecoder()
    units.reset()
    skip = .nothing
    awaitsRandomAccess = stream.videoCodec == .hevc
    return true
  }

  // MARK: - Private

  private static func selectStream(_ demuxer: Demuxer) throws -> StreamInfo {
    let isVideo = { (stream: StreamInfo) in stream.kind == .video && !stream.isAttachedPicture }
    guard try demuxer.awaitStream(where: isVideo) != nil else {
      let names = demuxer.streams.map { "\($0.kind.rawValue) (\($0.codecName))" }
      throw ReelError(
        .badMedia,
        names.isEmpty
          ? "no streams in the media" : "no video in the media, only \(names.joined(separator: ", "))")
    }
    let candidates = demuxer.streams.filter(isVideo)
    // ffmpeg's order: pixels, the default disposition counting for five million (fftools/ffmpeg_opt.c); the first
    // of equals.
    let score = { (stream: StreamInfo) in
      (stream.size.map { $0.width * $0.height } ?? 0) + (stream.isDefault ? 5_000_000 : 0)
    }
    let decodable = candidates.filter { $0.videoCodec != nil }
    guard let best = decodable.max(by: { score($0) < score($1) }) ?? candidates.first else {
      throw ReelError(.badMedia, "no video in the media")
    }
    if best.isEncrypted { throw ReelError.encrypted(codecName: best.codecName) }
    return best
  }

  // MARK: First picture

  private func open(with packet: borrowing Packet) throws -> OpeningPicture {
    let picture = try describe(packet)
    opening = picture
    firstPictureEnd = demuxer.position
    return picture
  }

  private func describe(_ packet: borrowing Packet) throws -> OpeningPicture {
    try OpeningPicture(packet, codec: stream.videoCodec, framing: framing, parameters: stream.parameters)
  }

  /// Decodes packets, then drains.
  private func picture(of boxes: [PacketBox], keeping kept: [PacketBox], acceptsDamage: Bool) throws -> Frame?
  {
    for box in boxes { try send(box) }
    return try drainedPicture(keeping: kept, acceptsDamage: acceptsDamage)
  }

  /// Drains the decoder and gives its first picture; `kept` will be fed again before the next one. Where there is no
  /// picture the decoder is as new.
  private func drainedPicture(keeping kept: [PacketBox], acceptsDamage: Bool) throws -> Frame? {
    finish()
    guard case .frame(let frame) = try receive(), acceptsDamage || !frame.isDamaged else {
      resetDecoder()
      return nil
    }
    refeed = kept
    skip = frame.presentationTicks.map { .through($0) } ?? .onePicture
    return count(frame)
  }

  /// Feeds packets until no later one can hold an earlier picture than those that were fed, or until the decoder
  /// gives one by itself.
  private func firstPictureInOrder(from first: PacketBox, opening: OpeningPicture) throws -> Frame? {
    var fed: [PacketBox] = []
    var earliest: Int64?
    var next: PacketBox? = first
    while let box = next {
      try checkCancelled()
      if let earliest, try isLater(box.packet, than: earliest, opening: opening, fedCount: fed.count) {
        units.putBack([box])
        if let frame = try drainedPicture(keeping: fed, acceptsDamage: true) { return frame }
        units.putBack(fed)
        break
      }
      fed.append(box)
      if !box.packet.isDiscarded, let ticks = box.packet.presentationTicks {
        earliest = min(earliest ?? ticks, ticks)
      }
      try send(box)
      if case .frame(let frame) = try receive() { return count(frame) }
      if fed.count >= Self.maximumFirstPackets { break }
      next = try demux { try units.next() }
    }
    // Nothing to show so far: on in plain order.
    guard let frame = try nextPicture() else { return try endWithoutPicture() }
    return frame
  }

  /// True where `packet` and all after it come later in presentation order than `earliest`.
  private func isLater(
    _ packet: borrowing Packet, than earliest: Int64, opening: OpeningPicture, fedCount: Int
  ) throws -> Bool {
    if packet.isDiscarded || opening.isField && fedCount < 2 { return false }
    switch stream.videoCodec {
    case .hevc where opening.isRandomAccess && opening.isShown:
      // All leading pictures stand before the first trailing one (ISO/IEC 23008-2 §8.3.1).
      return try !describe(packet).isLeading
    case .h264, .hevc:
      // A picture is never decoded after it is shown.
      return packet.decodingTicks.map { $0 >= earliest } ?? false
    default:
      return false
    }
  }

  private func endWithoutPicture() throws -> Frame? {
    if let fault = decoder.sizeFault { throw fault }
    if let detail = decoder.takeLastError() ?? demuxer.takeLastError() {
      throw ReelError(.badMedia, "no picture could be decoded: \(detail)")
    }
    return nil
  }

  // MARK: Decoder

  private func send(_ box: PacketBox) throws {
    if stream.videoCodec == .h264 { noteUnits(of: box.packet) }
    // A decoder whose pictures were all received is never full.
    _ = try gated { try decoder.send(box.packet) }
  }

  /// What the decoder's log is read by: whether gaps in frame numbers are allowed, and whether others are predicted
  /// from the picture.
  private func noteUnits(of packet: borrowing Packet) {
    packet.withBytes { bytes in
      bytes.forEachNALUnit(framing: framing) { unit in
        guard let header = NALUnitHeader(codec: .h264, bytes: unit) else { return true }
        if header.type == 7 { decoder.noteSequenceParameterSet(unit) }
        guard header.isPictureSlice else { return true }
        // nal_ref_idc
        if (unit.first ?? 0) & 0x60 == 0 { decoder.noteNonReference() }
        return false
      }
    }
  }

  private func receive() throws -> Decoder.ReceiveResult {
    try gated { try decoder.receive() }
  }

  private func finish() {
    guard !isFinished else { return }
    isFinished = true
    decoder.finish()
  }

  /// Makes the decoder as new.
  private func resetDecoder() {
    refeed = nil
    isFinished = false
    decoder.flush()
  }

  private func count(_ frame: consuming Frame) -> Frame {
    if frame.isDamaged { damagedCount += 1 }
    handedCount += 1
    return frame
  }

  private func shouldSkip(_ frame: borrowing Frame) -> Bool {
    switch skip {
    case .nothing:
      return false
    case .onePicture:
      skip = .nothing
      return true
    case .through(let ticks):
      guard let own = frame.presentationTicks, own > ticks else { return true }
      skip = .nothing
      return false
    }
  }

  private func checkCancelled() throws {
    if options.isCancelled() { throw CancellationError() }
  }

  // MARK: Time

  private func gated<Result: ~Copyable>(_ body: () throws -> Result) rethrows -> Result {
    options.gate?.acquire()
    let start = ContinuousClock.now
    defer {
      decodeDuration += ContinuousClock.now - start
      options.gate?.release()
    }
    return try body()
  }

  private func demux<Result>(_ body: () throws -> Result) rethrows -> Result {
    let start = ContinuousClock.now
    let waited = demuxer.sourceWait
    defer { demuxDuration += ContinuousClock.now - start - (demuxer.sourceWait - waited) }
    return try body()
  }
}
