internal import DequeModule
internal import Metrics
internal import ReelCore
internal import ReelReading
internal import ReelSources

/// A player's state under its lock. Whoever changes it gets the effects of the change to fill in, and they are
/// performed once the lock is released.
///
/// No effect can be lost, kept, or performed under the lock: only the functions of this file make effects and
/// perform them.
final class Guarded: Sendable {
  fileprivate let locked = Locked(PlayerState(), rank: .player)

  /// Calls `body` with the state, which it can't change.
  func read<Result>(_ body: (borrowing PlayerState) -> sending Result) -> sending Result {
    locked.withLock { body($0) }
  }
}

/// The figures of an item that its metrics count.
private struct MeteredCounts {
  private let decoded, shown, dropped, stalls: Int
  private let stalled: Duration
  private let startup: Duration?

  init(_ item: borrowing ItemState) {
    decoded = item.decoding.frameCount
    shown = item.statistics.shownFrameCount
    dropped = item.statistics.droppedFrameCount
    stalls = item.statistics.stallCount
    stalled = item.statistics.times[.stalled]
    startup = item.statistics.startupTime
  }

  /// Reports the difference from `before`. A new item begins with zeros, so a change of the item reports nothing.
  func record(
    since before: MeteredCounts, startup report: @autoclosure () -> StartupReport?,
    in counters: PlayerCounters
  ) {
    func count(_ counter: Counter, _ property: KeyPath<MeteredCounts, Int>) {
      let news = self[keyPath: property] - before[keyPath: property]
      if news > 0 { counter.increment(by: news) }
    }
    count(counters.decodedFrames, \.decoded)
    count(counters.shownFrames, \.shown)
    count(counters.droppedFrames, \.dropped)
    count(counters.stalls, \.stalls)
    if stalled > before.stalled { counters.stallDuration.record(duration: stalled - before.stalled) }
    guard before.startup == nil, let startup else { return }
    counters.startup.record(duration: startup)
    for (stage, entry) in report()?.entries ?? [:] { counters.record(stage: stage.rawValue, entry.duration) }
  }
}

/// The consequences of a change of a player's state.
struct Effects: ~Copyable {
  /// The session that runs the workers of the item, after the change.
  fileprivate var session: ItemSession?
  fileprivate var cancelled: [LoadScope] = []
  /// The pause before the source is resolved; nil if it is not.
  fileprivate var resolving: Duration?
  fileprivate var news: [PlayerNews] = []
  /// Seeks, and what their callers get.
  fileprivate var answers: [(seek: PendingSeek, result: Result<Bool, any Error>)] = []
  fileprivate var signals: [PlayerSignal] = []
  fileprivate var workers: Workers = []
  fileprivate var packets: [MediaPacket] = []
  fileprivate var frames: [VideoFrame] = []
  fileprivate var items = UniqueDeque<ItemState>()
  /// The counts before and after the change, if there are metrics.
  fileprivate var metered: (before: MeteredCounts, after: MeteredCounts)?

  fileprivate init() {}

  /// Interrupts the work of a scope. That runs foreign code, which may use the player.
  mutating func cancel(_ scope: LoadScope) { cancelled.append(scope) }

  /// Begins to resolve the source of the item, after a pause.
  mutating func resolve(after pause: Duration) { resolving = pause }

  /// Tells observers. News of several changes are told in the order of the changes.
  mutating func tell(_ news: PlayerNews) { self.news.append(news) }

  mutating func tell(_ event: PlayerEvent, of item: PlayerItem?) { tell(.event(event, of: item)) }

  /// Ends the wait of a seek's caller.
  mutating func answer(_ seek: PendingSeek?, with result: Result<Bool, any Error>) {
    if let seek { answers.append((seek, result)) }
  }

  /// Signals the owner of the player, which may take locks of its own.
  mutating func signal(_ signal: PlayerSignal) { signals.append(signal) }

  mutating func wake(_ workers: Workers) { self.workers.formUnion(workers) }

  /// Frees a frame. Unmapping it takes longer than a whole swipe.
  mutating func free(_ frame: VideoFrame?) {
    if let frame { frames.append(frame) }
  }

  /// Frees all that an item holds.
  mutating func free(_ item: consuming ItemState) { items.append(item) }

  /// Frees what an item has let go.
  fileprivate mutating func free(_ packets: [MediaPacket], _ frames: [VideoFrame]) {
    if self.packets.isEmpty { self.packets = packets } else { self.packets += packets }
    self.frames += frames
  }

  /// Performs effects in a fixed order: useless work is cancelled first, observers know before a waiting caller
  /// does, and threads are woken last, when this one has done its work. Released objects are freed at the end.
  fileprivate consuming func perform(on core: PlayerCore) {
    for scope in cancelled { scope.cancel() }
    if let metered, let counters = core.counters {
      metered.after.record(since: metered.before, startup: session?.item.startup, in: counters)
    }
    if let resolving { session?.beginResolving(after: resolving) }
    if !news.isEmpty { core.tell() }
    for (seek, result) in answers { seek.continuation.resume(with: result) }
    if !signals.isEmpty, let signal = core.observer.withLock({ $0.call }) {
      for news in signals { signal(news) }
    }
    guard !workers.isEmpty else { return }
    session?.wake(workers)
    if workers.contains(.presenter) { core.wake() }
  }
}

/// A notification for observers of a player.
enum PlayerNews: Sendable {
  case event(PlayerEvent, of: PlayerItem?)
  /// The item is played again after its end, or retried after its failure.
  case restarted(PlayerItem)
  /// The values of the observed properties.
  case status(TimeControlStatus, rate: Double, item: PlayerItem?)
}

/// The owner of a player, and the events that it has not been told yet.
struct SignalObserver: Sendable {
  var call: (@Sendable (PlayerSignal) -> Void)?
  fileprivate var events: [PlayerSignal] = []
  /// True while a thread tells the events. Others, and calls from within, add theirs.
  fileprivate var isTelling = false

  /// Returns true if the caller is to tell the events, until none is left.
  fileprivate mutating func beginTelling() -> Bool {
    guard !isTelling, !events.isEmpty else { return false }
    isTelling = true
    return true
  }

  fileprivate mutating func takeEvent() -> (signal: PlayerSignal, call: (@Sendable (PlayerSignal) -> Void)?)?
  {
    isTelling = !events.isEmpty
    return isTelling ? (events.removeFirst(), call) : nil
  }
}

/// A signal to the owner of a player, sent at once on the thread where it happens. Events are sent one after the other.
package enum PlayerSignal: Sendable {
  /// An event of an item; nil if it concerns no item. The item may just have been replaced.
  case event(PlayerEvent, of: PlayerItem?)
  /// Loading has reached another stage.
  case progressed
  /// The buffer is full, or contains the rest of the item.
  case filled
  /// The total number of frames that decoders have returned.
  case decoded(count: Int)
}

extension PlayerCore {
  /// Changes the state, and performs the effects when the lock is released.
  @discardableResult
  func change<Result>(_ body: (inout PlayerState, inout Effects) -> sending Result) -> sending Result {
    var effects = Effects()
    let result = state.locked.withLock { state in
      let before = counters.map { _ in MeteredCounts(state.item) }
      let result = body(&state, &effects)
      if let before { effects.metered = (before, MeteredCounts(state.item)) }
      state.news += effects.news
      effects.session = state.item.session
      effects.free(state.item.packets.takeReleased(), state.item.frames.takeReleased())
      return result
    }
    effects.perform(on: self)
    return result
  }

  /// Tells observers the news that are not told yet, also those of other threads: when a call returns, its news
  /// are told, and all are told in the order of the changes.
  fileprivate func tell() {
    let begins = observer.withLock { observer in
      let news = state.locked.withLock { state in
        defer { state.news = [] }
        return state.news
      }
      for news in news {
        switch news {
        case .event(let event, let item):
          item?.eventChannel.send(event)
          events.send(event)
          observer.events.append(.event(event, of: item))
        case .restarted(let item):
          item.eventChannel.forget(where: \.isEnding)
          events.forget(where: \.isEnding)
        case .status(let status, let rate, let item):
          timeControlStatus.set(status)
          self.rate.set(rate)
          currentItem.set(item)
        }
      }
      return observer.beginTelling()
    }
    guard begins else { return }
    // The owner may take locks of its own.
    while let (signal, call) = observer.withLock({ $0.takeEvent() }) { call?(signal) }
  }
}

extension ItemSession {
  /// Changes the state of the item. Returns nil, without calling `body`, once the player has left the item.
  @discardableResult
  func change<Result>(_ body: (inout ItemState, inout Effects) -> sending Result) -> sending Result? {
    core.change { state, out in state.item.session === self ? body(&state.item, &out) : nil }
  }

  /// Calls `body` with the state of the item; returns nil once the player has left it.
  func read<Result>(_ body: (borrowing ItemState) -> sending Result) -> sending Result? {
    core.state.read { $0.item.session === self ? body($0.item) : nil }
  }
}
