public import ReelCore
public import ReelPlayback
public import ReelPool

/// A pool without players, for tests of feeds. It records calls and returns the results that the test sets. It needs no
/// media.
///
/// As with a `PlayerPool`, an index outside the snapshot is an error.
public final class FakePlayerPool: PlayerPooling {
  /// A recorded call, with its arguments.
  public enum Call: Sendable, Hashable {
    /// A call of `show(_:of:phase:)`, also if the index was outside the snapshot.
    case show(Int, FeedSnapshot, SwipePhase)
    /// A call of `update(_:currentIndex:)`.
    case update(FeedSnapshot, currentIndex: Int?)
    /// A call of `setPlaying(_:)`.
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

  /// Creates a pool.
  ///
  /// - Parameter stage: The stage that `show` reports for items without a stage of their own. No handover has a frame.
  public init(stage: PreloadStage = .none) { state.withLock { $0.defaultStage = stage } }

  /// The calls so far, in order. `setFailureHandler(_:)` is not recorded.
  public var calls: [Call] { state.withLock { $0.calls } }

  /// The item that the last `show` or `update` made the current one; nil for none.
  public var currentItem: FeedItem.ID? { state.withLock { $0.current } }

  /// The last value passed to `setPlaying(_:)`; true at first.
  public var isPlaying: Bool { state.withLock { $0.isPlaying } }

  /// True if a failure handler is set.
  public var hasFailureHandler: Bool { state.withLock { $0.handler != nil } }

  /// Removes all recorded calls.
  public func forgetCalls() { state.withLock { $0.calls = [] } }

  /// Sets the stage that `show` reports for an item; nil for the default stage.
  public func setStage(_ stage: PreloadStage?, of id: FeedItem.ID) {
    state.withLock { $0.stages[id] = stage }
  }

  /// Reports now that an item can't be played, to the failure handler if one is set.
  public func fail(_ id: FeedItem.ID, with error: ReelError = FakePlayerPool.failure) {
    state.withLock { $0.handler }?(id, error)
  }

  /// Makes an item fail whenever it is shown; nil lets it succeed again.
  ///
  /// `show` calls the failure handler before it returns, and returns the error in its handover.
  public func setFailure(_ error: ReelError?, of id: FeedItem.ID) {
    state.withLock { $0.failures[id] = error }
  }

  /// The default error of `fail(_:with:)`.
  public static let failure = ReelError(.badMedia, "the item can't be played")

  // MARK: PlayerPooling

  @discardableResult
  public func show(_ index: Int, of snapshot: FeedSnapshot, phase: SwipePhase) -> Handover {
    state.withLock { $0.calls.append(.show(index, snapshot, phase)) }
    let id: FeedItem.ID
    do { id = try snapshot.item(at: index).id } catch { return Handover(error: error) }
    typealias Answer = (stage: PreloadStage, error: ReelError?, failure: (() -> Void)?)
    let answer = state.withLock { state -> Answer in
      state.current = id
      let (error, handler) = (state.failures[id], state.handler)
      let failure = error.flatMap { error in handler.map { handler in { handler(id, error) } } }
      return (state.stages[id] ?? state.defaultStage, error, failure)
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
