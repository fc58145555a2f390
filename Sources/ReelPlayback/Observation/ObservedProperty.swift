internal import ReelCore

/// A value that is there at all times and may change.
///
/// Observers see the current value and then every change, in order. One that falls `bufferLimit` changes behind loses
/// the oldest of what it has not seen, never the latest, and holds nobody up.
public final class ObservedProperty<Value: Sendable & Equatable>: Sendable {
  private struct State {
    var value: Value
    var observers = Observers<Value>()
  }

  private let state: Locked<State>

  public init(_ value: Value) {
    state = Locked(State(value: value), rank: .observation)
  }

  deinit { finish() }

  /// As many values wait for an observer.
  public static var bufferLimit: Int { 256 }

  public var value: Value { state.withLock { $0.value } }

  /// A new observer each time: the current value, then every change. Ends with `finish()`, or with the property. An
  /// observer is forgotten when its task is cancelled or its stream is let go.
  public var values: AsyncStream<Value> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Value.self, bufferingPolicy: .bufferingNewest(Self.bufferLimit))
    let isAdded = state.withLock { state in
      // Under the lock, so that no change comes between the first value and the next, or before it.
      continuation.yield(state.value)
      return state.observers.add(continuation)
    }
    if !isAdded { continuation.finish() }
    return stream
  }

  /// Those who observe now.
  public var observerCount: Int { state.withLock { $0.observers.count } }

  /// Changes the value; one that is equal to the current value is no change.
  public func set(_ value: Value) { update { $0 = value } }

  /// Changes the value in place, as one change. `body` is called under the property's lock: it must not use the
  /// property.
  public func update(_ body: (inout Value) -> Void) {
    state.withLock { state in
      var value = state.value
      body(&value)
      guard value != state.value else { return }
      state.value = value
      // Under the lock: changes reach every observer in their order.
      state.observers.send(value)
    }
  }

  /// Ends the observers' streams, after what they have not seen yet. The value stays, and may still be set: new
  /// observers get the value of that time, and the end.
  public func finish() {
    for continuation in state.withLock({ $0.observers.finish() }) { continuation.finish() }
  }
}
