/// Time that only goes forward, and calls at a time: injected, so that what is paced by time is tested without waiting.
/// Zero is any instant.
public protocol MonotonicClock: Sendable {
  var now: Duration { get }

  /// Calls `handler` once at `deadline` or as soon after as can be, on a thread of the clock's own: it must not block.
  /// A deadline that has passed is called soon, never from inside of this call.
  @discardableResult
  func schedule(at deadline: Duration, _ handler: @escaping @Sendable () -> Void) -> any ScheduledCall
}

/// A call that a clock will make.
public protocol ScheduledCall: Sendable {
  /// After this the handler may still be running, but is not begun any more, and the clock does not hold it. May be
  /// called at any time, as often as one likes, and from the handler itself. A call that is let go without this is
  /// made all the same.
  func cancel()
}
