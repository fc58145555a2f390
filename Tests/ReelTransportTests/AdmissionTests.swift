import Foundation
import NIOCore
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelTransport

@Suite("Admission by address", .hangLimit)
struct AdmissionTests {
  let routes: [String: Origin.Response] = ["/a": .init("a"), "/b": .init("b")]

  /// Records what is asked, and refuses the questions with these numbers, counted from 0.
  private final class Doorkeeper: Sendable {
    struct Question: Equatable {
      var host: String
      var address: PeerAddress?
    }

    private let asked = Locked<[Question]>([])
    private let refused: Set<Int>

    init(refusing refused: Set<Int> = []) { self.refused = refused }

    var questions: [Question] { asked.withLock { $0 } }

    func fetcher(configure: (inout TransportConfiguration) -> Void = { _ in }) -> TransportFetcher {
      makeFetcher(connectionsAhead: 0, connections: .own, configure: configure) {
        (host, address) throws(ReelError) in
        let number = self.asked.withLock { asked in
          asked.append(Question(host: host, address: address))
          return asked.count - 1
        }
        if self.refused.contains(number) { throw ReelError(.usage, "not this host") }
      }
    }
  }

  private func address(_ text: String) throws -> PeerAddress? {
    try PeerAddress(SocketAddress(ipAddress: text, port: 80))
  }

  @Test("A request that is refused is not sent, and fails with the reason at its URL")
  func refusal() async throws {
    try await Origin.use(.init(routes: routes)) { origin in
      let keeper = Doorkeeper(refusing: [0])
      let reports = Reports()
      let error = await reelError {
        _ = try await keeper.fetcher().fetch(reports.request(origin.url("a")))
      }
      #expect(error == ReelError(.usage, "not this host", at: origin.url("a").absoluteString))
      let local = try address("127.0.0.1")
      #expect(keeper.questions == [.init(host: "127.0.0.1", address: local)])
      #expect(reports.all.map(\.status) == [nil])
      #expect(origin.requestLog.isEmpty)
    }
  }

  @Test("Each request over an open connection is asked about, and the connection is left if one is refused")
  func reuse() async throws {
    try await Origin.use(.init(routes: routes)) { origin in
      let keeper = Doorkeeper(refusing: [2])
      let fetcher = keeper.fetcher()
      for _ in 0..<2 { _ = try await fetcher.bytes(origin.url("a")) }
      #expect(origin.snapshot.acceptedConnectionCount == 1)
      let error = await reelError { _ = try await fetcher.bytes(origin.url("a")) }
      #expect(error?.reason == "not this host")
      _ = try await fetcher.bytes(origin.url("a"))
      #expect(origin.requestLog.map(\.connection) == [1, 1, 2])
      #expect(keeper.questions.count == 4)
    }
  }

  @Test("The target of a redirect is asked about")
  func redirect() async throws {
    try await Origin.use(.init(routes: routes)) { target in
      let away = FaultRule("a", .redirect(to: target.url("b").absoluteString))
      try await Origin.use(.init(routes: routes, faults: [away])) { origin in
        let keeper = Doorkeeper(refusing: [1])
        let error = await reelError { _ = try await keeper.fetcher().bytes(origin.url("a")) }
        #expect(error?.location == target.url("b").absoluteString)
        #expect(origin.requestLog.count == 1)
        #expect(target.requestLog.isEmpty)
      }
    }
  }

  @Test("A stream of HTTP/2 that is refused leaves the others and the connection")
  func http2() async throws {
    let answer = { @Sendable (stream: Int) in
      HTTP2Frame.head("200", stream: stream) + HTTP2Frame.data("good".bytes, stream: stream)
    }
    try await ScriptedServer.useHTTP2(answer) { server in
      let keeper = Doorkeeper(refusing: [1])
      let fetcher = keeper.fetcher { $0.trust = .any }
      var reasons: [String?] = []
      for _ in 0..<3 { reasons.append(await reelError { _ = try await fetcher.bytes(server.url) }?.reason) }
      #expect(reasons == [nil, "not this host", nil])
      #expect(keeper.questions.map(\.address?.description) == ["127.0.0.1", "127.0.0.1", "127.0.0.1"])
      #expect(server.openConnectionCount == 1)
    }
  }

  @Test("Through a proxy the address is not known")
  func proxy() async throws {
    let proxy = try await TunnelProxy.start()
    let keeper = Doorkeeper()
    let proxies = HTTPProxies(http: .init(host: "127.0.0.1", port: proxy.port))
    let fetcher = keeper.fetcher { $0.proxies = proxies }
    let url = try #require(URL(string: "http://Media.invalid/a.mp4"))
    _ = try await fetcher.bytes(url)
    #expect(keeper.questions == [.init(host: "media.invalid", address: nil)])
    try await proxy.stop()
  }

  @Test("A connection that is opened ahead asks nothing")
  func openedAhead() async throws {
    try await Origin.use(.init(routes: routes)) { origin in
      let keeper = Doorkeeper()
      let fetcher = keeper.fetcher()
      fetcher.openConnection(to: origin.url("a"))
      await origin.wait { $0.acceptedConnectionCount == 1 }
      #expect(keeper.questions.isEmpty)
      _ = try await fetcher.bytes(origin.url("a"))
      #expect(keeper.questions.count == 1)
    }
  }

  @Test(
    "Addresses of this machine and of private networks",
    arguments: [
      ("127.0.0.1", true), ("127.255.255.254", true), ("126.255.255.255", false), ("128.0.0.1", false),
      ("10.1.2.3", true), ("11.0.0.1", false), ("172.15.255.255", false), ("172.16.0.1", true),
      ("172.31.255.255", true), ("172.32.0.1", false), ("192.168.0.1", true), ("192.169.0.1", false),
      ("169.254.1.1", true), ("169.253.1.1", false), ("100.63.255.255", false), ("100.64.0.1", true),
      ("100.127.255.255", true), ("100.128.0.1", false), ("192.0.2.1", false), ("0.0.0.0", false),
      ("::1", true), ("::2", false), ("::", false), ("fe80::1", true), ("febf::1", true), ("fec0::1", false),
      ("fc00::1", true), ("fdff::1", true), ("fe00::1", false), ("2001:db8::1", false),
      ("::ffff:10.0.0.1", true), ("::ffff:192.0.2.1", false), ("64:ff9b::a00:1", false),
    ])
  func isPrivate(text: String, expected: Bool) throws {
    let found = try #require(try address(text))
    #expect(found.isPrivate == expected)
  }

  @Test("An address from which it is reached is this machine's")
  func isLocal() throws {
    let address = try PeerAddress(SocketAddress(ipAddress: "192.0.2.1", port: 80), isLocal: true)
    #expect(address?.isPrivate == true)
    #expect(address?.description == "192.0.2.1")
  }
}
