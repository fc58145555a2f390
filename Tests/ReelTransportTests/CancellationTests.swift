import Foundation
import ReelCore
import ReelTesting
import ReelTransport
import ReelTestSupport
import Testing

@Suite("Cancellation", .hangLimit)
struct CancellationTests {
  let routes: [String: Origin.Response] = ["/a": .init(pattern(200_000))]

  @Test("While the answer is awaited")
  func beforeHead() async throws {
    try await Origin.use(.init(routes: routes, faults: [FaultRule("*", .silence)])) { origin in
      let reports = Reports()
      let request = reports.request(origin.url("a"))
      let task = Task { try await quickFetcher().fetch(request) }
      await origin.wait { $0.requests.count == 1 }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      await origin.wait { $0.openConnectionCount == 0 }
      #expect(reports.all.count == 1)
    }
  }

  @Test("While the body is pulled, and at once")
  func duringBody() async throws {
    try await Origin.use(.init(routes: routes, faults: [FaultRule("*", .stall(after: 1_000))])) { origin in
      let reports = Reports()
      let request = reports.request(origin.url("a"))
      let task = Task {
        let response = try await quickFetcher().fetch(request)
        return try await response.body.collect(upTo: 1 << 20)
      }
      await origin.wait { $0.requests.first?.bodyBytesSent == 1_000 }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
      await origin.wait { $0.openConnectionCount == 0 }
      #expect(reports.all.count == 1)
    }
  }

  @Test("By letting go of a body that is not at its end")
  func droppedBody() async throws {
    try await Origin.use(.init(routes: routes, faults: [FaultRule("*", .stall(after: 1_000))])) { origin in
      let reports = Reports()
      var response: FetchResponse? = try await quickFetcher().fetch(reports.request(origin.url("a")))
      #expect(response != nil)
      response = nil
      await origin.wait { $0.openConnectionCount == 0 }
      try await until { !reports.all.isEmpty }
      #expect(reports.all.count == 1)
    }
  }

  @Test("By letting go of a body that was read in part")
  func droppedIterator() async throws {
    try await Origin.use(.init(routes: routes, faults: [FaultRule("*", .stall(after: 1_000))])) { origin in
      let reports = Reports()
      for try await chunk in try await quickFetcher().fetch(reports.request(origin.url("a"))).body {
        #expect(!chunk.isEmpty)
        break
      }
      await origin.wait { $0.openConnectionCount == 0 }
      try await until { !reports.all.isEmpty }
      #expect(reports.all.count == 1)
      #expect(reports.all.first.map { $0.byteCount > 0 } == true)
    }
  }

  @Test("What is held of a body is told, and that it is let go", arguments: [0, 3, .max])
  func held(chunkCount: Int) async throws {
    try await Origin.use(.init(routes: routes)) { origin in
      let held = Locked(0)
      var request = FetchRequest(url: origin.url("a"), purpose: .segment)
      request.recordHeld = { count in held.withLock { $0 += count } }
      var response: FetchResponse? = try await quickFetcher().fetch(request)
      try await until { held.withLock { $0 } >= 64 << 10 }
      #expect(held.withLock { $0 } < 200_000)
      var taken = 0
      if let body = response?.body {
        var iterator = body.makeAsyncIterator()
        while taken < chunkCount, try await iterator.next() != nil { taken += 1 }
      }
      response = nil
      try await until { held.withLock { $0 } == 0 }
    }
  }

  @Test("In the pause before a retry")
  func duringPause() async throws {
    try await Origin.use(.init(routes: routes, faults: [FaultRule("*", .status(503))])) { origin in
      let fetcher = makeFetcher {
        $0.retryPolicy = RetryPolicy(baseDelay: HangLimit.duration, maximumDelay: HangLimit.duration)
      }
      let task = Task { try await fetcher.bytes(origin.url("a")) }
      await origin.wait { $0.requests.first?.isComplete == true }
      task.cancel()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
  }

  @Test("Before anything was sent")
  func beforeStart() async throws {
    try await Origin.use(.init(routes: routes)) { origin in
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await quickFetcher().bytes(origin.url("a"))
      }
      await #expect(throws: CancellationError.self) { try await task.value }
      #expect(origin.requestLog.isEmpty)
    }
  }
}
