internal import Foundation
public import ReelCore
public import ReelPlayback
public import ReelPool

/// A pool without players, for tests of feeds and of code that draws. It needs no media: it shows the frames that the
/// test makes, records calls, and returns the results that the test sets.
///
/// As with a `PlayerPool`, an index outside the feed is an error.
public final class FakePlayerPool: PlayerPooling {
  /// A recorded call, with its arguments.
  public enum Call: Sendable, Hashable {
    /// A call of `show(_:phase:)` or `show(_:of:phase:)`, also if the index was outside the snapshot.
    case show(Int, FeedSnapshot, SwipePhase)
    /// A call of `update(_:currentIndex:)`.
    case update(FeedSnapshot, currentIndex: Int?)
    /// A call of `setPlaying(_:)`.
    case setPlaying(Bool)
    /// A call of `setMuted(_:)`.
    case setMuted(Bool)
  }

  private struct State: Sendable {
    var calls: [Call] = []
    /// The frames of the items, in turn; empty for items without frames.
    let pictures: [VideoFrame]
    var snapshot: FeedSnapshot
    var index: Int?
    /// The frames shown so far.
    var shown: [VideoFrame] = []
    /// The item whose frame is on show.
    var onShow: FeedItem.ID?
    var readers: [AsyncStream<VideoFrame>.Continuation] = []
    var isClosed = false
    var stages: [FeedItem.ID: PreloadStage] = [:]
    var failures: [FeedItem.ID: ReelError] = [:]
    /// The errors of `fail(_:with:)`, each until its item is shown again.
    var reported: [FeedItem.ID: ReelError] = [:]
    let defaultStage: PreloadStage
    var isPlaying: Bool
    var handler: (@Sendable (FeedItem.ID, ReelError) -> Void)?

    var currentItem: FeedItem? { index.map { snapshot.items[$0] } }

    func stage(of id: FeedItem.ID) -> PreloadStage { stages[id] ?? defaultStage }
    func failure(of id: FeedItem.ID) -> ReelError? { failures[id] ?? reported[id] }

    /// The decoded frame of an item; nil if it has none, is not loaded so far, or fails.
    func frame(of index: Int) -> VideoFrame? {
      let id = snapshot.items[index].id
      guard !pictures.isEmpty, stage(of: id) >= .firstFrame, failure(of: id) == nil else { return nil }
      var frame = pictures[index % pictures.count]
      frame.item = id
      return frame
    }

    /// Makes an item the current one, and shows its frame. Returns its frame.
    mutating func move(to index: Int?) -> VideoFrame? {
      self.index = index.flatMap { snapshot.items.indices.contains($0) ? $0 : nil }
      return showFrame()
    }

    /// Shows the frame of the current item, if it is decoded and not on show, and returns it.
    @discardableResult
    mutating func showFrame() -> VideoFrame? {
      let frame = self.index.flatMap { self.frame(of: $0) }
      defer { onShow = frame?.item }
      if let frame, frame.item != onShow, !isClosed {
        shown.append(frame)
        for reader in readers { reader.yield(frame) }
      }
      return frame
    }
  }

  private let state: Locked<State>
  /// Wakes callers that wait for a first frame.
  private let changes = EventChannel<Void>(bufferLimit: 1)

  /// A pool whose items have no frames, for a `PlayerService`. It plays the items that are shown.
  ///
  /// - Parameter stage: The stage that `show` reports for items without a stage of their own.
  public init(stage: PreloadStage = .notLoaded) {
    let empty = FeedSnapshot(feed: "fake", items: [])
    state = Locked(State(pictures: [], snapshot: empty, defaultStage: stage, isPlaying: true))
  }

  /// A pool whose items have a frame each, all decoded. It shows the first one, paused, like a `PlayerPool` for one feed.
  ///
  /// - Parameters:
  ///   - frames: The frames of the items. If there are more items, they begin with the first frame again.
  ///   - feed: The items; by default, one for each frame. A `PlayerService` replaces them.
  public init(frames: [VideoFrame], feed: Feed? = nil) {
    let feed = feed ?? Feed(name: "fake", urls: frames.indices.map { URL(filePath: "/\($0).mp4") })
    state = Locked(
      State(pictures: frames, snapshot: FeedSnapshot(feed), defaultStage: .firstFrame, isPlaying: false))
    state.withLock { state in _ = state.move(to: 0) }
  }

  /// The calls so far, in order. `setFailureHandler(_:)` is not recorded.
  public var calls: [Call] { state.withLock { $0.calls } }

  /// The last value passed to `setPlaying(_:)`; before that, false for a pool with frames, and true for others.
  public var isPlaying: Bool { state.withLock { $0.isPlaying } }

  /// True if a failure handler is set.
  package var hasFailureHandler: Bool { state.withLock { $0.handler != nil } }

  /// Removes all recorded calls.
  package func forgetCalls() { state.withLock { $0.calls = [] } }

  /// Sets the stage that an item has reached; nil for the default stage.
  ///
  /// Below `firstFrame` a swipe to the item is a miss, and `ready(_:)` and the handover's `firstFrame()` wait until a later
  /// stage is set, or the item fails.
  public func setStage(_ stage: PreloadStage?, of id: FeedItem.ID) {
    state.withLock { state in
      state.stages[id] = stage
      state.showFrame()
    }
    changes.send(())
  }

  /// Makes an item fail now: calls the failure handler, if there is one, and ends each wait for the item's first frame with
  /// the error. When the item is shown again, it has not failed.
  public func fail(
    _ id: FeedItem.ID, with error: ReelError = ReelError(.badMedia, "the item can't be played")
  ) {
    let handler = state.withLock { state in
      state.reported[id] = error
      return state.handler
    }
    handler?(id, error)
    changes.send(())
  }

  /// Makes an item fail whenever it is shown; nil lets it succeed again.
  ///
  /// `show` calls the failure handler before it returns, and returns the error in its handover.
  public func setFailure(_ error: ReelError?, of id: FeedItem.ID) {
    state.withLock { $0.failures[id] = error }
    changes.send(())
  }

  // MARK: PlayerPooling

  public var currentItem: FeedItem? { state.withLock { $0.currentItem } }

  /// Every frame shown since the pool was made, until it is closed. None is dropped, so a test does not depend on when a
  /// reader begins.
  public var frames: AsyncStream<VideoFrame> {
    let (stream, continuation) = AsyncStream.makeStream(of: VideoFrame.self)
    state.withLock { state in
      for frame in state.shown { continuation.yield(frame) }
      if state.isClosed { continuation.finish() } else { state.readers.append(continuation) }
    }
    return stream
  }

  /// The bytes of each item's decoded frame.
  public var memory: MemoryLedger {
    state.withLock { state in
      MemoryLedger(
        entries: state.snapshot.items.enumerated().map { index, item in
          var account = MemoryLedger.Account()
          account[.frames] = state.frame(of: index)?.byteCount ?? 0
          return MemoryLedger.Entry(slot: index, item: item.id, account: account)
        })
    }
  }

  public func ready(_ index: Int) async throws {
    let id = try state.withLock { $0.snapshot }.item(at: index).id
    try await changes.wait {
      let state = self.state.withLock { $0 }
      guard !state.isClosed else { throw ReelError.closed }
      if let error = state.failure(of: id) { throw error }
      try state.snapshot.check(id)
      return state.stage(of: id) >= .firstFrame ? () : nil
    }
  }

  @discardableResult
  public func show(_ index: Int, phase: SwipePhase) -> Handover { show(index, in: nil, phase) }

  @discardableResult
  public func show(_ index: Int, of snapshot: FeedSnapshot, phase: SwipePhase) -> Handover {
    show(index, in: snapshot, phase)
  }

  public func update(_ snapshot: FeedSnapshot, currentIndex index: Int?) {
    state.withLock { state in
      state.calls.append(.update(snapshot, currentIndex: index))
      state.snapshot = snapshot
      _ = state.move(to: index)
    }
    changes.send(())
  }

  public func setPlaying(_ isPlaying: Bool) {
    state.withLock { state in
      state.calls.append(.setPlaying(isPlaying))
      state.isPlaying = isPlaying
    }
  }

  public func setMuted(_ isMuted: Bool) { state.withLock { $0.calls.append(.setMuted(isMuted)) } }

  public func setFailureHandler(_ handler: (@Sendable (FeedItem.ID, ReelError) -> Void)?) {
    state.withLock { $0.handler = handler }
  }

  public func close() {
    let readers = state.withLock { state in
      state.isClosed = true
      defer { state.readers = [] }
      return state.readers
    }
    for reader in readers { reader.finish() }
    changes.finish()
  }

  // MARK: - Private

  /// - Parameter snapshot: Nil for the pool's items.
  private func show(_ index: Int, in snapshot: FeedSnapshot?, _ phase: SwipePhase) -> Handover {
    struct Answer {
      let id: FeedItem.ID
      let frame: VideoFrame?
      let stage: PreloadStage
      let error: ReelError?
      let handler: (@Sendable (FeedItem.ID, ReelError) -> Void)?
    }
    let answer: Answer
    do throws(ReelError) {
      answer = try state.withLock { state throws(ReelError) in
        let snapshot = snapshot ?? state.snapshot
        state.calls.append(.show(index, snapshot, phase))
        guard !state.isClosed else { throw ReelError.closed }
        let id = try snapshot.item(at: index).id
        state.snapshot = snapshot
        state.reported[id] = nil
        let (frame, error) = (state.move(to: index), state.failures[id])
        return Answer(
          id: id, frame: frame, stage: error == nil ? state.stage(of: id) : .notLoaded, error: error,
          handler: state.handler)
      }
    } catch { return Handover(error: error) }
    if let error = answer.error { answer.handler?(answer.id, error) }
    changes.send(())
    return Handover(frame: answer.frame, stage: answer.stage, duration: .zero, error: answer.error) {
      try await self.firstFrame(of: answer.id)
    }
  }

  /// Waits for the frame of an item that was shown before it was decoded.
  private func firstFrame(of id: FeedItem.ID) async throws -> Handover {
    try await changes.wait {
      let state = self.state.withLock { $0 }
      guard !state.isClosed else { throw ReelError.closed }
      if let error = state.failure(of: id) { throw error }
      guard let index = state.index, state.currentItem?.id == id else { throw ReelError.superseded(id) }
      let stage = state.stage(of: id)
      return stage < .firstFrame
        ? nil : Handover(frame: state.frame(of: index), stage: stage, duration: .zero)
    }
  }
}
