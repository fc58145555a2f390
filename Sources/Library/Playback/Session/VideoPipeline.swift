internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import Synchronization

/// Decodes the packets of a forward buffer into a frame ring.
///
/// A turn decodes until the ring is full or the packets have run out (`TrackDecoder`). After a seek, frames
/// before the requested one are decoded and dropped.
///
/// Confined to its task loop's turns.
final class VideoPipeline {
  struct Options: Sendable {
    var name: String
    var logger: Logger
    var gate: (any DecodingGate)?
    /// The pipeline's claim to an open decoder; nil if their number is not limited.
    var claim: (any DecoderClaim)?
    /// The clock that measures decoding.
    var clock: any MonotonicClock = SystemMonotonicClock()
    /// Opens the decoders.
    var decoders: any DecoderMaking = LibavDecoders()
    /// The number of frame threads after the first frame.
    var threads = 1
    /// Receives the totals with each frame, before the ring gets the frame.
    var recordDecoding: @Sendable (DecodingAccount) -> Void = { _ in }
    /// Receives the reason why a span had no frame, before the ring is finished.
    var recordFailure: @Sendable (ReelError) -> Void = { _ in }
  }

  enum Outcome {
    /// Nothing to do until the buffer or the ring wakes it.
    case idle
    case ended
  }

  /// The instructions for decoding from a position.
  struct Order: Sendable {
    var bufferGeneration = 0
    var generation = 0
    /// The first frame to show is the one on show at this time; nil for the very first.
    var target: MediaTime?
    /// The time by which the first frame may be earlier.
    var tolerance = MediaTime.zero
    /// The number of frames to decode ahead; nil for as many as fit the ring.
    var limit: Int?
    /// True to use all threads from the beginning, because the first frame is not urgent.
    var prefersThroughput = false
    /// The last iteration to decode. Frames of later ones are dropped.
    var lastIteration = Int.max
  }

  private let buffer: ForwardBuffer
  private let ring: FrameRing
  private let options: Options
  private let isCancelled: @Sendable () -> Bool
  private let packets: BufferedPackets
  private let frames: TrackDecoder
  private var order = Order(bufferGeneration: -1)
  /// The generation of the order, for the decoder, which is kept across seeks.
  private let bufferGeneration: DecodingGeneration
  /// The latest frame at or before the target, until it is known whether a later one exists.
  private var candidate: TimedFrame?
  /// The iteration of the target; nil before the first frame.
  private var targetIteration: Int?
  /// The frame that the ring rejected.
  private var refused: TimedFrame?
  /// The frame after the rejected one.
  private var refusedNext: TimedFrame?
  private var offeredCount = 0
  private var isOpening = true
  private var isFinished = false
  /// The decoding time when the order's first frame was ready.
  private var firstFrameDuration: Duration?

  init(
    buffer: ForwardBuffer, ring: FrameRing, options: Options,
    isCancelled: @escaping @Sendable () -> Bool
  ) {
    self.buffer = buffer
    self.ring = ring
    self.options = options
    self.isCancelled = isCancelled
    let claim = options.claim
    let bufferGeneration = DecodingGeneration()
    self.bufferGeneration = bufferGeneration
    packets = BufferedPackets(buffer)
    frames = TrackDecoder(
      packets,
      options: TrackDecoder.Options(
        name: options.name, logger: options.logger, gate: options.gate, clock: options.clock,
        decoders: options.decoders,
        isCancelled: {
          isCancelled()
            || buffer.bufferGeneration(of: .video) != bufferGeneration.value.load(ordering: .relaxed)
            || claim?.isRevoked == true
        }, mayOpen: { claim?.take() ?? true }))
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
    if order.bufferGeneration != self.order.bufferGeneration { try begin(order) }
    self.order = order
    frames.lastIteration = order.lastIteration
    frames.isRefused = false
    defer { settleClaim() }
    if isFinished {
      guard case .packet = packets.peek() else { return .ended }
      // More packets follow after all: the item loops.
      isFinished = false
      frames.resume()
      ring.resume(generation: order.generation)
    }
    while true {
      if isCancelled() { throw CancellationError() }
      if options.claim?.isRevoked == true { giveUpDecoder() }
      guard try handOver() else { return .idle }
      if let limit = order.limit, offeredCount >= limit { return .idle }
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
      case .stale:
        return .idle
      case .spanEnded:
        break
      case .end:
        return try finish()
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
    if frames.lastTime != nil {
      buffer.rewindToLastKey(bufferGeneration: order.bufferGeneration)
    } else {
      // No frame was returned: go back to the beginning of the order.
      buffer.rewindToStart(soughtTime: order.target, bufferGeneration: order.bufferGeneration)
      frames.beginAgain()
      isOpening = !order.prefersThroughput
    }
  }

  /// Goes back to just after the frame on show, so that frames decoded ahead of it can be released. Returns
  /// false without an effect if that is impossible.
  func rest(at shown: MediaTime) -> Bool {
    guard frames.hasTimestamps, buffer.rewindToKey(before: shown, bufferGeneration: order.bufferGeneration)
    else { return false }
    refused = nil
    refusedNext = nil
    frames.close(after: shown)
    frames.resume()
    offeredCount = 1
    isFinished = false
    return true
  }

  // MARK: - Private

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
    refused = nil
    candidate = nil
    targetIteration = nil
    offeredCount = 0
    firstFrameDuration = nil
    isFinished = false
    isOpening = !order.prefersThroughput
    bufferGeneration.value.store(order.bufferGeneration, ordering: .relaxed)
    packets.bufferGeneration = order.bufferGeneration
    try frames.begin()
  }

  /// Ends the generation after the last frame.
  private func finish() throws -> Outcome {
    if candidate != nil, let last = candidate.take() {
      offer(last)
      guard try handOver() else { return .idle }
    }
    if let fault = frames.fault { options.recordFailure(fault) }
    isFinished = true
    ring.finish(generation: order.generation)
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
    guard let lastTime = frames.lastTime, frames.hasTimestamps,
      buffer.rewindToKey(before: lastTime, bufferGeneration: order.bufferGeneration)
    else { return false }
    frames.close()
    return true
  }

  /// Offers a frame, or drops it if it is before the requested one.
  private func offerWhereWanted(_ placed: consuming TimedFrame) {
    let frame = placed
    guard let target = order.target, offeredCount == 0 else { return offer(frame) }
    let time = frame.time
    // A position beyond the end selects the last frame of its iteration, not the next iteration.
    let iteration = frame.span?.loop.iteration ?? 0
    targetIteration = targetIteration ?? iteration
    if time > target || iteration != targetIteration {
      if let earlier = candidate.take() {
        offer(earlier)
        refusedNext = consume frame
      } else {
        offer(frame)
      }
    } else if time + frame.displayTime > target, frame.decoded.durationTicks > 0 || time == target {
      candidate = nil
      offer(frame)
    } else if time + order.tolerance >= target {
      candidate = nil
      offer(frame)
    } else {
      candidate = consume frame
    }
  }

  private func offer(_ offered: consuming TimedFrame) {
    let frame = offered
    offeredCount += 1
    if refused == nil {
      switch ring.offer(frame, generation: order.generation) {
      case .accepted: break
      case .stale: break
      case .full(let frame): refused = consume frame
      }
    } else {
      refusedNext = consume frame
    }
  }

  /// Offers the rejected frames again. Returns false if the ring is still full.
  private func handOver() throws -> Bool {
    while let frame = refused.take() ?? refusedNext.take() {
      if let span = frame.span, span.loop.iteration > order.lastIteration { continue }
      switch ring.offer(frame, generation: order.generation) {
      case .accepted: continue
      case .stale: continue
      case .full(let frame):
        refused = consume frame
        return false
      }
    }
    return true
  }
}

/// The generation being decoded.
private final class DecodingGeneration: Sendable {
  let value = Atomic(-1)
}

/// The video packets of a forward buffer.
private final class BufferedPackets: PacketSource {
  var bufferGeneration = -1
  private let buffer: ForwardBuffer

  init(_ buffer: ForwardBuffer) { self.buffer = buffer }

  func peek() -> NextPacket { buffer.peekNext(.video, bufferGeneration: bufferGeneration) }

  func next(of span: StreamSpan?) -> NextPacket {
    buffer.next(.video, bufferGeneration: bufferGeneration, of: span)
  }
}
