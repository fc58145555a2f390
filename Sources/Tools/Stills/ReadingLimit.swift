internal import ReelCore
internal import ReelSources

/// Ends reading that takes too long, without ending the loading that it is part of.
///
/// Confined to the thread that reads.
final class ReadingLimit {
  /// The scope for reading.
  let scope: LoadScope

  private let parent: LoadScope
  private let clock: any MonotonicClock
  private let duration: Duration?
  private let token: Int
  private let late = Locked(false)
  private var call: (any ScheduledCall)?

  /// - Parameter duration: Nil for no limit.
  init(_ duration: Duration?, in parent: LoadScope, clock: any MonotonicClock) {
    let scope = LoadScope(runtime: parent.runtime, memory: parent.memory)
    (self.duration, self.parent, self.clock, self.scope) = (duration, parent, clock, scope)
    token = parent.onCancel { scope.cancel() }
  }

  deinit {
    call?.cancel()
    parent.forget(token)
  }

  /// True if reading was ended.
  var isLate: Bool { late.withLock { $0 } }

  /// Starts the time limit, until `end()`.
  func begin() {
    guard let duration else { return }
    let (scope, late) = (scope, late)
    call?.cancel()
    call = clock.schedule(at: clock.now + duration) {
      late.withLock { $0 = true }
      scope.cancel()
    }
  }

  func end() {
    call?.cancel()
    call = nil
  }
}
