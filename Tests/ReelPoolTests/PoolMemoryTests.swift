import Foundation
import ReelCore
import ReelFFmpeg
import ReelLab
import ReelPlayback
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPool
@testable import ReelSources

@Suite("Memory of a pool", .hangLimit) struct PoolMemoryTests {
  static let paths = [
    "hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "media/h264-bframes.mp4", "media/h264.ts",
    "dash-timeline/manifest.mpd", "media/h264-moov-last.mp4", "media/rate-25.mp4",
  ]

  @Test(
    "Trimming lets go of the lowest rank first, and it is not loaded again before the current item changes")
  func trim() async throws {
    let scene = try PoolScene(Self.paths, slots: 5, policy: AheadPreload(4))
    scene.pool.setPlaying(false)
    try await scene.rest(at: 1)
    #expect(Set(scene.slots) == [1, 2, 3, 4, 5])
    let whole = scene.pool.memory.byteCount
    // Below what there is by part of what one holds: one goes. What work leaves behind may still go, too.
    let first = scene.pool.trim(to: whole - whole / 20)
    #expect(first < whole)
    #expect(scene.evicted == [scene.id(5)])
    #expect(scene.events.last { if case .trimmed = $0 { true } else { false } } == .trimmed(byteCount: first))
    try await scene.until { scene.pool.core.isSteady }
    #expect(Set(scene.slots.compactMap { $0 }) == [1, 2, 3, 4])
    // What is enough does nothing.
    #expect(scene.pool.trim(to: first) == first)
    #expect(scene.evicted.count == 1)
    let item = try #require(scene.item(1))
    let last = scene.pool.trim(to: 0)
    #expect(scene.evicted == [5, 4, 3, 2].map(scene.id))
    #expect(last > 0)
    #expect(last < first)
    // The same item once more, and more items: nothing is loaded.
    try scene.show(1)
    scene.pool.update(scene.snapshot, currentIndex: 1)
    try await scene.until { scene.pool.core.isSteady }
    #expect(scene.slots.compactMap { $0 } == [1])
    #expect(scene.item(1) === item)
    #expect(scene.assigned.count == 5)
    try await scene.rest(at: 2)
    #expect(Set(scene.slots) == [2, 3, 4, 5, 6])
    try await scene.close()
  }

  @Test("Trimming while slots are being loaded, and swiped, ends with what is wanted")
  func trimMeanwhile() async throws {
    let scene = try PoolScene(Self.paths, runtime: .system, slots: 4, policy: AheadPreload(3))
    let isDone = Locked(false)
    let trimming = Task.detached {
      while !isDone.withLock({ $0 }) {
        scene.pool.trim(to: 0)
        await Task.yield()
      }
    }
    for round in 0..<200 { try scene.show(round % 4) }
    isDone.withLock { $0 = true }
    await trimming.value
    try await scene.rest(at: 2)
    // Backwards.
    #expect(scene.slots == [0, 1, 2, nil])
    #expect(scene.pool.currentPlayer?.hasFrame == true)
    try await scene.close()
  }

  @Test("The ledger has what the players hold, by kind, and nothing after the end")
  func ledger() async throws {
    // The allocator counts the memory of players on the system's threads only.
    let scene = try PoolScene(Self.paths, runtime: .system)
    scene.pool.setPlaying(false)
    try await scene.rest(at: 1)
    let ledger = scene.pool.memory
    #expect(ledger.entries.map(\.slot) == [0, 1, 2])
    try #require(ledger.entries.map(\.item) == [0, 1, 2].map(scene.id))
    for (entry, readiness) in zip(ledger.entries, scene.pool.slotReadiness) {
      #expect(entry.account[.packets] >= readiness.bufferedByteCount)
      #expect(entry.account[.inFlight] >= 0)
    }
    // One frame each: 4:2:0 at 256 x 144 and more.
    #expect(ledger.entries.allSatisfy { $0.account[.frames] + $0.account[.output] >= 192 * 108 * 3 / 2 })
    // The one before rests without a decoder, the next one with.
    // A frame has whole pages.
    #expect(ledger.entries[0].account[.decoder] < 4096)
    #expect(ledger.entries[2].account[.decoder] > 20_000)
    #expect(ledger.byteCount == ledger.entries.reduce(0) { $0 + $1.account.byteCount })
    try await scene.close()
    try await scene.until {
      scene.pool.memory.entries.allSatisfy { entry in
        entry.item == nil && entry.account[.packets] + entry.account[.frames] + entry.account[.decoder] == 0
      }
    }
  }

  @Test("A pool that rests has no thread")
  func rests() async throws {
    let scene = try PoolScene(Self.paths, runtime: .system)
    scene.pool.setPlaying(false)
    try await scene.rest(at: 1)
    try await scene.until { scene.threads.count == 0 }
    try await scene.close()
  }

  @Test("A pool that is closed, or let go, leaves no thread, no transfer and no descriptor")
  func end() async throws {
    await #expect(processExitsWith: .success) {
      var descriptors: Int?
      for round in 0..<40 {
        let fetcher = FixtureFetcher { request, _ in
          round % 3 == 0 && request.url.path.contains("segment-1") ? .hold : .none
        }
        var scene: PoolScene? = try PoolScene(
          Self.paths, runtime: .system, fetcher: fetcher,
          configure: { $0.player.runtime = SystemRuntime.shared })
        try scene?.show(round % 7)
        // At any moment.
        if round % 2 == 0 { try await until { scene?.pool.currentPlayer?.hasFrame == true } }
        if round % 4 < 2 { scene?.pool.close() }
        weak let pool = scene?.pool
        scene = nil
        try await until { pool == nil && fetcher.underWayCount == 0 }
        // What the process opens once stays.
        if round == 1 { descriptors = ProcessMemory.current?.descriptorCount }
      }
      try await until {
        try #require(ProcessMemory.current).descriptorCount <= descriptors ?? 0
          && !threadNames().contains { $0.hasPrefix("reel.") && !$0.hasPrefix("reel.timer") }
      }
    }
  }

  @Test("A closed pool loads nothing any more")
  func closed() async throws {
    let scene = try PoolScene(Self.paths)
    try scene.show(0)
    try await scene.close()
    let requests = scene.fetcher.requests.count
    try scene.show(1)
    scene.pool.update(scene.snapshot, currentIndex: 2)
    scene.pool.setPlaying(true)
    scene.pool.trim(to: 0)
    await scene.simulation.runToRest()
    #expect(scene.fetcher.requests.count == requests)
    #expect(scene.slots == [nil, nil, nil])
    #expect(scene.pool.readiness.value.allSatisfy { $0.item == nil })
    try await scene.close()
  }
}

/// The names of the process's threads, as Linux tells them.
private func threadNames() -> [String] {
  let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
  return tasks.compactMap { try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8) }
}
