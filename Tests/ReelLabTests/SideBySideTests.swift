import ReelCore
import ReelLab
import ReelTestSupport
import Testing

@Suite("Jobs side by side", .hangLimit)
struct SideBySideTests {
  private struct Fault: Error {}

  @Test("Inputs are made when jobs can begin; a job that fails does not end the others")
  func all() async throws {
    var inputs = (0..<100).makeIterator()
    let running = Locked((now: 0, most: 0))
    var (made, ended, failed) = (0, Set<Int>(), Set<Int>())
    try await SideBySide.run(3) {
      let input = inputs.next()
      if input != nil { made += 1 }
      #expect(made - ended.count - failed.count <= 3)
      return input
    } job: { input in
      running.withLock { running in
        running.now += 1
        running.most = max(running.most, running.now)
      }
      await Task.yield()
      running.withLock { $0.now -= 1 }
      if input % 10 == 0 { throw Fault() }
      return input * 2
    } ended: { input, result in
      switch result {
      case .success(let output):
        #expect(output == input * 2)
        ended.insert(input)
      case .failure: failed.insert(input)
      }
    }
    #expect(failed == Set(stride(from: 0, to: 100, by: 10)))
    #expect(ended.count == 90)
    #expect((1...3).contains(running.withLock { $0.most }))
  }

  @Test("An error of the caller ends all")
  func failure() async throws {
    await #expect(throws: Fault.self) {
      var inputs = (0..<Int.max).makeIterator()
      try await SideBySide.run(2, next: { inputs.next() }) { input in
        if input == 1 { try await Task.sleep(for: .seconds(1000)) }
        return input
      } ended: { input, _ in
        if input == 5 { throw Fault() }
      }
    }
  }

  @Test("Cancelled, it gives what has ended by then, and no failures")
  func cancellation() async throws {
    let ended = Locked<[Int]>([])
    let task = Task {
      var inputs = (0..<Int.max).makeIterator()
      try await SideBySide.run(2, next: { inputs.next() }) { input in
        if input > 7 { try await Task.sleep(for: .seconds(1000)) }
        return input
      } ended: { input, result in
        _ = try result.get()
        ended.withLock { $0.append(input) }
      }
    }
    try await until { ended.withLock { $0.count } == 8 }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    let all = ended.withLock { $0.sorted() }
    #expect(all == Array(0...7))
  }
}
