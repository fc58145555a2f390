package import Logging
package import ReelCore

/// What a `VideoDecoder` is given next.
package enum AccessUnit {
  case packet(SharedPacket)
  /// Nothing yet: there may be more later.
  case none
  /// Nothing more will come.
  case end
}

/// Where a `VideoDecoder` gets the access units of one stream, in decoding order.
package protocol AccessUnitSource: AnyObject {
  func nextUnit() throws -> AccessUnit
  /// The unit that was given last is the one that decoding begins with.
  func didOpen(_ opening: OpeningPicture)
}

/// Turns the access units of one video stream into frames in presentation order, wherever they come from.
///
/// `firstFrame()` gives the earliest frame for the fewest units: it does not wait until the decoder's reorder
/// delay has run out, but drains the decoder as soon as no later unit can hold an earlier frame. A decoder that was
/// drained has lost its references and would give wrong frames without any error, so its units are kept and fed again
/// before the next frame.
///
/// Neither call waits: where the source has `none`, they say `needsUnit`, and go on from there when they are called
/// again.
///
/// Confined to one thread at a time.
package final class VideoDecoder {
  package struct Options: Sendable {
    /// Frame threads. With more than one, the first frame waits for their pipeline.
    package var threads = 1
    /// Asked between units; true ends the work with `CancellationError`.
    package var isCancelled: @Sendable () -> Bool = { false }
    package var gate: (any DecodingGate)?
    /// What decoding is measured by.
    package var clock: any MonotonicClock = SystemMonotonicClock()
    /// Opens the decoder.
    package var decoders: any DecoderMaking = LibavDecoders()
    /// H.264: leaves out the deblocking of frames that are decoded alone, for those that are shown much smaller. It takes
    /// a sixth of the time, and its absence shows at the edges of blocks.
    package var skipsDeblocking = false

    package init() {}
  }

  /// What a call has given.
  package enum Step: ~Copyable {
    case frame(Frame)
    /// The source has nothing yet: to be called again when it has.
    case needsUnit
    /// The last frame was given before.
    case end
  }

  /// The stream whose frames are decoded.
  package let stream: StreamInfo
  /// How the stream begins; nil before its first unit was read.
  package private(set) var opening: OpeningPicture?
  /// Frames given that missed a reference or were concealed.
  package private(set) var damagedCount = 0
  /// The number of units that `keyFrame()` took for key frames and that gave no frame, and of those without any picture.
  package private(set) var failedKeyFrameCount = 0
  /// The bytes of the units that `keyFrame()` decoded for its last frame.
  package private(set) var keyByteCount = 0
  /// Frames given.
  package private(set) var frameCount = 0
  /// Time spent in the decoder.
  package private(set) var decodeDuration: Duration = .zero

  /// Of the last frame that was given.
  private var frameByteCount = 0
  private let source: any AccessUnitSource
  private let decoder: any FrameDecoding
  package let options: Options
  private let framing: NALFraming
  private var keyTrust = KeyTrust()
  /// Units to be read before those of the source.
  private var pending: [SharedPacket] = []
  private var isFinished = false
  /// The decoder is being drained, and a new one will continue with the pending unit.
  private var isRenewing = false
  /// The decoder was drained for a first frame: it is flushed, and gets these units again, before it goes on.
  private var refeed: [SharedPacket]?
  /// A first frame that is looked for among several units.
  private var search: Search?
  /// After a seek, units before the first random access point are dropped. HEVC and MPEG frames would otherwise be
  /// decoded there with missing references.
  private var awaitsRandomAccess = false
  /// Frames that come again with them and have been given.
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

  /// A stream that has shown nothing after so many units is decoded on without keeping them.
  private static let maximumFirstUnits = 64
  /// The most units of a gradual refresh: ten seconds at 30 frames per second.
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

  /// What the decoder knows of the stream so far.
  package var facts: DecoderFacts {
    var facts = decoder.facts
    facts.frameByteCount = frameByteCount
    return facts
  }
  /// The container's average frame rate where it has one, else the bitstream's.
  package var frameRate: Rational? { stream.averageFrameRate ?? facts.frameRate }
  /// Units that the decoder refused as invalid.
  package var rejectedPacketCount: Int { decoder.rejectedPacketCount }

  /// The error for frames of a size that is refused; nil where that is not what is wrong.
  package var sizeFault: ReelError? { decoder.sizeFault }
  /// Set if the first frame that was encrypted came out damaged: either the key is wrong, or the media is damaged.
  package var keyFault: ReelError? { keyTrust.fault }

  /// Returns why a stream has given no frame; nil if that is not known. An error of the decoder is returned only once.
  package func takeFrameFault() -> ReelError? {
    if let sizeFault { return sizeFault }
    return decoder.takeLastError().map { line in
      let detail = LogScope.givesReason(line) ? ": \(line)" : ""
      return ReelError(.badMedia, "no frame could be decoded\(detail)", advice: keyTrust.adviceWithoutFrame)
    }
  }

  /// The earliest frame in presentation order, as soon as it can be known. To be called before any other frame is
  /// asked for, or after `reset()`, until it gives a frame or the end.
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

  /// The next frame in presentation order.
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

  /// The next frame that can be decoded by itself, from its own unit alone: other units are skipped, and nothing else
  /// is decoded. No other frame can be asked for after it, except by another call or after `reset()`.
  ///
  /// Where an H.264 stream is refreshed gradually, it is the first whole frame after a recovery point, decoded with those
  /// between.
  ///
  /// - Parameter isOnly: Gives the end if the first key frame can't be decoded, instead of the next one.
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

  /// Forgets all frames, after the source has gone to another place: what it gives next is one that decoding can
  /// start at, or before one.
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

  /// The first frame at the end of a gradual refresh, of which the first unit was sent. Nil if there is none.
  private func refreshedFrame(after count: Int) throws -> Frame? {
    // Frames that are no references are not counted, and the decoder may hold some back for their order.
    for number in 1...min(2 * count + 16, Self.maximumRefreshUnits) {
      try checkCancelled()
      guard case .packet(let box) = try nextUnit() else { return nil }
      keyByteCount += box.packet.byteCount
      try send(box)
      guard case .frame(var frame) = try receive(), number >= count else { continue }
      // The references that are missing before the recovery point have no part in it.
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

  /// Drains the decoder and gives its first frame; `kept` will be fed again before the next one. Where there is no
  /// frame the decoder is as new.
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

  /// Feeds units until no later one can hold an earlier frame than those that were fed, or until the decoder gives
  /// one by itself.
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
    // Nothing to show so far: on in plain order.
    search = nil
    return try nextFrame()
  }

  /// True where `packet` and all after it come later in presentation order than `earliest`.
  private func isLater(
    _ packet: borrowing Packet, than earliest: Int64, opening: OpeningPicture, fedCount: Int
  ) throws -> Bool {
    // An edit list leaves the first kind out; the second is the other field of the first frame.
    if packet.isDiscarded || opening.isField && fedCount < 2 { return false }
    switch stream.videoCodec {
    case .hevc where opening.isRandomAccess && opening.isShown:
      // All leading pictures stand before the first trailing one (ISO/IEC 23008-2 §8.3.1).
      return try !describe(packet).isLeading
    case .h264, .hevc:
      // A frame is never decoded after it is shown.
      return packet.decodingTicks.map { $0 >= earliest } ?? false
    default:
      // These decoders are never drained. AV1, VP8, VP9, H.263, MJPEG and ProRes give a frame with its own unit, MPEG
      // video gives it with the next I or P frame.
      return false
    }
  }

  // MARK: Decoder

  /// - Parameter isAlone: No other frame is decoded that refers to this one.
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

  /// Makes the decoder as new.
  private func resetDecoder() throws(ReelError) {
    refeed = nil
    isFinished = false
    try decoder.flush()
  }

  /// True if `packet` needs a new decoder. After an error, an H.264 decoder may decode even an IDR picture wrongly,
  /// so a new decoder gets that frame, after all earlier frames have come out. (ffmpeg keeps the old decoder, and its
  /// output is wrong.)
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
