import Foundation
import HTTPTypes
import ReelCore
import ReelTesting
import ReelTransport
import ReelTestSupport
import Testing

@Suite("Redirects", .hangLimit)
struct RedirectTests {
  let routes: [String: Origin.Response] = ["/a": .init("here"), "/folder/b": .init("there")]

  @Test("All kinds of redirect are followed", arguments: [301, 302, 303, 307, 308])
  func kinds(status: Int) async throws {
    let location: HTTPFields = [.location: "/folder/b"]
    let faults = [FaultRule("a", .status(status, headers: location))]
    try await Origin.use(.init(routes: routes, faults: faults)) { origin in
      let reports = Reports()
      let range = ByteRange(offset: 1, length: 3)
      let response = try await quickFetcher().fetch(reports.request(origin.url("a"), range: range))
      #expect(response.url == origin.url("folder/b"))
      let body = try await response.body.collect(upTo: 100)
      #expect(body == "her".bytes)
      #expect(origin.requestLog.map(\.range) == ["bytes=1-3", "bytes=1-3"])
      let metrics = try #require(reports.all.first)
      #expect(metrics.redirectCount == 1)
      #expect(metrics.requestCount == 2)
      #expect(metrics.url == origin.url("a"))
    }
  }

  @Test("A redirect leaves its connection usable")
  func connectionIsKept() async throws {
    let faults = [FaultRule("a", .redirect(to: "folder/b"))]
    try await Origin.use(.init(routes: routes, faults: faults)) { origin in
      let body = try await quickFetcher().bytes(origin.url("a"))
      #expect(body == "there".bytes)
      #expect(origin.snapshot.acceptedConnectionCount == 1)
    }
  }

  @Test("Ten redirects are followed, eleven are not")
  func limit() async throws {
    let faults = [FaultRule("a", .redirectChain(10)), FaultRule("b", .redirectChain(11))]
    try await Origin.use(.init(routes: routes, faults: faults)) { origin in
      let body = try await quickFetcher().bytes(origin.url("a"))
      #expect(body == "here".bytes)
      let error = await reelError { _ = try await quickFetcher().bytes(origin.url("folder/b")) }
      #expect(error?.kind == .server)
      #expect(error?.reason == "more than 10 redirects")
      #expect(error?.status == 302)
      #expect(error?.isTemporary == false)
    }
  }

  @Test("A loop is told")
  func loop() async throws {
    let faults = [FaultRule("a", .redirectLoop)]
    try await Origin.use(.init(routes: routes, faults: faults)) { origin in
      let reports = Reports()
      let error = await reelError { _ = try await quickFetcher().fetch(reports.request(origin.url("a"))) }
      #expect(
        error == ReelError(.server, "a redirect loop", at: origin.url("a").absoluteString, status: 302))
      #expect(origin.requestLog.count == 1)
      #expect(reports.all.map(\.status) == [302])
    }
  }

  @Test("A server that sets a cookie may redirect to the same URL")
  func cookieCheck() async throws {
    let answer: @Sendable (String) -> String = { request in
      request.contains("ookie: seen=1")
        ? "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhere"
        : "HTTP/1.1 302 Found\r\nLocation: /a\r\nSet-Cookie: seen=1; Path=/\r\nContent-Length: 0\r\n"
          + "Connection: close\r\n\r\n"
    }
    let body = try await ScriptedServer.use(answer) { url in try await quickFetcher().bytes(url) }
    #expect(body == "here".bytes)
  }

  @Test("A server that sets a cookie in each redirect is given up")
  func endlessCookies() async throws {
    let answer =
      "HTTP/1.1 302 Found\r\nLocation: /a\r\nSet-Cookie: seen=1; Path=/v\r\nContent-Length: 0\r\n"
      + "Connection: close\r\n\r\n"
    let error = try await ScriptedServer.use(answer) { url in
      await reelError { _ = try await quickFetcher().bytes(url) }
    }
    #expect(error?.reason == "more than 10 redirects")
  }

  @Test(
    "A server must not lead to other schemes",
    arguments: ["file:///etc/passwd", "data:text/plain,a", "ftp://127.0.0.1/a", "FILE:///etc/passwd"])
  func otherScheme(target: String) async throws {
    let faults = [FaultRule("a", .redirect(to: target))]
    try await Origin.use(.init(routes: routes, faults: faults)) { origin in
      let error = await reelError { _ = try await quickFetcher().bytes(origin.url("a")) }
      #expect(error?.kind == .server)
      #expect(error?.reason.contains("which a server must not redirect to") == true)
      #expect(error?.status == 302)
    }
  }

  @Test("A redirect to nowhere is told", arguments: [nil, "", "http://"])
  func withoutTarget(location: String?) async throws {
    let fields: HTTPFields = location.map { [.location: $0] } ?? [:]
    let faults = [FaultRule("a", .status(302, headers: fields))]
    try await Origin.use(.init(routes: routes, faults: faults)) { origin in
      let error = await reelError { _ = try await quickFetcher().bytes(origin.url("a")) }
      #expect(error?.kind == .server)
      #expect(error?.reason.hasPrefix("302 Found") == true)
      #expect(error?.status == 302)
    }
  }

  @Test("Credentials return with a redirect to a server that may have them")
  func credentialsOnReturn() async throws {
    try await Origin.use(.init(routes: routes)) { origin in
      let back = FaultRule("a", .redirect(to: origin.url("folder/b").absoluteString))
      try await Origin.use(.init(routes: routes, faults: [back])) { other in
        let away = FaultRule("c", .redirect(to: other.url("a").absoluteString))
        try await Origin.use(.init(routes: ["/c": .init("")], faults: [away])) { first in
          var headers = SourceHeaders(
            of: first.url("c"), hosts: [CredentialHost("127.0.0.1", port: origin.baseURL.port)])
          headers.add([.authorization: "Bearer x", .init("X-Kept")!: "1"], ownedBy: first.url("c"))
          var request = FetchRequest(url: first.url("c"), purpose: .segment)
          headers.apply(to: &request)
          _ = try await quickFetcher().fetch(request).body.collect(upTo: 100)
          #expect(first.requestLog.map { $0.header("Authorization") } == ["Bearer x"])
          #expect(other.requestLog.map { $0.header("Authorization") } == [nil])
          #expect(origin.requestLog.map { $0.header("Authorization") } == ["Bearer x"])
          #expect(other.requestLog.first?.header("X-Kept") == "1")
        }
      }
    }
  }

  @Test("Credentials stay with their server")
  func credentials() async throws {
    try await Origin.use(.init(routes: routes)) { other in
      let elsewhere = FaultRule("a", .redirect(to: other.url("a").absoluteString), count: 1)
      let inside = FaultRule("a", .redirect(to: "/folder/b"))
      try await Origin.use(.init(routes: routes, faults: [elsewhere, inside])) { origin in
        let headers: HTTPFields = [.authorization: "Bearer x", .cookie: "c=1", .init("X-Kept")!: "1"]
        _ = try await quickFetcher().bytes(origin.url("a"), headers: headers)
        let away = try #require(other.requestLog.first)
        #expect(away.header("Authorization") == nil)
        #expect(away.header("Cookie") == nil)
        #expect(away.header("X-Kept") == "1")
        _ = try await quickFetcher().bytes(origin.url("a"), headers: headers)
        let within = try #require(origin.requestLog.last)
        #expect(within.path == "/folder/b")
        #expect(within.header("Authorization") == "Bearer x")
        #expect(within.header("Cookie") == "c=1")
      }
    }
  }
}
