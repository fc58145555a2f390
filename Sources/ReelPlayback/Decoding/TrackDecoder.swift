internal import Logging
internal import ReelCore
internal import ReelFFmpeg

/// Decodes the packets of a video track into frames, and places them on the timeline.
///
/// Each run has a decoder of its own. The decoder of a run that has ended is drained before the next one begins, so that
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
    case frame(TimedPicture)
    /// A frame was decoded that is not to be shown: it was given before, or belongs to a pass that is not wanted.
    case discarded
    /// The source has nothing yet: to be called again when it has.
    case needsPacket
    /// A run has ended, and its decoder is closed: the next call begins another one.
    case runEnded
    case end
    /// The source wants packets from another place.
    case stale
  }

  /// The decoder of the run that is being decoded.
  private(set) var decoder: PictureDecoder?
  /// The time of the last frame that was given; nil after a change of place.
  private(set) var lastTime: MediaTime?
  /// The last frame had a timestamp of its own.
  private(set) var hasTimestamps = false
  /// Why runs have ended that gave no frame at all: the first reason since the change of place.
  private(set) var fault: ReelError?
  /// Frames that came out of decoders.
  private(set) var frameCount = 0
  /// Of those, frames that had been given before.
  private(set) var repeatedCount = 0
  /// The last time through the item that is wanted.
  var lastIteration = Int.max

  private let packets: RunPackets
  private let options: Options
  /// Opened ahead, for a run that has not come yet.
  private var prepared: PictureDecoder?
  private var lastDuration = MediaTime(value: 1, timescale: 25)
  /// The first frame of the run has not been seen.
  private var isRunNew = true
  /// The run of the last frame.
  private var lastRun: MediaRun?
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
    switch try isFirst ? decoder.firstPicture() : decoder.nextPicture() {
    case .picture(let frame):
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
      return packets.hasEnded ? .end : .runEnded
    }
  }

  /// Begins at another place, to which the source has gone.
  func begin() throws(ReelError) {
    lastTime = nil
    fault = nil
    isRunNew = true
    lastRun = nil
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
    packets.endRun()
  }

  /// Closes the decoder as `close()` does, after frames behind the one at `time` were let go: they are given again.
  func close(after time: MediaTime) {
    close()
    lastTime = time
  }

  // MARK: - Private

  /// The decoder of the next packet's run; nil where there is no packet.
  private func openDecoder(threads: Int) throws -> PictureDecoder? {
    if let decoder { return decoder }
    guard let run = try packets.nextRun() else { return nil }
    let ready = prepared.take()
    let made =
      if let ready, ready.stream.isIdentical(to: run.stream), ready.options.threads == threads {
        ready
      } else {
        try makeDecoder(run.stream, threads: threads)
      }
    isRunNew = true
    decoder = made
    return made
  }

  private func makeDecoder(_ stream: StreamInfo, threads: Int) throws(ReelError) -> PictureDecoder {
    var decoding = PictureDecoder.Options()
    decoding.threads = threads
    decoding.gate = options.gate
    decoding.clock = options.clock
    decoding.isCancelled = options.isCancelled
    return try PictureDecoder(
      stream: stream, source: packets, options: decoding, name: options.name, logger: options.logger)
  }

  private static func fault(of decoder: PictureDecoder) -> ReelError? {
    if let fault = decoder.sizeFault { return fault }
    return decoder.takeLastError().map {
      ReelError(.badMedia, "no picture could be decoded: \($0)", advice: decoder.keyAdvice)
    }
  }

  /// The frame at its place on the timeline; nil where it is not to be shown.
  private func placed(_ frame: consuming Frame, of decoder: PictureDecoder) -> TimedPicture? {
    guard let run = packets.run, run.pass.iteration <= lastIteration else { return nil }
    let ticks = frame.presentationTicks
    if isRunNew, run !== lastRun, run.beginsDomain, packets.beganWithFirst, let ticks {
      run.domain.settle(firstPicture: decoder.stream.time(ticks: ticks))
    }
    lastRun = run
    // The next run has this frame and all that follow; here, others may be missing before it.
    if let resumption = packets.resumption, let ticks, run.time(ticks: ticks) >= resumption { return nil }
    var time = ticks.map { run.time(ticks: $0) } ?? (lastTime ?? run.shift) + lastDuration
    if let lastTime, time <= lastTime {
      // Decoded again, or from another rung: given before. Within a run a timestamp that does not rise is wrong.
      if isRunNew || ticks == nil {
        repeatedCount += 1
        return nil
      }
      time = lastTime + lastDuration
    }
    isRunNew = false
    var placed = TimedPicture(frame: frame, time: time, stream: decoder.stream, frameRate: decoder.frameRate)
    placed.run = run
    lastTime = time
    lastDuration = placed.displayTime
    hasTimestamps = ticks != nil
    return placed
  }
}

/// The packets of one run after the other, as decoders take them.
private final class RunPackets: AccessUnitSource {
  /// The run that packets are taken of.
  private(set) var run: MediaRun?
  /// No packet will come.
  private(set) var hasEnded = false
  private(set) var isStale = false
  /// The first packet that was taken is the first of its run.
  private(set) var beganWithFirst = false
  /// Where the next run begins, on the timeline of the one that has ended: it may have the last frames once more.
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

  /// The run of the next packet; nil where there is none.
  func nextRun() throws -> MediaRun? {
    switch try source.peek() {
    case .packet(let packet):
      run = packet.run
      return run
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

  func endRun() {
    run = nil
    hasBegun = false
    resumption = nil
  }

  func nextUnit() throws -> AccessUnit {
    switch try source.next(of: run) {
    case .packet(let packet):
      if !hasBegun { beganWithFirst = packet.isFirst }
      hasBegun = true
      return .packet(packet.box)
    case .none:
      return .none
    case .end:
      switch try source.peek() {
      case .packet(let next):
        resumption = run.flatMap { next.run.continuesTimeline(of: $0) ? next.time : nil }
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
