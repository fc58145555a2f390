internal import Foundation
public import ReelCore
public import ReelPlayback
public import ReelPool
public import ReelReading

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

  /// What observers and the surface are told after a change.
  private enum News: Sendable {
    case event(PoolEvent)
    case frame(VideoFrame)
  }

  private struct State: Sendable {
    var calls: [Call] = []
    /// The frames of the items, in turn; empty for items without frames.
    let pictures: [VideoFrame]
    var snapshot = FeedSnapshot(feed: "fake", items: [])
    var index: Int?
    /// The frames shown so far.
    var shown: [VideoFrame] = []
    /// The item whose frame is on show.
    var onShow: FeedItem.ID?
    var readers: [AsyncStream<VideoFrame>.Continuation] = []
    var surface: (any FrameOutput)?
    var surfaceItem: FeedItem.ID?
    /// The items in picture in picture, each with a closure that ends it.
    var pinned: [FeedItem.ID: @Sendable () -> Void] = [:]
    var isClosed = false
    var stages: [FeedItem.ID: PreloadStage] = [:]
    var failures: [FeedItem.ID: ReelError] = [:]
    /// The errors of `fail(_:with:)`, each until its item is shown again.
    var reported: [FeedItem.ID: ReelError] = [:]
    let defaultStage: PreloadStage
    var isPlaying: Bool
    var handler: (@Sendable (FeedItem.ID, ReelError) -> Void)?
    var others: [FeedItem] = []
    var news: [News] = []

    var currentItem: FeedItem? { index.map { snapshot.items[$0] } }

    func stage(of id: FeedItem.ID) -> PreloadStage { stages[id] ?? defaultStage }
    func failure(of id: FeedItem.ID) -> ReelError? { failures[id] ?? reported[id] }

    /// The decoded frame of an item; nil if it has none, is not loaded so far, fails, or is in picture in picture.
    func frame(of index: Int) -> VideoFrame? {
      let id = snapshot.items[index].id
      guard !pictures.isEmpty, stage(of: id) >= .firstFrame, failure(of: id) == nil, pinned[id] == nil else {
        return nil
      }
      var frame = pictures[index % pictures.count]
      frame.item = id
      return frame
    }

    /// A slot for each item.
    var readiness: [SlotReadiness] {
      snapshot.items.enumerated().map { index, item in
        var slot = SlotReadiness(slot: index)
        (slot.item, slot.index, slot.stage) = (item.id, index, stage(of: item.id))
        slot.frameCount = frame(of: index) == nil ? 0 : 1
        if failure(of: item.id) != nil { slot.waiting = .failed }
        return slot
      }
    }

    mutating func tell(_ event: PoolEvent) { news.append(.event(event)) }

    mutating func setItems(_ new: FeedSnapshot) {
      let (old, ids) = (Set(snapshot.items.map(\.id)), Set(new.items.map(\.id)))
      for (slot, item) in snapshot.items.enumerated() where !ids.contains(item.id) {
        tell(.evicted(item.id, slot: slot, stage(of: item.id)))
      }
      for (slot, item) in new.items.enumerated() where !old.contains(item.id) {
        tell(.assigned(item.id, slot: slot))
      }
      snapshot = new
    }

    /// Makes an item the current one, and shows its frame. Returns its frame.
    mutating func move(to index: Int?) -> VideoFrame? {
      self.index = index.flatMap { snapshot.items.indices.contains($0) ? $0 : nil }
      return showFrame()
    }

    /// Shows the frame of the current item, if it is decoded and not on show, and returns it.
    @discardableResult
    mutating func showFrame() -> VideoFrame? {
      followSurface()
      let frame = self.index.flatMap { self.frame(of: $0) }
      defer { onShow = frame?.item }
      if let frame, frame.item != onShow, !isClosed {
        shown.append(frame)
        for reader in readers { reader.yield(frame) }
        news.append(.frame(frame))
      }
      return frame
    }

    /// Moves the surface to the current item.
    mutating func followSurface() {
      var id = surface == nil || isClosed ? nil : currentItem?.id
      if let current = id, pinned[current] != nil { id = nil }
      guard id != surfaceItem else { return }
      if let surfaceItem { tell(.surfaceDetached(surfaceItem)) }
      if let id { tell(.surfaceAttached(id)) }
      surfaceItem = id
    }

    /// Returns the surface before, if it has ended.
    mutating func setSurface(_ output: (any FrameOutput)?) -> (any FrameOutput)? {
      guard !isClosed else { return output }
      let old = surface
      surface = nil
      followSurface()
      surface = output
      followSurface()
      if let frame = index.flatMap({ frame(of: $0) }) { news.append(.frame(frame)) }
      return old === output ? nil : old
    }
  }

  private let state: Locked<State>
  /// Held while an output is called, which may use the pool.
  private let outputLock = OutputLock()
  private let poolEvents = EventChannel<PoolEvent>(memory: 512)
  private let slots = ObservedSource<[SlotReadiness]>([])
  /// Wakes callers that wait for a first frame.
  private let changes = EventChannel<Void>(bufferLimit: 1)

  /// A pool whose items have no frames, for a `PlayerService`. It plays the items that are shown.
  ///
  /// - Parameter stage: The stage that `show` reports for items without a stage of their own.
  public init(stage: PreloadStage = .notLoaded) {
    state = Locked(State(pictures: [], defaultStage: stage, isPlaying: true), rank: .pool)
  }

  /// A pool whose items have a frame each, all decoded. It shows the first one, paused, like a `PlayerPool` for one feed.
  ///
  /// - Parameters:
  ///   - frames: The frames of the items. If there are more items, they begin with the first frame again.
  ///   - feed: The items; by default, one for each frame. A `PlayerService` replaces them.
  public init(frames: [VideoFrame], feed: Feed? = nil) {
    let feed = feed ?? Feed(name: "fake", urls: frames.indices.map { URL(filePath: "/\($0).mp4") })
    state = Locked(State(pictures: frames, defaultStage: .firstFrame, isPlaying: false), rank: .pool)
    change { state in
      state.setItems(FeedSnapshot(feed))
      _ = state.move(to: 0)
    }
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
    change { state in
      let old = state.stage(of: id)
      state.stages[id] = stage
      let new = state.stage(of: id)
      if new > old, let slot = state.snapshot.items.firstIndex(where: { $0.id == id }) {
        state.tell(.reached(id, slot: slot, new, after: .zero))
      }
      state.showFrame()
    }
  }

  /// Makes an item fail now: calls the failure handler, if there is one, and ends each wait for the item's first frame with
  /// the error. When the item is shown again, it has not failed.
  public func fail(
    _ id: FeedItem.ID, with error: ReelError = ReelError(.badMedia, "the item can't be played")
  ) {
    let handler = change { state in
      state.reported[id] = error
      state.tell(.player(id, .failed(error)))
      return state.handler
    }
    handler?(id, error)
  }

  /// Makes an item fail whenever it is shown; nil lets it succeed again.
  ///
  /// `show` calls the failure handler before it returns, and returns the error in its handover.
  public func setFailure(_ error: ReelError?, of id: FeedItem.ID) { change { $0.failures[id] = error } }

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

  /// A slot for each item, with the stage that the test has set.
  public var readiness: ObservedProperty<[SlotReadiness]> { slots.property }

  /// Slots, stages and failures as the test sets them, what is shown, the surface, and picture in picture.
  public var events: AsyncStream<PoolEvent> { poolEvents.events }

  public var surfaceItem: FeedItem.ID? { state.withLock { $0.surfaceItem } }

  public func setSurface(_ output: (any FrameOutput)?) throws {
    try change { $0.setSurface(output) }?.finish()
  }

  /// Shows the current item's frame to the output. The player of the result has no item.
  public func startPictureInPicture(to output: any FrameOutput) throws(ReelError) -> PictureInPicturePlayer {
    let player = Player(fetcher: NoMedia())
    let outcome = change { state -> Result<(PictureInPicturePlayer, VideoFrame?), ReelError> in
      guard !state.isClosed else { return .failure(.closed) }
      guard let index = state.index, let item = state.currentItem, state.pinned[item.id] == nil else {
        return .failure(ReelError(.usage, "there is no current player to pin"))
      }
      let frame = state.frame(of: index)
      let pinned = PictureInPicturePlayer(
        item, player: player, output: output, emit: { [poolEvents] in poolEvents.send($0) },
        onStop: { [weak self] in self?.unpin(item.id) })
      state.pinned[item.id] = { [weak pinned] in pinned?.stop() }
      pinned.start()
      state.showFrame()
      return .success((pinned, frame))
    }
    let (pinned, frame) = try outcome.get()
    do {
      try player.attach(output)
    } catch {
      pinned.stop()
      throw error
    }
    if let frame { try? output.show(frame) }
    pinned.hasStarted()
    return pinned
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
      guard state.pinned[id] == nil else { throw ReelError.pinned(id) }
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
    change { state in
      state.calls.append(.update(snapshot, currentIndex: index))
      state.setItems(snapshot)
      _ = state.move(to: index)
    }
  }

  /// The items of the last call of `keepStarts(of:)`. Nothing is loaded.
  public var itemsOfOtherFeeds: [FeedItem] { state.withLock { $0.others } }

  public func keepStarts(of items: [FeedItem]) { state.withLock { $0.others = items } }

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
    let (readers, surface, pinned) = change { state in
      state.isClosed = true
      state.followSurface()
      defer { (state.readers, state.surface, state.pinned) = ([], nil, [:]) }
      return (state.readers, state.surface, state.pinned)
    }
    for stop in pinned.values { stop() }
    try? surface?.finish()
    for reader in readers { reader.finish() }
    poolEvents.finish()
    slots.finish()
    changes.finish()
  }

  // MARK: - Private

  /// Changes the state, and tells what has happened: to observers, to the surface, and to callers that wait.
  @discardableResult
  private func change<Success: Sendable>(_ body: (inout State) -> Success) -> Success {
    defer { changes.send(()) }
    return outputLock.withLock {
      let (result, news, surface) = state.withLock { state in
        let result = body(&state)
        slots.set(state.readiness)
        defer { state.news = [] }
        return (result, state.news, state.surface)
      }
      for news in news {
        switch news {
        case .event(let event): poolEvents.send(event)
        case .frame(let frame): try? surface?.show(frame)
        }
      }
      return result
    }
  }

  private func unpin(_ id: FeedItem.ID) {
    change { state in
      state.pinned[id] = nil
      state.showFrame()
    }
  }

  /// - Parameter snapshot: Nil for the pool's items.
  private func show(_ index: Int, in snapshot: FeedSnapshot?, _ phase: SwipePhase) -> Handover {
    struct Answer {
      let id: FeedItem.ID
      let frame: VideoFrame?
      let stage: PreloadStage
      let error: ReelError?
      let handler: (@Sendable (FeedItem.ID, ReelError) -> Void)?
    }
    let outcome = change { state -> Result<Answer, ReelError> in
      let snapshot = snapshot ?? state.snapshot
      state.calls.append(.show(index, snapshot, phase))
      guard !state.isClosed else { return .failure(.closed) }
      guard snapshot.items.indices.contains(index) else { return .failure(snapshot.outside(index)) }
      let id = snapshot.items[index].id
      state.setItems(snapshot)
      state.reported[id] = nil
      let error = state.failures[id]
      let stage = error == nil && state.pinned[id] == nil ? state.stage(of: id) : .notLoaded
      state.tell(.shown(id, phase, stage: stage))
      if let error { state.tell(.player(id, .failed(error))) }
      let frame = state.move(to: index)
      return .success(Answer(id: id, frame: frame, stage: stage, error: error, handler: state.handler))
    }
    let answer: Answer
    switch outcome {
    case .success(let success): answer = success
    case .failure(let error): return Handover(error: error)
    }
    if let error = answer.error { answer.handler?(answer.id, error) }
    return Handover(frame: answer.frame, stage: answer.stage, duration: .zero, error: answer.error) {
      try await self.firstFrame(of: answer.id)
    }
  }

  /// Waits for the frame of an item that was shown before it was decoded.
  private func firstFrame(of id: FeedItem.ID) async throws -> Handover {
    try await changes.wait {
      let state = self.state.withLock { $0 }
      guard !state.isClosed else { throw ReelError.closed }
      guard state.pinned[id] == nil else { throw ReelError.pinned(id) }
      if let error = state.failure(of: id) { throw error }
      guard let index = state.index, state.currentItem?.id == id else { throw ReelError.superseded(id) }
      let stage = state.stage(of: id)
      return stage < .firstFrame
        ? nil : Handover(frame: state.frame(of: index), stage: stage, duration: .zero)
    }
  }
}

/// Fetches nothing, for players without items.
private struct NoMedia: Fetching {
  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    throw ReelError(.unsupported, "a fake has no media", at: request.url.absoluteString)
  }
}
