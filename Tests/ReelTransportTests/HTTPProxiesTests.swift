import Foundation
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelTransport

@Suite("Proxies", .hangLimit)
struct HTTPProxiesTests {
  private func host(_ environment: [String: String], _ url: String) throws -> String? {
    let url = try #require(URL(string: url))
    return try HTTPProxies(environment: environment).proxy(for: url).map { "\($0.host):\($0.port)" }
  }

  @Test("The variables of an environment, small letters first")
  func environment() throws {
    let both = ["http_proxy": "http://small:1", "HTTP_PROXY": "http://capital:2"]
    #expect(try host(both, "http://example.com/") == "small:1")
    #expect(try host(["HTTP_PROXY": "capital:2"], "http://example.com/") == "capital:2")
    #expect(try host(["HTTP_PROXY": "capital"], "http://example.com/") == "capital:1080")
    #expect(try host(["HTTP_PROXY": "http://capital:2"], "https://example.com/") == nil)
    #expect(try host(["HTTPS_PROXY": "http://[::1]:3128/"], "https://example.com/") == "::1:3128")
    #expect(try host(["ALL_PROXY": "http://all:9"], "https://example.com/") == "all:9")
    #expect(try host(["http_proxy": ""], "http://example.com/") == nil)
    // The header field Proxy of a request to a CGI program.
    #expect(try host(["HTTP_PROXY": "http://evil:1", "REQUEST_METHOD": "GET"], "http://a/") == nil)
    let proxies = try HTTPProxies(environment: ["https_proxy": "http://us%40er:pass@p:1"])
    #expect(proxies.https?.credentials == "us@er:pass")
  }

  @Test(
    "Hosts that are reached directly",
    arguments: [
      ("example.com", "http://example.com/", true), ("example.com", "http://a.example.com/", true),
      (".example.com", "http://a.example.com/", true), ("*.example.com", "http://a.example.com/", true),
      ("example.com", "http://badexample.com/", false), ("EXAMPLE.com", "http://Example.COM/", true),
      ("example.com:8080", "http://example.com:8080/", true),
      ("example.com:8080", "http://example.com/", false),
      ("a.org, example.com", "http://example.com/", true), ("*", "http://example.com/", true),
      ("10.0.0.1", "http://10.0.0.1/", true), ("2001:db8::1", "http://[2001:db8::1]/", true),
      ("", "http://example.com/", false), ("", "http://localhost/", true), ("", "http://127.0.0.1/", true),
      ("", "http://127.0.0.1.example.com/", false),
    ])
  func exceptions(list: String, url: String, isDirect: Bool) throws {
    let found = try host(["http_proxy": "http://proxy:1", "no_proxy": list], url)
    #expect((found == nil) == isDirect)
  }

  @Test("What is no proxy", arguments: ["http://", "socks5://a:1", "https://a:1", "http://a:99999", "a b"])
  func refused(text: String) {
    #expect(throws: ReelError.self) { try HTTPProxies(environment: ["http_proxy": text]) }
  }

  private func fetcher(port: Int, credentials: String? = nil, attempts: Int = 2) -> TransportFetcher {
    makeFetcher(attempts: attempts, connectionsAhead: 0) {
      $0.proxies = HTTPProxies(http: .init(host: "127.0.0.1", port: port, credentials: credentials))
    }
  }

  @Test("A request goes through the tunnel, with the credentials for the proxy only")
  func tunnel() async throws {
    let proxy = try await TunnelProxy.start()
    let url = try #require(URL(string: "http://media.invalid/a.mp4"))
    let response = try await fetcher(port: proxy.port, credentials: "user:secret").fetch(
      FetchRequest(url: url, purpose: .segment))
    let body = try await response.body.collect(upTo: 100)
    #expect(String(decoding: body, as: UTF8.self) == "hello")
    let requests = proxy.requests
    try #require(requests.count == 2)
    #expect(requests[0].hasPrefix("CONNECT media.invalid:80 "))
    #expect(requests[0].lowercased().contains("proxy-authorization: basic dxnlcjpzzwnyzxq="))
    #expect(requests[1].hasPrefix("GET /a.mp4 "))
    #expect(!requests[1].lowercased().contains("authorization"))
    try await proxy.stop()
  }

  @Test(
    "A proxy that refuses is named as the cause",
    arguments: [
      ("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", "user name"),
      ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "refused to open a tunnel"),
    ])
  func refusal(answer: String, words: String) async throws {
    let proxy = try await TunnelProxy.start(connectAnswer: answer)
    let url = try #require(URL(string: "http://media.invalid/a.mp4"))
    let error = await reelError {
      _ = try await fetcher(port: proxy.port).fetch(FetchRequest(url: url, purpose: .segment))
    }
    #expect(error?.kind == .network)
    #expect(error?.reason.contains(words) == true)
    try await proxy.stop()
  }

  @Test("A proxy that is not there is named")
  func absent() async throws {
    let proxy = try await TunnelProxy.start()
    let port = proxy.port
    try await proxy.stop()
    let url = try #require(URL(string: "http://media.invalid/a.mp4"))
    let error = await reelError {
      _ = try await fetcher(port: port, attempts: 0).fetch(FetchRequest(url: url, purpose: .segment))
    }
    #expect(error?.reason == "no connection to the proxy 127.0.0.1:\(port)")
  }
}
