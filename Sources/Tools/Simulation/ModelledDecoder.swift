internal import DequeModule
package import Logging
package import ReelCore
package import ReelFFmpeg
internal import ReelPlayback
internal import ReelPool
internal import ReelSources

/// Opens the decoders of a simulation. Opening one and decoding a frame take the time that they would take on
/// the modelled device.
///
/// For H.264, HEVC, AV1, Motion JPEG and ProRes, two frames are decoded after each start: when the decoder is
/// opened or flushed, and at a key frame with other parameter sets. All other frames are only times, with
/// references to the pixels of the last decoded frame. A packet goes in, and once more packets wait than the
/// reorder depth, the earliest comes out, as in libavcodec. Damage in such frames is not detected.
///
/// All frames are decoded for other codecs, for interlaced H.264, where a packet may be half a frame, for
/// streams without timestamps, and after an error.
package struct ModelledDecoders: DecoderMaking {
  let cost: DecodeCost
  let starts: DecodedStarts
  private let simulation: SimulatedRuntime
  /// True if frames that an edit list hides cost nothing.
  package var leavesOutHiddenFrames = false
  /// Called with the part of the simulated time that a decoder was busy.
  package var onUse: (@Sendable (Range<Duration>) -> Void)?

  /// - Parameter starts: The store of decoded frames, for this and other simulations.
  package init(
    cost: DecodeCost = DecodeCost(), starts: DecodedStarts = DecodedStarts(), in simulation: SimulatedRuntime
  ) {
    self.cost = cost
    self.starts = starts
    self.simulation = simulation
  }

  package func makeDecoder(
    of stream: StreamInfo, threads: Int, name: String, logger: Logger
  ) throws(ReelError) -> any FrameDecoding {
    defer { spend(cost.opening) }
    return try ModelledDecoder(stream, threads: threads, name: name, logger: logger, model: self)
  }

  /// Blocks the calling body for a time of the simulation.
  func spend(_ duration: Duration) {
    guard duration > .zero else { return }
    onUse?(simulation.now..<simulation.now + duration)
    let signal = simulation.makeSemaphore()
    simulation.schedule(at: simulation.now + duration) { signal.signal() }
    signal.wait()
  }
}

/// A decoder created by `ModelledDecoders`.
private final class ModelledDecoder: FrameDecoding {
  private enum Step {
    case packet(Packet)
    case finish
  }

  private struct Output {
    let pixels: Frame
    /// The packet with the frame's times; nil for a frame with its own.
    let packet: Packet?
    let isDecoded: Bool
  }

  private let stream: StreamInfo
  private let threads: Int
  private let name: String
  private let logger: Logger
  private let model: ModelledDecoders
  private(set) var facts: DecoderFacts

  /// libavcodec's decoder; nil if it was not needed since the start.
  private var real: Decoder?
  /// The steps since the start that it has not performed, because their outcome was known.
  private var undone: [Step] = []
  /// The hash of all steps since the start.
  private var content = Hasher()
  /// True if all frames are decoded.
  private var decodesAll: Bool
  /// True while frames are only times.
  private var isModelling = false
  /// The number of decoded frames that were received since the start.
  private var decodedCount = 0
  /// The packets whose frames have not come out.
  private var waiting: [Packet] = []
  private var outputs: Deque<Output> = []
  /// The pixels of the last decoded frame.
  private var pixels: Frame?
  /// The time of the last frame that came out.
  private var lastTicks = Int64.min
  private var parameterSets: [UInt8] = []
  private var isFinished = false

  /// The number of frames that are decoded after a start.
  private static let decodedCount = 2

  init(
    _ stream: StreamInfo, threads: Int, name: String, logger: Logger, model: ModelledDecoders
  ) throws(ReelError) {
    self.stream = stream
    self.threads = threads
    self.name = name
    self.logger = logger
    self.model = model
    decodesAll =
      switch stream.videoCodec {
      case .h264, .hevc, .av1, .mjpeg, .prores: threads > 1
      default: true
      }
    stream.hashCoding(into: &content)
    let key = content.finalize()
    if !decodesAll, let known = model.starts.outcome(of: key) {
      facts = known.facts
    } else {
      // A stream that can't be decoded fails here.
      let made = try Decoder(stream: stream, threads: threads, name: name, logger: logger)
      real = made
      facts = made.facts
      model.starts.insert(DecodedStarts.Outcome(frames: [], facts: made.facts), of: key)
    }
  }

  var rejectedPacketCount: Int { real?.rejectedPacketCount ?? 0 }
  var hasReportedError: Bool { real?.hasReportedError ?? false }
  var sizeFault: ReelError? { real?.sizeFault }
  func takeLastError() -> String? { real?.takeLastError() }
  func setSkipsDeblocking(_ skips: Bool) { real?.setSkipsDeblocking(skips) }

  func send(_ packet: Packet) throws(ReelError) {
    defer {
      if !model.leavesOutHiddenFrames || !packet.isDiscarded {
        let pixelCount = facts.pixelCount ?? stream.size.map { $0.width * $0.height } ?? 0
        model.spend(model.cost.duration(of: stream.videoCodec, pixelCount: pixelCount))
      }
    }
    if !decodesAll { settle(before: packet) }
    if !decodesAll { waiting.append(packet) }
    guard isModelling else { return try decode(.packet(packet)) }
    if waiting.count > facts.reorderDepth { putOutEarliest() }
  }

  func finish() {
    guard !isFinished else { return }
    isFinished = true
    if isModelling {
      putOutAll()
    } else {
      // Draining can fail only for a reason that has been reported before.
      try? decode(.finish)
    }
  }

  func receive() throws(ReelError) -> Pulled<Frame> {
    guard let next = outputs.popFirst() else { return isFinished ? .end : .wait }
    if next.isDecoded { decodedCount += 1 }
    guard let packet = next.packet else { return .element(next.pixels) }
    return .element(try next.pixels.retimed(by: packet))
  }

  func flush() throws(ReelError) {
    outputs = []
    waiting = []
    isFinished = false
    if decodesAll, let real { return try real.flush() }
    start()
  }

  // MARK: - Private

  private func start() {
    real = nil
    undone = []
    content = Hasher()
    stream.hashCoding(into: &content)
    isModelling = false
    decodedCount = 0
    lastTicks = .min
  }

  /// Decides whether the next packets are decoded.
  private func settle(before packet: Packet) {
    if !isModelling, packet.presentationTicks == nil {
      decodesAll = true
      waiting = []
      return
    }
    if !isModelling, decodedCount >= Self.decodedCount {
      isModelling = true
      real = nil
      undone = []
      // Earlier packets have not produced a frame, and won't.
      let lastTicks = lastTicks
      waiting.removeAll { $0.presentationTicks ?? .max < lastTicks }
    }
    let sets = stream.sequenceParameterSets(openedBy: packet)
    guard !sets.isEmpty, sets != parameterSets else { return }
    parameterSets = sets
    guard isModelling else { return }
    putOutAll()
    start()
  }

  // MARK: Frames that are times

  private func putOutEarliest() {
    var first = 0
    for (place, packet) in waiting.enumerated()
    where packet.presentationTicks ?? .max < waiting[first].presentationTicks ?? .max {
      first = place
    }
    let packet = waiting.remove(at: first)
    guard let pixels, !packet.isDiscarded else { return }
    outputs.append(Output(pixels: pixels, packet: packet, isDecoded: false))
  }

  private func putOutAll() {
    while !waiting.isEmpty { putOutEarliest() }
  }

  // MARK: Frames that are decoded

  /// Performs a step with the real decoder, unless its outcome is known.
  private func decode(_ step: Step) throws(ReelError) {
    undone.append(step)
    var key: Int?
    if !decodesAll {
      switch step {
      case .packet(let packet): packet.hash(into: &content)
      case .finish: content.combine(0)
      }
      key = content.finalize()
      if let key, let known = model.starts.outcome(of: key) {
        facts = known.facts
        for frame in known.frames { putOut(frame.pixels, of: waiting.remove(at: frame.place)) }
        return
      }
    }
    let real: Decoder
    if let known = self.real {
      real = known
    } else {
      real = try Decoder(stream: stream, threads: threads, name: name, logger: logger)
      self.real = real
    }
    let steps = undone
    undone = []
    var frames: [Frame] = []
    // The output of the earlier ones has already been returned.
    for step in steps { frames = try perform(step, with: real) }
    facts = real.facts
    if real.hasReportedError || real.rejectedPacketCount > 0 { decodesAll = true }
    var known = DecodedStarts.Outcome(frames: [], facts: facts)
    for pixels in frames {
      let place = decodesAll ? nil : place(of: pixels)
      guard let place else {
        decodesAll = true
        outputs.append(Output(pixels: pixels, packet: nil, isDecoded: true))
        continue
      }
      known.frames.append((place, pixels))
      putOut(pixels, of: waiting.remove(at: place))
    }
    if decodesAll {
      waiting = []
    } else if let key {
      model.starts.insert(known, of: key)
    }
  }

  /// Returns the index of the frame's waiting packet; nil if there is none, or if a packet may be half a
  /// frame.
  private func place(of frame: Frame) -> Int? {
    guard !(stream.videoCodec == .h264 && frame.isInterlaced), let ticks = frame.presentationTicks else {
      return nil
    }
    return waiting.firstIndex { $0.presentationTicks == ticks }
  }

  private func putOut(_ pixels: Frame, of packet: Packet) {
    self.pixels = pixels
    lastTicks = packet.presentationTicks ?? lastTicks
    outputs.append(Output(pixels: pixels, packet: packet, isDecoded: true))
  }

  private func perform(_ step: Step, with decoder: Decoder) throws(ReelError) -> [Frame] {
    switch step {
    case .packet(let packet): try decoder.send(packet)
    case .finish: decoder.finish()
    }
    var frames: [Frame] = []
    while case .element(let frame) = try decoder.receive() { frames.append(frame) }
    return frames
  }
}

/// The frames that were decoded after starts, so that simulations decode nothing twice (`ModelledDecoders`).
///
/// The key of an entry is a hash of the codec parameters and of all packets that the decoder has received
/// since its start, so the origin of the packets does not matter. May be shared by concurrent simulations: it
/// changes only their cost.
package final class DecodedStarts: Sendable {
  /// The result of a decoder's step.
  struct Outcome: Sendable {
    /// The frames that came out, each with the index of its packet among the waiting ones.
    var frames: [(place: Int, pixels: Frame)]
    var facts: DecoderFacts
  }

  private struct State {
    var outcomes: [Int: Outcome] = [:]
    var byteCount = 0
  }

  private let byteLimit: Int
  private let state = Locked(State())

  /// - Parameter byteLimit: The maximum number of bytes of frames. Beyond it, all are dropped. 512 MiB by
  ///   default.
  package init(byteLimit: Int = 512 << 20) { self.byteLimit = byteLimit }

  /// The number of bytes of the frames that are kept.
  package var byteCount: Int { state.withLock { $0.byteCount } }

  func outcome(of key: Int) -> Outcome? { state.withLock { $0.outcomes[key] } }

  func insert(_ outcome: Outcome, of key: Int) {
    // An entry without frames counts a little, so that their number is limited too.
    let byteCount = outcome.frames.reduce(512) { $0 + $1.pixels.byteCount }
    // Free dropped frames after releasing the lock.
    let dropped = state.withLock { state in
      var dropped = State()
      if state.byteCount + byteCount > byteLimit { swap(&state, &dropped) }
      if state.outcomes.updateValue(outcome, forKey: key) == nil { state.byteCount += byteCount }
      return dropped
    }
    withExtendedLifetime(dropped) {}
  }
}
