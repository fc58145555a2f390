import Foundation
import HTTPTypes
@testable import ReelCheck
import ReelCore
import ReelManifest
import Testing

@Suite("Findings about servers")
struct TransportFindingsTests {
  // MARK: First byte

  @Test("A server that takes long for every playlist is slow, once its round trip is subtracted")
  func slowManifests() throws {
    let requests = (0..<3).map { answer("p\($0).m3u8", .manifest, at: $0, wait: 900, connect: 100) }
    let finding = try #require(only(of: hls(requests)))
    #expect(finding.name == "ttfb-slow/manifest")
    #expect(finding.level == .warning)
    #expect(finding.change == .dropWaits([.source, .manifest]))
    #expect(finding.evidence.first?.value == .number(800))
  }

  @Test("A server far away is not slow")
  func farServer() {
    let requests = (0..<6).map {
      answer("s\($0).ts", .segment, at: $0, wait: 700, connect: $0 == 0 ? 690 : nil)
    }
    #expect(findings(hls(requests)).isEmpty)
  }

  @Test("Only the first answer being slow is a note")
  func cold() throws {
    let requests = (0..<4).map { answer("s\($0).ts", .segment, at: $0, wait: $0 == 0 ? 2000 : 30) }
    let finding = try #require(only(of: hls(requests)))
    #expect(finding.name == "ttfb-slow/cold")
    #expect(finding.level == .note)
  }

  @Test("Two slow answers say nothing, and neither does a narrow link that several transfers share")
  func unfounded() {
    #expect(findings(hls((0..<2).map { answer("s\($0).ts", .segment, at: $0, wait: 900) })).isEmpty)
    var requests = (0..<5).map { answer("s\($0).ts", .segment, at: 0, wait: 900) }
    requests.append(answer("s5.ts", .segment, at: 9, wait: 20))
    #expect(findings(hls(requests)).isEmpty)
  }

  // MARK: Redirects

  @Test(
    "One redirect of the source is a note; two, or one of a segment, playlist or key, a warning",
    arguments: [
      (FetchPurpose.source, 1, FindingLevel.note), (.source, 2, .warning), (.segment, 1, .warning),
      (.manifest, 1, .warning), (.key, 1, .warning),
    ])
  func redirects(purpose: FetchPurpose, hops: Int, level: FindingLevel) throws {
    var request = answer("a", purpose, at: 0)
    request.metrics?.redirectCount = hops
    let finding = try #require(only(of: hls([request])))
    #expect(finding.name == "redirects")
    #expect(finding.level == level)
    #expect(finding.change == .dropRedirects)
  }

  // MARK: Connections

  @Test("A server that ends each connection keeps none, and says so or not")
  func closings() throws {
    let announced = (0..<3).map { answer("s\($0).ts", .segment, at: $0) { $0.closesConnection = true } }
    #expect(only(of: hls(announced))?.name == "no-keep-alive")
    let silent = (0..<4).map { number in
      var request = answer("s\(number).ts", .segment, at: 0) { $0.reusedConnection = false }
      request.began = .milliseconds(number * 200)
      request.ended = .milliseconds(number * 200 + 100)
      return request
    }
    let finding = try #require(only(of: hls(silent)))
    #expect(finding.name == "no-keep-alive")
    #expect(finding.level == .warning)
    #expect(finding.change == .dropHandshakes)
  }

  @Test("A server that ends connections after errors keeps those of other answers")
  func closedAfterErrors() {
    let mixed = (0..<12).map { number in
      var request = answer("s\(number).ts", .segment, at: 0) {
        $0.status = number % 2 == 1 ? 404 : 200
        $0.reusedConnection = number % 2 == 1
      }
      request.began = .milliseconds(number * 100)
      request.ended = .milliseconds(number * 100 + 50)
      return request
    }
    #expect(findings(hls(mixed)).isEmpty)
  }

  @Test("An answer that broke off and went on is a warning, with what other players lose")
  func brokenAnswers() throws {
    var request = answer("s1.ts", .segment, at: 0)
    request.breaks = [4000]
    var facts = hls([request, answer("s0.ts", .segment, at: 0)])
    var rung = RungFacts(name: "720p", kind: .video)
    rung.segments = SegmentList([
      SegmentReference(
        number: 1, url: request.url, start: MediaTime(seconds: 2), duration: MediaTime(seconds: 2))
    ])
    rung.sizes = [10_000]
    facts.rungs = [rung]
    let finding = try #require(only(of: facts))
    #expect(finding.name == "segment-truncated" && finding.level == .warning)
    #expect(
      finding.summary
        == "segment 1: the answer broke off after 4000 of 10000 bytes, and the rest came with another request (Range); players that do not resume lose it"
    )
    #expect(finding.costs.first == FindingCost(.lost, 1200))
  }

  @Test("Connections that are kept, closed when idle, needed at once, or ended by the reader are no fault")
  func kept() {
    let kept = (0..<9).map { answer("s\($0).ts", .segment, at: $0) }
    #expect(findings(hls(kept)).isEmpty)
    let idle = (0..<9).map { answer("s\($0).ts", .segment, at: $0 * 10) { $0.reusedConnection = false } }
    #expect(findings(hls(idle)).isEmpty)
    let parallel = (0..<9).map { _ in answer("s.ts", .segment, at: 0) { $0.reusedConnection = false } }
    #expect(findings(hls(parallel)).isEmpty)
    let cut = (0..<9).map { number in
      var request = answer("s\(number).ts", .segment, at: 0) { $0.reusedConnection = false }
      request.began = .milliseconds(number * 200)
      request.ended = .milliseconds(number * 200 + 100)
      request.isComplete = false
      return request
    }
    #expect(findings(hls(cut)).isEmpty)
    let few = (0..<20).map { number in
      answer("s\(number).ts", .segment, at: number) { $0.closesConnection = number % 5 == 4 }
    }
    #expect(findings(hls(few)).isEmpty)
  }

  // MARK: Ranges

  @Test("A manifest with ranges needs them")
  func rangesOfManifest() throws {
    var request = answer("all.mp4", .segment, at: 0)
    request.range = ByteRange(offset: 1000, length: 500)
    var facts = hls([request])
    #expect(findings(facts).isEmpty)
    facts.rungs = [RungFacts(name: "a", kind: .video)]
    facts.rungs[0].segments = SegmentList([
      SegmentReference(
        number: 0, url: request.url, byteRange: ByteRange(offset: 1000, length: 500), start: .zero,
        duration: MediaTime(value: 1, timescale: 1))
    ])
    let finding = try #require(only(of: facts))
    #expect(finding.name == "no-ranges")
    #expect(finding.level == .error)
    #expect(finding.change == .serveRanges(url: request.url.absoluteString))
    facts.requests[0].metrics?.status = 206
    #expect(findings(facts).isEmpty)
  }

  @Test(
    "A file without ranges is a warning; 206 without Accept-Ranges is fine, and so is a range of everything")
  func rangesOfFile() throws {
    let source = answer("a.mp4", .source, at: 0)
    var part = answer("a.mp4", .segment, at: 1)
    part.range = ByteRange(offset: 5000, length: nil)
    #expect(only(of: file([source, part]))?.name == "no-ranges")
    #expect(only(of: file([source, part]))?.level == .warning)
    part.metrics?.status = 206
    #expect(findings(file([source, part])).isEmpty)
    var small = answer("a.mp4", .segment, at: 1)
    small.range = ByteRange(offset: 0, length: 1 << 20)
    #expect(findings(file([source, small])).isEmpty)
    let denied = answer("a.mp4", .source, at: 0, fields: ["Accept-Ranges": "none"])
    #expect(only(of: file([denied]))?.name == "no-ranges")
  }

  // MARK: Header fields

  @Test(
    "Media types",
    arguments: [
      (FetchPurpose.segment, "text/plain", FindingLevel.warning),
      (.segment, "text/html; charset=utf-8", .warning),
      (.segment, "application/json", .warning), (.segment, "text/vnd.trolltech.linguist", .note),
      (.manifest, "text/html", .warning), (.manifest, "text/plain;charset=UTF-8", .note),
    ])
  func types(purpose: FetchPurpose, type: String, level: FindingLevel) throws {
    let finding = try #require(only(of: hls([answer("a", purpose, at: 0, fields: ["Content-Type": type])])))
    #expect(finding.name == "response-headers/type")
    #expect(finding.level == level)
  }

  @Test(
    "Media types that players take",
    arguments: [
      (FetchPurpose.segment, "video/MP2T; charset=UTF-8"), (.segment, "application/octet-stream"),
      (.segment, "binary/octet-stream"), (.segment, ""), (.segment, "audio/aac"), (.segment, "text/vtt"),
      (.segment, "video/iso.segment"), (.manifest, "audio/x-mpegurl"), (.manifest, "application/x-mpegURL"),
      (.manifest, "application/vnd.apple.mpegurl"), (.manifest, "application/octet-stream"), (.manifest, ""),
      (.source, "audio/mpegurl"), (.key, "text/plain"),
    ])
  func goodTypes(purpose: FetchPurpose, type: String) {
    let fields = type.isEmpty ? [:] : ["Content-Type": type]
    #expect(findings(hls([answer("a", purpose, at: 0, fields: fields)])).isEmpty)
  }

  @Test("A page instead of the source, or of a segment, is not judged as media too")
  func pages() {
    var facts = StreamFacts()
    facts.requests = [answer("a", .source, at: 0, fields: ["Content-Type": "text/html"])]
    #expect(findings(facts).isEmpty)
    let page = answer("a.ts", .segment, at: 0, fields: ["Content-Type": "text/html"])
    facts = hls([page])
    facts.rungs = [RungFacts(name: "a", kind: .video)]
    facts.rungs[0].segments = SegmentList([
      SegmentReference(number: 0, url: page.url, start: .zero, duration: MediaTime(value: 1, timescale: 1))
    ])
    var sample = SegmentFacts(index: 0)
    sample.failure = SegmentFailure(.segment, .notMedia, ReelError(.badMedia, "an HTML page"))
    facts.rungs[0].samples = [0: sample]
    #expect(findings(facts).isEmpty)
  }

  @Test("Compressed media is a warning, a compressed playlist is fine")
  func encodings() throws {
    let fields = ["Content-Encoding": "gzip"]
    let finding = try #require(only(of: hls([answer("a.ts", .segment, at: 0, fields: fields)])))
    #expect(finding.name == "response-headers/encoding")
    #expect(finding.level == .warning)
    #expect(findings(hls([answer("a.m3u8", .manifest, at: 0, fields: fields)])).isEmpty)
    let plain = answer("a.ts", .segment, at: 0, fields: ["Content-Encoding": "identity"])
    #expect(findings(hls([plain])).isEmpty)
  }

  @Test("HEAD and GET have to state one length; none at all is a note, but for live media")
  func lengths() throws {
    var head = answer("a.ts", .segment, at: 1)
    head.method = .head
    head.statedByteCount = 9
    let finding = try #require(only(of: hls([answer("a.ts", .segment, at: 0), head])))
    #expect(finding.name == "response-headers/length")
    #expect(finding.level == .warning)
    var facts = hls([answer("a.ts", .segment, at: 0, fields: ["Transfer-Encoding": "chunked"], length: nil)])
    #expect(only(of: facts)?.level == .note)
    facts.isLive = true
    #expect(findings(facts).isEmpty)
  }

  // MARK: Unreachable

  @Test(
    "Kinds of sources that can't be opened",
    arguments: [
      (ReelError(.server, "404 Not Found", status: 404), "status"),
      (ReelError(.network, "connection refused"), "network"),
      (ReelError(.timedOut, "no response within 30 s"), "network"),
      (ReelError(.network, "the certificate has expired", isTemporary: false), "tls"),
      (ReelError(.network, "no TLS connection: alert", isTemporary: false), "tls"),
      (ReelError(.badMedia, "not media: plain text"), "not-media"),
    ])
  func unreachable(error: ReelError, kind: String) {
    let finding = TransportFindings.unreachable(error, source: "http://a/b")
    #expect(finding.name == "unreachable/\(kind)")
    #expect(finding.level == .error)
    #expect(finding.url == "http://a/b")
  }

  @Test("A page is named by its title, and a refusal as one")
  func texts() {
    let page = Array("<!DOCTYPE html><HTML><head><Title lang=en>\n Sign\n in </Title>".utf8)
    let error = ReelError(.badMedia, "not media: an HTML page")
    let finding = TransportFindings.unreachable(error, source: "a", beginning: page)
    #expect(finding.summary == "the answer is an HTML page titled \"Sign in\", not media")
    let refusal = ReelError(.server, "403 Forbidden", status: 403)
    #expect(TransportFindings.unreachable(refusal, source: "a").summary.contains("refuses this client"))
  }

  @Test("No host answered if no request has a status, or next to nothing of a body came")
  func silence() {
    let error = ReelError(.network, "connection refused")
    #expect(TransportFindings.isSilence(error, requests: [], at: .seconds(4)))
    #expect(!TransportFindings.isSilence(error, requests: [answer("a", .source, at: 0)], at: .seconds(4)))
    #expect(
      !TransportFindings.isSilence(ReelError(.server, "no", status: 500), requests: [], at: .seconds(4)))
    let tls = ReelError(.network, "the certificate has expired", isTemporary: false)
    #expect(!TransportFindings.isSilence(tls, requests: [], at: .seconds(4)))
    // A byte a second is no answer; a body that is too long for the time is one.
    let late = ReelError(.timedOut, "not opened within 4 s")
    var drip = answer("a", .source, at: 0)
    drip.isComplete = false
    drip.ended = nil
    drip.receivedByteCount = 4
    #expect(TransportFindings.isSilence(late, requests: [drip], at: .seconds(4)))
    drip.receivedByteCount = 1 << 20
    #expect(!TransportFindings.isSilence(late, requests: [drip], at: .seconds(4)))
  }

  // MARK: - Private

  private func findings(_ facts: StreamFacts) -> [Finding] {
    TransportFindings.findings(in: facts, Thresholds())
  }

  private func only(of facts: StreamFacts) -> Finding? {
    let all = findings(facts)
    return all.count == 1 ? all[0] : nil
  }

  private func hls(_ requests: [RequestFacts]) -> StreamFacts {
    var facts = StreamFacts()
    facts.format = "hls"
    facts.requests = requests
    return facts
  }

  private func file(_ requests: [RequestFacts]) -> StreamFacts {
    var facts = StreamFacts()
    facts.format = "mp4"
    facts.requests = requests
    return facts
  }

  /// A complete answer of 10,000 bytes.
  private func answer(
    _ path: String, _ purpose: FetchPurpose, at second: Int, wait: Int = 10, connect: Int? = nil,
    fields: [String: String] = [:], length: Int64? = 10_000,
    _ change: (inout RequestMetrics) -> Void = { _ in }
  ) -> RequestFacts {
    let url = URL(string: "http://origin.example/\(path)") ?? URL(filePath: path)
    var facts = RequestFacts(url: url, purpose: purpose, method: .get, range: nil, began: .seconds(second))
    var metrics = RequestMetrics(url: url, purpose: purpose, requestCount: 1)
    (metrics.status, metrics.timeToFirstByte) = (200, .milliseconds(wait))
    (metrics.byteCount, metrics.reusedConnection) = (10_000, true)
    metrics.answerTime = .milliseconds(wait)
    metrics.connectTime = connect.map { .milliseconds($0) }
    metrics.closesConnection = false
    change(&metrics)
    facts.metrics = metrics
    facts.answerURL = url
    facts.contentType = fields["Content-Type"]
    facts.fields = HTTPFields(
      fields.compactMap { name, value in HTTPField.Name(name).map { HTTPField(name: $0, value: value) } })
    if let length { facts.fields.append(HTTPField(name: .contentLength, value: "\(length)")) }
    facts.statedByteCount = length
    facts.ended = .seconds(second) + .milliseconds(wait + 5)
    facts.isComplete = true
    return facts
  }
}
