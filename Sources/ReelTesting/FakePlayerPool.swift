public import ReelCore
public import ReelPlayback
public import ReelPool

/// A pool without players: it records what it is asked, and answers as a test wants. No media is needed for it.
///
/// It says of the same calls the same as a `PlayerPool`: an index that the snapshot does not have is an error.
public final class FakePlayerPool: PlayerPooling {
  /// What it was asked.
  public enum Call: Sendable, Hashable {
    case show(Int, FeedSnapshot, SwipePhase)
    case update(FeedSnapshot, currentIndex: Int?)
    case setPlaying(Bool)
  }

  private struct State {
    var calls: [Call] = []
    var stages: [FeedItem.ID: PreloadStage] = [:]
    var failures: [FeedItem.ID: ReelError] = [:]
    var defaultStage = PreloadStage.none
    var current: FeedItem.ID?
    var isPlaying = true
    var handler: (@Sendable (FeedItem.ID, ReelError) -> Void)?
  }

  private let state = Locked(State())

  /// - Parameter stage: what is said of items without a stage of their own; hits have no frame.
  public init(stage: PreloadStage = .none) { state.withLock { $0.defaultStage = stage } }

  /// What it was asked so far, in order. `setFailureHandler` is not among it.
  public var calls: [Call] { state.withLock { $0.calls } }

  /// The item that was shown last, or that an update has made the current one; nil for none.
  public var currentItem: FeedItem.ID? { state.withLock { $0.current } }

  /// What was asked last; playing at first.
  public var isPlaying: Bool { state.withLock { $0.isPlaying } }

  /// There is someone to be told of failures.
  public var hasFailureHandler: Bool { state.withLock { $0.handler != nil } }

  /// Forgets what it was asked.
  public func forgetCalls() { state.withLock { $0.calls = [] } }

  /// Sets the stage that a swipe to an item finds; nil for that of all others.
  public func setStage(_ stage: PreloadStage?, of id: FeedItem.ID) {
    state.withLock { $0.stages[id] = stage }
  }

  /// Reports that an item can't be played, now.
  public func fail(_ id: FeedItem.ID, with error: ReelError = FakePlayerPool.failure) {
    state.withLock { $0.handler }?(id, error)
  }

  /// Has an item fail whenever it is shown, before `show` returns; nil ends that.
  public func setFailure(_ error: ReelError?, of id: FeedItem.ID) {
    state.withLock { $0.failures[id] = error }
  }

  /// What items fail with where nothing else is said.
  public static let failure = ReelError(.badMedia, "the item can't be played")

  // MARK: PlayerPooling

  @discardableResult
  public func show(_ index: Int, of snapshot: FeedSnapshot, phase: SwipePhase) throws(ReelError) -> Handover {
    typealias Answer = (stage: PreloadStage, error: ReelError?, failure: (() -> Void)?)
    let answer = state.withLock { state -> Answer? in
      state.calls.append(.show(index, snapshot, phase))
      guard snapshot.items.indices.contains(index) else { return nil }
      let id = snapshot.items[index].id
      state.current = id
      let (error, handler) = (state.failures[id], state.handler)
      let failure = error.flatMap { error in handler.map { handler in { handler(id, error) } } }
      return (state.stages[id] ?? state.defaultStage, error, failure)
    }
    guard let answer else {
      throw ReelError(.usage, "the feed \(snapshot.feed) has no item \(index)")
    }
    answer.failure?()
    return Handover(frame: nil, stage: answer.stage, duration: .zero, error: answer.error)
  }

  public func update(_ snapshot: FeedSnapshot, currentIndex index: Int?) {
    state.withLock { state in
      state.calls.append(.update(snapshot, currentIndex: index))
      state.current = index.flatMap { snapshot.items.indices.contains($0) ? snapshot.items[$0].id : nil }
    }
  }

  public func setPlaying(_ isPlaying: Bool) {
    state.withLock { state in
      state.calls.append(.setPlaying(isPlaying))
      state.isPlaying = isPlaying
    }
  }

  public func setFailureHandler(_ handler: (@Sendable (FeedItem.ID, ReelError) -> Void)?) {
    state.withLock { $0.handler = handler }
  }
}
