internal import DequeModule
package import ReelCore
internal import ReelFFmpeg

/// The decoded frames of one player, in presentation order. It has one producer (the decoder's thread) and
/// one consumer (the presenter). Neither blocks: a side that can't continue returns, and its handler is
/// called later.
///
/// A flush begins a new generation. Each side passes its generation, so work begun before a flush has no
/// effect after it.
///
/// Ownership: the ring owns its frames, and frees them outside its lock.
///
/// With callbacks instead of semaphores, a seek or the end of the item has no blocked thread to wake.
package final class FrameRing: Sendable {
  /// The result of offering a frame.
  package enum Offer: ~Copyable, Sendable {
    case accepted
    /// There is no room, and the frame is returned. `onRoom` is called when there is room for it.
    case full(TimedFrame)
    /// The generation has ended or is finished, and the frame was released.
    case stale
  }

  /// The next frame of the ring.
  package enum Head: Sendable, Equatable {
    /// The times of the first frame and, if there is one, of the second.
    case frame(MediaTime, following: MediaTime?)
    /// No frame yet. `onFrame` is called when there is one.
    case empty
    /// No frame, and none will follow in this generation.
    case drained
  }

  package struct Statistics: Sendable, Hashable {
    /// The frames in the ring and their bytes, as counted by `Frame.byteCount`.
    package internal(set) var frameCount = 0
    package internal(set) var byteCount = 0
    package let frameCapacity: Int
    package let byteCapacity: Int
    /// The maxima since the ring was created.
    package internal(set) var highWaterFrameCount = 0
    package internal(set) var highWaterByteCount = 0
    /// The number of offers that were rejected because the ring was full.
    package internal(set) var producerWaitCount = 0
    /// The number of times that the consumer found the ring empty, but not drained.
    package internal(set) var consumerWaitCount = 0
  }

  fileprivate struct State: ~Copyable {
    var frames = UniqueDeque<TimedFrame>()
    var generation = 0
    var isFinished = false
    /// The time of the last frame taken in this generation.
    var takenTime: MediaTime?
    var statistics: Statistics
    /// The size of the rejected frame while the producer waits for room.
    var refusedByteCount: Int?
    var consumerWaits = false
    var onRoom: (@Sendable () -> Void)?
    var onFrame: (@Sendable () -> Void)?
  }

  private let state: Locked<State>

  /// Creates a ring for at least one frame: a `frameCapacity` below 1 counts as 1, and an empty ring accepts
  /// a frame larger than `byteCapacity`.
  package init(frameCapacity: Int, byteCapacity: Int) {
    state = Locked(
      State(statistics: Statistics(frameCapacity: max(1, frameCapacity), byteCapacity: byteCapacity)),
      rank: .media)
  }

  /// The number of flushes so far.
  package var generation: Int { state.withLock { $0.generation } }

  package var statistics: Statistics { state.withLock { $0.statistics } }

  /// Sets both handlers, once, before either side begins. They are called outside the lock, on the thread
  /// that made the change. `onRoom` is called when a ring that rejected a frame has room for it, or was
  /// flushed; `onFrame` when a ring that was found empty has a frame or is drained. The ring retains both.
  package func setHandlers(onRoom: @escaping @Sendable () -> Void, onFrame: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.onRoom = onRoom
      state.onFrame = onFrame
    }
  }

  // MARK: Producer

  /// Adds a frame that follows the others in presentation order.
  package func offer(_ frame: consuming TimedFrame, generation: Int) -> Offer {
    let byteCount = frame.decoded.byteCount
    // A closure can't consume a capture, but can take it out of an optional.
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

  /// Ends the frames of this generation: after the last, the head is `drained`. Has no effect for another
  /// generation.
  package func finish(generation: Int) {
    let handler = state.withLock { state -> (@Sendable () -> Void)? in
      guard generation == state.generation, !state.isFinished else { return nil }
      state.isFinished = true
      return state.takeFrameHandler()
    }
    handler?()
  }

  /// Cancels `finish`: more frames follow. `onFrame` is called with the next one.
  func resume(generation: Int) {
    state.withLock { state in
      guard generation == state.generation, state.isFinished else { return }
      state.isFinished = false
      state.consumerWaits = true
    }
  }

  // MARK: Consumer

  /// Returns the next frame's times, without taking the frame.
  package func head() -> Head { state.withLock { $0.head } }

  /// Like `head()`; nil if the generation is another one.
  func head(generation: Int) -> Head? {
    state.withLock { $0.generation == generation ? $0.head : nil }
  }

  /// Takes the first frame; nil if the ring is empty or the generation is another one.
  package func take(generation: Int) -> TimedFrame? {
    var taken: TimedFrame?
    let handler = state.withLock { state -> (@Sendable () -> Void)? in
      guard generation == state.generation else { return nil }
      guard !state.frames.isEmpty else {
        state.recordEmpty()
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

  /// Returns true if the next frame belongs to a span other than `span` that follows a gap in the timeline.
  func headFollowsGap(generation: Int, than span: StreamSpan?) -> Bool {
    state.withLock { state in
      guard generation == state.generation, !state.frames.isEmpty, let own = state.frames[0].span else {
        return false
      }
      return own !== span && own.followsGap
    }
  }

  /// Drops the frames of iterations after `iteration`.
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

  /// Returns the time of the last frame taken, even if it is not on show yet; nil if none was taken, or if
  /// the generation is another one.
  func takenTime(generation: Int) -> MediaTime? {
    state.withLock { $0.generation == generation ? $0.takenTime : nil }
  }

  /// Releases all frames without ending the generation. Frames after `time` will be offered again. Returns
  /// false without releasing any if the consumer has taken one of them.
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

  /// Releases all frames and begins a new generation. Returns its number. High-water marks and counts are
  /// kept. The consumer is not called back now, but with the first frame of the new generation if it found
  /// the ring empty.
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
  /// The state of the next frame. Records that the consumer waits if there is none.
  fileprivate var head: FrameRing.Head {
    mutating get {
      guard !frames.isEmpty else {
        recordEmpty()
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

  mutating func recordEmpty() {
    guard !isFinished else { return }
    statistics.consumerWaitCount += 1
    consumerWaits = true
  }

  /// Returns the handler, if the producer waits and there is room for its frame.
  mutating func takeRoomHandler() -> (@Sendable () -> Void)? {
    guard let refusedByteCount, hasRoom(for: refusedByteCount) else { return nil }
    self.refusedByteCount = nil
    return onRoom
  }

  /// Returns the handler, if the consumer waits.
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
