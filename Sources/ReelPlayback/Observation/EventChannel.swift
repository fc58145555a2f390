internal import ReelCore

/// Things that happen once.
///
/// Observers get those that happen after they began, in order. One that falls as many events behind as the channel
/// keeps for it (`bufferLimit` unless the channel was made with another limit) loses the oldest of what it has not
/// seen, without being told how many, and holds nobody up.
package final class EventChannel<Event: Sendable>: Sendable {
  private let limit: Int
  private let observers = Locked(Observers<Event>(), rank: .observation)

  /// - Parameter bufferLimit: How many events wait for an observer, at least 1; 1 keeps the newest.
  package init(bufferLimit: Int = EventChannel<Event>.bufferLimit) { limit = max(1, bufferLimit) }

  deinit { finish() }

  /// The number of events that wait for an observer, unless the channel was made with another limit.
  package static var bufferLimit: Int { 1024 }

  /// A new observer each time, of what happens from this call on. Ends with `finish()`, or with the channel. An
  /// observer is forgotten when its task is cancelled or its stream is let go.
  package var events: AsyncStream<Event> { events(after: nil) }

  /// The same, with an event before the others that only this observer gets; nil for none.
  package func events(after first: Event?) -> AsyncStream<Event> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Event.self, bufferingPolicy: .bufferingNewest(limit))
    if let first { continuation.yield(first) }
    if !observers.withLock({ $0.add(continuation) }) { continuation.finish() }
    return stream
  }

  /// Those who observe now.
  package var observerCount: Int { observers.withLock { $0.count } }

  /// Tells all observers. Nothing after `finish()`.
  package func send(_ event: Event) {
    // Under the lock: events reach every observer in their order.
    observers.withLock { $0.send(event) }
  }

  /// Ends the observers' streams, after what they have not seen yet.
  package func finish() {
    for continuation in observers.withLock({ $0.finish() }) { continuation.finish() }
  }
}
