internal import DequeModule
public import ReelCore
internal import ReelFFmpeg

/// The decoded pictures of one player, in presentation order: one producer (the decoder's thread), one consumer (who
/// shows them). Neither ever waits here: a side that can't go on returns, and is told through its handler.
///
/// A flush begins a new generation. Each side names the one that it works for, so that what it had begun before a flush
/// does nothing after it.
///
/// Ownership: the ring owns the pictures in it; they are freed outside its lock.
///
/// A side that can't go on returns and is called back instead of blocking on a semaphore: at a seek or the end there is
/// no blocked thread to wake that then has to find out why.
public final class FrameRing: Sendable {
  /// What became of a picture that was offered.
  public enum Offer: ~Copyable, Sendable {
    case accepted
    /// There is no room: the picture comes back. `onRoom` is called when there is room for it.
    case full(TimedPicture)
    /// Of an earlier generation, or after its `finish`: it has been released.
    case stale
  }

  /// What comes next out of the ring.
  public enum Head: Sendable, Equatable {
    /// The times of the first picture, and of the second where it is there.
    case picture(MediaTime, following: MediaTime?)
    /// There is none yet. `onPicture` is called when there is.
    case empty
    /// There is none, and none will come in this generation.
    case drained
  }

  public struct Statistics: Sendable, Hashable {
    /// Pictures in the ring now, and their bytes as `Frame.byteCount` has them.
    public internal(set) var frameCount = 0
    public internal(set) var byteCount = 0
    public let frameCapacity: Int
    public let byteCapacity: Int
    /// The most that there were at a time since the ring was made.
    public internal(set) var highWaterFrameCount = 0
    public internal(set) var highWaterByteCount = 0
    /// Offers that were refused because the ring was full.
    public internal(set) var producerWaitCount = 0
    /// Looks and takes that found it empty, and not drained.
    public internal(set) var consumerWaitCount = 0
  }

  fileprivate struct State: ~Copyable {
    var pictures = UniqueDeque<TimedPicture>()
    var generation = 0
    var isFinished = false
    /// Of the last picture that was taken in this generation.
    var takenTime: MediaTime?
    var statistics: Statistics
    /// Bytes of the picture that was refused, while the producer waits for room for it.
    var refusedByteCount: Int?
    var consumerWaits = false
    var onRoom: (@Sendable () -> Void)?
    var onPicture: (@Sendable () -> Void)?
  }

  private let state: Locked<State>

  /// A ring of at least one picture: `frameCapacity` below 1 is taken as 1, and one that is larger than `byteCapacity`
  /// is accepted into an empty ring.
  public init(frameCapacity: Int, byteCapacity: Int) {
    state = Locked(
      State(statistics: Statistics(frameCapacity: max(1, frameCapacity), byteCapacity: byteCapacity)),
      rank: .media)
  }

  /// The number of flushes so far.
  public var generation: Int { state.withLock { $0.generation } }

  public var statistics: Statistics { state.withLock { $0.statistics } }

  /// Sets both handlers, once, before either side begins. They are called outside the lock, on the thread that made the
  /// change: `onRoom` when a ring that refused an offer has room for it again (or was flushed), `onPicture` when one
  /// that was found empty has a picture or is drained. The ring holds them as long as it lives.
  public func setHandlers(onRoom: @escaping @Sendable () -> Void, onPicture: @escaping @Sendable () -> Void) {
    state.withLock { state in
      state.onRoom = onRoom
      state.onPicture = onPicture
    }
  }

  // MARK: Producer

  /// Adds a picture, which follows those before it in presentation order.
  public func offer(_ picture: consuming TimedPicture, generation: Int) -> Offer {
    let byteCount = picture.frame.byteCount
    // A closure can't consume what it captures, but can take it out of an optional.
    var offered: TimedPicture? = picture
    let (isStale, handler) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
      guard generation == state.generation, !state.isFinished else { return (true, nil) }
      guard state.hasRoom(for: byteCount) else {
        state.statistics.producerWaitCount += 1
        state.refusedByteCount = byteCount
        return (false, nil)
      }
      guard let picture = offered.take() else { return (false, nil) }
      state.refusedByteCount = nil
      state.pictures.append(picture)
      state.statistics.add(byteCount)
      return (false, state.takePictureHandler())
    }
    handler?()
    if isStale { return .stale }
    guard let refused = offered.take() else { return .accepted }
    return .full(refused)
  }

  /// No more pictures come in this generation: the head is `drained` after the last. Nothing where the generation is
  /// another.
  public func finish(generation: Int) {
    let handler = state.withLock { state -> (@Sendable () -> Void)? in
      guard generation == state.generation, !state.isFinished else { return nil }
      state.isFinished = true
      return state.takePictureHandler()
    }
    handler?()
  }

  /// Takes back a `finish`: more pictures come after all. `onPicture` is called with the next one.
  func goOn(generation: Int) {
    state.withLock { state in
      guard generation == state.generation, state.isFinished else { return }
      state.isFinished = false
      state.consumerWaits = true
    }
  }

  // MARK: Consumer

  /// Looks at what comes next without taking it.
  public func head() -> Head { state.withLock { $0.head } }

  /// As `head()`; nil where the generation is another: what comes next of it says nothing of this one.
  func head(generation: Int) -> Head? {
    state.withLock { $0.generation == generation ? $0.head : nil }
  }

  /// The first picture; nil where the ring is empty or the generation is another.
  public func take(generation: Int) -> TimedPicture? {
    var taken: TimedPicture?
    let handler = state.withLock { state -> (@Sendable () -> Void)? in
      guard generation == state.generation else { return nil }
      guard !state.pictures.isEmpty else {
        state.noteEmpty()
        return nil
      }
      state.statistics.remove(state.pictures[0].frame.byteCount)
      state.takenTime = state.pictures[0].time
      taken = state.pictures.removeFirst()
      return state.takeRoomHandler()
    }
    handler?()
    return taken
  }

  /// True where the next picture is of another run than `run`, and that follows a hole in the timeline.
  func headFollowsGap(generation: Int, than run: MediaRun?) -> Bool {
    state.withLock { state in
      guard generation == state.generation, !state.pictures.isEmpty, let own = state.pictures[0].run else {
        return false
      }
      return own !== run && own.followsGap
    }
  }

  /// Lets go of the pictures of later times through the item than `iteration`.
  func drop(after iteration: Int) {
    let handler = state.withLock { state -> (@Sendable () -> Void)? in
      while let last = state.pictures.indices.last, let run = state.pictures[last].run,
        run.pass.iteration > iteration
      {
        state.statistics.remove(state.pictures[last].frame.byteCount)
        _ = state.pictures.removeLast()
      }
      return state.takeRoomHandler()
    }
    handler?()
  }

  /// The time of the last picture that was taken, whether it is on show yet or not; nil where none was, or the generation
  /// is another.
  func takenTime(generation: Int) -> MediaTime? {
    state.withLock { $0.generation == generation ? $0.takenTime : nil }
  }

  /// Releases all pictures of this generation, which goes on: those after `time` will be offered again. False, and nothing
  /// is done, where the consumer has taken one of them by now.
  func clear(generation: Int, after time: MediaTime) -> Bool {
    var pictures = UniqueDeque<TimedPicture>()
    let (isCleared, handler) = state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
      guard generation == state.generation else { return (true, nil) }
      guard state.takenTime == time else { return (false, nil) }
      swap(&pictures, &state.pictures)
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

  /// Releases all pictures and begins a new generation, whose number is the result. High-water marks and counts stay.
  /// The consumer is not told: it is told of the first picture of the new generation if it has found the ring empty.
  @discardableResult
  public func flush() -> Int {
    var pictures = UniqueDeque<TimedPicture>()
    let (generation, handler) = state.withLock { state in
      swap(&pictures, &state.pictures)
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
      guard !pictures.isEmpty else {
        noteEmpty()
        return isFinished ? .drained : .empty
      }
      return .picture(pictures[0].time, following: pictures.count > 1 ? pictures[1].time : nil)
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
  mutating func takePictureHandler() -> (@Sendable () -> Void)? {
    guard consumerWaits else { return nil }
    consumerWaits = false
    return onPicture
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
