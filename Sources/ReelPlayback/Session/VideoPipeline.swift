internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import Synchronization

/// Decodes the packets of a forward buffer into a frame ring.
///
/// A turn decodes until the ring is full or the packets have run out (`TrackDecoder`). After a seek the frames before the
/// wanted one are decoded and let go.
///
/// Confined to its task loop's turns.
final class VideoPipeline {
  struct Options: Sendable {
    var name: String
    var logger: Logger
    var gate: (any DecodingGate)?
    /// What decoding is measured by.
    var clock: any MonotonicClock = SystemMonotonicClock()
    /// Frame threads once the first frame is there.
    var threads = 1
    /// Gets what was decoded so far, with each frame, before the ring gets that.
    var noteDecoding: @Sendable (DecodingAccount) -> Void = { _ in }
    /// Gets told why a span has shown nothing at all, before the ring is finished.
    var noteFailure: @Sendable (ReelError) -> Void = { _ in }
  }

  enum Outcome {
    /// To be woken by the buffer or the ring.
    case idle
    case ended
  }

  /// What is wanted from the place where decoding begins.
  struct Order: Sendable {
    var bufferGeneration = 0
    var generation = 0
    /// The first frame that is shown is the one on show at this time; nil for the very first.
    var target: MediaTime?
    /// A frame so much earlier will do.
    var tolerance = MediaTime.zero
    /// Frames that are decoded ahead; nil for as many as the ring takes.
    var limit: Int?
    /// The first frame need not come soon: all threads from the beginning.
    var prefersThroughput = false
    /// The last time through the item; frames of later ones are let go.
    var lastIteration = Int.max
  }

  private let buffer: ForwardBuffer
  private let ring: FrameRing
  private let options: Options
  private let isCancelled: @Sendable () -> Bool
  private let packets: BufferedPackets
  private let frames: TrackDecoder
  private var order = Order(bufferGeneration: -1)
  /// Of the order, for the decoder: it is kept over seeks.
  private let bufferGeneration: DecodingGeneration
  /// The latest frame at or before the target, until it is known whether there is a later one.
  private var candidate: TimedFrame?
  /// The time through the item in which the target lies; nil before there is a frame.
  private var targetIteration: Int?
  /// Refused by the ring.
  private var refused: TimedFrame?
  /// Comes after the one that is refused.
  private var refusedNext: TimedFrame?
  private var offeredCount = 0
  private var isOpening = true
  private var isFinished = false
  /// What had been spent in decoders when the first frame of the order was there.
  private var firstFrameDuration: Duration?

  init(
    buffer: ForwardBuffer, ring: FrameRing, options: Options,
    isCancelled: @escaping @Sendable () -> Bool
  ) {
    self.buffer = buffer
    self.ring = ring
    self.options = options
    self.isCancelled = isCancelled
    let bufferGeneration = DecodingGeneration()
    self.bufferGeneration = bufferGeneration
    packets = BufferedPackets(buffer)
    frames = TrackDecoder(
      packets,
      options: TrackDecoder.Options(
        name: options.name, logger: options.logger, gate: options.gate, clock: options.clock,
        isCancelled: {
          isCancelled()
            || buffer.bufferGeneration(of: .video) != bufferGeneration.value.load(ordering: .relaxed)
        }))
  }

  /// As many frames were offered as are wanted now.
  var hasReachedLimit: Bool { order.limit.map { offeredCount >= $0 } ?? false }

  /// What was decoded so far.
  var account: DecodingAccount {
    DecodingAccount(
      duration: frames.duration, firstFrameDuration: firstFrameDuration, frameCount: frames.frameCount,
      repeatedCount: frames.repeatedCount)
  }

  /// Decodes as far as it can go. Throws `ReelError` or `CancellationError`.
  func turn(_ order: Order) throws -> Outcome {
    if order.bufferGeneration != self.order.bufferGeneration { try begin(order) }
    self.order = order
    frames.lastIteration = order.lastIteration
    if isFinished {
      guard case .packet = packets.peek() else { return .ended }
      // The item has begun anew after all.
      isFinished = false
      frames.goOn()
      ring.goOn(generation: order.generation)
    }
    while true {
      if isCancelled() { throw CancellationError() }
      guard try handOver() else { return .idle }
      if let limit = order.limit, offeredCount >= limit { return .idle }
      takeUpThreads()
      switch try frames.next(isFirst: isOpening, threads: isOpening ? 1 : options.threads) {
      case .frame(let frame):
        isOpening = false
        if offeredCount == 0 { firstFrameDuration = frames.duration }
        // Whoever takes the frame from the ring finds in the account what it took.
        options.noteDecoding(account)
        offerWhereWanted(frame)
      case .discarded:
        isOpening = false
        options.noteDecoding(account)
      case .needsPacket:
        // Frames that the decoder holds back for their order are not drained at a stall: it would have to decode its group of
        // frames again from the key frame each time. So a stream with reordering stalls some frames before the end of what
        // was loaded.
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

  /// Lets go of the decoder, where it can go on at the same frame later: it begins with the key frame again then. True
  /// where that was done now.
  func park() -> Bool { frames.decoder != nil && rewind() }

  /// Goes back to behind the frame on show, for the ones that were decoded ahead of it to be let go. False, and
  /// nothing is done, where that can't be.
  func rest(at shown: MediaTime) -> Bool {
    guard frames.hasTimestamps, buffer.rewindToKey(before: shown, bufferGeneration: order.bufferGeneration)
    else { return false }
    refused = nil
    refusedNext = nil
    frames.close(after: shown)
    frames.goOn()
    offeredCount = 1
    isFinished = false
    return true
  }

  // MARK: - Private

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

  /// Ends the generation: what is left is shown.
  private func finish() throws -> Outcome {
    if candidate != nil, let last = candidate.take() {
      offer(last)
      guard try handOver() else { return .idle }
    }
    if let fault = frames.fault { options.noteFailure(fault) }
    isFinished = true
    ring.finish(generation: order.generation)
    return .ended
  }

  /// Once the first frame is there, decoding goes on with all threads, from its key frame on.
  /// A decoder with several frame threads holds the first frame back by as many frames, so the first frame is decoded
  /// with one thread. Beginning again costs one key frame.
  private func takeUpThreads() {
    guard let decoder = frames.decoder, !isOpening, decoder.options.threads != options.threads,
      offeredCount > 0
    else { return }
    _ = rewind()
  }

  /// Closes the decoder; the next begins with the key frame of the last frame, whatever was decoded behind it. False
  /// where it has to go on as it is.
  private func rewind() -> Bool {
    // Frames without timestamps would not be known again.
    guard let lastTime = frames.lastTime, frames.hasTimestamps,
      buffer.rewindToKey(before: lastTime, bufferGeneration: order.bufferGeneration)
    else { return false }
    frames.close()
    return true
  }

  /// Offers a frame, or lets it go where it stands before the one that is wanted.
  private func offerWhereWanted(_ placed: consuming TimedFrame) {
    let frame = placed
    guard let target = order.target, offeredCount == 0 else { return offer(frame) }
    let time = frame.time
    // A place behind the end is at the last frame of its iteration, not in the next one.
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

  /// Offers what the ring has refused; false where it still does.
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

/// The generation that is decoded now.
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
