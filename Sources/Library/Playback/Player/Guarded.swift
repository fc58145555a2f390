internal import ReelCore

/// A state under a lock. Whoever changes it gets the effects of the change to fill in, and they are performed
/// once the lock is released.
///
/// No effect can be lost, kept, or performed under the lock: only a guard makes effects and performs them.
final class Guarded<State: ~Copyable>: Sendable {
  fileprivate let locked: Locked<State>

  init(_ state: consuming sending State, rank: LockRank) { locked = Locked(state, rank: rank) }

  /// Calls `body` with the state, which it must not change.
  func read<Result>(_ body: (borrowing State) -> sending Result) -> sending Result {
    locked.withLock { body($0) }
  }
}

/// What follows from a change of a player's state.
struct Effects: ~Copyable {
  /// A pending seek, and what its caller gets.
  fileprivate var answers: [(seek: PlayerCore.PendingSeek, result: Result<Bool, any Error>)] = []
  fileprivate var news: [PlayerNews] = []
  fileprivate var consequences: [(session: ItemSession, ItemSession.Consequences)] = []
  fileprivate var frames: [SharedFrame] = []
  fileprivate var wakesPresenter = false

  fileprivate init() {}

  /// Tells observers. Those of several changes are told in the order of the changes.
  mutating func tell(_ news: PlayerNews) { self.news.append(news) }

  mutating func tell(_ event: PlayerEvent, of item: PlayerItem?) { tell(.event(event, of: item)) }

  /// Ends the wait of a seek's caller.
  mutating func answer(_ seek: PlayerCore.PendingSeek?, with result: Result<Bool, any Error>) {
    if let seek { answers.append((seek, result)) }
  }

  mutating func perform(_ consequences: ItemSession.Consequences, of session: ItemSession) {
    self.consequences.append((session, consequences))
  }

  /// Frees a frame after the lock: unmapping it takes longer than a whole swipe.
  mutating func free(_ frame: SharedFrame?) {
    if let frame { frames.append(frame) }
  }

  mutating func wakePresenter() { wakesPresenter = true }
}

/// What observers of a player are told.
enum PlayerNews: Sendable {
  case event(PlayerEvent, of: PlayerItem?)
  /// The values of the observed properties.
  case status(TimeControlStatus, rate: Double, item: PlayerItem?)
}

extension PlayerCore {
  /// Changes the state, and performs the effects when the lock is released.
  func change<Result>(_ body: (inout State, inout Effects) -> sending Result) -> sending Result {
    var effects = Effects()
    let result = state.locked.withLock { state in
      let result = body(&state, &effects)
      state.news += effects.news
      return result
    }
    perform(effects)
    return result
  }

  /// Performs effects in a fixed order: what goes on in vain ends first, observers know before a waiting caller
  /// does, and threads are woken last, so that this one has done its work. What was let go is freed at the end.
  private func perform(_ effects: consuming Effects) {
    for (session, consequences) in effects.consequences { session.perform(consequences) }
    if !effects.news.isEmpty { tell() }
    for (seek, result) in effects.answers { seek.continuation.resume(with: result) }
    if effects.wakesPresenter { wake() }
  }

  /// Tells observers the news that are not told yet, also those of other threads: when a call returns, its news
  /// are told, and all are told in the order of the changes.
  private func tell() {
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
