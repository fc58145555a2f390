internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelReading
internal import ReelSources

/// Decodes the packets of an item into its frame ring.
///
/// A turn decodes until the ring is full or the packets have run out (`TrackDecoder`). After a seek, frames
/// before the requested one are decoded and dropped.
///
/// Confined to the turns of its `ItemDecoder`.
final class VideoPipeline {
  struct Options: Sendable {
    var name: String
    var logger: Logger
    var gate: (any DecodingGate)?
    /// The pipeline's claim to an open decoder; nil if their number is not limited.
    var claim: (any DecoderClaim)?
    /// The clock that measures decoding.
    var clock: any MonotonicClock = SystemMonotonicClock()
    var decoders: any DecoderMaking = LibavDecoders()
    /// The number of frame threads after the first frame.
    var threads = 1
    /// Receives the totals with each frame, before the ring gets the frame.
    var recordDecoding: @Sendable (DecodingAccount) -> Void = { _ in }
    /// Receives the parts of a span, on the player's timeline, from whose packets no frame could be decoded.
    var recordLoss: @Sendable (Range<MediaTime>, StreamSpan) -> Void = { _, _ in }
    /// Receives the reason why a span had no frame, before the ring is finished.
    var recordFailure: @Sendable (ReelError) -> Void = { _ in }
    /// Called before each frame and each packet, once the first frame of a position has been offered.
    var decodeAudio: @Sendable () -> Void = {}
  }

  enum Outcome {
    /// Nothing to do until there are more packets, or room in the ring.
    case idle
    case ended
  }

  /// The work to do.
  struct Order: Sendable {
    /// The position to decode from.
    var job: DecodingJob
    /// The number of frames to decode ahead; nil for as many as fit the ring.
    var limit: Int?
    /// True to use all threads from the beginning, because the first frame is not urgent.
    var prefersThroughput = false
    /// The last iteration to decode. Frames of later ones are dropped.
    var lastIteration = Int.max
  }

  // Turns are of the session, so it lives as long as one.
  private unowned let session: ItemSession
  private let options: Options
  private let isCancelled: @Sendable () -> Bool
  private let packets: BufferedPackets
  private let frames: TrackDecoder
  private var order: Order
  /// The latest frame at or before the target, until it is known whether a later one exists.
  private var candidate: VideoFrame?
  /// The iteration of the target; nil before the first frame.
  private var targetIteration: Int?
  /// The frames for which the ring had no room, in order: at most two.
  private var waiting: [VideoFrame] = []
  private var offeredCount = 0
  private var isOpening = true
  private var isFinished = false
  /// The decoding time when the order's first frame was ready.
  private var firstFrameDuration: Duration?

  init(session: ItemSession, options: Options, isCancelled: @escaping @Sendable () -> Bool) {
    self.session = session
    self.options = options
    self.isCancelled = isCancelled
    let claim = options.claim
    let packets = BufferedPackets(session)
    self.packets = packets
    order = Order(job: packets.job.withLock { $0 })
    frames = TrackDecoder(
      packets,
      options: .init(
        name: options.name, logger: options.logger, gate: options.gate, clock: options.clock,
        decoders: options.decoders,
        isCancelled: { [job = packets.job] in
          isCancelled() || job.withLock { $0.isOver } || claim?.isRevoked == true
        }, mayOpen: { claim?.take() ?? true }, recordLoss: options.recordLoss))
    packets.decodeAudio = { [unowned self] in decodeAudio() }
  }

  deinit {
    frames.close()
    options.claim?.giveBack()
  }

  /// True if as many frames as the order requests have been offered.
  var hasReachedLimit: Bool { order.limit.map { offeredCount >= $0 } ?? false }

  /// The totals so far.
  var account: DecodingAccount {
    DecodingAccount(
      duration: frames.duration, firstFrameDuration: firstFrameDuration, frameCount: frames.frameCount,
      repeatedCount: frames.repeatedCount, facts: facts)
  }

  /// The open decoder's information about its stream; nil without one.
  var facts: DecoderFacts? { frames.decoder?.facts }

  /// Decodes as much as possible. Throws `ReelError` or `CancellationError`.
  func turn(_ order: Order) throws -> Outcome {
    if order.job !== self.order.job { try begin(order) }
    self.order = order
    frames.lastIteration = order.lastIteration
    frames.isRefused = false
    defer { settleClaim() }
    if isFinished {
      guard case .element = packets.peek() else { return .ended }
      // More packets follow after all: the item loops.
      isFinished = false
      frames.resume()
      session.change { state, _ in if state.videoJob === order.job { state.frames.resume() } }
    }
    while true {
      if isCancelled() { throw CancellationError() }
      if options.claim?.isRevoked == true { giveUpDecoder() }
      guard handOver() else { return .idle }
      if let limit = order.limit, offeredCount >= limit { return .idle }
      decodeAudio()
      useAllThreads()
      switch try frames.next(isFirst: isOpening, threads: isOpening ? 1 : options.threads) {
      case .frame(let frame):
        isOpening = false
        if offeredCount == 0 { firstFrameDuration = frames.duration }
        // Recorded before the ring has the frame, so that its consumer sees the totals.
        options.recordDecoding(account)
        offerWhereWanted(frame)
      case .discarded:
        isOpening = false
        options.recordDecoding(account)
      case .needsPacket:
        // Frames that the decoder holds for reordering are not drained at a stall: it would have to decode
        // their group again from the key frame each time. Therefore, a stream with reordering stalls some
        // frames before the end of the loaded packets.
        return .idle
      case .spanEnded:
        break
      case .end:
        return finish()
      }
    }
  }

  /// Closes the decoder if a new one can continue with the same frame, starting from its key frame. Returns
  /// true if it was closed.
  func park() -> Bool {
    guard frames.decoder != nil, rewind() else { return false }
    options.claim?.giveBack()
    return true
  }

  /// Closes the decoder, whatever it is doing, so that another one can be opened. Decoded frames stay. Does
  /// nothing if the number of decoders is not limited.
  ///
  /// Decoding continues later at the same frame, from its key frame. A stream without timestamps continues at
  /// its last key frame: the frames since then are shown a second time.
  func giveUpDecoder() {
    guard let claim = options.claim else { return }
    defer { claim.giveBack() }
    guard frames.decoder != nil, !rewind() else { return }
    frames.close()
    let hasFrame = frames.lastTime != nil
    session.change { state, _ in
      guard state.videoJob === order.job else { return }
      if hasFrame {
        state.packets.rewindToLastKey()
      } else {
        // No frame was returned: go back to the beginning of the order.
        state.packets.rewindToStart(soughtTime: order.job.target)
      }
    }
    guard !hasFrame else { return }
    frames.beginAgain()
    isOpening = !order.prefersThroughput
  }

  /// Goes back to just after the frame on show, and drops those decoded ahead of it, if they can be decoded again.
  func rest() {
    guard frames.hasTimestamps else { return }
    let shown = session.change { state, _ -> MediaTime? in
      guard state.videoJob === order.job, let shown = state.frames.takenTime,
        state.packets.rewindToKey(before: shown)
      else { return nil }
      state.frames.clear()
      return shown
    }
    guard case .some(let shown?) = shown else { return }
    waiting = []
    frames.close(after: shown)
    frames.resume()
    offeredCount = 1
    isFinished = false
  }

  // MARK: - Private

  /// The first frame of a position comes before its audio.
  private func decodeAudio() {
    if offeredCount > 0 { options.decodeAudio() }
  }

  /// Gives up the claim if no decoder is open or waited for.
  private func settleClaim() {
    guard let claim = options.claim else { return }
    if frames.decoder != nil {
      claim.setResting(hasReachedLimit)
    } else if !frames.isRefused {
      claim.giveBack()
    }
  }

  private func begin(_ order: Order) throws(ReelError) {
    waiting = []
    candidate = nil
    targetIteration = nil
    offeredCount = 0
    firstFrameDuration = nil
    isFinished = false
    isOpening = !order.prefersThroughput
    packets.job.withLock { $0 = order.job }
    try frames.begin()
  }

  /// Ends the generation after the last frame.
  private func finish() -> Outcome {
    if let last = candidate.take() {
      offer(last)
      guard handOver() else { return .idle }
    }
    if let fault = frames.fault { options.recordFailure(fault) }
    isFinished = true
    session.change { state, out in state.finishFrames(of: order.job, &out) }
    return .ended
  }

  /// After the first frame, restarts from its key frame with all threads.
  ///
  /// A decoder with several frame threads delays the first frame by as many frames, so the first frame is
  /// decoded with one thread. Restarting costs one key frame.
  private func useAllThreads() {
    guard let decoder = frames.decoder, !isOpening, decoder.options.threads != options.threads,
      offeredCount > 0
    else { return }
    _ = rewind()
  }

  /// Closes the decoder. The next one starts with the key frame of the last frame. Returns false if that is
  /// impossible.
  private func rewind() -> Bool {
    // Frames without timestamps could not be recognized when they are decoded again.
    guard let lastTime = frames.lastTime, frames.hasTimestamps else { return false }
    let isPossible = session.change { state, _ in
      state.videoJob === order.job && state.packets.rewindToKey(before: lastTime)
    }
    guard isPossible == true else { return false }
    frames.close()
    return true
  }

  /// Offers a frame, or drops it if it is before the requested one.
  private func offerWhereWanted(_ frame: VideoFrame) {
    guard let target = order.job.target, offeredCount == 0 else { return offer(frame) }
    let time = frame.time
    // A position beyond the end selects the last frame of its iteration, not the next iteration.
    let iteration = frame.span?.loop.iteration ?? 0
    targetIteration = targetIteration ?? iteration
    if time > target || iteration != targetIteration {
      if let earlier = candidate.take() {
        offer(earlier)
        waiting.append(frame)
      } else {
        offer(frame)
      }
    } else if time + frame.displayTime > target, frame.durationTicks > 0 || time == target {
      candidate = nil
      offer(frame)
    } else if time + order.job.tolerance >= target {
      candidate = nil
      offer(frame)
    } else {
      candidate = frame
    }
  }

  private func offer(_ frame: VideoFrame) {
    offeredCount += 1
    if !waiting.isEmpty || !hand(frame) { waiting.append(frame) }
  }

  /// Offers the waiting frames again. Returns false if the ring is still full.
  private func handOver() -> Bool {
    while let frame = waiting.first {
      guard hand(frame) else { return false }
      waiting.removeFirst()
    }
    return true
  }

  /// Gives a frame to the ring, unless it is not wanted any more. Returns false if there is no room.
  private func hand(_ frame: VideoFrame) -> Bool {
    let iteration = frame.span?.loop.iteration ?? 0
    let isTaken = session.change { state, out -> Bool in
      guard state.videoJob === order.job, iteration <= state.iterations.last else { return true }
      if state.frames.isEmpty { out.wake(.presenter) }
      return state.frames.offer(frame)
    }
    return isTaken ?? true
  }
}

/// The work of one item's decoders.
struct DecodingAccount: Sendable, Hashable {
  /// The time spent in decoders.
  var duration = Duration.zero
  /// The part of it up to the first frame shown after the start or the last seek; nil before that frame.
  var firstFrameDuration: Duration?
  /// The number of frames that decoders returned.
  var frameCount = 0
  /// The number of those frames that were decoded again because the decoder had been closed.
  var repeatedCount = 0
  /// The open decoder's information about its stream; nil without one.
  var facts: DecoderFacts?
}

/// The video packets of an item, from the position of a job.
private final class BufferedPackets: PacketSource {
  /// The job that is being decoded. Also asked by the decoder, between packets.
  let job: Locked<DecodingJob>
  private unowned let session: ItemSession
  /// Called if there is audio to decode.
  var decodeAudio: () -> Void = {}

  init(_ session: ItemSession) {
    self.session = session
    // A job that nobody else has: decoding has not begun.
    job = Locked(DecodingJob())
  }

  func peek() -> Pulled<MediaPacket> {
    let job = job.withLock { $0 }
    return session.read { $0.videoJob === job ? $0.packets.peekNext(.video) : .wait } ?? .wait
  }

  func next(of span: StreamSpan?) -> Pulled<MediaPacket> {
    let job = job.withLock { $0 }
    let next = session.change { state, _ -> (packet: Pulled<MediaPacket>, hasAudio: Bool) in
      guard state.videoJob === job else { return (.wait, false) }
      return (state.packets.next(.video, of: span), state.hasAudioToDecode)
    }
    guard let next else { return .wait }
    if next.hasAudio {
      decodeAudio()
      if job.isOver { return .wait }
    }
    return next.packet
  }
}
