package import Logging
package import ReelCore
package import ReelFFmpeg

/// Decodes the packets of a video track into frames, and places them on the timeline.
///
/// Each span has its own decoder. When a span ends, its decoder is drained before the next one starts, so
/// that every frame around a rung switch is returned exactly once.
///
/// Confined to one thread at a time.
package final class TrackDecoder {
  package struct Options: Sendable {
    package var name: String
    package var logger: Logger
    package var gate: (any DecodingGate)?
    /// The clock that measures decoding.
    package var clock: any MonotonicClock = SystemMonotonicClock()
    package var decoders: any DecoderMaking = LibavDecoders()
    /// The size that frames are shown at, if `VideoDecoder.Options.skipsDeblocking` may be set for it.
    package var shownSize: SizeLimit?
    /// Asked between packets. If it returns true, decoding ends with `CancellationError`.
    package var isCancelled: @Sendable () -> Bool = { false }
    /// Checked before a decoder is opened. If false, the call returns `needsPacket`, and the packet stays in
    /// the source.
    package var mayOpen: @Sendable () -> Bool = { true }
    /// Receives the parts of a span, on the player's timeline, from whose packets no frame could be decoded.
    package var recordLoss: @Sendable (Range<MediaTime>, StreamSpan) -> Void = { _, _ in }

    package init(
      name: String, logger: Logger, gate: (any DecodingGate)? = nil,
      clock: any MonotonicClock = SystemMonotonicClock(), decoders: any DecoderMaking = LibavDecoders(),
      shownSize: SizeLimit? = nil, isCancelled: @escaping @Sendable () -> Bool = { false },
      mayOpen: @escaping @Sendable () -> Bool = { true },
      recordLoss: @escaping @Sendable (Range<MediaTime>, StreamSpan) -> Void = { _, _ in }
    ) {
      self.name = name
      self.logger = logger
      self.gate = gate
      self.clock = clock
      self.decoders = decoders
      self.shownSize = shownSize
      self.isCancelled = isCancelled
      self.mayOpen = mayOpen
      self.recordLoss = recordLoss
    }
  }

  /// The result of a call.
  package enum Step {
    case frame(VideoFrame)
    /// A frame was decoded but is not shown: it was returned before, or its iteration is not wanted.
    case discarded
    /// The source has no packet yet; call again when it has one.
    case needsPacket
    /// A span has ended and its decoder is closed. The next call begins the next span.
    case spanEnded
    case end
  }

  /// The decoder of the current span.
  package private(set) var decoder: VideoDecoder?
  /// The time of the last returned frame; nil after `begin()`.
  package private(set) var lastTime: MediaTime?
  /// True if the last frame had a timestamp of its own.
  package private(set) var hasTimestamps = false
  /// The first error since `begin()` because of which a span ended without any frame.
  package private(set) var fault: ReelError?
  /// The number of frames returned by decoders.
  package private(set) var frameCount = 0
  /// The number of those frames that had been returned before.
  package private(set) var repeatedCount = 0
  /// True if a decoder could not be opened because too many are open.
  package var isRefused = false
  /// The last iteration that is wanted.
  package var lastIteration = Int.max

  private let packets: RunPackets
  private let options: Options
  /// A decoder opened in advance, for a span that has not arrived yet.
  private var prepared: VideoDecoder?
  private var lastDuration = MediaTime(value: 1, timescale: 25)
  /// True if no frame of the span has been returned yet.
  private var isSpanNew = true
  /// True if frames before the first one of the span were lost, so that it does not begin the span.
  private var hasLostStart = false
  /// The span of the last frame.
  private var lastSpan: StreamSpan?
  /// The totals of closed decoders.
  private var closed = (
    duration: Duration.zero, damagedCount: 0, failedKeyFrameCount: 0, rejectedPacketCount: 0
  )

  package init(_ source: any PacketSource, options: Options) {
    self.options = options
    packets = RunPackets(source)
  }

  /// The time spent in decoders.
  package var duration: Duration { closed.duration + (decoder?.decodeDuration ?? .zero) }
  /// The number of frames that missed a reference or were concealed.
  package var damagedCount: Int { closed.damagedCount + (decoder?.damagedCount ?? 0) }
  /// The number of key frames that could not be decoded by themselves.
  package var failedKeyFrameCount: Int { closed.failedKeyFrameCount + (decoder?.failedKeyFrameCount ?? 0) }
  /// The number of packets that could not be decoded.
  package var rejectedPacketCount: Int { closed.rejectedPacketCount + (decoder?.rejectedPacketCount ?? 0) }
  /// The number of bytes from which the last frame of `nextKeyFrame(isOnly:)` was decoded; nil before the
  /// first one.
  package private(set) var keyByteCount: Int?
  /// True if the source has no more packets from its position.
  package var hasEnded: Bool { packets.hasEnded }

  /// Opens the decoder of a stream while its first packet is still being loaded. If that fails, `next` throws
  /// the error.
  package func prepare(_ stream: StreamInfo, threads: Int) {
    guard decoder == nil else { return }
    prepared = try? makeDecoder(stream, threads: threads)
  }

  /// Decodes up to the next frame.
  ///
  /// - Parameters:
  ///   - isFirst: True to decode the earliest frame from the fewest packets. Only for the first frame after
  ///     `begin()`.
  ///   - threads: The number of frame threads of a decoder that is opened.
  ///
  /// Throws `ReelError`, the source's error, or `CancellationError`.
  package func next(isFirst: Bool, threads: Int) throws -> Step {
    try next(threads: threads) { try isFirst ? $0.firstFrame() : $0.nextFrame() }
  }

  /// Decodes the next key frame by itself. Other packets are skipped (`VideoDecoder.keyFrame()`). The decoder
  /// is reused for the next span if that has the same coding.
  ///
  /// - Parameter isOnly: True to end the span if that key frame can't be decoded.
  ///
  /// Throws like `next(isFirst:threads:)`.
  package func nextKeyFrame(isOnly: Bool) throws -> Step {
    try next(threads: 1, keepsDecoder: true) { decoder in
      let step = try decoder.keyFrame(isOnly: isOnly)
      keyByteCount = decoder.keyByteCount
      return step
    }
  }

  /// Starts again at the position to which the source has moved.
  package func begin() throws(ReelError) {
    lastTime = nil
    fault = nil
    isSpanNew = true
    lastSpan = nil
    packets.begin()
    packets.account = nil
    try decoder?.reset()
  }

  /// Starts again at the same position, to which the source has returned, before any frame was returned. The
  /// decoder is closed.
  package func beginAgain() {
    fault = nil
    isSpanNew = true
    lastSpan = nil
    packets.begin()
  }

  /// Cancels the end: more packets follow.
  package func resume() { packets.resume() }

  /// Closes the decoder. The next one starts with the packet that the source returns next. Frames up to the
  /// last returned one are not returned again.
  package func close() {
    endDecoder()
    packets.endSpan()
  }

  private func endDecoder() {
    packets.account = nil
    closed.duration += decoder?.decodeDuration ?? .zero
    closed.damagedCount += decoder?.damagedCount ?? 0
    closed.failedKeyFrameCount += decoder?.failedKeyFrameCount ?? 0
    closed.rejectedPacketCount += decoder?.rejectedPacketCount ?? 0
    decoder = nil
  }

  /// Like `close()`, but returns the frames after `time` again, because the caller has dropped them.
  package func close(after time: MediaTime) {
    close()
    lastTime = time
  }

  // MARK: - Private

  /// - Parameter keepsDecoder: True if the next packets need nothing that was decoded before.
  private func next(
    threads: Int, keepsDecoder: Bool = false, _ decode: (VideoDecoder) throws -> Pulled<Frame>
  ) throws -> Step {
    guard let decoder = try openDecoder(threads: threads) else {
      return packets.hasEnded ? .end : .needsPacket
    }
    // Frames that are decoded alone leave out others.
    if packets.account == nil, !keepsDecoder { packets.account = FrameAccount(stream: decoder.stream) }
    switch try decode(decoder) {
    case .element(let frame):
      if let fault = decoder.keyFault { throw fault }
      frameCount += 1
      if let ticks = frame.presentationTicks {
        recordLoss(packets.account?.take(frameAt: ticks, lasting: frame.durationTicks))
      }
      guard let placed = placed(frame, of: decoder, isAlone: keepsDecoder) else { return .discarded }
      return .frame(placed)
    case .wait:
      return .needsPacket
    case .end:
      if lastTime == nil { fault = fault ?? decoder.takeFrameFault() }
      recordLoss(packets.account?.finish())
      if keepsDecoder { packets.endSpan() } else { close() }
      return try packets.confirmEnd() ? .end : .spanEnded
    }
  }

  /// Reports packets from which no frame could be decoded, unless the next span has that media too.
  private func recordLoss(_ loss: FrameAccount.Loss?) {
    hasLostStart = loss != nil && isSpanNew
    guard let loss, let span = packets.span, span.loop.iteration <= lastIteration else { return }
    let start = max(span.time(ticks: loss.ticks.lowerBound), lastTime ?? .zero)
    var end = span.time(ticks: loss.ticks.upperBound)
    if let resumption = packets.resumption { end = min(end, resumption) }
    if end > start { options.recordLoss(start..<end, span) }
  }

  /// Returns the decoder of the next packet's span; nil if there is no packet.
  private func openDecoder(threads: Int) throws -> VideoDecoder? {
    if let decoder, packets.span != nil { return decoder }
    isRefused = false
    guard let span = try packets.nextSpan() else { return nil }
    if let decoder {
      isSpanNew = true
      if span.stream.hasSameCoding(as: decoder.stream), decoder.options.threads == threads { return decoder }
      endDecoder()
    }
    guard options.mayOpen() else {
      isRefused = true
      return nil
    }
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
    decoding.decoders = options.decoders
    decoding.skipsDeblocking = options.shownSize.map { stream.isHalved(by: $0) } ?? false
    decoding.isCancelled = options.isCancelled
    return try VideoDecoder(
      stream: stream, source: packets, options: decoding, name: options.name, logger: options.logger)
  }

  /// Returns the frame with its time on the timeline; nil if it must not be shown.
  ///
  /// - Parameter isAlone: True for a key frame that stands for those after it. Nothing is cut then.
  private func placed(_ frame: Frame, of decoder: VideoDecoder, isAlone: Bool) -> VideoFrame? {
    guard let span = packets.span, span.loop.iteration <= lastIteration else { return nil }
    let ticks = frame.presentationTicks
    if isSpanNew, span !== lastSpan, span.setsOffset, packets.beganWithFirst, !hasLostStart, let ticks {
      span.offset.settle(firstFrame: decoder.stream.time(ticks: ticks))
    }
    lastSpan = span
    // The next span contains this frame and all later ones. In this span, frames before it may be missing.
    if let resumption = packets.resumption, let ticks, span.time(ticks: ticks) >= resumption { return nil }
    var time = ticks.map { span.time(ticks: $0) } ?? lastTime.map { $0 + lastDuration } ?? span.shift
    let shown = isAlone ? (start: nil, end: nil) : span.shown.withLock { $0 }
    if let end = shown.end, time - span.shift >= end { return nil }
    if let lastTime, time <= lastTime {
      // Decoded again, or decoded before from another rung. Within a span, a timestamp that does not rise is
      // an error.
      if isSpanNew || ticks == nil {
        repeatedCount += 1
        return nil
      }
      time = lastTime + lastDuration
    }
    var placed = VideoFrame(frame, time: time, stream: decoder.stream, frameRate: decoder.frameRate)
    placed.span = span
    if let start = shown.start, placed.time + placed.displayTime - span.shift <= start { return nil }
    isSpanNew = false
    if let end = shown.end { placed.displayLimit = end + span.shift - time }
    lastTime = time
    lastDuration = placed.displayTime
    hasTimestamps = ticks != nil
    return placed
  }
}

/// A source of a video track's packets, in decoding order.
package protocol PacketSource: AnyObject {
  /// Returns the next packet, without taking it.
  func peek() throws -> Pulled<MediaPacket>
  /// Takes the next packet. If it belongs to a span other than `span`, it stays, and the answer is `end`.
  func next(of span: StreamSpan?) throws -> Pulled<MediaPacket>
  /// Records that the last packet is decoded alone, so others may not be needed at all.
  func recordEnough()
}

extension PacketSource {
  package func recordEnough() {}
}

extension StreamInfo {
  /// True if frames of the stream are shown at half their size or less. False if the container does not state their size.
  fileprivate func isHalved(by limit: SizeLimit) -> Bool {
    guard let size else { return false }
    let natural = FrameGeometry(
      stored: size, sampleAspectRatio: sampleAspectRatio,
      orientation: Orientation(rotation: rotation, isMirrored: isMirrored)
    ).output
    let shown = limit.fitted(natural)
    return shown.width * 2 <= natural.width && shown.height * 2 <= natural.height
  }
}

/// Delivers the packets of consecutive spans to decoders.
private final class RunPackets: AccessUnitSource {
  /// The span of the current decoder.
  private(set) var span: StreamSpan?
  /// True if the source has no more packets.
  private(set) var hasEnded = false
  /// True if the first packet taken from the span is the span's first packet.
  private(set) var beganWithFirst = false
  /// The start of the next span on the current span's timeline. It may repeat the last frames.
  private(set) var resumption: MediaTime?
  /// The units whose frames are awaited; nil if not every unit is to give one.
  var account: FrameAccount?
  private var hasBegun = false
  private let source: any PacketSource

  init(_ source: any PacketSource) { self.source = source }

  func begin() {
    hasEnded = false
    hasBegun = false
    resumption = nil
  }

  /// Returns the span of the next packet; nil if there is none.
  func nextSpan() throws -> StreamSpan? {
    switch try source.peek() {
    case .element(let packet):
      span = packet.span
      return span
    case .wait:
      return nil
    case .end:
      hasEnded = true
      return nil
    }
  }

  func resume() { hasEnded = false }

  /// Returns whether the source still has no more packets. If the item loops, packets may have arrived while
  /// the decoder was being drained.
  func confirmEnd() throws -> Bool {
    if hasEnded, case .element = try source.peek() { hasEnded = false }
    return hasEnded
  }

  func endSpan() {
    span = nil
    hasBegun = false
    resumption = nil
  }

  func nextUnit() throws -> Pulled<Packet> {
    switch try source.next(of: span) {
    case .element(let packet):
      if !hasBegun { beganWithFirst = packet.isFirst }
      hasBegun = true
      // Frames of units without timestamps can't be told apart.
      if packet.unit.presentationTicks != nil {
        let ticks = packet.span.stream.ticks(of:)
        account?.feed(packet.unit, at: ticks(packet.mediaTime), lasting: ticks(packet.duration))
      }
      return .element(packet.unit)
    case .wait:
      return .wait
    case .end:
      switch try source.peek() {
      case .element(let next):
        resumption = span.flatMap { next.span.continuesTimeline(of: $0) ? next.time : nil }
        if let start = next.span.shown.withLock({ $0.start }) {
          resumption = resumption.map { max($0, start + next.span.shift) }
        }
      case .wait: break
      case .end: hasEnded = true
      }
      return .end
    }
  }

  func didOpen(_ opening: OpeningPicture) { if opening.canBeDecodedAlone { source.recordEnough() } }
}
