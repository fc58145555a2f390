import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite("TaskLoops", .hangLimit)
struct TaskLoopTests {
  private let clock = ManualMonotonicClock()
  private let turns = ObservedSource(0)

  /// Waits until there have been `count` turns.
  private func wait(for count: Int) async {
    for await turns in turns.values where turns >= count { return }
  }

  @Test("There is no turn before a wake, and one for it")
  func wake() async {
    let turns = turns
    let taskLoop = TaskLoop(named: "test", clock: clock) {
      turns.update { $0 += 1 }
      return .idle
    }
    #expect(turns.value == 0)
    for count in 1...20 {
      taskLoop.wake()
      await wait(for: count)
    }
    taskLoop.stop()
    await taskLoop.waitUntilStopped()
    #expect(turns.value == 20)
  }

  @Test("Thousands of wakes from many threads: never two turns at once, and none is lost")
  func manyWakes() async {
    let inside = Locked((now: 0, most: 0))
    let asked = Locked(0)
    let seen = ObservedSource(0)
    let taskLoop = TaskLoop(named: "test", clock: clock) {
      inside.withLock {
        $0.now += 1
        $0.most = max($0.most, $0.now)
      }
      let count = asked.withLock { $0 }
      if count % 7 == 0 { Thread.sleep(forTimeInterval: 0.00005) }
      seen.set(count)
      inside.withLock { $0.now -= 1 }
      return count % 5 == 0 ? .at(.seconds(3600)) : .idle
    }
    for round in 1...20 {
      await withTaskGroup { group in
        for _ in 0..<8 {
          group.addTask {
            for _ in 0..<100 {
              asked.withLock { $0 += 1 }
              taskLoop.wake()
            }
          }
        }
      }
      // All that was asked for before the last wake is seen by a turn after it.
      for await count in seen.values where count == round * 800 { break }
    }
    taskLoop.stop()
    await taskLoop.waitUntilStopped()
    #expect(inside.withLock { $0.now } == 0)
    #expect(inside.withLock { $0.most } == 1)
    #expect(clock.nextDeadline == nil)
  }

  @Test("A turn that asks for another gets it without a wake")
  func again() async {
    let turns = turns
    let taskLoop = TaskLoop(named: "test", clock: clock) {
      turns.update { $0 += 1 }
      return turns.value < 1000 ? .again : .idle
    }
    taskLoop.wake()
    await wait(for: 1000)
    taskLoop.stop()
    await taskLoop.waitUntilStopped()
    #expect(turns.value == 1000)
  }

  @Test("A turn at a time comes at that time, not before")
  func atTime() async {
    let (clock, turns) = (clock, turns)
    let times = Locked<[Duration]>([])
    let taskLoop = TaskLoop(named: "test", clock: clock) {
      let now = clock.now
      times.withLock { $0.append(now) }
      turns.update { $0 += 1 }
      return .at(now + .seconds(10))
    }
    taskLoop.wake()
    for count in 1...5 {
      await wait(for: count)
      await clock.waitForDeadline()
      #expect(clock.nextDeadline == .seconds(10 * count))
      clock.advance(to: .seconds(10 * count) - .nanoseconds(1))
      clock.advance(by: .nanoseconds(1))
    }
    await wait(for: 6)
    taskLoop.stop()
    await taskLoop.waitUntilStopped()
    #expect(times.withLock { $0 } == (0...5).map { .seconds(10 * $0) })
    #expect(clock.nextDeadline == nil)
  }

  @Test("A wake comes before the time, and takes its place")
  func wakeBeforeTime() async throws {
    let turns = turns
    let taskLoop = TaskLoop(named: "test", clock: clock) {
      turns.update { $0 += 1 }
      return turns.value == 1 ? .at(.seconds(10)) : .idle
    }
    taskLoop.wake()
    await clock.waitForDeadline()
    taskLoop.wake()
    await wait(for: 2)
    // The first turn's thread may still be about to set the time that the wake has forgotten.
    try await until { clock.nextDeadline == nil }
    clock.advance(to: .seconds(20))
    taskLoop.stop()
    await taskLoop.waitUntilStopped()
    #expect(turns.value == 2)
  }

  @Test("A time that has passed is a turn at once")
  func passedTime() async {
    clock.advance(to: .seconds(100))
    let turns = turns
    let taskLoop = TaskLoop(named: "test", clock: clock) {
      turns.update { $0 += 1 }
      return turns.value < 50 ? .at(.seconds(turns.value)) : .idle
    }
    taskLoop.wake()
    await wait(for: 50)
    taskLoop.stop()
    await taskLoop.waitUntilStopped()
    #expect(turns.value == 50)
  }

  @Test("Stopping lets the turn that spans end, begins no other, and lets everything go")
  func stopDuringTurn() async throws {
    let gate = DispatchSemaphore(value: 0)
    weak var held: Locked<Int>?
    let turns = turns
    let taskLoop: TaskLoop
    do {
      let object = Locked(0)
      held = object
      taskLoop = TaskLoop(named: "test", clock: clock) {
        turns.update { $0 += 1 }
        gate.wait()
        object.withLock { $0 += 1 }
        return .again
      }
    }
    taskLoop.wake()
    await wait(for: 1)
    taskLoop.wake()
    taskLoop.stop()
    #expect(held != nil)
    async let ended: Void = taskLoop.waitUntilStopped()
    gate.signal()
    await ended
    // The thread of the turn may still be on its way out of it.
    try await until { held == nil }
    taskLoop.wake()
    taskLoop.stop()
    await taskLoop.waitUntilStopped()
    #expect(turns.value == 1)
  }

  @Test("Stopping a task loop that waits for a time cancels the call")
  func stopWhileScheduled() async {
    let turns = turns
    let taskLoop = TaskLoop(named: "test", clock: clock) {
      turns.update { $0 += 1 }
      return .at(.seconds(10))
    }
    taskLoop.wake()
    await clock.waitForDeadline()
    taskLoop.stop()
    await taskLoop.waitUntilStopped()
    clock.advance(to: .seconds(20))
    #expect(clock.nextDeadline == nil)
    #expect(turns.value == 1)
  }

  @Test("A task loop that never ran stops at once, and one may stop itself")
  func stopUnused() async {
    let unused = TaskLoop(named: "test", clock: clock) { .again }
    unused.stop()
    await unused.waitUntilStopped()

    let turns = turns
    let own = Locked<TaskLoop?>(nil)
    let taskLoop = TaskLoop(named: "test", clock: clock) {
      turns.update { $0 += 1 }
      if turns.value == 3 { own.withLock { $0 }?.stop() }
      return .again
    }
    own.withLock { $0 = taskLoop }
    taskLoop.wake()
    await taskLoop.waitUntilStopped()
    own.withLock { $0 = nil }
    #expect(turns.value == 3)
  }

  @Test("Stopping among wakes from other threads: no turn after the wait has ended")
  func stopAmongWakes() async {
    for _ in 0..<200 {
      let count = Locked(0)
      let isOver = Locked(false)
      let taskLoop = TaskLoop(named: "test", clock: clock) {
        #expect(!isOver.withLock { $0 })
        count.withLock { $0 += 1 }
        return Bool.random() ? .again : .at(.seconds(3600))
      }
      await withTaskGroup { group in
        for _ in 0..<3 { group.addTask { for _ in 0..<20 { taskLoop.wake() } } }
        group.addTask {
          taskLoop.stop()
          await taskLoop.waitUntilStopped()
          isOver.withLock { $0 = true }
        }
      }
    }
    #expect(clock.nextDeadline == nil)
  }

  @Test("A task loop that is let go while it waits for a time leaves nothing behind")
  func letGo() async throws {
    weak var held: Locked<Int>?
    do {
      let object = Locked(0)
      held = object
      let taskLoop = TaskLoop(named: "test", clock: clock) {
        object.withLock { $0 += 1 }
        return .at(.seconds(10))
      }
      taskLoop.wake()
      await clock.waitForDeadline()
    }
    try await until { held == nil }
    #expect(clock.nextDeadline == nil)
  }
}
