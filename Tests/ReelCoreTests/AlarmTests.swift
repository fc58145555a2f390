import ReelCore
import Testing

@Suite("Alarms")
struct AlarmTests {
  private struct State {
    var alarm = Alarm()
    var rings: [Int] = []
  }

  /// Keeps what it is asked for. The test makes the calls.
  private final class Clock: MonotonicClock {
    struct Call: ScheduledCall {
      let clock: Clock
      let index: Int

      func cancel() { clock.entries.withLock { $0[index].isCancelled = true } }
    }

    struct Entry {
      let deadline: Duration
      let handler: @Sendable () -> Void
      var isCancelled = false
    }

    let now = Duration.zero
    let entries = Locked<[Entry]>([])
    /// Makes a call before `schedule` returns.
    let isHasty: Bool

    init(isHasty: Bool = false) { self.isHasty = isHasty }

    var cancelled: [Bool] { entries.withLock { $0.map(\.isCancelled) } }

    func schedule(at deadline: Duration, _ handler: @escaping @Sendable () -> Void) -> any ScheduledCall {
      let index = entries.withLock { entries in
        entries.append(Entry(deadline: deadline, handler: handler))
        return entries.count - 1
      }
      if isHasty { handler() }
      return Call(clock: self, index: index)
    }

    func call(_ index: Int) { entries.withLock { $0[index].handler }() }
  }

  private let state = Locked(State())

  private func carryOut(_ change: Alarm.Change?, on clock: Clock) {
    guard let change else { return }
    let state = state
    state.carryOut(change, of: \.alarm, on: clock) { number in
      state.withLock { state in
        if state.alarm.ring(number) { state.rings.append(number) }
      }
    }
  }

  @Test("An alarm that is moved rings once, at its last time")
  func moved() {
    let clock = Clock()
    carryOut(state.withLock { $0.alarm.set(at: .seconds(2)) }, on: clock)
    carryOut(state.withLock { $0.alarm.set(at: .seconds(1)) }, on: clock)
    #expect(clock.cancelled == [true, false])
    #expect(state.withLock { $0.alarm.deadline } == .seconds(1))
    clock.call(0)
    #expect(state.withLock { $0.rings }.isEmpty)
    clock.call(1)
    #expect(state.withLock { $0.rings }.count == 1)
    #expect(state.withLock { $0.alarm.deadline } == nil)
    clock.call(1)
    #expect(state.withLock { $0.rings }.count == 1)
  }

  @Test("An earlier time is left, unless the alarm is cleared")
  func earlier() {
    let clock = Clock()
    carryOut(state.withLock { $0.alarm.setUnlessEarlier(at: .seconds(2)) }, on: clock)
    for later in [2, 3] {
      #expect(state.withLock { $0.alarm.setUnlessEarlier(at: .seconds(later)) == nil })
    }
    carryOut(state.withLock { $0.alarm.setUnlessEarlier(at: .seconds(1)) }, on: clock)
    carryOut(state.withLock { $0.alarm.setUnlessEarlier(at: nil) }, on: clock)
    #expect(state.withLock { $0.alarm.setUnlessEarlier(at: nil) == nil })
    #expect(clock.entries.withLock { $0.map(\.deadline) } == [.seconds(2), .seconds(1)])
    #expect(clock.cancelled == [true, true])
  }

  @Test("A call that comes before it is known is not kept")
  func hasty() {
    let clock = Clock(isHasty: true)
    carryOut(state.withLock { $0.alarm.set(at: .seconds(1)) }, on: clock)
    #expect(state.withLock { $0.rings }.count == 1)
    #expect(clock.cancelled == [true])
    #expect(state.withLock { $0.alarm.clear() == nil })
  }

  @Test("A change that is overtaken sets nothing")
  func overtaken() {
    let clock = Clock()
    let first = state.withLock { $0.alarm.set(at: .seconds(1)) }
    let call = state.withLock { $0.alarm.clear() }
    #expect(call == nil)
    carryOut(first, on: clock)
    #expect(clock.cancelled == [true])
    clock.call(0)
    #expect(state.withLock { $0.rings }.isEmpty)
  }
}
