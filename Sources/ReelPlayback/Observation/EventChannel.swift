internal import ReelCore

/// Things that happen once.
///
/// Observers get those that happen after they began, in order. One that falls `bufferLimit` events behind loses the
/// oldest of what it has not seen, without being told how many, and holds nobody up.
public final class EventChannel<Event: Sendable>: Sendable {
  private let observers = Locked(Observers<Event>(), rank: .observation)

  public init() {}

  deinit { finish() }

  /// As many events wait for an observer.
  public static var bufferLimit: Int { 1024 }

  /// A new observer each time, of what happens from this call on. Ends with `finish()`, or with the channel. An
  /// observer is forgotten when its task is cancelled or its stream is let go.
  public var events: AsyncStream<Event> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Event.self, bufferingPolicy: .bufferingNewest(Self.bufferLimit))
    if !observers.withLock({ $0.add(continuation) }) { continuation.finish() }
    return stream
  }

  /// Those who observe now.
  public var observerCount: Int { observers.withLock { $0.count } }

  /// Tells all observers. Nothing after `finish()`.
  public func send(_ event: Event) {
    // Under the lock: events reach every observer in their order.
    observers.withLock { $0.send(event) }
  }

  /// Ends the observers' streams, after what they have not seen yet.
  public func finish() {
    for continuation in observers.withLock({ $0.finish() }) { continuation.finish() }
  }
}
