internal import CFFmpeg
internal import CFFmpegShims
internal import DequeModule
internal import Logging
internal import ReelCore

/// Stands in for a `Decoder` in simulations: the first two frames are decoded, or come from a cache, and for all others
/// it computes when a decoder would give them (`OutputOrder`). Such a frame is another reference to the pixels of the last
/// decoded frame, with the times of its own packet.
///
/// - After a flush, two frames are decoded again. A sequence parameter set that differs from the one before has its next two
///   frames decoded, as they may be of another size.
/// - As long as it decodes, the order is compared with the computed one. If it differs, or the decoder reports an error,
///   all frames are decoded.
/// - Errors that come later are not noticed: a damaged packet gives a frame, and none is marked as damaged.
///
/// Confined to one thread at a time.
final class FirstFrameDecoder: PacketDecoder {
  fileprivate enum Step {
    case packet(SharedPacket)
    case finish
  }

  private typealias Times = (presentation: Int64, decoding: Int64, duration: Int64)

  private struct Ready {
    let pixels: SharedPixels
    /// Nil for a frame that has its own.
    let times: Times?
    let isComputed: Bool
  }

  /// Frames are decoded, up to the second.
  fileprivate struct Opening {
    var key: ContentHash
    /// Of its first packet.
    let firstNumber: Int
    /// What the real decoder has not done yet.
    var steps: [Step] = []
    var stepCount = 0
    /// Outcomes are looked up, and kept; frames have the times of their packets.
    var usesCache = true
    /// Frames that have come out.
    var frameCount = 0
  }

  private struct Sent {
    let number: Int
    let packet: SharedPacket
    /// What it was decoded to, where that differs from the last pixels.
    var pixels: SharedPixels?
  }

  private let stream: StreamInfo
  private let rule: OutputOrder.Rule
  private let cache: FirstFrameCache
  private let name: String
  private let logger: Logger
  private var reader: CodedPictureReader
  private var order: OutputOrder
  /// The real decoder; nil as long as the cache has had everything.
  private var decoder: Decoder?
  private var condition: FirstFrameCache.Condition?
  private var opening: Opening?
  /// What the real decoder gives is given, not what is computed.
  private var isDecoding = true
  /// The real decoder and the computed order have agreed so far.
  private var isReliable = true
  private var ready: Deque<Ready> = []
  /// Packets whose frames have not come out, in the order of sending.
  private var sent: Deque<Sent> = []
  private var nextNumber = 0
  private var isFinished = false
  /// Frames that were taken since the last flush.
  private var takenCount = 0
  private var pixels: SharedPixels?

  /// Frames that are decoded.
  private static let frameCount = 2
  /// After so many steps without two frames, nothing is kept.
  fileprivate static let maximumSteps = 64
  private static let givesSequencesAtOnce = avcodec_version() >= (61 << 16 | 19 << 8)

  init(stream: StreamInfo, cache: FirstFrameCache, name: String, logger: Logger) throws(ReelError) {
    guard let codec = stream.videoCodec, let rule = OutputOrder.Rule(of: codec) else {
      throw ReelError(.internalFault, "the order of \(stream.codecName) is not modelled")
    }
    self.stream = stream
    self.rule = rule
    self.cache = cache
    self.name = name
    self.logger = logger
    reader = CodedPictureReader(stream, codec: codec)
    order = OutputOrder(rule, givesSequencesAtOnce: Self.givesSequencesAtOnce)
    let key = ContentHash(stream)
    opening = Opening(key: key, firstNumber: 0)
    if let known = cache.outcome(for: key) {
      condition = known.condition
    } else {
      // Where it can't be opened, that is said now.
      let made = try Decoder(stream: stream, name: name, logger: logger)
      decoder = made
      condition = FirstFrameCache.Condition(made)
      cache.insert(FirstFrameCache.Outcome(frames: [], condition: FirstFrameCache.Condition(made)), for: key)
    }
  }

  var reorderDepth: Int { condition?.reorderDepth ?? 0 }
  var referenceCount: Int { condition?.referenceCount ?? 1 }
  var profileName: String? { condition?.profileName }
  var level: Int? { condition?.level }
  var frameRate: Rational? { condition?.frameRate }
  var pixelCount: Int? { condition?.pixelCount }
  var rejectedPacketCount: Int { decoder?.rejectedPacketCount ?? 0 }
  var hasReportedError: Bool { decoder?.hasReportedError ?? false }
  var sizeFault: ReelError? { decoder?.sizeFault }
  func takeLastError() -> String? { decoder?.takeLastError() }

  func send(_ box: SharedPacket) throws(ReelError) {
    if isDecoding, isReliable, takenCount >= Self.frameCount, pixels != nil {
      isDecoding = false
      endOpening()
    }
    let number = nextNumber
    nextNumber += 1
    let (picture, hasNewSet) = reader.read(box.packet)
    if !isDecoding, hasNewSet, picture?.isSequenceStart ?? false || picture?.isRandomAccess ?? false {
      // Its frames may be of another size.
      endOpening()
      opening = Opening(key: ContentHash(stream), firstNumber: number, usesCache: false)
    }
    let ticks = box.packet.presentationTicks
    sent.append(Sent(number: number, packet: box))
    let decoded = try advance(.packet(box))
    if ticks == nil { isReliable = false }
    give(
      decoded,
      order.send(
        picture, number: number, ticks: ticks ?? 0, isDiscarded: box.packet.isDiscarded, depth: reorderDepth))
  }

  func setSkipsDeblocking(_ skips: Bool) { decoder?.setSkipsDeblocking(skips) }

  func finish() {
    guard !isFinished else { return }
    isFinished = true
    // Draining fails for nothing that has not failed before.
    let decoded = (try? advance(.finish)) ?? []
    give(decoded, order.finish())
  }

  func receive() throws(ReelError) -> Decoder.ReceiveResult {
    guard let next = ready.popFirst() else { return isFinished ? .drained : .needsInput }
    takenCount += 1
    var frame = try next.pixels.frame.clone()
    if let times = next.times {
      reel_frame_set_times(frame.pointer, times.presentation, times.decoding, times.duration)
    }
    if next.isComputed { frame.isDamaged = false }
    frame.shared = next.pixels
    return .frame(frame)
  }

  func flush() throws(ReelError) {
    ready = []
    sent = []
    isFinished = false
    takenCount = 0
    order = OutputOrder(rule, givesSequencesAtOnce: Self.givesSequencesAtOnce)
    if isDecoding, opening?.usesCache == false, let decoder { return try decoder.flush() }
    // A flushed decoder that has met no error decodes as a new one does, which is what the cache knows.
    isDecoding = true
    endOpening()
    opening = Opening(key: ContentHash(stream), firstNumber: nextNumber, usesCache: isReliable)
  }

  // MARK: - Private

  private typealias Decoded = [(number: Int, pixels: SharedPixels)]

  private func endOpening() {
    opening = nil
    decoder = nil
  }

  /// Puts out what is due.
  private func give(_ decoded: Decoded, _ computed: [OutputOrder.Output]) {
    if isDecoding {
      if decoder?.hasReportedError ?? false || decoded.map(\.number) != computed.map(\.number) {
        isReliable = false
      }
      let usesTimes = opening?.usesCache ?? true
      for frame in decoded {
        pixels = frame.pixels
        let packet = takePacket(frame.number)?.packet
        ready.append(
          Ready(pixels: frame.pixels, times: usesTimes ? packet.flatMap(times) : nil, isComputed: false))
      }
      return
    }
    // Frames of parameter sets that have come later.
    for frame in decoded {
      guard let index = sent.firstIndex(where: { $0.number == frame.number }) else { continue }
      sent[index].pixels = frame.pixels
    }
    if let count = opening?.frameCount, count >= Self.frameCount { endOpening() }
    for output in computed {
      guard let entry = takePacket(output.number) else { continue }
      if let own = entry.pixels { pixels = own }
      guard let pixels else { continue }
      ready.append(Ready(pixels: pixels, times: times(entry.packet), isComputed: true))
    }
  }

  private func times(_ box: SharedPacket) -> Times? {
    box.packet.presentationTicks.map { ($0, box.packet.decodingTicks ?? $0, box.packet.durationTicks) }
  }

  private func takePacket(_ number: Int) -> Sent? {
    guard let index = sent.firstIndex(where: { $0.number == number }) else { return nil }
    defer {
      sent.remove(at: index)
      // Packets without frames: no decoder holds back as many.
      while let first = sent.first, first.number + Self.maximumSteps < number { sent.removeFirst() }
    }
    return sent[index]
  }

  /// Takes a step of the opening: from the cache, or with the real decoder.
  private func advance(_ step: Step) throws(ReelError) -> Decoded {
    guard opening != nil else { return [] }
    opening?.note(step)
    guard let current = opening else { return [] }
    if current.usesCache, let known = cache.outcome(for: current.key) {
      condition = known.condition
      opening?.frameCount += known.frames.count
      return known.frames.map { ($0.number + current.firstNumber, $0.pixels) }
    }
    opening?.steps = []
    var decoded: Decoded = []
    for step in current.steps { decoded = try perform(step) }
    guard let decoder else { return [] }
    let condition = FirstFrameCache.Condition(decoder)
    self.condition = condition
    opening?.frameCount += decoded.count
    if current.usesCache {
      if decoder.hasReportedError || decoder.rejectedPacketCount > 0 || !haveTimesOfPackets(decoded, current)
      {
        opening?.usesCache = false
      } else {
        cache.insert(FirstFrameCache.Outcome(frames: decoded, condition: condition), for: current.key)
      }
    }
    return decoded.map { ($0.number + current.firstNumber, $0.pixels) }
  }

  /// Has the real decoder take a step; gives the frames that come out.
  private func perform(_ step: Step) throws(ReelError) -> Decoded {
    let decoder: Decoder
    if let made = self.decoder {
      decoder = made
    } else {
      decoder = try Decoder(stream: stream, name: name, logger: logger)
      self.decoder = decoder
    }
    switch step {
    case .packet(let box): try decoder.send(box)
    case .finish: decoder.finish()
    }
    var decoded: Decoded = []
    while case .frame(let frame) = try decoder.receive() {
      decoded.append((Int(frame.tag), SharedPixels(frame)))
    }
    return decoded
  }

  private func haveTimesOfPackets(_ decoded: Decoded, _ opening: Opening) -> Bool {
    decoded.allSatisfy { frame in
      let box = sent.first { $0.number == frame.number + opening.firstNumber }?.packet
      guard let box else { return false }
      return box.packet.presentationTicks == frame.pixels.frame.presentationTicks
        && box.packet.durationTicks == frame.pixels.frame.durationTicks
    }
  }
}

extension FirstFrameDecoder.Opening {
  fileprivate mutating func note(_ step: FirstFrameDecoder.Step) {
    stepCount += 1
    if stepCount > FirstFrameDecoder.maximumSteps { usesCache = false }
    steps.append(step)
    guard usesCache else { return }
    switch step {
    case .packet(let box): key.combine(box.packet)
    case .finish: key.combine(UnsafeRawBufferPointer(start: nil, count: 0), [1])
    }
  }
}
