public import Logging
public import ReelCore

/// Reads the pictures of one container's video stream in presentation order: demuxer, access units and decoder as one.
///
/// `firstPicture()` gives the earliest picture for the fewest bytes (`PictureDecoder`).
///
/// Confined to one thread at a time.
public final class PictureReader {
  public struct Options: Sendable {
    /// Frame threads of the decoder. With more than one, the first picture waits for their pipeline.
    public var threads = 1
    /// False reads the source forward only.
    public var isSeekable = true
    /// Supplies the keys of encrypted samples.
    public var keys: (any SampleKeys)?
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
  public private(set) var stream: StreamInfo

  private let container: ContainerReader
  private let units: DemuxedUnits
  private var decoder: PictureDecoder
  private let decoding: PictureDecoder.Options
  private let name: String
  private let logger: Logger
  /// Of the decoders of programs before.
  private var closed: (duration: Duration, damagedCount: Int, rejectedPacketCount: Int) = (.zero, 0, 0)
  private var openDuration: Duration = .zero
  private var hasToldTruncation = false

  /// Opens the container and a decoder for its best video stream, the one that ffmpeg
  /// chooses.
  ///
  /// Throws `ReelError` (`badMedia`; `unsupported` for a codec or encryption, by name) or what the source threw.
  public init(
    source: any ByteSource, format: ContainerFormat, options: Options = Options(), name: String,
    logger: Logger
  ) throws {
    let start = ContinuousClock.now
    var reading = ContainerReader.Options()
    reading.isSeekable = options.isSeekable
    reading.keys = options.keys
    container = try ContainerReader(
      source: source, format: format, options: reading, name: name, logger: logger)
    guard let video = container.video else { throw ReelError(.badMedia, "no video in the media") }
    stream = video
    units = DemuxedUnits(container)
    var decoding = PictureDecoder.Options()
    decoding.threads = options.threads
    decoding.isCancelled = options.isCancelled
    decoding.gate = options.gate
    self.decoding = decoding
    self.name = name
    self.logger = logger
    decoder = try PictureDecoder(
      stream: stream, source: units, options: decoding, name: name, logger: logger)
    openDuration = ContinuousClock.now - start - container.sourceWait
  }

  /// All streams of the container that are known so far.
  public var streams: [StreamInfo] { container.streams }
  public var timing: Timing {
    Timing(
      source: container.sourceWait, demux: openDuration + units.demuxDuration,
      decode: closed.duration + decoder.decodeDuration)
  }
  /// Bytes of the source up to the end of the first picture's packet; nil before there was one.
  public var firstPictureEnd: Int64? { units.openingEnd }
  /// How the stream begins; nil before its first packet was read.
  public var opening: OpeningPicture? { decoder.opening }
  /// Pictures handed out that missed a reference or were concealed.
  public var damagedCount: Int { closed.damagedCount + decoder.damagedCount }
  /// How many pictures the decoder may hold back to bring them into order, as far as is known.
  public var reorderDepth: Int { decoder.reorderDepth }
  public var profileName: String? { decoder.profileName }
  /// As the bitstream writes it: 31 is H.264's 3.1, 93 HEVC's 3.1.
  public var level: Int? { decoder.level }
  /// The container's average frame rate where it has one, else the bitstream's.
  public var frameRate: Rational? { decoder.frameRate }
  /// The whole length in microseconds, where the container's header tells.
  public var durationMicroseconds: Int64? { container.durationMicroseconds }
  /// Packets that the decoder refused as invalid.
  public var rejectedPacketCount: Int { closed.rejectedPacketCount + decoder.rejectedPacketCount }

  /// The earliest picture in presentation order, as soon as it can be known; nil where there is none. To be called
  /// before any other picture is read, or after a seek.
  public func firstPicture() throws -> Frame? {
    while true {
      switch try decoder.firstPicture() {
      case .picture(let frame):
        if let fault = decoder.keyFault { throw fault }
        return frame
      case .needsUnit: return nil
      case .end:
        if let refusal = container.refusal { throw refusal }
        if try changeProgram() { continue }
        return decoder.opening == nil ? try endWithoutPicture() : try endOfPictures()
      }
    }
  }

  /// The next picture in presentation order; nil at the end. Throws once where the end comes before what the
  /// container's index names, or
  /// is cut off.
  public func nextPicture() throws -> Frame? {
    while true {
      switch try decoder.nextPicture() {
      case .picture(let frame):
        if let fault = decoder.keyFault { throw fault }
        return frame
      case .needsUnit: return nil
      case .end:
        if let refusal = container.refusal { throw refusal }
        guard try changeProgram() else { return try endOfPictures() }
      }
    }
  }

  /// Goes to the key frame at or before `ticks` of the stream. False where the container can't.
  public func seek(toKeyFrameAtOrBefore ticks: Int64) throws -> Bool {
    guard try container.seek(toKeyFrameAtOrBefore: ticks, of: stream) else { return false }
    try decoder.reset()
    return true
  }

  // MARK: - Private

  /// Goes on with a decoder of its own behind a change of the program. False where there is none.
  private func changeProgram() throws -> Bool {
    guard units.takeChange(), let video = container.video else { return false }
    closed.duration += decoder.decodeDuration
    closed.damagedCount += decoder.damagedCount
    closed.rejectedPacketCount += decoder.rejectedPacketCount
    stream = video
    decoder = try PictureDecoder(stream: video, source: units, options: decoding, name: name, logger: logger)
    return true
  }

  private func endOfPictures() throws -> Frame? {
    if decoder.pictureCount == 0, decoder.sizeFault != nil || !container.isTruncated {
      return try endWithoutPicture()
    }
    guard container.isTruncated, !hasToldTruncation else { return nil }
    hasToldTruncation = true
    throw ReelError(.badMedia, container.truncation)
  }

  private func endWithoutPicture() throws -> Frame? {
    if let fault = decoder.sizeFault { throw fault }
    if let detail = decoder.takeLastError() ?? container.takeLastError() {
      throw ReelError(.badMedia, "no picture could be decoded: \(detail)", advice: decoder.keyAdvice)
    }
    return nil
  }
}

/// The video units of a container, waited for.
private final class DemuxedUnits: AccessUnitSource {
  /// The container's place after the unit that decoding begins with.
  private(set) var openingEnd: Int64?
  private(set) var demuxDuration: Duration = .zero
  private let container: ContainerReader
  private var hasChanged = false

  init(_ container: ContainerReader) { self.container = container }

  /// True once for each end that was one of a program.
  func takeChange() -> Bool {
    defer { hasChanged = false }
    return hasChanged
  }

  func nextUnit() throws -> AccessUnit {
    let start = ContinuousClock.now
    let waited = container.sourceWait
    defer { demuxDuration += ContinuousClock.now - start - (container.sourceWait - waited) }
    do {
      while true {
        switch try container.next() {
        case .video(let box): return .packet(box)
        case .audio: continue
        case .programChanged:
          hasChanged = true
          return .end
        case .end: return .end
        }
      }
    } catch _ where container.refusal != nil {
      // The decoder first gives the frames that it still holds; then the reader throws the error.
      return .end
    }
  }

  func didOpen() { openingEnd = container.position }
}
