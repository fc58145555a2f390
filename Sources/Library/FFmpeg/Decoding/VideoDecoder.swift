package import Logging
package import ReelCore

/// A source of the access units of one stream, in decoding order, for a `VideoDecoder`.
package protocol AccessUnitSource: AnyObject {
  func nextUnit() throws -> Pulled<Packet>
  /// Called when decoding begins with the unit that was returned last.
  func didOpen(_ opening: OpeningPicture)
}

/// Turns the access units of one video stream into frames in presentation order.
///
/// - `firstFrame()` returns the earliest frame with the fewest units: it does not wait until the decoder's
///   reorder delay has run out, but drains the decoder as soon as no later unit can contain an earlier frame
///   (`FirstFrameSearch`). A drained decoder has lost its references and would return wrong frames without any
///   error, so its units are kept and fed again before the next frame.
/// - `nextFrame()` returns the frames after it.
/// - `keyFrame()` returns frames that are decoded alone. After it, only `keyFrame()` can be called, until
///   `reset()`.
/// - `reset()` follows a seek of the source. Its next unit must be at or before a random access point.
///
/// No call waits: if the source does, the call returns `wait`, and the next call continues from there. If a call
/// throws `CancellationError`, no unit is lost either. After `end`, `reset()` is needed before more units.
///
/// Confined to one thread at a time.
package final class VideoDecoder {
  package struct Options: Sendable {
    /// The number of frame threads. With more than one, the first frame waits for their pipeline.
    package var threads = 1
    /// Checked between units; true ends the work with `CancellationError`.
    package var isCancelled: @Sendable () -> Bool = { false }
    package var gate: (any DecodingGate)?
    /// The clock that measures decoding times.
    package var clock: any MonotonicClock = SystemMonotonicClock()
    package var decoders: any DecoderMaking = LibavDecoders()
    /// H.264: true to leave out the deblocking of frames that are decoded alone, for frames that are shown
    /// much smaller. It takes a sixth of the time, and its absence shows at the edges of blocks.
    package var skipsDeblocking = false

    package init() {}
  }

  /// The state of decoding: the units that were sent, and what the decoder returns next.
  private enum Phase {
    /// Nothing was sent since the decoder was opened or flushed.
    case fresh
    /// Like `fresh`, after a seek in HEVC or MPEG video, whose frames would be decoded with missing references:
    /// units before the first random access point are dropped.
    case aligning
    /// No frame has come out yet, and a unit that was not sent may contain an earlier one.
    case searching(FirstFrameSearch)
    /// The first frame came out because the decoder was drained. Before the next frame, it is flushed and gets
    /// these units again.
    case drained(again: [Packet])
    /// Units go in, and frames come out.
    case running
    /// H.264 after an error: the decoder is drained, and a new one goes on with the IDR picture in `unread`.
    case renewing
    /// The decoder is drained: no unit follows, or a key frame was decoded alone.
    case ended
  }

  /// The frames that come out again after a drain.
  private enum Repeated {
    /// The next one. It has no time.
    case one
    /// Those up to this time.
    case through(Int64)
  }

  /// The stream whose frames are decoded.
  package let stream: StreamInfo
  /// The first access unit of the stream; nil before it was read.
  package private(set) var opening: OpeningPicture?
  /// The number of returned frames that missed a reference or were concealed.
  package private(set) var damagedCount = 0
  /// The number of units that `keyFrame()` took for key frames and that gave no frame, and of units without
  /// any picture.
  package private(set) var failedKeyFrameCount = 0
  /// The number of bytes of the units that `keyFrame()` decoded for its last frame.
  package private(set) var keyByteCount = 0
  /// The number of returned frames.
  package private(set) var frameCount = 0
  /// The time spent in the decoder.
  package private(set) var decodeDuration: Duration = .zero

  /// The size in bytes of the last frame that was returned.
  private var frameByteCount = 0
  private let source: any AccessUnitSource
  private let decoder: any FrameDecoding
  package let options: Options
  private let framing: NALFraming
  private var keyTrust = KeyTrust()
  private var phase = Phase.fresh
  /// The units to be read before those of the source.
  private var unread: [Packet] = []
  /// The frames to be left out.
  private var repeated: Repeated?

  /// The maximum number of units of a gradual refresh: ten seconds at 30 frames per second.
  private static let maximumRefreshUnits = 300

  /// Opens a decoder. Throws `ReelError.unsupported` for a codec that is not on the allow list.
  package init(
    stream: StreamInfo, source: any AccessUnitSource, options: Options = Options(), name: String,
    logger: Logger
  ) throws(ReelError) {
    self.stream = stream
    self.source = source
    self.options = options
    framing = stream.nalFraming
    options.gate?.acquire()
    let start = options.clock.now
    do throws(ReelError) {
      decoder = try options.decoders.makeDecoder(
        of: stream, threads: options.threads, name: name, logger: logger)
    } catch {
      options.gate?.release()
      throw error
    }
    options.gate?.release()
    decodeDuration = options.clock.now - start
  }

  /// The decoder's information about the stream so far.
  package var facts: DecoderFacts {
    var facts = decoder.facts
    facts.frameByteCount = frameByteCount
    return facts
  }
  /// The container's average frame rate if it states one, otherwise the bitstream's.
  package var frameRate: Rational? { stream.averageFrameRate ?? facts.frameRate }
  /// The number of units that the decoder rejected as invalid.
  package var rejectedPacketCount: Int { decoder.rejectedPacketCount }

  /// The error for frames that exceed the size limit; nil if that is not the cause.
  package var sizeFault: ReelError? { decoder.sizeFault }
  /// Set if the first encrypted frame was damaged: either the key is wrong, or the media is damaged.
  package var keyFault: ReelError? { keyTrust.fault }

  /// Returns why a stream has given no frame; nil if unknown. An error of the decoder is returned only once.
  package func takeFrameFault() -> ReelError? {
    if let sizeFault { return sizeFault }
    return decoder.takeLastError().map { line in
      let detail = LogScope.givesReason(line) ? ": \(line)" : ""
      return ReelError(.badMedia, "no frame could be decoded\(detail)", advice: keyTrust.adviceWithoutFrame)
    }
  }

  /// Returns the earliest frame in presentation order, as soon as it is known. Call it before requesting any
  /// other frame, or after `reset()`, until it returns a frame or the end.
  package func firstFrame() throws -> Pulled<Frame> {
    guard options.threads == 1 else { return try nextFrame() }
    switch phase {
    case .fresh, .aligning:
      switch try nextUnit() {
      case .wait: return .wait
      case .end: return .end
      case .element(let unit):
        let opening = open(with: unit)
        if opening.canBeDecodedAlone {
          try send(unit, isAlone: true)
          if let frame = try drainedFrame(again: [unit]) { return .element(frame) }
        }
        unread.insert(unit, at: 0)
        phase = .searching(FirstFrameSearch(opening, codec: stream.videoCodec))
        return try search()
      }
    case .searching:
      return try search()
    case .drained, .running, .renewing, .ended:
      return try nextFrame()
    }
  }

  /// Returns the next frame in presentation order.
  package func nextFrame() throws -> Pulled<Frame> {
    if case .drained(let again) = phase {
      try flush()
      unread = again + unread
    }
    while true {
      switch try receive() {
      case .element(let frame):
        if leavesOut(frame) { continue }
        return .element(count(frame))
      case .end:
        guard case .renewing = phase else { return .end }
        try flush()
      case .wait:
        switch try nextUnit() {
        case .wait:
          return .wait
        case .end:
          phase = .ended
          decoder.finish()
        case .element(let unit) where needsRenewal(before: unit):
          unread.insert(unit, at: 0)
          phase = .renewing
          decoder.finish()
        case .element(let unit):
          phase = .running
          if opening == nil { _ = open(with: unit) }
          try send(unit)
        }
      }
    }
  }

  /// Returns the next frame that can be decoded from its own unit alone: other units are skipped, and nothing
  /// else is decoded.
  ///
  /// In an H.264 stream with gradual refresh, it is the first complete frame after a recovery point, decoded
  /// together with the frames in between.
  ///
  /// - Parameter isOnly: True to return the end if the first key frame can't be decoded, instead of the next
  ///   one.
  package func keyFrame(isOnly: Bool = false) throws -> Pulled<Frame> {
    switch phase {
    case .fresh: break
    case .aligning: phase = .fresh
    case .searching, .drained, .running, .renewing, .ended: try flush()
    }
    repeated = nil
    while true {
      switch try nextUnit() {
      case .wait: return .wait
      case .end: return .end
      case .element(let unit):
        let opening = open(with: unit)
        if !opening.hasPicture {
          failedKeyFrameCount += 1
          continue
        }
        guard opening.entry != .none, opening.isShown else { continue }
        phase = .ended
        if let frame = try keyFrame(of: unit, opening) { return .element(count(frame)) }
        failedKeyFrameCount += 1
        try flush()
        if isOnly { return .end }
      }
    }
  }

  /// Discards all frames after a seek of the source. Its next unit must be at or before a random access
  /// point.
  package func reset() throws(ReelError) {
    try flush()
    unread = []
    repeated = nil
    if stream.videoCodec == .hevc || stream.videoCodec?.isMPEGVideo == true { phase = .aligning }
  }

  // MARK: - Private

  private func nextUnit() throws -> Pulled<Packet> {
    while true {
      if options.isCancelled() { throw CancellationError() }
      let next = unread.isEmpty ? try source.nextUnit() : .element(unread.removeFirst())
      guard case .aligning = phase, case .element(let unit) = next else { return next }
      guard describe(unit).isRandomAccess else { continue }
      phase = .fresh
      return next
    }
  }

  private func open(with packet: Packet) -> OpeningPicture {
    let opening = describe(packet)
    self.opening = opening
    source.didOpen(opening)
    return opening
  }

  private func describe(_ packet: Packet) -> OpeningPicture {
    OpeningPicture(packet, codec: stream.videoCodec, framing: framing)
  }

  // MARK: First frame

  /// Sends units until the first frame is known, or until the decoder returns it by itself. If there is none, the
  /// stream is decoded in plain order.
  private func search() throws -> Pulled<Frame> {
    while case .searching(var search) = phase {
      let unit: Packet
      switch try nextUnit() {
      case .element(let next): unit = next
      case .wait: return .wait
      case .end:
        phase = .running
        return try nextFrame()
      }
      // The search has one owner while it is changed. If it ends, decoding goes on.
      phase = .running
      if search.isKnown(before: unit, framing: framing) {
        unread.insert(unit, at: 0)
        if let frame = try drainedFrame(again: search.fed) { return .element(frame) }
        unread = search.fed + unread
        break
      }
      search.record(unit)
      try send(unit)
      if case .element(let frame) = try receive() { return .element(count(frame)) }
      if !search.isExhausted { phase = .searching(search) }
    }
    return try nextFrame()
  }

  /// Drains the decoder and returns its first frame; the units of `again` will be fed again before the next one.
  /// If there is no frame, the decoder is flushed.
  private func drainedFrame(again: [Packet]) throws -> Frame? {
    decoder.finish()
    guard case .element(let frame) = try receive() else {
      try flush()
      return nil
    }
    phase = .drained(again: again)
    repeated = frame.presentationTicks.map { .through($0) } ?? .one
    return count(frame)
  }

  // MARK: Key frames

  /// Returns the frame that begins with this unit, decoded alone; nil if it can't be decoded.
  private func keyFrame(of unit: Packet, _ opening: OpeningPicture) throws -> Frame? {
    let refreshCount = opening.recoveryFrameCount ?? 0
    keyByteCount = unit.byteCount
    try send(unit, isAlone: refreshCount == 0)
    if refreshCount > 0, let frame = try refreshedFrame(after: refreshCount) { return frame }
    decoder.finish()
    guard case .element(let frame) = try receive() else { return nil }
    return frame
  }

  /// Returns the first frame at the end of a gradual refresh whose first unit was sent; nil if there is none.
  private func refreshedFrame(after count: Int) throws -> Frame? {
    // Non-reference frames are not counted, and the decoder may hold some back for their order.
    for number in 1...min(2 * count + 16, Self.maximumRefreshUnits) {
      guard case .element(let unit) = try nextUnit() else { return nil }
      keyByteCount += unit.byteCount
      try send(unit)
      guard case .element(let frame) = try receive(), number >= count else { continue }
      // Missing references from before the recovery point do not affect it.
      frame.isDamaged = frame.isFlaggedDamaged
      if !frame.isDamaged { return frame }
    }
    return nil
  }

  // MARK: Decoder

  /// - Parameter isAlone: True if no other frame is decoded that refers to this one.
  private func send(_ unit: Packet, isAlone: Bool = false) throws {
    if options.skipsDeblocking, options.threads == 1, stream.videoCodec == .h264 {
      decoder.setSkipsDeblocking(isAlone)
    }
    keyTrust.record(unit, rejectedCount: decoder.rejectedPacketCount)
    // A decoder whose frames were all received is never full.
    try gated { try decoder.send(unit) }
  }

  private func receive() throws -> Pulled<Frame> {
    try gated { try decoder.receive() }
  }

  private func flush() throws(ReelError) {
    try decoder.flush()
    phase = .fresh
  }

  /// Returns true if `packet` needs a new decoder. After an error, an H.264 decoder may decode even an IDR
  /// picture wrongly, so a new decoder gets that unit, after all earlier frames have come out. (ffmpeg keeps
  /// the old decoder, and its output is wrong.)
  private func needsRenewal(before packet: Packet) -> Bool {
    stream.videoCodec == .h264 && decoder.hasReportedError
      && packet.firstSlice(codec: .h264, framing: framing)?.isIDR == true
  }

  private func count(_ frame: Frame) -> Frame {
    if frame.isDamaged { damagedCount += 1 }
    keyTrust.record(frame, rejectedCount: decoder.rejectedPacketCount)
    frameCount += 1
    frameByteCount = frame.byteCount
    return frame
  }

  /// Returns true if the frame was returned before.
  private func leavesOut(_ frame: Frame) -> Bool {
    switch repeated {
    case nil:
      return false
    case .one:
      repeated = nil
      return true
    case .through(let ticks):
      guard let own = frame.presentationTicks, own > ticks else { return true }
      repeated = nil
      return false
    }
  }

  private func gated<Result: ~Copyable>(_ body: () throws -> Result) rethrows -> Result {
    options.gate?.acquire()
    let start = options.clock.now
    defer {
      decodeDuration += options.clock.now - start
      options.gate?.release()
    }
    return try body()
  }
}
