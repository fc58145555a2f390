internal import Logging
internal import ReelCore
internal import ReelFFmpeg

/// Decodes the packets of a video track into frames, and places them on the timeline.
///
/// Each span has a decoder of its own. The decoder of a span that has ended is drained before the next one begins, so that
/// every frame around a change of rung is given, and given once.
///
/// Confined to one thread at a time.
final class TrackDecoder {
  struct Options: Sendable {
    var name: String
    var logger: Logger
    var gate: (any DecodingGate)?
    /// What decoding is measured by.
    var clock: any MonotonicClock = SystemMonotonicClock()
    /// Asked between packets; true ends the work with `CancellationError`.
    var isCancelled: @Sendable () -> Bool = { false }
  }

  /// What a call has given.
  enum Step: ~Copyable {
    case frame(TimedFrame)
    /// A frame was decoded that is not to be shown: it was given before, or belongs to an iteration that is not wanted.
    case discarded
    /// The source has nothing yet: to be called again when it has.
    case needsPacket
    /// A span has ended, and its decoder is closed: the next call begins another one.
    case spanEnded
    case end
    /// The source wants packets from another place.
    case stale
  }

  /// The decoder of the span that is being decoded.
  private(set) var decoder: VideoDecoder?
  /// The time of the last frame that was given; nil after a change of place.
  private(set) var lastTime: MediaTime?
  /// The last frame had a timestamp of its own.
  private(set) var hasTimestamps = false
  /// Why spans have ended that gave no frame at all: the first reason since the change of place.
  private(set) var fault: ReelError?
  /// Frames that came out of decoders.
  private(set) var frameCount = 0
  /// Of those, frames that had been given before.
  private(set) var repeatedCount = 0
  /// The last time through the item that is wanted.
  var lastIteration = Int.max

  private let packets: RunPackets
  private let options: Options
  /// Opened ahead, for a span that has not come yet.
  private var prepared: VideoDecoder?
  private var lastDuration = MediaTime(value: 1, timescale: 25)
  /// The first frame of the span has not been seen.
  private var isSpanNew = true
  /// The span of the last frame.
  private var lastSpan: StreamSpan?
  /// Of decoders that are closed.
  private var closed = (duration: Duration.zero, damagedCount: 0)

  init(_ source: any PacketSource, options: Options) {
    self.options = options
    packets = RunPackets(source)
  }

  /// Time spent in decoders.
  var duration: Duration { closed.duration + (decoder?.decodeDuration ?? .zero) }
  /// Frames that missed a reference or were concealed.
  var damagedCount: Int { closed.damagedCount + (decoder?.damagedCount ?? 0) }
  /// No packet will come from where the source stands.
  var hasEnded: Bool { packets.hasEnded }

  /// Opens the decoder of a stream while its first packet is still on its way. An error is thrown later, by `next`.
  func prepare(_ stream: StreamInfo, threads: Int) {
    guard decoder == nil else { return }
    prepared = try? makeDecoder(stream, threads: threads)
  }

  /// Decodes up to the next frame.
  ///
  /// - Parameters:
  ///   - isFirst: The earliest frame is wanted, from the fewest packets. Only before any other frame of a place.
  ///   - threads: Frame threads of a decoder that is opened.
  ///
  /// Throws `ReelError`, what the source threw, or `CancellationError`.
  func next(isFirst: Bool, threads: Int) throws -> Step {
    guard let decoder = try openDecoder(threads: threads) else {
      if packets.isStale { return .stale }
      return packets.hasEnded ? .end : .needsPacket
    }
    switch try isFirst ? decoder.firstFrame() : decoder.nextFrame() {
    case .frame(let frame):
      if let fault = decoder.keyFault { throw fault }
      frameCount += 1
      guard let placed = placed(frame, of: decoder) else { return .discarded }
      return .frame(placed)
    case .needsUnit:
      return .needsPacket
    case .end:
      if packets.isStale { return .stale }
      if lastTime == nil { fault = fault ?? Self.fault(of: decoder) }
      close()
      return packets.hasEnded ? .end : .spanEnded
    }
  }

  /// Begins at another place, to which the source has gone.
  func begin() throws(ReelError) {
    lastTime = nil
    fault = nil
    isSpanNew = true
    lastSpan = nil
    packets.begin()
    try decoder?.reset()
  }

  /// More comes after the end.
  func goOn() { packets.goOn() }

  /// Closes the decoder. The next one begins with the packet that the source gives then, and frames up to the last one
  /// are not given again.
  func close() {
    closed.duration += decoder?.decodeDuration ?? .zero
    closed.damagedCount += decoder?.damagedCount ?? 0
    decoder = nil
    packets.endSpan()
  }

  /// Closes the decoder as `close()` does, after frames behind the one at `time` were let go: they are given again.
  func close(after time: MediaTime) {
    close()
    lastTime = time
  }

  // MARK: - Private

  /// The decoder of the next packet's run; nil where there is no packet.
  private func openDecoder(threads: Int) throws -> VideoDecoder? {
    if let decoder { return decoder }
    guard let span = try packets.nextSpan() else { return nil }
    let ready = prepared.take()
    let made =
      if let ready, ready.stream.isIdentical(to: span.stream), ready.options.threads == threads {
        ready
      } else {
        try makeDecoder(span.stream, threads: threads)
      }
    isSpanNew = true
    decoder = made
    return made
  }

  private func makeDecoder(_ stream: StreamInfo, threads: Int) throws(ReelError) -> VideoDecoder {
    var decoding = VideoDecoder.Options()
    decoding.threads = threads
    decoding.gate = options.gate
    decoding.clock = options.clock
    decoding.isCancelled = options.isCancelled
    return try VideoDecoder(
      stream: stream, source: packets, options: decoding, name: options.name, logger: options.logger)
  }

  private static func fault(of decoder: VideoDecoder) -> ReelError? {
    if let fault = decoder.sizeFault { return fault }
    return decoder.takeLastError().map {
      ReelError(.badMedia, "no frame could be decoded: \($0)", advice: decoder.keyAdvice)
    }
  }

  /// The frame at its place on the timeline; nil where it is not to be shown.
  private func placed(_ frame: consuming Frame, of decoder: VideoDecoder) -> TimedFrame? {
    guard let span = packets.span, span.loop.iteration <= lastIteration else { return nil }
    let ticks = frame.presentationTicks
    if isSpanNew, span !== lastSpan, span.setsOffset, packets.beganWithFirst, let ticks {
      span.offset.settle(firstFrame: decoder.stream.time(ticks: ticks))
    }
    lastSpan = span
    // The next span has this frame and all that follow; here, others may be missing before it.
    if let resumption = packets.resumption, let ticks, span.time(ticks: ticks) >= resumption { return nil }
    var time = ticks.map { span.time(ticks: $0) } ?? (lastTime ?? span.shift) + lastDuration
    if let lastTime, time <= lastTime {
      // Decoded again, or from another rung: given before. Within a span a timestamp that does not rise is wrong.
      if isSpanNew || ticks == nil {
        repeatedCount += 1
        return nil
      }
      time = lastTime + lastDuration
    }
    isSpanNew = false
    var placed = TimedFrame(frame, time: time, stream: decoder.stream, frameRate: decoder.frameRate)
    placed.span = span
    lastTime = time
    lastDuration = placed.displayTime
    hasTimestamps = ticks != nil
    return placed
  }
}

/// The packets of one span after the other, as decoders take them.
private final class RunPackets: AccessUnitSource {
  /// The span that packets are taken of.
  private(set) var span: StreamSpan?
  /// No packet will come.
  private(set) var hasEnded = false
  private(set) var isStale = false
  /// The first packet that was taken is the first of its span.
  private(set) var beganWithFirst = false
  /// Where the next span begins, on the timeline of the one that has ended: it may have the last frames once more.
  private(set) var resumption: MediaTime?
  private var hasBegun = false
  private let source: any PacketSource

  init(_ source: any PacketSource) { self.source = source }

  func begin() {
    hasEnded = false
    isStale = false
    hasBegun = false
    resumption = nil
  }

  /// The span of the next packet; nil where there is none.
  func nextSpan() throws -> StreamSpan? {
    switch try source.peek() {
    case .packet(let packet):
      span = packet.span
      return span
    case .end:
      hasEnded = true
    case .stale:
      isStale = true
    case .none:
      break
    }
    return nil
  }

  func goOn() { hasEnded = false }

  func endSpan() {
    span = nil
    hasBegun = false
    resumption = nil
  }

  func nextUnit() throws -> AccessUnit {
    switch try source.next(of: span) {
    case .packet(let packet):
      if !hasBegun { beganWithFirst = packet.isFirst }
      hasBegun = true
      return .packet(packet.box)
    case .none:
      return .none
    case .end:
      switch try source.peek() {
      case .packet(let next):
        resumption = span.flatMap { next.span.continuesTimeline(of: $0) ? next.time : nil }
      case .end: hasEnded = true
      case .none, .stale: break
      }
      return .end
    case .stale:
      isStale = true
      return .end
    }
  }

  func didOpen() {}
}
