import ReelCore
import ReelPlayback
import ReelPool
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

@Suite("A simulation", .hangLimit)
struct SimulatedRuntimeTests {
  private let simulation = SimulatedRuntime()
  private let lines = Locked<[String]>([])

  private func record(_ text: String) {
    lines.withLock { $0.append("\(simulation.now / .milliseconds(1)) \(text)") }
  }

  private var all: [String] { lines.withLock { $0 } }

  @Test("Calls come in the order of their times, then of their scheduling, and the clock shows them")
  func calls() async {
    simulation.schedule(at: .seconds(2)) { record("c") }
    simulation.schedule(at: .seconds(1)) { record("a") }
    simulation.schedule(at: .seconds(1)) { record("b") }
    let cancelled = simulation.schedule(at: .seconds(1)) { record("never") }
    cancelled.cancel()
    await simulation.run(until: .milliseconds(1500))
    #expect(all == ["1000.0 a", "1000.0 b"])
    #expect(simulation.now == .milliseconds(1500))
    simulation.schedule(at: .zero) { record("late") }
    await simulation.runToRest()
    #expect(all.suffix(2) == ["1500.0 late", "2000.0 c"])
    #expect(simulation.now == .seconds(2))
  }

  @Test("A condition ends the run; a limit, or that nothing is left, gives it up")
  func conditions() async {
    let count = Locked(0)
    for second in 1...5 { simulation.schedule(at: .seconds(second)) { count.withLock { $0 += 1 } } }
    #expect(await simulation.run { count.withLock { $0 == 2 } })
    #expect(simulation.now == .seconds(2))
    #expect(await !simulation.run(by: .seconds(3)) { count.withLock { $0 == 4 } })
    #expect(simulation.now == .seconds(3))
    #expect(await !simulation.run { count.withLock { $0 == 9 } })
    #expect(simulation.now == .seconds(5))
  }

  @Test("Tasks, their children and bodies run one at a time, in the order in which they could")
  func oneAtATime() async throws {
    let inside = Locked(0)
    let most = Locked(0)
    let order = Locked<[Int]>([])
    @Sendable func enter(_ number: Int) {
      let count = inside.withLock { value in
        value += 1
        return value
      }
      most.withLock { $0 = max($0, count) }
      order.withLock { $0.append(number) }
      inside.withLock { $0 -= 1 }
    }
    let simulation = simulation
    try await simulation.run {
      async let first: Void = enter(0)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 1...20 {
          group.addTask {
            enter(number)
            try await simulation.sleep(for: .milliseconds(100 - number))
            enter(100 - number)
          }
          simulation.run(named: "test") { enter(1000 + number) }
        }
        try await group.waitForAll()
      }
      await first
      let counter = Counter()
      for number in 1...5 {
        await counter.add(number)
        enter(2000 + number)
      }
    }
    #expect(most.withLock { $0 } == 1)
    let numbers = order.withLock { $0 }
    #expect(numbers.first == 0)
    #expect(numbers.filter { (1...20).contains($0) } == Array(1...20))
    #expect(numbers.filter { (1001...1020).contains($0) } == Array(1001...1020))
    // The last was asleep for the shortest time.
    #expect(numbers.filter { (80..<100).contains($0) } == Array(80..<100))
    #expect(simulation.bodyCount == 0)
  }

  @Test("A body that waits lets others go on, and is woken in its turn")
  func signals() async {
    let (simulation, signal) = (simulation, simulation.makeSemaphore())
    let (done, other) = (simulation.makeSemaphore(), simulation.makeSemaphore())
    for name in ["a", "b"] {
      simulation.run(named: name) {
        record("\(name) waits")
        signal.wait()
        record("\(name) goes on")
        done.signal()
      }
    }
    simulation.run(named: "c") {
      record("c")
      simulation.schedule(at: .seconds(1)) {
        signal.signal()
        signal.signal()
      }
      done.wait()
      done.wait()
      // One that came before the wait is not lost.
      other.signal()
      other.wait()
      record("c ends")
    }
    await simulation.runToRest()
    #expect(
      all == ["0.0 a waits", "0.0 b waits", "0.0 c", "1000.0 a goes on", "1000.0 b goes on", "1000.0 c ends"])
    #expect(simulation.bodyCount == 0)
  }

  @Test("What waits for what never comes is an error, and is cancelled")
  func rest() async throws {
    let wasCancelled = Locked(false)
    let error = await #expect(throws: ReelError.self) {
      try await simulation.run {
        let forever = AsyncStream<Int> { _ in }
        for await _ in forever {}
        wasCancelled.withLock { $0 = Task.isCancelled }
      }
    }
    #expect(error?.kind == .internalFault)
    #expect(wasCancelled.withLock { $0 })
  }

  @Test("The simulation stands still for what is done outside")
  func outside() async throws {
    let simulation = simulation
    try await simulation.run {
      simulation.task { record("after") }
      let value = try Self.outside(simulation) {
        try await Task.sleep(for: .milliseconds(20))
        return 42
      }
      record("\(value)")
      try await simulation.sleep(for: .seconds(1))
      record("end")
    }
    #expect(all == ["0.0 42", "0.0 after", "1000.0 end"])
  }

  @Test("Cancelling who waits for the simulation ends what it stands still for")
  func cancellation() async throws {
    let (simulation, begun) = (simulation, ObservedSource(false))
    let task = Task {
      try await simulation.run {
        try Self.outside(simulation) {
          begun.set(true)
          try await Task.sleep(for: .seconds(3600))
        }
      }
    }
    for await value in begun.values where value { break }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    try await simulation.run { record("again") }
    #expect(all == ["0.0 again"])
  }

  @Test("The time of day goes by the simulation's clock")
  func timeOfDay() async throws {
    let clock = SimulatedWallClock(simulation)
    let beginning = clock.now
    #expect(beginning.description == "2030-01-01T00:00:00Z")
    try await simulation.run { try await clock.sleep(for: .milliseconds(2500)) }
    #expect(clock.now - beginning == MediaTime(value: 5, timescale: 2))
  }

  private static func outside<Success: Sendable>(
    _ simulation: SimulatedRuntime, _ body: @escaping @Sendable () async throws -> Success
  ) throws -> Success {
    try simulation.outside(body)
  }
}

private actor Counter {
  private var sum = 0

  func add(_ value: Int) { sum += value }
}
