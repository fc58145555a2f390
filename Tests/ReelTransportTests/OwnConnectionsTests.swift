import Foundation
import ReelCore
import ReelTestSupport
import ReelTesting
import ReelTransport
import Testing

@Suite("Connections of one fetcher", .hangLimit)
struct OwnConnectionsTests {
  let routes: [String: Origin.Response] = ["/a": .init(pattern(2_000_000)), "/b": .init("b")]

  private func ownFetcher(configure: (inout TransportConfiguration) -> Void = { _ in }) -> TransportFetcher {
    makeFetcher(connectionsAhead: 0, connections: .own, configure: configure)
  }

  @Test("Each fetcher opens its own, and uses it again")
  func each() async throws {
    try await Origin.use(.init(routes: routes)) { origin in
      let fetchers = [ownFetcher(), ownFetcher()]
      for fetcher in fetchers + fetchers { _ = try await fetcher.bytes(origin.url("b")) }
      #expect(origin.requestLog.map(\.connection) == [1, 2, 1, 2])
      _ = try await quickFetcher().bytes(origin.url("b"))
      #expect(origin.snapshot.acceptedConnectionCount == 3)
    }
  }

  @Test("They are closed when their fetcher goes, and those of others are not")
  func closed() async throws {
    try await Origin.use(.init(routes: routes)) { origin in
      _ = try await quickFetcher().bytes(origin.url("b"))
      var fetchers = (0..<20).map { _ in ownFetcher() }
      for fetcher in fetchers { _ = try await fetcher.bytes(origin.url("b")) }
      #expect(origin.snapshot.openConnectionCount == 21)
      fetchers = []
      await origin.wait { $0.openConnectionCount == 1 }
    }
  }

  @Test("Streams of HTTP/2 are closed with their connection")
  func http2() async throws {
    let answer = { @Sendable (stream: Int) in
      HTTP2Frame.head("200", stream: stream) + HTTP2Frame.data("good".bytes, stream: stream)
    }
    try await ScriptedServer.useHTTP2(answer) { server in
      var fetcher: TransportFetcher? = ownFetcher { $0.trust = .any }
      for _ in 0..<2 {
        let body = try await fetcher?.bytes(server.url)
        #expect(body == "good".bytes)
      }
      #expect(server.openConnectionCount == 1)
      fetcher = nil
      try await until { server.openConnectionCount == 0 }
    }
  }

  @Test("A body that outlives its fetcher is complete")
  func outliving() async throws {
    try await Origin.use(.init(routes: routes)) { origin in
      @Sendable func response() async throws -> FetchResponse {
        try await ownFetcher().fetch(FetchRequest(url: origin.url("a"), purpose: .segment))
      }
      @Sendable func body() async throws -> [UInt8] { try await response().body.collect(upTo: 2_000_000) }
      let bytes = try await body()
      #expect(bytes == pattern(2_000_000))
      await origin.wait { $0.openConnectionCount == 0 }
    }
  }

  @Test("One that is still being opened is closed once it is open")
  func opening() async throws {
    try await Origin.use(.init(routes: routes)) { origin in
      ownFetcher().openConnection(to: origin.url("b"))
      await origin.wait { $0.acceptedConnectionCount == 1 && $0.openConnectionCount == 0 }
    }
  }
}
