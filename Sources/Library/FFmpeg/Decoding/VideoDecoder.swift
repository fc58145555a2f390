package import Logging
package import ReelCore

/// The next input of a `VideoDecoder`.
package enum AccessUnit {
  case packet(SharedPacket)
  /// No unit is available yet; more may follow.
  case none
  /// No more units follow.
  case end
}

/// A source of the access units of one stream, in decoding order, for a `VideoDecoder`.
package protocol AccessUnitSource: AnyObject {
  func nextUnit() throws -> AccessUnit
  /// Called when decoding begins with the unit that was returned last.
  func didOpen(_ opening: OpeningPicture)
}

/// Turns the access units of one video stream into frames in presentation order.
///
/// `firstFrame()` returns the earliest frame with the fewest units: it does not wait until the decoder's
/// reorder delay has run out, but drains the decoder as soon as no later unit can contain an earlier frame. A
/// drained decoder has lost its references and would return wrong frames without any error, so its units are
/// kept and fed again before the next frame.
///
/// Neither call waits: if the source returns `none`, they return `needsUnit`, and continue from there when
/// they are called again.
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
    /// Opens the decoder.
    package var decoders: any DecoderMaking = LibavDecoders()
    /// H.264: true to leave out the deblocking of frames that are decoded alone, for frames that are shown
    /// much smaller. It takes a sixth of the time, and its absence shows at the edges of blocks.
    package var skipsDeblocking = false

    package init() {}
  }

  /// The result of a call.
  package enum Step: ~Copyable {
    case frame(Frame)
    /// The source has no unit yet. Call again when it has.
    case needsUnit
    /// The last frame was returned before.
    case end
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
  /// The units to be read before those of the source.
  private var pending: [SharedPacket] = []
  private var isFinished = false
  /// True while the decoder is drained before a new one continues with the pending unit.
  private var isRenewing = false
  /// The units to feed again to a decoder that was drained for a first frame and must be flushed before it
  /// continues.
  private var refeed: [SharedPacket]?
  /// The search for a first frame among several units.
  private var search: Search?
  /// True after a seek: units before the first random access point are dropped, because HEVC and MPEG frames
  /// would be decoded with missing references.
  private var awaitsRandomAccess = false
  /// The frames that come out again with the units of `refeed` and were returned before.
  private var skip = Skip.nothing

  private enum Skip {
    case nothing
    case oneFrame
    case through(Int64)
  }

  private struct Search {
    let opening: OpeningPicture
    var fed: [SharedPacket] = []
    var earliest: Int64?
  }

  /// The number of units kept for a first frame. A stream that has shown nothing by then is decoded in plain
  /// order.
  private static let maximumFirstUnits = 64
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
  package func firstFrame() throws -> Step {
    guard options.threads == 1 else { return try nextFrame() }
    while true {
      try checkCancelled()
      if search != nil { return try searchOn() }
      switch try nextUnit() {
      case .none:
        return .needsUnit
      case .end:
        return .end
      case .packet(let box):
        let opening = try open(with: box.packet)
        if awaitsRandomAccess {
          guard opening.isRandomAccess else { continue }
          awaitsRandomAccess = false
        }
        if opening.canBeDecodedAlone {
          try send(box, isAlone: true)
          if let frame = try drainedFrame(keeping: [box]) { return .frame(frame) }
        }
        pending.insert(box, at: 0)
        search = Search(opening: opening)
      }
    }
  }

  /// Returns the next frame in presentation order.
  package func nextFrame() throws -> Step {
    if let boxes = refeed {
      try resetDecoder()
      pending = boxes + pending
    }
    while true {
      switch try receive() {
      case .frame(let frame):
        if shouldSkip(frame) { continue }
        return .frame(count(frame))
      case .drained:
        guard isRenewing else { return .end }
        isRenewing = false
        try resetDecoder()
      case .needsInput:
        try checkCancelled()
        switch try nextUnit() {
        case .none:
          return .needsUnit
        case .end:
          finish()
        case .packet(let box) where needsRenewal(before: box.packet):
          pending.insert(box, at: 0)
          isRenewing = true
          finish()
        case .packet(let box):
          if opening == nil { _ = try open(with: box.packet) }
          if awaitsRandomAccess {
            guard try describe(box.packet).isRandomAccess else { continue }
            awaitsRandomAccess = false
          }
          try send(box)
        }
      }
    }
  }

  /// Returns the next frame that can be decoded from its own unit alone: other units are skipped, and nothing
  /// else is decoded. After it, only this method can be called, until `reset()`.
  ///
  /// In an H.264 stream with gradual refresh, it is the first complete frame after a recovery point, decoded
  /// together with the frames in between.
  ///
  /// - Parameter isOnly: True to return the end if the first key frame can't be decoded, instead of the next
  ///   one.
  package func keyFrame(isOnly: Bool = false) throws -> Step {
    if isFinished || refeed != nil || search != nil || frameCount > 0 { try resetDecoder() }
    isRenewing = false
    search = nil
    skip = .nothing
    awaitsRandomAccess = false
    while true {
      try checkCancelled()
      switch try nextUnit() {
      case .none: return .needsUnit
      case .end: return .end
      case .packet(let box):
        let opening = try open(with: box.packet)
        if !opening.hasPicture {
          failedKeyFrameCount += 1
          continue
        }
        guard opening.entry != .none, opening.isShown else { continue }
        keyByteCount = box.packet.byteCount
        try send(box, isAlone: !opening.isField && opening.recoveryFrameCount ?? 0 == 0)
        // The other field of the frame has a unit of its own.
        if opening.isField, case .packet(let other) = try nextUnit() {
          keyByteCount += other.packet.byteCount
          try send(other)
        }
        if let count = opening.recoveryFrameCount, count > 0, let frame = try refreshedFrame(after: count) {
          return .frame(self.count(frame))
        }
        finish()
        if case .frame(let frame) = try receive() { return .frame(count(frame)) }
        failedKeyFrameCount += 1
        try resetDecoder()
        if isOnly { return .end }
      }
    }
  }

  /// Discards all frames after a seek of the source. Its next unit must be at or before a random access
  /// point.
  package func reset() throws(ReelError) {
    try resetDecoder()
    pending = []
    isRenewing = false
    search = nil
    skip = .nothing
    awaitsRandomAccess = stream.videoCodec == .hevc || stream.videoCodec?.isMPEGVideo == true
  }

  // MARK: - Private

  private func nextUnit() throws -> AccessUnit {
    if !pending.isEmpty { return .packet(pending.removeFirst()) }
    return try source.nextUnit()
  }

  /// Returns the first frame at the end of a gradual refresh whose first unit was sent; nil if there is none.
  private func refreshedFrame(after count: Int) throws -> Frame? {
    // Non-reference frames are not counted, and the decoder may hold some back for their order.
    for number in 1...min(2 * count + 16, Self.maximumRefreshUnits) {
      try checkCancelled()
      guard case .packet(let box) = try nextUnit() else { return nil }
      keyByteCount += box.packet.byteCount
      try send(box)
      guard case .frame(var frame) = try receive(), number >= count else { continue }
      // Missing references from before the recovery point do not affect it.
      frame.isDamaged = frame.isFlaggedDamaged
      if !frame.isDamaged { return frame }
    }
    return nil
  }

  // MARK: First frame

  private func open(with packet: borrowing Packet) throws -> OpeningPicture {
    let frame = try describe(packet)
    opening = frame
    source.didOpen(frame)
    return frame
  }

  private func describe(_ packet: borrowing Packet) throws -> OpeningPicture {
    try OpeningPicture(packet, codec: stream.videoCodec, framing: framing, parameters: stream.parameters)
  }

  /// Drains the decoder and returns its first frame; `kept` will be fed again before the next one. If there
  /// is no frame, the decoder is reset.
  private func drainedFrame(keeping kept: [SharedPacket]) throws -> Frame? {
    finish()
    guard case .frame(let frame) = try receive() else {
      try resetDecoder()
      return nil
    }
    refeed = kept
    skip = frame.presentationTicks.map { .through($0) } ?? .oneFrame
    return count(frame)
  }

  /// Feeds units until no later one can contain an earlier frame than those fed so far, or until the decoder
  /// returns a frame by itself.
  private func searchOn() throws -> Step {
    while let search {
      try checkCancelled()
      let box: SharedPacket
      switch try nextUnit() {
      case .packet(let unit): box = unit
      case .none: return .needsUnit
      case .end:
        self.search = nil
        return try nextFrame()
      }
      if let earliest = search.earliest,
        try isLater(
          box.packet, than: earliest, opening: search.opening, fedCount: search.fed.count)
      {
        pending.insert(box, at: 0)
        self.search = nil
        if let frame = try drainedFrame(keeping: search.fed) { return .frame(frame) }
        pending = search.fed + pending
        break
      }
      self.search?.fed.append(box)
      if !box.packet.isDiscarded, let ticks = box.packet.presentationTicks {
        self.search?.earliest = min(search.earliest ?? ticks, ticks)
      }
      try send(box)
      if case .frame(let frame) = try receive() {
        self.search = nil
        return .frame(count(frame))
      }
      if search.fed.count + 1 >= Self.maximumFirstUnits { break }
    }
    // Nothing to show so far: continue in plain order.
    search = nil
    return try nextFrame()
  }

  /// Returns true if `packet` and all later ones come after `earliest` in presentation order.
  private func isLater(
    _ packet: borrowing Packet, than earliest: Int64, opening: OpeningPicture, fedCount: Int
  ) throws -> Bool {
    // An edit list excludes the first kind; the second is the other field of the first frame.
    if packet.isDiscarded || opening.isField && fedCount < 2 { return false }
    switch stream.videoCodec {
    case .hevc where opening.isRandomAccess && opening.isShown:
      // All leading pictures precede the first trailing one (ISO/IEC 23008-2 §8.3.1).
      return try !describe(packet).isLeading
    case .h264, .hevc:
      // A frame is never decoded after it is shown.
      return packet.decodingTicks.map { $0 >= earliest } ?? false
    default:
      // These decoders are never drained. AV1, VP8, VP9, H.263, MJPEG and ProRes return a frame with its own
      // unit, MPEG video returns it with the next I or P frame.
      return false
    }
  }

  // MARK: Decoder

  /// - Parameter isAlone: True if no other frame is decoded that refers to this one.
  private func send(_ box: SharedPacket, isAlone: Bool = false) throws {
    if options.skipsDeblocking, options.threads == 1, stream.videoCodec == .h264 {
      decoder.setSkipsDeblocking(isAlone)
    }
    keyTrust.record(box.packet, rejectedCount: decoder.rejectedPacketCount)
    // A decoder whose frames were all received is never full.
    try gated { try decoder.send(box) }
  }

  private func receive() throws -> Decoder.ReceiveResult {
    try gated { try decoder.receive() }
  }

  private func finish() {
    guard !isFinished else { return }
    isFinished = true
    decoder.finish()
  }

  private func resetDecoder() throws(ReelError) {
    refeed = nil
    isFinished = false
    try decoder.flush()
  }

  /// Returns true if `packet` needs a new decoder. After an error, an H.264 decoder may decode even an IDR
  /// picture wrongly, so a new decoder gets that unit, after all earlier frames have come out. (ffmpeg keeps
  /// the old decoder, and its output is wrong.)
  private func needsRenewal(before packet: borrowing Packet) -> Bool {
    guard stream.videoCodec == .h264, !isRenewing, decoder.hasReportedError else { return false }
    return packet.withBytes { bytes in
      var isIDR = false
      bytes.forEachNALUnit(framing: framing) { unit in
        guard let header = NALUnitHeader(codec: .h264, bytes: unit), header.isPictureSlice else {
          return true
        }
        isIDR = header.isIDR
        return false
      }
      return isIDR
    }
  }

  private func count(_ frame: consuming Frame) -> Frame {
    if frame.isDamaged { damagedCount += 1 }
    keyTrust.record(frame, rejectedCount: decoder.rejectedPacketCount)
    frameCount += 1
    frameByteCount = frame.byteCount
    return frame
  }

  private func shouldSkip(_ frame: borrowing Frame) -> Bool {
    switch skip {
    case .nothing:
      return false
    case .oneFrame:
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
