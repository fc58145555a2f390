import Logging
import ReelCore
import ReelFFmpeg
import ReelTestSupport

/// The frames of a container's video, pulled through a container reader and a decoder.
final class ClipReader {
  struct Options {
    var threads = 1
    var isSeekable = true
    var isCancelled: @Sendable () -> Bool = { false }
  }

  let container: ContainerReader
  /// Of the program that is read.
  private(set) var decoder: VideoDecoder
  /// Bytes of the source up to the end of the first frame's packet; nil before there was one.
  var firstFrameEnd: Int64? { units.openingEnd }

  private let units: Units
  private let decoding: VideoDecoder.Options
  private let logger: Logger
  private var closed = (damagedCount: 0, rejectedPacketCount: 0)

  init(
    source: any ByteSource, format: ContainerFormat, options: Options = Options(), name: String,
    logger: Logger
  ) throws {
    var reading = ContainerReader.Options()
    reading.isSeekable = options.isSeekable
    container = try ContainerReader(
      source: source, format: format, options: reading, name: name, logger: logger)
    guard let video = container.video else { throw ReelError(.badMedia, "no video in the media") }
    units = Units(container)
    var decoding = VideoDecoder.Options()
    decoding.threads = options.threads
    decoding.isCancelled = options.isCancelled
    self.decoding = decoding
    self.logger = logger
    decoder = try VideoDecoder(
      stream: video, source: units, options: decoding, name: name, logger: logger)
  }

  var stream: StreamInfo { decoder.stream }
  var damagedCount: Int { closed.damagedCount + decoder.damagedCount }
  var rejectedPacketCount: Int { closed.rejectedPacketCount + decoder.rejectedPacketCount }

  /// The earliest frame; only as the first call, or after a seek.
  func firstFrame() throws -> Frame? { try frame { try $0.firstFrame() } }

  func nextFrame() throws -> Frame? { try frame { try $0.nextFrame() } }

  func seek(toKeyFrameAtOrBefore ticks: Int64) throws -> Bool {
    guard try container.seek(toKeyFrameAtOrBefore: ticks, of: stream) else { return false }
    try decoder.reset()
    return true
  }

  /// All frames that are left.
  func rest() throws -> [Seen] {
    var seen: [Seen] = []
    while let next = try next() { seen.append(next) }
    return seen
  }

  func next() throws -> Seen? {
    guard let frame = try nextFrame() else { return nil }
    return try Seen(frame)
  }

  func first() throws -> Seen? {
    guard let frame = try firstFrame() else { return nil }
    return try Seen(frame)
  }

  // MARK: - Private

  private func frame(_ step: (VideoDecoder) throws -> Pulled<Frame>) throws -> Frame? {
    while true {
      switch try step(decoder) {
      case .element(let frame): return frame
      case .wait: return nil
      case .end:
        if let refusal = container.refusal { throw refusal }
        if let fault = decoder.sizeFault { throw fault }
        guard units.takeChange(), let video = container.video else { return nil }
        closed.damagedCount += decoder.damagedCount
        closed.rejectedPacketCount += decoder.rejectedPacketCount
        decoder = try VideoDecoder(
          stream: video, source: units, options: decoding, name: "test", logger: logger)
      }
    }
  }

  /// The video units of a container.
  private final class Units: AccessUnitSource {
    private(set) var openingEnd: Int64?
    private let container: ContainerReader
    private var hasChanged = false

    init(_ container: ContainerReader) { self.container = container }

    func takeChange() -> Bool {
      defer { hasChanged = false }
      return hasChanged
    }

    func nextUnit() throws -> Pulled<Packet> {
      do {
        while true {
          switch try container.next() {
          case .video(let packet): return .element(packet)
          case .audio: continue
          case .programChanged:
            hasChanged = true
            return .end
          case .end: return .end
          }
        }
      } catch _ where container.refusal != nil {
        return .end
      }
    }

    func didOpen(_ opening: OpeningPicture) { openingEnd = container.position }
  }
}

/// A reader over bytes in memory.
func makeReader(
  _ bytes: [UInt8], _ format: ContainerFormat, threads: Int = 1, chunkByteCount: Int = .max,
  isSeekable: Bool = true, logger: Logger = silentLogger
) throws -> ClipReader {
  var options = ClipReader.Options()
  options.threads = threads
  options.isSeekable = isSeekable
  return try ClipReader(
    source: MemorySource(bytes, chunkByteCount: chunkByteCount, isSeekable: isSeekable), format: format,
    options: options, name: "test", logger: logger)
}

/// A reader of a clip; forward only where the clip allows it, as the player opens it.
func makeReader(
  _ clip: Clip, threads: Int = 1, chunkByteCount: Int = .max, logger: Logger = silentLogger
) throws -> ClipReader {
  try makeReader(
    clip.bytes(), clip.format, threads: threads, chunkByteCount: chunkByteCount,
    isSeekable: !clip.canBeReadForward(), logger: logger)
}
