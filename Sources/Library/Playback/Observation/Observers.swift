internal import ReelCore

/// The observers of one property or channel, in order of registration. The owner guards it with a lock.
///
/// When a stream ends, that is recorded under a separate lock, and no other lock is taken meanwhile. The reason:
/// while a task is cancelled, the Swift runtime holds a lock during the termination handlers of its streams, and
/// `send` needs the same lock to resume the task. A handler that took the owner's lock could therefore deadlock with
/// `send`.
struct Observers<Element: Sendable> {
  private struct Observer {
    let number: Int
    let receive: @Sendable (Element) -> Void
    let finish: @Sendable () -> Void
  }

  private var observers: [Observer] = []
  private var nextNumber = 0
  private(set) var isFinished = false
  /// The numbers of observers that have ended, until those are removed.
  private let ended = Ended()

  private final class Ended: Sendable {
    let numbers = Locked<Set<Int>>([])
  }

  /// The number of observers that have not ended.
  var count: Int {
    mutating get {
      removeEnded()
      return observers.count
    }
  }

  /// Adds a stream. Returns false once `finish()` was called: the caller then ends the stream.
  mutating func add(_ continuation: AsyncStream<Element>.Continuation) -> Bool {
    guard !isFinished else { return false }
    let end = add({ continuation.yield($0) }, finish: { continuation.finish() })
    continuation.onTermination = { _ in end() }
    return true
  }

  /// Adds a closure, which is called under the owner's lock, so it may do no more than add to the buffer of a stream.
  ///
  /// - Returns: Ends the observer.
  mutating func add(
    _ receive: @escaping @Sendable (Element) -> Void, finish: @escaping @Sendable () -> Void = {}
  ) -> @Sendable () -> Void {
    let (number, ended) = (nextNumber, ended)
    nextNumber += 1
    observers.append(Observer(number: number, receive: receive, finish: finish))
    return { ended.numbers.withLock { _ = $0.insert(number) } }
  }

  /// Adds the element to the buffer of each stream. Runs no code of the program.
  mutating func send(_ element: Element) {
    removeEnded()
    for observer in observers { observer.receive(element) }
  }

  /// Accepts no more streams. Removes the observers, and returns what the caller has to call for each.
  mutating func finish() -> [@Sendable () -> Void] {
    isFinished = true
    defer { observers = [] }
    return observers.map(\.finish)
  }

  // MARK: - Private

  private mutating func removeEnded() {
    let numbers = ended.numbers.withLock { numbers in
      defer { numbers = [] }
      return numbers
    }
    guard !numbers.isEmpty else { return }
    observers.removeAll { numbers.contains($0.number) }
  }
}

/// Events that observers receive as a stream.
///
/// An observer receives the events that the channel remembers, and then those sent after it began, in order. If it
/// falls more than the channel's limit behind (`bufferLimit` by default), it silently loses the oldest of the events
/// that it has not seen, and never blocks the sender.
package final class EventChannel<Event: Sendable>: Sendable {
  private struct State {
    var remembered: [Event] = []
    var observers = Observers<Event>()
  }

  private let limit: Int
  private let memory: Int
  private let state = Locked(State(), rank: .observation)

  /// - Parameters:
  ///   - bufferLimit: The number of events kept for an observer, at least 1; 1 keeps the newest.
  ///   - memory: The number of events remembered for later observers.
  package init(bufferLimit: Int = EventChannel<Event>.bufferLimit, memory: Int = 0) {
    limit = max(1, bufferLimit)
    self.memory = memory
  }

  deinit { finish() }

  /// The number of events kept for an observer by default.
  package static var bufferLimit: Int { 1024 }

  /// Returns a stream for a new observer, with the remembered events and those sent from now on. It ends with `finish()`
  /// or with the channel. The observer is removed when its task is cancelled or its stream is released.
  package var events: AsyncStream<Event> { makeStream { $0 } }

  /// Like `events`, but without the remembered events.
  package var newEvents: AsyncStream<Event> { makeStream { _ in [] } }

  /// Like `newEvents`, but begins with an event that only this observer receives; nil for none.
  package func events(after first: Event?) -> AsyncStream<Event> {
    makeStream { _ in first.map { [$0] } ?? [] }
  }

  /// Calls `receive` with each event from now on, within `send`: so events of several channels and changes of
  /// properties come in their order. It is called under a lock, and may do no more than add to the buffer of a stream.
  ///
  /// - Returns: Ends the calls.
  @discardableResult
  package func observe(_ receive: @escaping @Sendable (Event) -> Void) -> @Sendable () -> Void {
    state.withLock { $0.observers.add(receive) }
  }

  /// The number of current observers.
  package var observerCount: Int { state.withLock { $0.observers.count } }

  /// Sends an event to all observers. Has no effect after `finish()`.
  package func send(_ event: Event) {
    // Under the lock, so that all observers receive events in the same order.
    state.withLock { state in
      state.observers.send(event)
      guard memory > 0, !state.observers.isFinished else { return }
      if state.remembered.count == memory { state.remembered.removeFirst() }
      state.remembered.append(event)
    }
  }

  /// Removes events from those that are remembered.
  package func forget(where isOver: (Event) -> Bool = { _ in true }) {
    state.withLock { $0.remembered.removeAll(where: isOver) }
  }

  /// Ends the observers' streams after the events that they have not seen yet.
  package func finish() {
    for finish in state.withLock({ $0.observers.finish() }) { finish() }
  }

  // MARK: - Private

  private func makeStream(beginningWith first: ([Event]) -> [Event]) -> AsyncStream<Event> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Event.self, bufferingPolicy: .bufferingNewest(limit))
    let isAdded = state.withLock { state in
      // Under the lock, so that no event gets lost or comes twice.
      for event in first(state.remembered) { continuation.yield(event) }
      return state.observers.add(continuation)
    }
    if !isAdded { continuation.finish() }
    return stream
  }
}

/// A value that can be observed, but not set.
///
/// An observer receives the current value and then every change, in order. An observer that is more than 256 values
/// behind loses the oldest of them, never the latest. It delays neither the owner of the value nor other observers.
public struct ObservedProperty<Value: Sendable & Equatable>: Sendable {
  private let source: ObservedSource<Value>

  fileprivate init(_ source: ObservedSource<Value>) { self.source = source }

  /// The current value.
  public var value: Value { source.value }

  /// A stream of the current value and every change. Each access adds an observer.
  ///
  /// The stream ends when the owner of the value is released. The observer is removed when its task is cancelled or the
  /// stream is released.
  public var values: AsyncStream<Value> { source.values }

  /// Calls `receive` with the value and with every change, within the change: like `EventChannel.observe(_:)`.
  ///
  /// - Returns: Ends the calls.
  @discardableResult
  package func observe(_ receive: @escaping @Sendable (Value) -> Void) -> @Sendable () -> Void {
    source.observe(receive)
  }
}

/// Sets the value of an observed property.
package final class ObservedSource<Value: Sendable & Equatable>: Sendable {
  private struct State {
    var value: Value
    var observers = Observers<Value>()
  }

  private let state: Locked<State>

  /// Creates a source with its first value.
  package init(_ value: Value) {
    state = Locked(State(value: value), rank: .observation)
  }

  deinit { finish() }

  /// The number of values that are buffered for each observer.
  package static var bufferLimit: Int { 256 }

  /// What observers get.
  package var property: ObservedProperty<Value> { ObservedProperty(self) }

  package var value: Value { state.withLock { $0.value } }

  /// A stream of the current value and every change. It ends with `finish()`, or when the source is released.
  package var values: AsyncStream<Value> {
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

  fileprivate func observe(_ receive: @escaping @Sendable (Value) -> Void) -> @Sendable () -> Void {
    state.withLock { state in
      receive(state.value)
      return state.observers.add(receive)
    }
  }

  /// The number of current observers.
  package var observerCount: Int { state.withLock { $0.observers.count } }

  /// Sets the value. Observers receive it only if it differs from the current value.
  package func set(_ value: Value) { update { $0 = value } }

  /// Changes the value in place, as one change.
  ///
  /// - Parameter body: Called while the value is locked, so it must not use the source.
  package func update(_ body: (inout Value) -> Void) {
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
  package func finish() {
    for finish in state.withLock({ $0.observers.finish() }) { finish() }
  }
}

extension EventChannel<Void> {
  /// Calls `look` now, after each event, and when the channel is finished, until it returns a value. Throws what it throws,
  /// and `CancellationError` if the task is cancelled before, or the channel ends without a value.
  @discardableResult
  package func wait<Value>(_ look: () throws -> Value?) async throws -> Value {
    // Observe before the first call, so that no change is missed.
    let changes = events
    if let value = try look() { return value }
    for await _ in changes {
      if let value = try look() { return value }
    }
    try Task.checkCancellation()
    if let value = try look() { return value }
    throw CancellationError()
  }
}
