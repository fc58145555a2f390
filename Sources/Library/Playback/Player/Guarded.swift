internal import DequeModule
internal import ReelCore

/// A state under a lock. Whoever changes it gets the effects of the change to fill in, and they are performed
/// once the lock is released.
///
/// No effect can be lost, kept, or performed under the lock: only the functions of this file make effects and
/// perform them.
final class Guarded<State: ~Copyable>: Sendable {
  fileprivate let locked: Locked<State>

  init(_ state: consuming sending State, rank: LockRank) { locked = Locked(state, rank: rank) }

  /// Calls `body` with the state, which it can't change.
  func read<Result>(_ body: (borrowing State) -> sending Result) -> sending Result {
    locked.withLock { body($0) }
  }
}

/// What follows from a change of a player's or an item's state.
struct Effects: ~Copyable {
  /// The session whose state was changed, directly or within a change of its player's.
  fileprivate var session: ItemSession?
  fileprivate var cancelled: [LoadScope] = []
  fileprivate var actions: [LoadingMachine.Action] = []
  fileprivate var news: [PlayerNews] = []
  /// Seeks, and what their callers get.
  fileprivate var answers: [(seek: PlayerCore.PendingSeek, result: Result<Bool, any Error>)] = []
  fileprivate var workers: Workers = []
  fileprivate var packets: [MediaPacket] = []
  fileprivate var frames = UniqueDeque<TimedFrame>()
  fileprivate var shown: [SharedFrame] = []

  fileprivate init() {}

  /// Interrupts the work of a scope. That runs foreign code, which may use the player.
  mutating func cancel(_ scope: LoadScope) { cancelled.append(scope) }

  /// Performs a decision of the session.
  mutating func perform(_ action: LoadingMachine.Action) { actions.append(action) }

  /// Tells observers. News of several changes are told in the order of the changes.
  mutating func tell(_ news: PlayerNews) { self.news.append(news) }

  mutating func tell(_ event: PlayerEvent, of item: PlayerItem?) { tell(.event(event, of: item)) }

  /// Ends the wait of a seek's caller.
  mutating func answer(_ seek: PlayerCore.PendingSeek?, with result: Result<Bool, any Error>) {
    if let seek { answers.append((seek, result)) }
  }

  mutating func wake(_ workers: Workers) { self.workers.formUnion(workers) }

  /// Frees a frame. Unmapping it takes longer than a whole swipe.
  mutating func free(_ frame: SharedFrame?) {
    if let frame { shown.append(frame) }
  }

  mutating func free(_ frame: consuming TimedFrame) { frames.append(frame) }

  /// Frees what an item has let go.
  fileprivate mutating func free(_ packets: [MediaPacket], _ frames: consuming UniqueDeque<TimedFrame>) {
    if self.packets.isEmpty { self.packets = packets } else { self.packets += packets }
    while !frames.isEmpty { self.frames.append(frames.removeFirst()) }
  }

  /// Performs effects in a fixed order: what goes on in vain ends first, observers know before a waiting caller
  /// does, and threads are woken last, so that this one has done its work. What was let go is freed at the end.
  fileprivate consuming func perform(of core: PlayerCore?) {
    for scope in cancelled { scope.cancel() }
    for action in actions { session?.perform(action) }
    if !news.isEmpty { core?.tell() }
    for (seek, result) in answers { seek.continuation.resume(with: result) }
    guard !workers.isEmpty else { return }
    if let core {
      session?.wake(workers.subtracting(.presenter))
      if workers.contains(.presenter) { core.wake() }
    } else {
      session?.wake(workers)
    }
  }
}

/// What observers of a player are told.
enum PlayerNews: Sendable {
  case event(PlayerEvent, of: PlayerItem?)
  /// The values of the observed properties.
  case status(TimeControlStatus, rate: Double, item: PlayerItem?)
}

extension PlayerCore {
  /// Changes the state, and performs the effects when the lock is released.
  @discardableResult
  func change<Result>(_ body: (inout State, inout Effects) -> sending Result) -> sending Result {
    var effects = Effects()
    let result = state.locked.withLock { state in
      let result = body(&state, &effects)
      state.news += effects.news
      return result
    }
    effects.perform(of: self)
    return result
  }

  /// Tells observers the news that are not told yet, also those of other threads: when a call returns, its news
  /// are told, and all are told in the order of the changes.
  fileprivate func tell() {
    let signals = telling.withLock { _ in
      let news = state.locked.withLock { state in
        defer { state.news = [] }
        return state.news
      }
      var signals: [PlayerSignal] = []
      for news in news {
        switch news {
        case .event(let event, let item):
          item?.eventChannel.send(event)
          events.send(event)
          signals.append(.event(event, of: item))
        case .status(let status, let rate, let item):
          timeControlStatus.set(status)
          self.rate.set(rate)
          currentItem.set(item)
        }
      }
      return signals
    }
    // The owner may take locks of its own.
    guard !signals.isEmpty, let signal = observer.withLock({ $0.call }) else { return }
    for news in signals { signal(news) }
  }
}

extension ItemSession {
  /// Changes the state, and performs the effects when the lock is released.
  @discardableResult
  func change<Result>(_ body: (inout State, inout Effects) -> sending Result) -> sending Result {
    var effects = Effects()
    let result = change(in: &effects, body)
    assert(effects.news.isEmpty, "only a player has observers to tell")
    effects.perform(of: nil)
    return result
  }

  /// Changes the state within a change of the player's: both happen at once, and the effects are performed when
  /// both locks are released.
  @discardableResult
  func change<Result>(
    in effects: inout Effects, _ body: (inout State, inout Effects) -> sending Result
  ) -> sending Result {
    effects.session = self
    return state.locked.withLock { state in
      let result = body(&state, &effects)
      effects.free(state.packets.takeReleased(), state.frames.takeReleased())
      return result
    }
  }
}
