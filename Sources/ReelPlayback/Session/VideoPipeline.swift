internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import Synchronization

/// Decodes the packets of a forward buffer into a frame ring.
///
/// A turn decodes until the ring is full or the packets have run out (`TrackDecoder`). After a seek the frames before the
/// wanted one are decoded and let go.
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
  private let packets: BufferedPackets
  private let frames: TrackDecoder
  private var order = Order(epoch: -1)
  /// Of the order, for the decoder: it is kept over seeks.
  private let epoch: DecodingEpoch
  /// The latest picture at or before the target, until it is known whether there is a later one.
  private var candidate: TimedPicture?
  /// The time through the item in which the target lies; nil before there is a picture.
  private var targetIteration: Int?
  /// Refused by the ring.
  private var refused: TimedPicture?
  /// Comes after the one that is refused.
  private var refusedNext: TimedPicture?
  private var offeredCount = 0
  private var isOpening = true
  private var isFinished = false
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
    let epoch = DecodingEpoch()
    self.epoch = epoch
    packets = BufferedPackets(buffer)
    frames = TrackDecoder(
      packets,
      options: TrackDecoder.Options(
        name: options.name, logger: options.logger, gate: options.gate, clock: options.clock,
        isCancelled: {
          isCancelled() || buffer.epoch(of: .video) != epoch.value.load(ordering: .relaxed)
        }))
  }

  /// As many pictures were offered as are wanted now.
  var hasReachedLimit: Bool { order.limit.map { offeredCount >= $0 } ?? false }

  /// What was decoded so far.
  var account: DecodingAccount {
    DecodingAccount(
      duration: frames.duration, firstPictureDuration: firstPictureDuration, pictureCount: frames.frameCount,
      repeatedCount: frames.repeatedCount)
  }

  /// Decodes as far as it can go. Throws `ReelError` or `CancellationError`.
  func turn(_ order: Order) throws -> Outcome {
    if order.epoch != self.order.epoch { try begin(order) }
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
      case .frame(let picture):
        isOpening = false
        if offeredCount == 0 { firstPictureDuration = frames.duration }
        // Whoever takes the picture from the ring finds in the account what it took.
        options.noteDecoding(account)
        offerWhereWanted(picture)
      case .discarded:
        isOpening = false
        options.noteDecoding(account)
      case .needsPacket:
        // Frames that the decoder holds back for their order are not drained at a stall: it would have to decode its group of
        // pictures again from the key frame each time. So a stream with reordering stalls some frames before the end of what
        // was loaded.
        return .idle
      case .stale:
        return .idle
      case .runEnded:
        break
      case .end:
        return try finish()
      }
    }
  }

  /// Lets go of the decoder, where it can go on at the same picture later: it begins with the key frame again then. True
  /// where that was done now.
  func park() -> Bool { frames.decoder != nil && rewind() }

  /// Goes back to behind the picture on show, for the ones that were decoded ahead of it to be let go. False, and
  /// nothing is done, where that can't be.
  func rest(at shown: MediaTime) -> Bool {
    guard frames.hasTimestamps, buffer.rewindToKey(before: shown, epoch: order.epoch) else { return false }
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
    firstPictureDuration = nil
    isFinished = false
    isOpening = !order.prefersThroughput
    epoch.value.store(order.epoch, ordering: .relaxed)
    packets.epoch = order.epoch
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

  /// Once the first picture is there, decoding goes on with all threads, from its key frame on.
  /// A decoder with several frame threads holds the first frame back by as many frames, so the first frame is decoded
  /// with one thread. Beginning again costs one key frame.
  private func takeUpThreads() {
    guard let decoder = frames.decoder, !isOpening, decoder.options.threads != options.threads,
      offeredCount > 0
    else { return }
    _ = rewind()
  }

  /// Closes the decoder; the next begins with the key frame of the last picture, whatever was decoded behind it. False
  /// where it has to go on as it is.
  private func rewind() -> Bool {
    // Pictures without timestamps would not be known again.
    guard let lastTime = frames.lastTime, frames.hasTimestamps,
      buffer.rewindToKey(before: lastTime, epoch: order.epoch)
    else { return false }
    frames.close()
    return true
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

/// The video packets of a forward buffer.
private final class BufferedPackets: PacketSource {
  var epoch = -1
  private let buffer: ForwardBuffer

  init(_ buffer: ForwardBuffer) { self.buffer = buffer }

  func peek() -> NextPacket { buffer.peekNext(.video, epoch: epoch) }

  func next(of run: MediaRun?) -> NextPacket { buffer.next(.video, epoch: epoch, of: run) }
}
