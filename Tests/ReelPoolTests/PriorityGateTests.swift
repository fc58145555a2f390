import ReelCore
import ReelPlayback
import ReelPool
import ReelLab
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

@Suite("Permits by rank", .hangLimit)
struct PriorityGateTests {
  private let order = Locked<[String]>([])

  private func record(_ text: String) { order.withLock { $0.append(text) } }

  @Test("Who waits is served by rank, then in the order of arrival, by the rank of that moment")
  func ranks() async throws {
    let gate = PriorityGate(permits: 1)
    let holder = SlotGate(gate, rank: 9)
    holder.acquire()
    let slots = [("c", 2), ("b1", 1), ("b2", 1), ("a", 5)].map { ($0.0, SlotGate(gate, rank: $0.1)) }
    let done = ObservedSource(0)
    for (index, slot) in slots.enumerated() {
      SystemRuntime.shared.run(named: "test") {
        slot.1.acquire()
        record(slot.0)
        slot.1.release()
        done.update { $0 += 1 }
      }
      try await until { gate.waiterCount > index }
    }
    slots[3].1.rank = 0
    holder.release()
    for await count in done.values where count == 4 { break }
    #expect(order.withLock { $0 } == ["a", "b1", "b2", "c"])
  }

  @Test("No more than the permits are out at a time, and none is lost", arguments: [1, 3])
  func bound(permits: Int) async throws {
    let gate = PriorityGate(permits: permits)
    let (inside, most, done) = (Locked(0), Locked(0), ObservedSource(0))
    for slot in 0..<8 {
      let ranked = SlotGate(gate, rank: slot % 3)
      SystemRuntime.shared.run(named: "test") {
        for _ in 0..<200 {
          ranked.acquire()
          let count = inside.withLock { value in
            value += 1
            return value
          }
          most.withLock { $0 = max($0, count) }
          inside.withLock { $0 -= 1 }
          ranked.release()
        }
        done.update { $0 += 1 }
      }
    }
    for await count in done.values where count == 8 { break }
    #expect(most.withLock { $0 } <= permits)
    let all = (0..<permits).map { _ in SlotGate(gate) }
    for gate in all { gate.acquire() }
    #expect(gate.waiterCount == 0)
    for gate in all { gate.release() }
  }

  @Test("In a simulation, a permit is held for as long as its holder waits")
  func simulated() async {
    let simulation = SimulatedRuntime()
    let gate = PriorityGate(permits: 2, runtime: simulation)
    for name in ["a", "b", "c"] {
      let ranked = SlotGate(gate)
      simulation.run(named: name) {
        ranked.acquire()
        record("\(name) begins \(simulation.now / .milliseconds(1))")
        let signal = simulation.makeSemaphore()
        simulation.schedule(at: simulation.now + .milliseconds(10)) { signal.signal() }
        signal.wait()
        ranked.release()
        record("\(name) ends \(simulation.now / .milliseconds(1))")
      }
    }
    await simulation.runToRest()
    #expect(
      order.withLock { $0 } == [
        "a begins 0.0", "b begins 0.0", "a ends 10.0", "c begins 10.0", "b ends 10.0", "c ends 20.0",
      ])
    #expect(simulation.bodyCount == 0)
  }
}
