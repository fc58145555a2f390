internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import Synchronization

/// Decodes the packets of a forward buffer into a frame ring.
///
/// A turn decodes until the ring is full or the packets have run out. Each run has a decoder of its own; one whose run
/// has ended is drained before the next begins, so that a change of rung shows every picture once. After a seek the
/// pictures before the wanted one are decoded and let go.
///
/// Confined to its pump's turns.
final class VideoPipeline {
  struct Options: Sendable {
    var name: String
    var logger: Logger
    var gate: (any DecodingGate)?
    /// What decoding is measured by.
    var clock: any MonotonicClock = SystemMonotonicClock()
    /// Frame threads once the first picture is there.
    var threads = 1
    /// Gets what was decoded so far, with each picture, before the ring gets that.
    var noteDecoding: @Sendable (DecodingAccount) -> Void = { _ in }
    /// Gets told why a run has shown nothing at all, before the ring is finished.
    var noteFailure: @Sendable (ReelError) -> Void = { _ in }
  }

  enum Outcome {
    /// To be woken by the buffer or the ring.
    case idle
    case ended
  }

  /// What is wanted from the place where decoding begins.
  struct Order: Sendable {
    var epoch = 0
    var generation = 0
    /// The first picture that is shown is the one on show at this time; nil for the very first.
    var target: MediaTime?
    /// A picture so much earlier will do.
    var tolerance = MediaTime.zero
    /// Pictures that are decoded ahead; nil for as many as the ring takes.
    var limit: Int?
    /// The first picture need not come soon: all threads from the beginning.
    var prefersThroughput = false
    /// The last time through the item; pictures of later ones are let go.
    var lastIteration = Int.max
  }

  private let buffer: ForwardBuffer
  private let ring: FrameRing
  private let options: Options
  private let isCancelled: @Sendable () -> Bool
  private let units: BufferedUnits
  private var decoder: PictureDecoder?
  private var order = Order(epoch: -1)
  /// Of the order, for the decoder: it is kept over seeks.
  private let epoch = DecodingEpoch()
  /// The last picture that was decoded and not let go.
  private var lastTime: MediaTime?
  private var lastLength = MediaTime(value: 1, timescale: 25)
  /// The last picture had a timestamp of its own.
  private var hasTicks = false
  /// The latest picture at or before the target, until it is known whether there is a later one.
  private var candidate: TimedPicture?
  /// The time through the item in which the target lies; nil before there is a picture.
  private var targetIteration: Int?
  /// Refused by the ring.
  private var refused: TimedPicture?
  private var offeredCount = 0
  private var isOpening = true
  /// The first picture of the run has not been seen.
  private var isRunNew = true
  /// The run of the last picture.
  private var shownRun: MediaRun?
  /// Of decoders that are closed.
  private var closedDuration: Duration = .zero
  private var isFinished = false
  private var pictureCount = 0
  private var repeatedCount = 0
  /// What had been spent in decoders when the first picture of the order was there.
  private var firstPictureDuration: Duration?

  init(
    buffer: ForwardBuffer, ring: FrameRing, options: Options,
    isCancelled: @escaping @Sendable () -> Bool
  ) {
    self.buffer = buffer
    self.ring = ring
    self.options = options
    self.isCancelled = isCancelled
    units = BufferedUnits(buffer)
  }

  /// As many pictures were offered as are wanted now.
  var hasReachedLimit: Bool { order.limit.map { offeredCount >= $0 } ?? false }

  /// What was decoded so far.
  var account: DecodingAccount {
    DecodingAccount(
      duration: decodeDuration, firstPictureDuration: firstPictureDuration, pictureCount: pictureCount,
      repeatedCount: repeatedCount)
  }

  /// Decodes as far as it can go. Throws `ReelError` or `CancellationError`.
  func turn(_ order: Order) throws -> Outcome {
    if order.epoch != self.order.epoch { try begin(order) }
    self.order = order
    if isFinished {
      guard case .packet = buffer.peekNext(.video, epoch: order.epoch) else { return .ended }
      // The item has begun anew after all.
      isFinished = false
      units.goOn()
      ring.goOn(generation: order.generation)
    }
    while true {
      if isCancelled() { throw CancellationError() }
      guard try handOver() else { return .idle }
      if let limit = order.limit, offeredCount >= limit { return .idle }
      guard let decoder = try openDecoder() else {
        guard units.hasEnded else { return .idle }
        return try finish()
      }
      switch try isOpening ? decoder.firstPicture() : decoder.nextPicture() {
      case .picture(let frame):
        if let fault = decoder.keyFault { throw fault }
        pictureCount += 1
        let picture = placed(frame, of: decoder)
        if picture != nil, offeredCount == 0 { firstPictureDuration = decodeDuration }
        // Whoever takes the picture from the ring finds in the account what it took.
        options.noteDecoding(account)
        if let picture { offerWhereWanted(picture) }
      case .needsUnit:
        return .idle
      case .end:
        if units.isStale { return .idle }
        if lastTime == nil { noteFailure(of: decoder) }
        closeDecoder()
        if units.hasEnded { return try finish() }
      }
    }
  }

  /// Lets go of the decoder, where it can go on at the same picture later: it begins with the key frame again then. True
  /// where that was done now.
  func park() -> Bool { decoder != nil && rewind() }

  /// Goes back to behind the picture on show, for the ones that were decoded ahead of it to be let go. False, and
  /// nothing is done, where that can't be.
  func rest(at shown: MediaTime) -> Bool {
    guard hasTicks, buffer.rewindToKey(before: shown, epoch: order.epoch) else { return false }
    refused = nil
    refusedNext = nil
    closeDecoder()
    lastTime = shown
    offeredCount = 1
    units.goOn()
    isFinished = false
    return true
  }

  // MARK: - Private

  private func begin(_ order: Order) throws(ReelError) {
    refused = nil
    candidate = nil
    targetIteration = nil
    lastTime = nil
    offeredCount = 0
    firstPictureDuration = nil
    isFinished = false
    isOpening = !order.prefersThroughput
    isRunNew = true
    epoch.value.store(order.epoch, ordering: .relaxed)
    shownRun = nil
    units.begin(epoch: order.epoch)
    try decoder?.reset()
  }

  /// Ends the generation: what is left is shown.
  private func finish() throws -> Outcome {
    if candidate != nil, let last = candidate.take() {
      offer(last)
      guard try handOver() else { return .idle }
    }
    isFinished = true
    ring.finish(generation: order.generation)
    return .ended
  }

  /// The decoder of the next packet's run; nil where there is no packet.
  private func openDecoder() throws(ReelError) -> PictureDecoder? {
    if let decoder {
      if isOpening || decoder.options.threads == options.threads || offeredCount == 0 { return decoder }
      // The first picture is there: from here on with all threads, from its key frame on.
      guard rewind() else { return decoder }
    }
    guard let run = units.nextRun() else { return nil }
    var decoding = PictureDecoder.Options()
    decoding.threads = isOpening ? 1 : options.threads
    decoding.gate = options.gate
    decoding.clock = options.clock
    let (isCancelled, buffer, epoch) = (isCancelled, buffer, epoch)
    decoding.isCancelled = {
      isCancelled() || buffer.epoch(of: .video) != epoch.value.load(ordering: .relaxed)
    }
    let made = try PictureDecoder(
      stream: run.stream, source: units, options: decoding, name: options.name, logger: options.logger)
    isRunNew = true
    decoder = made
    return made
  }

  /// Closes the decoder; the next begins with the key frame of the last picture, whatever was decoded behind it. False
  /// where it has to go on as it is.
  private func rewind() -> Bool {
    // Pictures without timestamps would not be known again.
    guard let lastTime, hasTicks, buffer.rewindToKey(before: lastTime, epoch: order.epoch) else {
      return false
    }
    closeDecoder()
    return true
  }

  private func noteFailure(of decoder: PictureDecoder) {
    if let fault = decoder.sizeFault {
      options.noteFailure(fault)
    } else if let detail = decoder.takeLastError() {
      options.noteFailure(
        ReelError(.badMedia, "no picture could be decoded: \(detail)", advice: decoder.keyAdvice))
    }
  }

  private var decodeDuration: Duration { closedDuration + (decoder?.decodeDuration ?? .zero) }

  private func closeDecoder() {
    closedDuration += decoder?.decodeDuration ?? .zero
    decoder = nil
    units.endRun()
  }

  /// The picture at its place on the timeline; nil where it is none to be shown.
  private func placed(_ frame: consuming Frame, of decoder: PictureDecoder) -> TimedPicture? {
    isOpening = false
    guard let run = units.run, run.pass.iteration <= order.lastIteration else { return nil }
    let ticks = frame.presentationTicks
    if isRunNew, run !== shownRun, run.beginsDomain, units.beganWithFirst, let ticks {
      run.domain.settle(firstPicture: decoder.stream.time(ticks: ticks))
    }
    shownRun = run
    // What the next run has as well, and all of: here, others may be missing before it.
    if let resumption = units.resumption, let ticks, run.time(ticks: ticks) >= resumption { return nil }
    var time = ticks.map { run.time(ticks: $0) } ?? (lastTime ?? run.shift) + lastLength
    if let lastTime, time <= lastTime {
      // Decoded once more, or of another rung: shown already. Within a run a timestamp that does not rise is wrong.
      if isRunNew || ticks == nil {
        repeatedCount += 1
        return nil
      }
      time = lastTime + lastLength
    }
    isRunNew = false
    var picture = TimedPicture(
      frame: frame, time: time, stream: decoder.stream, frameRate: decoder.frameRate)
    picture.run = run
    lastTime = time
    lastLength = picture.displayTime
    hasTicks = ticks != nil
    return picture
  }

  /// Offers a picture, or lets it go where it stands before the one that is wanted.
  private func offerWhereWanted(_ placed: consuming TimedPicture) {
    let picture = placed
    guard let target = order.target, offeredCount == 0 else { return offer(picture) }
    let time = picture.time
    // A place behind the end is at the last picture of its pass, not in the next one.
    let iteration = picture.run?.pass.iteration ?? 0
    targetIteration = targetIteration ?? iteration
    if time > target || iteration != targetIteration {
      if let earlier = candidate.take() {
        offer(earlier)
        refusedNext = consume picture
      } else {
        offer(picture)
      }
    } else if time + picture.displayTime > target, picture.frame.durationTicks > 0 || time == target {
      candidate = nil
      offer(picture)
    } else if time + order.tolerance >= target {
      candidate = nil
      offer(picture)
    } else {
      candidate = consume picture
    }
  }

  /// Comes after the one that is refused.
  private var refusedNext: TimedPicture?

  private func offer(_ offered: consuming TimedPicture) {
    let picture = offered
    offeredCount += 1
    if refused == nil {
      switch ring.offer(picture, generation: order.generation) {
      case .accepted: break
      case .stale: break
      case .full(let picture): refused = consume picture
      }
    } else {
      refusedNext = consume picture
    }
  }

  /// Offers what the ring has refused; false where it still does.
  private func handOver() throws -> Bool {
    while let picture = refused.take() ?? refusedNext.take() {
      if let run = picture.run, run.pass.iteration > order.lastIteration { continue }
      switch ring.offer(picture, generation: order.generation) {
      case .accepted: continue
      case .stale: continue
      case .full(let picture):
        refused = consume picture
        return false
      }
    }
    return true
  }
}

/// The epoch that is decoded now.
private final class DecodingEpoch: Sendable {
  let value = Atomic(-1)
}

/// The packets of one run of a forward buffer, as a decoder takes them.
private final class BufferedUnits: AccessUnitSource {
  /// The run that packets are taken of.
  private(set) var run: MediaRun?
  /// No packet will come in this epoch.
  private(set) var hasEnded = false
  private(set) var isStale = false
  /// The first packet that was taken is the first of its run.
  private(set) var beganWithFirst = false
  /// Where the next run begins, on the timeline of the one that has ended: it may be read once more from there.
  private(set) var resumption: MediaTime?
  private var hasBegun = false
  private let buffer: ForwardBuffer
  private var epoch = 0

  init(_ buffer: ForwardBuffer) { self.buffer = buffer }

  func begin(epoch: Int) {
    self.epoch = epoch
    hasEnded = false
    isStale = false
    hasBegun = false
    resumption = nil
  }

  /// The run of the next packet.
  func nextRun() -> MediaRun? {
    switch buffer.peekNext(.video, epoch: epoch) {
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

  /// More comes after the end.
  func goOn() { hasEnded = false }

  func endRun() {
    run = nil
    hasBegun = false
    resumption = nil
  }

  func nextUnit() throws -> AccessUnit {
    switch buffer.next(.video, epoch: epoch, of: run) {
    case .packet(let packet):
      note(packet)
      return .packet(packet.box)
    case .none: return .none
    case .end:
      switch buffer.peekNext(.video, epoch: epoch) {
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

  private func note(_ packet: MediaPacket) {
    if !hasBegun { beganWithFirst = packet.isFirst }
    hasBegun = true
  }
}
