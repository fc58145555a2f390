internal import ReelCore

/// The streams of all observers of one property or channel, in order of registration. The owner guards it with a
/// lock.
///
/// When a stream ends, that is recorded under a separate lock, and no other lock is taken meanwhile. The reason:
/// while a task is cancelled, the Swift runtime holds a lock during the termination handlers of its streams, and
/// `send` needs the same lock to resume the task. A handler that took the owner's lock could therefore deadlock with
/// `send`.
struct Observers<Element: Sendable> {
  private var continuations: [(number: Int, continuation: AsyncStream<Element>.Continuation)] = []
  private var nextNumber = 0
  private var isFinished = false
  /// The numbers of observers whose streams have ended, until those are removed.
  private let ended = Ended()

  private final class Ended: Sendable {
    let numbers = Locked<Set<Int>>([])
  }

  /// The number of observers whose streams have not ended.
  var count: Int {
    mutating get {
      removeEnded()
      return continuations.count
    }
  }

  /// Adds a stream. Returns false once `finish()` was called: the caller then ends the stream.
  mutating func add(_ continuation: AsyncStream<Element>.Continuation) -> Bool {
    guard !isFinished else { return false }
    let (number, ended) = (nextNumber, ended)
    nextNumber += 1
    continuations.append((number, continuation))
    continuation.onTermination = { _ in ended.numbers.withLock { _ = $0.insert(number) } }
    return true
  }

  /// Adds the element to the buffer of each stream. Runs no code of the observers.
  mutating func send(_ element: Element) {
    removeEnded()
    for observer in continuations { observer.continuation.yield(element) }
  }

  /// Accepts no more streams. Removes and returns the current ones, for the caller to end.
  mutating func finish() -> [AsyncStream<Element>.Continuation] {
    isFinished = true
    defer { continuations = [] }
    return continuations.map(\.continuation)
  }

  // MARK: - Private

  private mutating func removeEnded() {
    let numbers = ended.numbers.withLock { numbers in
      defer { numbers = [] }
      return numbers
    }
    guard !numbers.isEmpty else { return }
    continuations.removeAll { numbers.contains($0.number) }
  }
}

/// Events that observers receive as a stream.
///
/// An observer receives the events sent after it began, in order. If it falls more than the channel's limit
/// behind (`bufferLimit` by default), it silently loses the oldest of the events that it has not seen, and
/// never blocks the sender.
package final class EventChannel<Event: Sendable>: Sendable {
  private let limit: Int
  private let observers = Locked(Observers<Event>(), rank: .observation)

  /// - Parameter bufferLimit: The number of events kept for an observer, at least 1; 1 keeps the newest.
  package init(bufferLimit: Int = EventChannel<Event>.bufferLimit) { limit = max(1, bufferLimit) }

  deinit { finish() }

  /// The number of events kept for an observer by default.
  package static var bufferLimit: Int { 1024 }

  /// Returns a stream for a new observer, with the events sent from now on. It ends with `finish()` or with
  /// the channel. The observer is removed when its task is cancelled or its stream is released.
  package var events: AsyncStream<Event> { events(after: nil) }

  /// Like `events`, but begins with an event that only this observer receives; nil for none.
  package func events(after first: Event?) -> AsyncStream<Event> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Event.self, bufferingPolicy: .bufferingNewest(limit))
    if let first { continuation.yield(first) }
    if !observers.withLock({ $0.add(continuation) }) { continuation.finish() }
    return stream
  }

  /// The number of current observers.
  package var observerCount: Int { observers.withLock { $0.count } }

  /// Sends an event to all observers. Has no effect after `finish()`.
  package func send(_ event: Event) {
    // Under the lock, so that all observers receive events in the same order.
    observers.withLock { $0.send(event) }
  }

  /// Ends the observers' streams after the events that they have not seen yet.
  package func finish() {
    for continuation in observers.withLock({ $0.finish() }) { continuation.finish() }
  }
}

/// A value that can be observed.
///
/// An observer receives the current value and then every change, in order. An observer that is more than
/// ``bufferLimit`` values behind loses the oldest of them, never the latest. It delays neither the property's owner nor
/// other observers.
public final class ObservedProperty<Value: Sendable & Equatable>: Sendable {
  private struct State {
    var value: Value
    var observers = Observers<Value>()
  }

  private let state: Locked<State>

  /// Creates a property with its first value.
  public init(_ value: Value) {
    state = Locked(State(value: value), rank: .observation)
  }

  deinit { finish() }

  /// The number of values that are buffered for each observer.
  public static var bufferLimit: Int { 256 }

  /// The current value.
  public var value: Value { state.withLock { $0.value } }

  /// A stream of the current value and every change. Each access adds an observer.
  ///
  /// The stream ends with ``finish()``, or when the property is released. The observer is removed when its task is
  /// cancelled or the stream is released.
  public var values: AsyncStream<Value> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Value.self, bufferingPolicy: .bufferingNewest(Self.bufferLimit))
    let isAdded = state.withLock { state in
      // Under the lock, so that no change gets lost or comes before the first value.
      continuation.yield(state.value)
      return state.observers.add(continuation)
    }
    if !isAdded { continuation.finish() }
    return stream
  }

  /// The number of current observers.
  public var observerCount: Int { state.withLock { $0.observers.count } }

  /// Sets the value. Observers receive it only if it differs from the current value.
  public func set(_ value: Value) { update { $0 = value } }

  /// Changes the value in place, as one change.
  ///
  /// - Parameter body: Called while the property is locked, so it must not use the property.
  public func update(_ body: (inout Value) -> Void) {
    state.withLock { state in
      var value = state.value
      body(&value)
      guard value != state.value else { return }
      state.value = value
      // Under the lock, so that all observers receive changes in the same order.
      state.observers.send(value)
    }
  }

  /// Ends the observers' streams after the values that are still buffered. The value remains and can still be set. New
  /// observers receive the current value, and then their stream ends.
  public func finish() {
    for continuation in state.withLock({ $0.observers.finish() }) { continuation.finish() }
  }
}
