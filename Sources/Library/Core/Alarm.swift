/// A call of a clock that is set, moved and cleared as times change.
///
/// It is part of a state behind a lock, so that whether it is set is decided together with everything else. The clock
/// is asked when the lock is released: `Locked.carryOut`.
package struct Alarm: Sendable {
  /// The request to the clock that follows from a change.
  package struct Change: Sendable {
    fileprivate let oldCall: (any ScheduledCall)?
    fileprivate let deadline: Duration?
    fileprivate let generation: Int
  }

  /// The time it is set to; nil while it is not set.
  package private(set) var deadline: Duration?

  /// The generation of the call that is waited for. A call with an earlier generation that comes all the same is ignored.
  private var generation = 0
  private var call: (any ScheduledCall)?

  package init() {}

  /// Sets the alarm, or clears it if `deadline` is nil.
  package mutating func set(at deadline: Duration?) -> Change {
    let oldCall = clear()
    self.deadline = deadline
    return Change(oldCall: oldCall, deadline: deadline, generation: generation)
  }

  /// Sets the alarm, or clears it if `deadline` is nil, but leaves one that is set to an earlier time. Returns nil if
  /// there is nothing to change.
  package mutating func setUnlessEarlier(at deadline: Duration?) -> Change? {
    if let known = self.deadline, let deadline, known <= deadline { return nil }
    return deadline == self.deadline ? nil : set(at: deadline)
  }

  /// Clears the alarm. Returns the call to cancel when the lock is released.
  package mutating func clear() -> (any ScheduledCall)? {
    generation += 1
    deadline = nil
    return call.take()
  }

  /// Notes that the call with a generation has come. Returns false, and changes nothing, if it is no longer waited for.
  package mutating func ring(_ generation: Int) -> Bool {
    guard generation == self.generation, deadline != nil else { return false }
    deadline = nil
    call = nil
    return true
  }

  /// False if the call has come already, or is no longer waited for.
  fileprivate mutating func keep(_ call: any ScheduledCall, generation: Int) -> Bool {
    guard generation == self.generation, deadline != nil else { return false }
    self.call = call
    return true
  }
}

extension Locked {
  /// Makes the clock's calls for a change to an alarm. The lock must not be held.
  ///
  /// - Parameters:
  ///   - alarm: The alarm in the value.
  ///   - handler: Called at the alarm's time with the generation to pass to `Alarm.ring`.
  package func carryOut(
    _ change: Alarm.Change, of alarm: any WritableKeyPath<Value, Alarm> & Sendable,
    on clock: any MonotonicClock,
    _ handler: @escaping @Sendable (Int) -> Void
  ) {
    change.oldCall?.cancel()
    guard let deadline = change.deadline else { return }
    let generation = change.generation
    let call = clock.schedule(at: deadline) { handler(generation) }
    // The call may have come, or been replaced, before it could be kept.
    if !withLock({ $0[keyPath: alarm].keep(call, generation: generation) }) { call.cancel() }
  }
}
