internal import ReelCore

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

  /// A stream for a new observer, with the events sent from now on. It ends with `finish()` or with the
  /// channel. The observer is removed when its task is cancelled or its stream is released.
  package var events: AsyncStream<Event> { events(after: nil) }

  /// Like `events`, but begins with an event that only this observer gets; nil for none.
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
