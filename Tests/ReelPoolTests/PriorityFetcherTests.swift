import Foundation
import ReelCore
import ReelPool
import ReelLab
import ReelSimulation
import ReelTestSupport
import Testing

@Suite("Slots by rank on one network", .hangLimit)
struct PriorityFetcherTests {
  private let simulation = SimulatedRuntime()
  private let lines = Locked<[String]>([])

  /// Answers after a time, then gives chunks of 1000 bytes, each after a time.
  private struct SlowFetcher: Fetching {
    let simulation: SimulatedRuntime
    var head = Duration.milliseconds(100)
    var chunk = Duration.milliseconds(10)
    var chunkCount = 3
    var isReceived = false

    func fetch(_ request: FetchRequest) async throws -> FetchResponse {
      try await simulation.sleep(for: head)
      let left = Locked(chunkCount)
      let (simulation, chunk) = (simulation, chunk)
      var response = FetchResponse(
        url: request.url, contentType: nil, bodyOffset: 0, bodyByteCount: nil, resourceByteCount: nil,
        supportsRanges: false,
        body: FetchBody {
          try await simulation.sleep(for: chunk)
          return left.withLock { left in
            left -= 1
            return left >= 0 ? [UInt8](repeating: 0, count: 1000) : nil
          }
        })
      response.isReceived = isReceived
      return response
    }
  }

  private func record(_ text: String) {
    lines.withLock { $0.append("\(simulation.now / .milliseconds(1)) \(text)") }
  }

  private func fetch(_ name: String, by slot: PriorityFetcher.Slot) -> Task<Void, Never> {
    simulation.task {
      do {
        let url = URL(filePath: "/\(name)")
        let response = try await slot.fetch(FetchRequest(url: url, purpose: .segment))
        record("\(name) head")
        let bytes = try await response.body.collect(upTo: 1 << 20)
        record("\(name) \(bytes.count)")
      } catch {
        record("\(name) \(error)")
      }
    }
  }

  @Test(
    "With a limit of transfers the next rank waits until a place is free, but never rank 0, nor a slot for itself"
  )
  func limit() async {
    let network = PriorityFetcher(
      SlowFetcher(simulation: simulation), clock: simulation, patience: .zero, grace: .zero,
      maximumTransfers: 1)
    let slots = [1, 2, 0].map { network.makeSlot(rank: $0) }
    var tasks = [fetch("a", by: slots[0]), fetch("b", by: slots[1]), fetch("a2", by: slots[0])]
    await simulation.run(until: .milliseconds(50))
    #expect(network.waiterCount == 1)
    tasks.append(fetch("c", by: slots[2]))
    await simulation.runToRest()
    let heads = lines.withLock { $0 }.filter { $0.hasSuffix("head") }
    #expect(Array(heads.prefix(3)) == ["100.0 a head", "100.0 a2 head", "150.0 c head"])
    #expect(lines.withLock { $0.count { $0.hasSuffix(" 3000") } } == 4)
    for task in tasks { await task.value }
  }

  @Test("The better ranked goes first, and the other goes on when it wants nothing more")
  func order() async throws {
    let network = PriorityFetcher(SlowFetcher(simulation: simulation), clock: simulation)
    let (preload, current) = (network.makeSlot(rank: 1), network.makeSlot(rank: 0))
    let tasks = [fetch("a", by: current), fetch("b", by: preload)]
    try await simulation.run { for task in tasks { await task.value } }
    // 100 + 4 * 10, and 20 of grace before the other's request leaves.
    #expect(lines.withLock { $0 } == ["100.0 a head", "140.0 a 3000", "260.0 b head", "300.0 b 3000"])
    #expect(current.statistics.requestCount == 1)
    #expect(current.statistics.byteCount == 3000)
    #expect(current.statistics.heldCount == 0)
    #expect(preload.statistics.byteCount == 3000)
    #expect(preload.statistics.heldCount == 1)
    #expect(network.waiterCount == 0)
  }

  @Test("One that has begun is held at its next piece")
  func held() async throws {
    let network = PriorityFetcher(SlowFetcher(simulation: simulation), clock: simulation)
    let (preload, current) = (network.makeSlot(rank: 1), network.makeSlot(rank: 0))
    let first = fetch("b", by: preload)
    await simulation.run(until: .milliseconds(115))
    let second = fetch("a", by: current)
    try await simulation.run {
      await first.value
      await second.value
    }
    // The piece that was asked for at 110 comes; at 120 the next one waits for a, which is done at 255, and 20 more.
    #expect(lines.withLock { $0 } == ["100.0 b head", "215.0 a head", "255.0 a 3000", "295.0 b 3000"])
  }

  @Test("Slots of one rank do not wait for each other")
  func equals() async throws {
    let network = PriorityFetcher(SlowFetcher(simulation: simulation), clock: simulation)
    let slots = [network.makeSlot(rank: 1), network.makeSlot(rank: 1)]
    let tasks = [fetch("a", by: slots[0]), fetch("b", by: slots[1])]
    try await simulation.run { for task in tasks { await task.value } }
    #expect(lines.withLock { $0 } == ["100.0 a head", "100.0 b head", "140.0 a 3000", "140.0 b 3000"])
  }

  @Test("A slot that received nothing for a second no longer blocks others")
  func patience() async throws {
    let network = PriorityFetcher(SlowFetcher(simulation: simulation, head: .seconds(5)), clock: simulation)
    let (preload, current) = (network.makeSlot(rank: 1), network.makeSlot(rank: 0))
    let tasks = [fetch("a", by: current), fetch("b", by: preload)]
    try await simulation.run { for task in tasks { await task.value } }
    #expect(lines.withLock { $0 }.prefix(2) == ["5000.0 a head", "5040.0 a 3000"])
    #expect(lines.withLock { $0 }.dropFirst(2).first == "6000.0 b head")
  }

  @Test("The background begins only when no slot uses the network, however long that takes")
  func background() async throws {
    let network = PriorityFetcher(SlowFetcher(simulation: simulation, head: .seconds(2)), clock: simulation)
    let background = network.makeSlot(rank: PriorityFetcher.backgroundRank)
    let slot = network.makeSlot(rank: 3)
    let tasks = [fetch("a", by: slot), fetch("b", by: background)]
    try await simulation.run { for task in tasks { await task.value } }
    withExtendedLifetime(slot) {}
    #expect(lines.withLock { $0 } == ["2000.0 a head", "2040.0 a 3000", "4060.0 b head", "4100.0 b 3000"])
  }

  @Test("The background is held at its next piece, and counts for no limit of transfers")
  func backgroundHeld() async throws {
    let network = PriorityFetcher(
      SlowFetcher(simulation: simulation), clock: simulation, maximumTransfers: 1)
    let (background, slot) = (
      network.makeSlot(rank: PriorityFetcher.backgroundRank), network.makeSlot(rank: 1)
    )
    let first = fetch("b", by: background)
    await simulation.run(until: .milliseconds(115))
    let second = fetch("a", by: slot)
    try await simulation.run {
      await first.value
      await second.value
    }
    withExtendedLifetime((background, slot)) {}
    #expect(lines.withLock { $0 } == ["100.0 b head", "215.0 a head", "255.0 a 3000", "295.0 b 3000"])
  }

  @Test("What is stored waits for nobody, holds up nobody, and measures nothing")
  func stored() async throws {
    let store = MemoryStore(in: SlowFetcher(simulation: simulation))
    store.put([UInt8](repeating: 1, count: 100_000), at: URL(filePath: "/s"))
    let network = PriorityFetcher(store, clock: simulation)
    let slots = (0..<3).map { network.makeSlot(rank: $0) }
    var tasks = [fetch("a", by: slots[1])]
    await simulation.run(until: .milliseconds(50))
    tasks += [fetch("s", by: slots[0]), fetch("s", by: slots[2])]
    try await simulation.run { [tasks] in for task in tasks { await task.value } }
    #expect(
      lines.withLock { $0.prefix(4).sorted() } == [
        "50.0 s 100000", "50.0 s 100000", "50.0 s head", "50.0 s head",
      ])
    // As if it were alone.
    #expect(lines.withLock { $0.suffix(2) } == ["100.0 a head", "140.0 a 3000"])
    for slot in [slots[0], slots[2]] {
      #expect(slot.statistics.requestCount == 0)
      #expect(slot.statistics.byteCount == 0)
      #expect(slot.statistics.storedByteCount == 100_000)
      #expect(slot.statistics.heldCount == 0)
    }
    #expect(slots[1].statistics.requestCount == 1)
    #expect(slots[1].statistics.storedByteCount == 0)
    #expect(network.throughput == nil)
  }

  @Test("What was received before its response measures nothing", arguments: [false, true])
  func received(isReceived: Bool) async throws {
    // Without the first chunk, they are too few.
    let base = SlowFetcher(simulation: simulation, chunkCount: 16, isReceived: isReceived)
    let network = PriorityFetcher(base, clock: simulation)
    let slot = network.makeSlot(rank: 0)
    let task = fetch("a", by: slot)
    try await simulation.run { await task.value }
    #expect(slot.statistics.byteCount == 16_000)
    #expect((network.throughput == nil) == isReceived)
  }

  @Test("A change of rank counts at once")
  func change() async throws {
    let network = PriorityFetcher(SlowFetcher(simulation: simulation), clock: simulation)
    let (preload, current) = (network.makeSlot(rank: 1), network.makeSlot(rank: 0))
    let tasks = [fetch("a", by: current), fetch("b", by: preload)]
    await simulation.run(until: .milliseconds(50))
    #expect(network.waiterCount == 1)
    current.rank = 2
    #expect(network.waiterCount == 0)
    try await simulation.run { for task in tasks { await task.value } }
    #expect(lines.withLock { $0 }.first == "100.0 a head")
    #expect(lines.withLock { $0 }.dropFirst().first == "150.0 b head")
    // Its first piece waits for b, which is done at 190, and 20 more.
    #expect(lines.withLock { $0 }.last == "250.0 a 3000")
  }

  @Test("One that is cancelled while it waits ends at once, and leaves nothing behind")
  func cancellation() async throws {
    let network = PriorityFetcher(SlowFetcher(simulation: simulation), clock: simulation)
    let (preload, current) = (network.makeSlot(rank: 1), network.makeSlot(rank: 0))
    let tasks = [fetch("a", by: current), fetch("b", by: preload)]
    await simulation.run(until: .milliseconds(50))
    tasks[1].cancel()
    #expect(network.waiterCount == 0)
    try await simulation.run { for task in tasks { await task.value } }
    #expect(
      lines.withLock { $0 } == ["50.0 b CancellationError()", "100.0 a head", "140.0 a 3000"])
  }

  @Test("In real time, with ranks that change: everything comes, and nobody waits for ever")
  func realTime() async throws {
    let base = FixtureFetcher { _, _ in .uneven }
    let network = PriorityFetcher(
      base, clock: SystemMonotonicClock(), patience: .milliseconds(50), grace: .milliseconds(1))
    let slots = (0..<6).map { network.makeSlot(rank: $0) }
    let byteCount = try await network.makeSlot(rank: 0).byteCount(of: "/hls-ts/master.m3u8")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, slot) in slots.enumerated() {
        group.addTask {
          for round in 0..<20 {
            slot.rank = (index + round) % 6
            let count = try await slot.byteCount(of: "/hls-ts/master.m3u8")
            #expect(count == byteCount)
          }
        }
      }
      try await group.waitForAll()
    }
    for slot in slots {
      #expect(slot.statistics.requestCount == 20)
      #expect(slot.statistics.byteCount == Int64(20 * byteCount))
    }
    #expect(network.waiterCount == 0)
  }
}

extension PriorityFetcher.Slot {
  fileprivate func byteCount(of path: String) async throws -> Int {
    let url = try #require(URL(string: "http://origin\(path)"))
    return try await fetch(FetchRequest(url: url, purpose: .segment)).body.collect(upTo: 1 << 20).count
  }
}
