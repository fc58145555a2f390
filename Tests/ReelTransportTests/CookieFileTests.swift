import Foundation
import HTTPTypes
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelTransport

@Suite("Cookies", .hangLimit)
struct CookieFileTests {
  private func header(_ text: String, _ url: String, at seconds: Double = 1_000) throws -> String? {
    let url = try #require(URL(string: url))
    return try CookieFile(text).header(for: url, now: Date(timeIntervalSince1970: seconds))
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
      var configuration = TransportConfiguration(connectionsAhead: 0)
      configuration.cookies = try CookieFile("127.0.0.1\tFALSE\t/\tFALSE\t0\ttoken\t1\n")
      let fetcher = TransportFetcher(configuration: configuration)
      _ = try await fetcher.bytes(origin.url("a"))
      let response = try await fetcher.fetch(
        FetchRequest(url: origin.url("a"), headers: [.init("cookie")!: "mine=2"], purpose: .segment))
      _ = try await response.body.collect(upTo: 10)
      let sent = origin.requestLog.map { $0.headers[values: .cookie] }
      #expect(sent == [["token=1"], ["mine=2"]])
    }
  }
}
