internal import ReelCore

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
