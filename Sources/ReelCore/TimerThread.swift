/// Makes calls at times of `SystemMonotonicClock`, on one thread, which ends when nothing has been scheduled for a
/// while and is started again for the next call.
final class TimerThread: Sendable {
  static let shared = TimerThread()

  /// A call in the order in which calls are made.
  fileprivate struct Entry {
    let call: Call
    let handler: @Sendable () -> Void
  }

  fileprivate struct State {
    /// The next one last, so that taking it moves none.
    var entries: [Entry] = []
    var nextNumber: UInt64 = 0
    var isRunning = false
    /// When the last call was made or cancelled.
    var idleSince: Duration = .zero
  }

  private let state = Monitor(State(), rank: .clock)
  private let idleTime: Duration

  init(idleTime: Duration = .seconds(1)) { self.idleTime = idleTime }

  /// True while there is a thread.
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// The number of calls to come.
  var callCount: Int { state.withLock { $0.entries.count } }

  func schedule(at deadline: Duration, _ handler: @escaping @Sendable () -> Void) -> any ScheduledCall {
    let (call, isNext, needsThread) = state.withLock { state in
      let call = Call(deadline: deadline, number: state.nextNumber, timer: self)
      state.nextNumber += 1
      let index = state.index(of: call)
      state.entries.insert(Entry(call: call, handler: handler), at: index)
      let needsThread = !state.isRunning
      state.isRunning = true
      return (call, index == state.entries.count - 1, needsThread)
    }
    if needsThread {
      NativeThread.start(named: "reel.timer", stackSize: Self.stackSize) { self.run() }
    } else if isNext {
      state.signal()
    }
    return call
  }

  // MARK: - Private

  /// The handlers do next to nothing.
  private static let stackSize = 256 << 10

  private func run() {
    NativeThread.endWaitsAtOnce()
    let clock = SystemMonotonicClock()
    while true {
      let handler = state.wait { state -> Monitor<State>.Step<(@Sendable () -> Void)?> in
        let now = clock.now
        guard let next = state.entries.last else {
          let idleEnd = state.idleSince + idleTime
          guard now >= idleEnd else { return .wait(until: idleEnd) }
          state.isRunning = false
          return .end(nil)
        }
        guard now >= next.call.deadline else { return .wait(until: next.call.deadline) }
        state.entries.removeLast()
        return .end(next.handler)
      }
      guard let handler else { return }
      handler()
      state.withLock { $0.idleSince = clock.now }
    }
  }

  private func cancel(_ call: Call) {
    // The handler is let go after the lock: what it holds may cancel other calls as it ends.
    let (entry, isIdle) = state.withLock { state -> (Entry?, Bool) in
      let index = state.index(of: call)
      guard index < state.entries.count, state.entries[index].call === call else { return (nil, false) }
      let entry = state.entries.remove(at: index)
      state.idleSince = SystemMonotonicClock().now
      return (entry, state.entries.isEmpty)
    }
    // The thread waits for that call: it would not end before.
    if isIdle { state.signal() }
    withExtendedLifetime(entry) {}
  }

  fileprivate final class Call: ScheduledCall {
    let deadline: Duration
    /// In the order of scheduling.
    let number: UInt64
    private let timer: TimerThread

    init(deadline: Duration, number: UInt64, timer: TimerThread) {
      self.deadline = deadline
      self.number = number
      self.timer = timer
    }

    func cancel() { timer.cancel(self) }

    func isBefore(_ other: Call) -> Bool { (deadline, number) < (other.deadline, other.number) }
  }
}

extension TimerThread.State {
  /// Where a call is, or belongs.
  fileprivate func index(of call: TimerThread.Call) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if call.isBefore(entries[middle].call) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
