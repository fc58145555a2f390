internal import DequeModule
package import ReelCore
internal import ReelFFmpeg

/// The decoded frames of one player, in presentation order: one producer (the decoder's thread), one consumer (who
/// shows them). Neither ever waits here: a side that can't go on returns, and is told through its handler.
///
/// A flush begins a new generation. Each side names the one that it works for, so that what it had begun before a flush
/// does nothing after it.
///
/// Ownership: the ring owns the frames in it; they are freed outside its lock.
///
/// A side that can't go on returns and is called back instead of blocking on a semaphore: at a seek or the end there is
/// no blocked thread to wake that then has to find out why.
package final class FrameRing: Sendable {
  /// What became of a frame that was offered.
  package enum Offer: ~Copyable, Sendable {
    case accepted
    /// There is no room: the frame comes back. `onRoom` is called when there is room for it.
    case full(TimedFrame)
    /// Of an earlier generation, or after its `finish`: it has been released.
    case stale
  }

  /// What comes next out of the ring.
  package enum Head: Sendable, Equatable {
    /// The times of the first frame, and of the second where it is there.
    case frame(MediaTime, following: MediaTime?)
    /// There is none yet. `onFrame` is called when there is.
    case empty
    /// There is none, and none will come in this generation.
    case drained
  }

  package struct Statistics: Sendable, Hashable {
    /// Frames in the ring now, and their bytes as `Frame.byteCount` has them.
    package internal(set) var frameCount = 0
    package internal(set) var byteCount = 0
    package let frameCapacity: Int
    package let byteCapacity: Int
    /// The most that there were at a time since the ring was made.
    package internal(set) var highWaterFrameCount = 0
    package internal(set) var highWaterByteCount = 0
    /// Offers that were refused because the ring was full.
    package internal(set) var producerWaitCount = 0
    /// Looks and takes that found it empty, and not drained.
    package internal(set) var consumerWaitCount = 0
  }

  fileprivate struct State: ~Copyable {
    var frames = UniqueDeque<TimedFrame>()
    var generation = 0
    var isFinished = false
    /// Of the last frame that was taken in this generation.
    var takenTime: MediaTime?
    var statistics: Statistics
    /// Bytes of the frame that was refused, while the producer waits for room for it.
    var refusedByteCount: Int?
    var consumerWaits = false
    var onRoom: (@Sendable () -> Void)?
    var onFrame: (@Sendable () -> Void)?
  }

  private let state: Locked<State>

  /// A ring of at least one frame: `frameCapacity` below 1 is taken as 1, and one that is larger than `byteCapacity`
  /// is accepted into an empty ring.
  package init(frameCapacity: Int, byteCapacity: Int) {
    state = Locked(
      State(statistics: Statistics(frameCapacity: max(1, frameCapacity), byteCapacity: byteCapacity)),
      rank: .media)
  }

  /// The number of flushes so far.
  package var generation: Int { state.withLock { $0.generation } }

  package var statistics: Statistics { state.withLock { $0.statistics } }

  /// Sets both handlers, once, before either side begins. They are called outside the lock, on the thread that made the
  /// change: `onRoom` when a ring that refused an offer has room for it again (or was flushed), `onFrame` when one
  /// that was found empty has a frame or is drained. The ring holds them as long as it lives.
  package func setHandlers(onRoom: @escaping @Sendable () -> Void, onFrame: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.onRoom = onRoom
      state.onFrame = onFrame
    }
  }

  // MARK: Producer

  /// Adds a frame, which follows those before it in presentation order.
  package func offer(_ frame: consuming TimedFrame, generation: Int) -> Offer {
    let byteCount = frame.decoded.byteCount
    // A closure can't consume what it captures, but can take it out of an optional.
    var offered: TimedFrame? = frame
    let (isStale, handler) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
      guard generation == state.generation, !state.isFinished else { return (true, nil) }
      guard state.hasRoom(for: byteCount) else {
        state.statistics.producerWaitCount += 1
        state.refusedByteCount = byteCount
        return (false, nil)
      }
      guard let frame = offered.take() else { return (false, nil) }
      state.refusedByteCount = nil
      state.frames.append(frame)
      state.statistics.add(byteCount)
      return (false, state.takeFrameHandler())
    }
    handler?()
    if isStale { return .stale }
    guard let refused = offered.take() else { return .accepted }
    return .full(refused)
  }

  /// No more frames come in this generation: the head is `drained` after the last. Nothing where the generation is
  /// another.
  package func finish(generation: Int) {
    let handler = state.withLock { state -> (@Sendable () -> Void)? in
      guard generation == state.generation, !state.isFinished else { return nil }
      state.isFinished = true
      return state.takeFrameHandler()
    }
    handler?()
  }

  /// Takes back a `finish`: more frames come after all. `onFrame` is called with the next one.
  func goOn(generation: Int) {
    state.withLock { state in
      guard generation == state.generation, state.isFinished else { return }
      state.isFinished = false
      state.consumerWaits = true
    }
  }

  // MARK: Consumer

  /// Looks at what comes next without taking it.
  package func head() -> Head { state.withLock { $0.head } }

  /// As `head()`; nil where the generation is another: what comes next of it says nothing of this one.
  func head(generation: Int) -> Head? {
    state.withLock { $0.generation == generation ? $0.head : nil }
  }

  /// The first frame; nil where the ring is empty or the generation is another.
  package func take(generation: Int) -> TimedFrame? {
    var taken: TimedFrame?
    let handler = state.withLock { state -> (@Sendable () -> Void)? in
      guard generation == state.generation else { return nil }
      guard !state.frames.isEmpty else {
        state.noteEmpty()
        return nil
      }
      state.statistics.remove(state.frames[0].decoded.byteCount)
      state.takenTime = state.frames[0].time
      taken = state.frames.removeFirst()
      return state.takeRoomHandler()
    }
    handler?()
    return taken
  }

  /// True where the next frame is of another span than `span`, and that follows a hole in the timeline.
  func headFollowsGap(generation: Int, than span: StreamSpan?) -> Bool {
    state.withLock { state in
      guard generation == state.generation, !state.frames.isEmpty, let own = state.frames[0].span else {
        return false
      }
      return own !== span && own.followsGap
    }
  }

  /// Lets go of the frames of later times through the item than `iteration`.
  func drop(after iteration: Int) {
    let handler = state.withLock { state -> (@Sendable () -> Void)? in
      while let last = state.frames.indices.last, let span = state.frames[last].span,
        span.loop.iteration > iteration
      {
        state.statistics.remove(state.frames[last].decoded.byteCount)
        _ = state.frames.removeLast()
      }
      return state.takeRoomHandler()
    }
    handler?()
  }

  /// The time of the last frame that was taken, whether it is on show yet or not; nil where none was, or the generation
  /// is another.
  func takenTime(generation: Int) -> MediaTime? {
    state.withLock { $0.generation == generation ? $0.takenTime : nil }
  }

  /// Releases all frames of this generation, which goes on: those after `time` will be offered again. False, and nothing
  /// is done, where the consumer has taken one of them by now.
  func clear(generation: Int, after time: MediaTime) -> Bool {
    var frames = UniqueDeque<TimedFrame>()
    let (isCleared, handler) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
      guard generation == state.generation else { return (true, nil) }
      guard state.takenTime == time else { return (false, nil) }
      swap(&frames, &state.frames)
      state.isFinished = false
      state.consumerWaits = true
      state.statistics.frameCount = 0
      state.statistics.byteCount = 0
      return (true, state.takeRoomHandler())
    }
    handler?()
    return isCleared
  }

  // MARK: Both

  /// Releases all frames and begins a new generation, whose number is the result. High-water marks and counts stay.
  /// The consumer is not told: it is told of the first frame of the new generation if it has found the ring empty.
  @discardableResult
  package func flush() -> Int {
    var frames = UniqueDeque<TimedFrame>()
    let (generation, handler) = state.withLock { state in
      swap(&frames, &state.frames)
      state.generation += 1
      state.isFinished = false
      state.takenTime = nil
      state.statistics.frameCount = 0
      state.statistics.byteCount = 0
      return (state.generation, state.takeRoomHandler())
    }
    handler?()
    return generation
  }
}

extension FrameRing.State {
  /// What comes next; that there is nothing is noted.
  fileprivate var head: FrameRing.Head {
    mutating get {
      guard !frames.isEmpty else {
        noteEmpty()
        return isFinished ? .drained : .empty
      }
      return .frame(frames[0].time, following: frames.count > 1 ? frames[1].time : nil)
    }
  }

  func hasRoom(for byteCount: Int) -> Bool {
    guard statistics.frameCount > 0 else { return true }
    return statistics.frameCount < statistics.frameCapacity
      && statistics.byteCount + byteCount <= statistics.byteCapacity
  }

  mutating func noteEmpty() {
    guard !isFinished else { return }
    statistics.consumerWaitCount += 1
    consumerWaits = true
  }

  /// The handler, where the producer waits and there is room for what it has.
  mutating func takeRoomHandler() -> (@Sendable () -> Void)? {
    guard let refusedByteCount, hasRoom(for: refusedByteCount) else { return nil }
    self.refusedByteCount = nil
    return onRoom
  }

  /// The handler, where the consumer waits.
  mutating func takeFrameHandler() -> (@Sendable () -> Void)? {
    guard consumerWaits else { return nil }
    consumerWaits = false
    return onFrame
  }
}

extension FrameRing.Statistics {
  fileprivate mutating func add(_ bytes: Int) {
    frameCount += 1
    byteCount += bytes
    highWaterFrameCount = max(highWaterFrameCount, frameCount)
    highWaterByteCount = max(highWaterByteCount, byteCount)
  }

  fileprivate mutating func remove(_ bytes: Int) {
    frameCount -= 1
    byteCount -= bytes
  }
}
