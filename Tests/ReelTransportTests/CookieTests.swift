import Foundation
import HTTPTypes
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelTransport

@Suite("Cookies", .hangLimit)
struct CookieTests {
  private func header(_ text: String, _ url: String, at seconds: Double = 1_000) throws -> String? {
    let url = try #require(URL(string: url))
    return CookieStore(try CookieFile(text).cookies)
      .header(for: url, now: Date(timeIntervalSince1970: seconds))
  }

  private let text = """
    # Netscape HTTP Cookie File

    example.com\tFALSE\t/\tFALSE\t0\ta\t1
    #HttpOnly_.example.com\tTRUE\t/video\tFALSE\t0\tb\t2
    .example.com\tTRUE\t/\tTRUE\t0\tc\t3
    example.com\tFALSE\t/\tFALSE\t2000\td\t4
    """

  @Test(
    "Domain, path, TLS and expiry decide",
    arguments: [
      ("http://example.com/", "a=1; d=4"), ("http://EXAMPLE.com", "a=1; d=4"),
      ("http://example.com/video/1.ts", "b=2; a=1; d=4"), ("http://example.com/videos", "a=1; d=4"),
      ("https://cdn.example.com/video", "b=2; c=3"), ("http://badexample.com/video", nil),
      ("http://cdn.example.com/", nil),
    ] as [(String, String?)])
  func matching(url: String, expected: String?) throws {
    #expect(try header(text, url) == expected)
  }

  @Test("A cookie that has expired is not sent")
  func expiry() throws {
    #expect(try header(text, "http://example.com/", at: 2_000) == "a=1")
  }

  @Test("CRLF, and a value that is empty")
  func lineEnds() throws {
    #expect(try header("a.com\tTRUE\t/\tFALSE\t0\tx\t\r\n", "http://a.com/") == "x=")
  }

  @Test(
    "A line that is no cookie is named",
    arguments: ["name=value", "a.com\tTRUE\t/\tFALSE\tsoon\tx\ty", "a.com\tTRUE\tpath\tFALSE\t0\tx\ty"])
  func malformed(line: String) {
    do {
      _ = try CookieFile("# one\n" + line)
      Issue.record("accepted")
    } catch {
      #expect(error.kind == .usage)
      #expect(error.place == .line(2))
    }
  }

  @Test("Requests carry cookies to their site, and a request's own field wins")
  func requests() async throws {
    try await Origin.use(.init(routes: ["/a": .init("x")])) { origin in
      let cookies = try CookieFile("127.0.0.1\tFALSE\t/\tFALSE\t0\ttoken\t1\n")
      let fetcher = makeFetcher { $0.cookies = cookies }
      _ = try await fetcher.bytes(origin.url("a"))
      let response = try await fetcher.fetch(
        FetchRequest(url: origin.url("a"), headers: [.init("cookie")!: "mine=2"], purpose: .segment))
      _ = try await response.body.collect(upTo: 10)
      let sent = origin.requestLog.map { $0.headers[values: .cookie] }
      #expect(sent == [["token=1"], ["mine=2"]])
    }
  }

  /// A cookie that a response sets, and the `Cookie` field of a later request.
  struct Scope: CustomTestStringConvertible, Sendable {
    var field: String
    var source: String
    var target: String
    var expected: String?
    var testDescription: String { "\(field) by \(source) for \(target)" }

    init(_ field: String, by source: String, for target: String, _ expected: String?) {
      (self.field, self.source, self.target, self.expected) = (field, source, target, expected)
    }
  }

  @Test(
    "A cookie of a response goes where its domain, path, Secure and expiry allow",
    arguments: [
      // The host alone, unless there is a domain.
      Scope("a=1", by: "http://x.example.com/v/m", for: "http://x.example.com/v/s", "a=1"),
      Scope("a=1", by: "http://x.example.com/v/m", for: "http://X.EXAMPLE.COM:8080/v/s", "a=1"),
      Scope("a=1", by: "http://example.com/m", for: "http://x.example.com/s", nil),
      Scope("a=1; Domain=.Example.com", by: "http://x.example.com/m", for: "http://y.example.com/s", "a=1"),
      Scope("a=1; domain=example.com", by: "http://x.example.com/m", for: "http://example.com/s", "a=1"),
      Scope("a=1; domain=example.com", by: "http://x.example.com/m", for: "http://badexample.com/s", nil),
      Scope("a=1; Domain=", by: "http://x.example.com/m", for: "http://x.example.com/s", "a=1"),
      // A domain that is not the server's own.
      Scope("a=1; Domain=y.example.com", by: "http://x.example.com/m", for: "http://y.example.com/s", nil),
      Scope("a=1; Domain=x.example.com", by: "http://example.com/m", for: "http://x.example.com/s", nil),
      Scope("a=1; Domain=com", by: "http://example.com/m", for: "http://other.com/s", nil),
      Scope("a=1; Domain=co.uk", by: "http://example.co.uk/m", for: "http://other.co.uk/s", nil),
      Scope("a=1; Domain=localhost", by: "http://localhost/m", for: "http://localhost/s", "a=1"),
      Scope("a=1; Domain=localhost", by: "http://localhost/m", for: "http://x.localhost/s", nil),
      Scope("a=1; Domain=127.0.0.1", by: "http://127.0.0.1/m", for: "http://127.0.0.1/s", "a=1"),
      Scope("a=1; Domain=0.0.1", by: "http://127.0.0.1/m", for: "http://127.0.0.1/s", nil),
      // Paths.
      Scope("a=1", by: "http://e.com/v/1/m", for: "http://e.com/v/1/2/s", "a=1"),
      Scope("a=1", by: "http://e.com/v/1/m", for: "http://e.com/v/2/s", nil),
      Scope("a=1; Path=/", by: "http://e.com/v/m", for: "http://e.com/s", "a=1"),
      Scope("a=1; Path=/v", by: "http://e.com/m", for: "http://e.com/video", nil),
      Scope("a=1; path=/v", by: "http://e.com/m", for: "http://e.com/v/s", "a=1"),
      Scope("a=1; path=v", by: "http://e.com/m", for: "http://e.com/s", "a=1"),
      // TLS.
      Scope("a=1; Secure", by: "https://e.com/m", for: "http://e.com/s", nil),
      Scope("a=1; Secure", by: "https://e.com/m", for: "https://e.com/s", "a=1"),
      Scope("a=1; Secure", by: "http://e.com/m", for: "https://e.com/s", nil),
      // Expiry: the request is sent at second 1,000.
      Scope("a=1; Max-Age=600", by: "http://e.com/m", for: "http://e.com/s", "a=1"),
      Scope("a=1; Max-Age=0", by: "http://e.com/m", for: "http://e.com/s", nil),
      Scope("a=1; Max-Age=-5", by: "http://e.com/m", for: "http://e.com/s", nil),
      Scope("a=1; Max-Age=99999999999999999999", by: "http://e.com/m", for: "http://e.com/s", "a=1"),
      Scope("a=1; Max-Age=soon", by: "http://e.com/m", for: "http://e.com/s", "a=1"),
      Scope(
        "a=1; Expires=Thu, 01-Jan-1970 00:16:39 GMT", by: "http://e.com/m", for: "http://e.com/s", nil),
      Scope(
        "a=1; expires=Thu, 01 Jan 1970 00:16:41 GMT", by: "http://e.com/m", for: "http://e.com/s", "a=1"),
      Scope(
        "a=1; Expires=Thu Jan  1 0:16:39 1970; Max-Age=60", by: "http://e.com/m", for: "http://e.com/s", "a=1"
      ),
      Scope("a=1; Expires=Thu Jan  1 0:16:39 1970", by: "http://e.com/m", for: "http://e.com/s", nil),
      Scope("a=1; Expires=never", by: "http://e.com/m", for: "http://e.com/s", "a=1"),
      // Names and values.
      Scope("a = b=c ; HttpOnly; SameSite=Lax", by: "http://e.com/m", for: "http://e.com/s", "a=b=c"),
      Scope("a=", by: "http://e.com/m", for: "http://e.com/s", "a="),
      Scope("=1", by: "http://e.com/m", for: "http://e.com/s", nil),
      Scope("a", by: "http://e.com/m", for: "http://e.com/s", nil),
      Scope("a=\u{1}", by: "http://e.com/m", for: "http://e.com/s", nil),
    ])
  func scope(scope: Scope) throws {
    let store = CookieStore()
    let now = Date(timeIntervalSince1970: 1_000)
    store.add([scope.field], from: try #require(URL(string: scope.source)), now: now)
    #expect(store.header(for: try #require(URL(string: scope.target)), now: now) == scope.expected)
  }

  @Test("A cookie replaces the one of its name, domain and path, and ends it if it has expired")
  func replacement() throws {
    let url = try #require(URL(string: "https://example.com/v/m"))
    let store = CookieStore(try CookieFile("example.com\tFALSE\t/v\tTRUE\t0\ta\t1\n").cookies)
    store.add(["b=2", "a=3", "a=4; Path=/"], from: url)
    #expect(store.header(for: url) == "a=3; b=2; a=4")
    // Only a server with TLS changes a cookie that is for TLS.
    store.add(["c=5; Secure; Path=/"], from: url)
    let plain = try #require(URL(string: "http://example.com/v/m"))
    store.add(["c=6; Path=/"], from: plain)
    #expect(store.header(for: plain) == "a=3; b=2; a=4")
    store.add(["a=; Max-Age=0", "b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], from: url)
    #expect(store.header(for: url) == "a=4; c=5")
  }

  @Test("Cookies that responses set are sent back, after redirects too, and not to other hosts")
  func responses() async throws {
    let routes: [String: Origin.Response] = ["/v/a": .init("x"), "/v/b": .init("x"), "/v/c": .init("x")]
    try await Origin.use(.init(routes: routes)) { other in
      let fields: HTTPFields = [.location: "/v/b", .setCookie: "token=1; Path=/v"]
      let away = FaultRule("c", .redirect(to: "http://localhost:\(other.baseURL.port ?? 0)/v/c"))
      let faults = [FaultRule("a", .status(302, headers: fields)), away]
      try await Origin.use(.init(routes: routes, faults: faults)) { origin in
        let fetcher = quickFetcher()
        _ = try await fetcher.bytes(origin.url("v/a"))
        _ = try await fetcher.bytes(origin.url("v/b"))
        _ = try await fetcher.bytes(origin.url("v/c"))
        #expect(origin.requestLog.map { $0.header("Cookie") } == [nil, "token=1", "token=1", "token=1"])
        #expect(other.requestLog.map { $0.header("Cookie") } == [nil])
        // Another fetcher has none of them.
        _ = try await quickFetcher().bytes(origin.url("v/b"))
        #expect(origin.requestLog.last?.header("Cookie") == nil)
      }
    }
  }
}
