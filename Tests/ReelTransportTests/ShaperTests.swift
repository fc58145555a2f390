import Foundation
import ReelCore
import ReelTesting
import ReelSimulation
import ReelTransport
import ReelTestSupport
import Testing

/// The modelled link. A transfer can't be faster than the link, but any machine makes it slower: bounds are lower ones.
@Suite("The modelled link", .hangLimit)
struct ShaperTests {
  @Test("A transfer has the stated rate and begins after two round trips")
  func rate() async throws {
    let link = try LinkSpec(parsing: "8Mbit/100ms")
    try await Origin.use(.init(routes: ["/a": .init(pattern(1_000_000))], link: link)) { origin in
      let time = try await time { _ = try await quickFetcher().bytes(origin.url("a")) }
      #expect(time >= .milliseconds(1_200))
      let record = try #require(origin.requestLog.first)
      // A packet that is late brings no other one sooner, but may itself come beside the next.
      #expect(try #require(record.lastByteSent) - record.arrival >= .milliseconds(1_100))
    }
  }

  @Test("A kept connection costs one round trip less")
  func roundTrips() async throws {
    let link = try LinkSpec(parsing: "100Mbit/200ms")
    try await Origin.use(.init(routes: ["/a": .init("a")], link: link)) { origin in
      let fetcher = quickFetcher()
      let first = try await time { _ = try await fetcher.bytes(origin.url("a")) }
      let second = try await time { _ = try await fetcher.bytes(origin.url("a")) }
      #expect(first >= .milliseconds(400))
      #expect(second >= .milliseconds(200))
      let record = try #require(origin.requestLog.last)
      #expect(record.connection == 1)
      let wait = try #require(record.firstByteSent) - record.arrival
      #expect(wait >= .milliseconds(200))
    }
  }

  @Test("Transfers at once share the link by turns")
  func fairness() async throws {
    let link = try LinkSpec(parsing: "8Mbit/10ms")
    let routes: [String: Origin.Response] = ["/a": .init(pattern(300_000)), "/b": .init(pattern(300_000))]
    try await Origin.use(.init(routes: routes, link: link)) { origin in
      let fetcher = quickFetcher()
      let time = try await time {
        async let one = fetcher.bytes(origin.url("a"))
        async let two = fetcher.bytes(origin.url("b"))
        // What is sent from when both are on the way until the first is through.
        let before = Locked<Origin.Snapshot?>(nil)
        let after = await origin.wait { snapshot in
          before.withLock { before in
            let areBothSending =
              snapshot.requests.count == 2 && snapshot.requests.allSatisfy { $0.bytesSent > 0 }
            if before == nil, areBothSending { before = snapshot }
          }
          return snapshot.requests.count { $0.isComplete } == 1 && snapshot.requests.count == 2
        }
        if let before = before.withLock({ $0 }) {
          let steps = zip(before.requests, after.requests).map { $1.bytesSent - $0.bytesSent }
          try #require(steps.count > 1)
          #expect(abs(steps[0] - steps[1]) <= 2 * 1_448)
        }
        _ = try await (one, two)
      }
      #expect(time >= .milliseconds(620))
    }
  }

  @Test("A transfer that is cancelled gives the link to the others")
  func cancellation() async throws {
    let link = try LinkSpec(parsing: "1Mbit/10ms")
    let routes: [String: Origin.Response] = [
      "/large": .init(pattern(8_000_000)), "/a": .init(pattern(40_000)),
    ]
    try await Origin.use(.init(routes: routes, link: link)) { origin in
      let fetcher = quickFetcher()
      var large: FetchResponse? = try await fetcher.fetch(
        FetchRequest(url: origin.url("large"), purpose: .segment))
      #expect(large != nil)
      large = nil
      _ = try await fetcher.bytes(origin.url("a"))
      // Had it gone on, half of the link's bytes would have been its own while the other went through.
      let record = try #require(origin.requestLog.first { $0.path == "/large" })
      #expect(!record.isComplete)
      await origin.wait { $0.openConnectionCount < $0.acceptedConnectionCount }
    }
  }

  private func time(_ body: () async throws -> Void) async throws -> Duration {
    let start = ContinuousClock.now
    try await body()
    return .now - start
  }
}
