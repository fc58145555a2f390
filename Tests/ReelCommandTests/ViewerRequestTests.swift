import ArgumentParser
import Foundation
import HTTPTypes
import ReelCore
import ReelPool
import ReelSources
import ReelTestSupport
import Testing

@testable import ReelCommand
@testable import ReelLab

@Suite("Requests of viewers")
struct ViewerRequestTests {
  // MARK: Hosts

  @Test("Fifty viewers may load a public host, and no more unless it is named")
  func publicHosts() throws {
    let admission = HostAdmission(named: ["Mine.example"])
    for viewer in 0..<50 {
      // However often.
      for _ in 0..<2 { try admission.admit(viewer, to: "cdn.example", isPrivate: false) }
    }
    for viewer in 0..<100 {
      try admission.admit(viewer, to: "mine.example", isPrivate: false)
      try admission.admit(viewer, to: "inside.example", isPrivate: true)
    }
    #expect(admission.refusal == nil)
    let error = #expect(throws: ReelError.self) {
      try admission.admit(50, to: "cdn.example", isPrivate: false)
    }
    #expect(error?.kind == .usage && error?.advice?.contains("--i-may-load cdn.example") == true)
    #expect(error?.isTemporary == false && admission.refusal == error)
    // Those that were admitted may go on, until the run ends.
    try admission.admit(7, to: "cdn.example", isPrivate: false)
  }

  @Test("The shards of a run share the limit")
  func shards() throws {
    for count in [3, 10, 50, 120] {
      var admitted = 0
      for index in 0..<count {
        let admission = HostAdmission(named: [], shard: (index, count))
        for viewer in stride(from: index, to: 300, by: count) {
          guard (try? admission.admit(viewer, to: "cdn.example", isPrivate: false)) != nil else { break }
          admitted += 1
        }
      }
      #expect(admitted == 50)
    }
    // Of fifty viewers all are admitted.
    for index in 0..<7 {
      let admission = HostAdmission(named: [], shard: (index, 7))
      for viewer in stride(from: index, to: 50, by: 7) {
        try admission.admit(viewer, to: "cdn.example", isPrivate: false)
      }
    }
  }

  // MARK: Queries

  /// Answers each request with an error that has its URL.
  private struct Echo: Fetching {
    func fetch(_ request: FetchRequest) async throws -> FetchResponse {
      throw ReelError(.usage, request.url.absoluteString)
    }
  }

  @Test(
    "Parameters are added, and tokens only where credentials go",
    arguments: [
      ("https://a.example/m.m3u8", "https://a.example/m.m3u8?token=a%20b%26c&n=7"),
      ("https://a.example/m.m3u8?x=%2F", "https://a.example/m.m3u8?x=%2F&token=a%20b%26c&n=7"),
      ("https://a.example/m.m3u8?n=3", "https://a.example/m.m3u8?n=3&token=a%20b%26c"),
      ("https://a.example/m.m3u8#t", "https://a.example/m.m3u8?token=a%20b%26c&n=7"),
      ("https://keys.example/k", "https://keys.example/k?token=a%20b%26c&n=7"),
      ("https://b.example/1.ts", "https://b.example/1.ts?n=7"),
      ("file:///a/1.ts", "file:///a/1.ts"),
    ])
  func query(url: String, expected: String) async throws {
    let parameters = try ["token={token}", "n={viewer}"].map { try QueryParameter(parsing: $0) }
    let values = ViewerValues(number: 7, token: "a b&c")
    var request = FetchRequest(url: try #require(URL(string: url)), purpose: .segment)
    SourceHeaders(of: URL(string: "https://a.example/m.m3u8"), hosts: [CredentialHost("keys.example")])
      .apply(to: &request)
    let sent = request
    let error = await #expect(throws: ReelError.self) {
      try await QueryFetcher(Echo(), parameters, for: values).fetch(sent)
    }
    #expect(error?.reason == expected)
  }

  @Test("A parameter has a name", arguments: ["", "=x", "x"])
  func badParameter(text: String) {
    #expect(throws: ReelError.self) { try QueryParameter(parsing: text) }
  }

  // MARK: Values

  @Test("Header fields have the values of their viewer")
  func headers() throws {
    let fields: HTTPFields = [.authorization: "Bearer {token}", .userAgent: "v{viewer}"]
    let filled = ViewerValues(number: 12, token: "abc").filled(fields)
    #expect(filled[.authorization] == "Bearer abc" && filled[.userAgent] == "v12")
    #expect(ViewerValues(number: 1, token: nil).filled("{token}") == "{token}")
  }

  @Test("Errors in reports have no token and no query")
  func redacted() {
    let values = ViewerValues(number: 1, token: "s3/x")
    let error = ReelError(
      .server, "redirects to http://h/s3/x/a?b=1", at: "http://h/m.m3u8?t=s3%2Fx", advice: "s3%2Fx")
    let clean = values.redacted(error)
    #expect(clean.location == "http://h/m.m3u8?…" && clean.reason == "redirects to http://h/…/a?…")
    #expect(clean.advice == "…" && clean.kind == .server)
  }

  @Test("A file of tokens has one for each viewer")
  func tokens() throws {
    let folder = try TemporaryFolder()
    let path = try folder.write("one\r\n\n two \nthree", to: "tokens.txt")
    #expect(try ViewerValues.tokens(path: path, count: 3) == ["one", "two", "three"])
    let error = #expect(throws: ReelError.self) { try ViewerValues.tokens(path: path, count: 4) }
    #expect(error?.kind == .usage && error?.reason == "3 tokens for 4 viewers")
  }

  // MARK: Failures

  @Test("The first error is that of a source without media, if all could be loaded")
  func firstError() throws {
    let command = try ViewersCommand.parse(["a.m3u8", "--viewers", "1"])
    let sources = try ViewerSources(command.sources)
    let plan = try ViewerPlan(viewerCount: 1, ramp: .zero, duration: .seconds(1), choice: sources.choice)
    let crowd = try ViewerCrowd(command, sources, plan, logger: silentLogger)
    for name in ["a", "b"] {
      var sums = ViewerSums(source: 0, decodes: false, began: .zero)
      sums.ending = .failed(ReelError(.badMedia, "no video in the media", at: name))
      crowd.record(ViewerEvent(viewer: 0, session: 0, look: 0, time: .zero, .left(sums)))
    }
    #expect(crowd.firstError?.location == "a")
    #expect(crowd.tally.row(at: .zero, machine: nil).counts.failedCount == 2)
  }

  // MARK: Sources

  @Test("A list has weights, or is taken in order")
  func lists() throws {
    let folder = try TemporaryFolder()
    let plain = try ViewerSources(
      listAt: folder.write("# a list\nhttp://a.example/1.m3u8\n2.m3u8\n", to: "plain.txt"))
    #expect(plain.choice == .inOrder(count: 2))
    #expect(plain.entries.map(\.text) == ["http://a.example/1.m3u8", "2.m3u8"])
    #expect(plain.entries[1].source.name == folder.path("2.m3u8"))
    let weighted = try ViewerSources(
      listAt: folder.write("{\"url\": \"1.m3u8\", \"weight\": 2.5}\n2.m3u8\n", to: "weighted.txt"))
    #expect(weighted.choice == .weighted([2.5, 1]))
    for (text, words) in [
      ("a.m3u8\n{\"weight\": 1}\n", "no url"), ("{\"url\": \"a\", \"weight\": -1}\n", "weight"),
      ("#\n", "no sources"),
    ] {
      let error = #expect(throws: ReelError.self) {
        try ViewerSources(listAt: folder.write(text, to: "bad.txt"))
      }
      #expect(error?.reason.contains(words) == true, "\(error?.description ?? "")")
    }
  }

  @Test(
    "Where metrics go",
    arguments: [
      ("9100", MetricsPlace.server(host: "127.0.0.1", port: 9100)),
      ("0.0.0.0:9100", .server(host: "0.0.0.0", port: 9100)), ("::1:0", .server(host: "::1", port: 0)),
      ("viewers.prom", .file("viewers.prom")), ("./9100", .file("./9100")),
    ])
  func metricsPlace(text: String, expected: MetricsPlace) throws {
    #expect(try MetricsPlace(parsing: text) == expected)
  }
}
