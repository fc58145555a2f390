import Foundation
import ReelCore
import ReelTesting
import ReelSimulation
import ReelTransport
import ReelTestSupport
import Testing

@Suite("Connections opened ahead", .hangLimit)
struct OpenAheadTests {
  let routes: [String: Origin.Response] = [
    "/a.m3u8": .init("#EXTM3U"), "/1": .init("one"), "/2": .init("two"),
  ]

  @Test("While a manifest is on its way, a second connection is opened")
  func manifest() async throws {
    let link = try LinkSpec(parsing: "10Mbit/4000ms")
    try await Origin.use(.init(routes: routes, link: link)) { origin in
      let fetcher = quickFetcher(connectionsAhead: 1)
      let reports = Reports()
      let request = reports.request(origin.url("a.m3u8"), purpose: .manifest)
      let body = try await fetcher.fetch(request).body.collect(upTo: 100)
      #expect(body == "#EXTM3U".bytes)
      let snapshot = await origin.wait { $0.acceptedConnectionCount == 2 }
      let manifest = try #require(snapshot.requests.first)
      #expect(snapshot.requests.count == 1)
      try #require(snapshot.connectionArrivals.count > 1)
      #expect(try snapshot.connectionArrivals[1] < #require(manifest.firstByteSent))
      #expect(reports.all.map(\.requestCount) == [1])
      #expect(reports.all.map(\.reusedConnection) == [false])
    }
  }

  @Test("What follows a manifest goes over the connections that are there")
  func segments() async throws {
    let link = try LinkSpec(parsing: "10Mbit/100ms")
    try await Origin.use(.init(routes: routes, link: link)) { origin in
      let fetcher = quickFetcher(connectionsAhead: 1)
      _ = try await fetcher.bytes(origin.url("a.m3u8"), purpose: .manifest)
      let reports = Reports()
      let requests = [reports.request(origin.url("1")), reports.request(origin.url("2"))]
      async let one = fetcher.fetch(requests[0]).body.collect(upTo: 10)
      async let two = fetcher.fetch(requests[1]).body.collect(upTo: 10)
      let bodies = try await [one, two]
      #expect(bodies == ["one".bytes, "two".bytes])
      // On a busy machine the client can hear of its second connection later than the manifest came.
      #expect(origin.snapshot.acceptedConnectionCount <= 3)
      #expect(reports.all.contains { $0.reusedConnection == true })
    }
  }

  @Test("A segment opens none")
  func segment() async throws {
    try await Origin.use(.init(routes: routes)) { origin in
      let fetcher = quickFetcher(connectionsAhead: 1)
      for _ in 0..<5 { _ = try await fetcher.bytes(origin.url("1")) }
      #expect(origin.snapshot.acceptedConnectionCount == 1)
    }
  }

  @Test("Idle connections are used again, not added to")
  func reuse() async throws {
    try await Origin.use(.init(routes: routes)) { origin in
      let fetcher = quickFetcher(connectionsAhead: 1)
      for _ in 0..<10 { _ = try await fetcher.bytes(origin.url("a.m3u8"), purpose: .manifest) }
      #expect(origin.snapshot.acceptedConnectionCount < 10)
      #expect(origin.requestLog.count == 10)
    }
  }

  @Test("A server that closes idle connections is left alone")
  func closedIdleConnection() async throws {
    // Slow, so that the manifest still takes the first connection when the second one is wanted.
    let link = try LinkSpec(parsing: "10Mbit/2000ms")
    let origin = try await Origin.start(.init(routes: routes, link: link))
    let url = origin.url("a.m3u8")
    let fetcher = quickFetcher(connectionsAhead: 1)
    _ = try await fetcher.bytes(url, purpose: .manifest)
    await origin.wait { $0.acceptedConnectionCount == 2 }
    await origin.stop()

    let next = try await Origin.start(.init(routes: routes, port: origin.port))
    // The connections of the first origin are dead, and the request does not mind.
    _ = try await fetcher.bytes(url)
    #expect(next.snapshot.acceptedConnectionCount == 1)
    await next.stop()
  }
}
