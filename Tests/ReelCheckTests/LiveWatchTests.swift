import Foundation
import HTTPTypes
@testable import ReelCheck
import ReelCore
import ReelManifest
import ReelSources
import ReelTesting
import ReelTestSupport
import Testing

@Suite("Watching live presentations")
struct LiveWatchTests {
  private static let start = WallTime(nanosecondsSince1970: 1_767_225_600_000_000_000)

  @Test("A playlist that grows is healthy")
  func growing() async throws {
    let server = Server { time, _ in .init(Self.playlist(newest: Int(time / 4) + 10)) }
    let (facts, _) = try await watch(server, for: 20)
    #expect(LiveFindings.findings(in: facts, Thresholds()).isEmpty)
    #expect(LiveFindings.notChecked(in: facts) == nil)
    #expect(facts.live?.targetDuration == 4)
    #expect(facts.live?.duration == 20)
    #expect(facts.live?.readings["video"]?.count ?? 0 >= 5)
  }

  @Test("A playlist that stands still is stale, with the age that a cache states")
  func stale() async throws {
    let server = Server { _, _ in
      .init(Self.playlist(newest: 10), fields: ["Age": "34", "Cache-Control": "public, max-age=3600"])
    }
    let (facts, _) = try await watch(server, for: 20)
    let finding = try #require(LiveFindings.findings(in: facts, Thresholds()).first)
    #expect(finding.name == "live-stale")
    #expect(finding.level == .error)
    #expect(finding.rung == "video")
    #expect(finding.summary.contains("34 s old (Age), max-age is 3600 s"))
    #expect(finding.costs.first?.kind == .stall)
  }

  @Test("A playlist that is gone is stale")
  func gone() async throws {
    let server = Server { time, _ in time < 4 ? .init(Self.playlist(newest: 10)) : nil }
    let (facts, _) = try await watch(server, for: 20)
    let finding = try #require(LiveFindings.findings(in: facts, Thresholds()).first)
    #expect(finding.summary.contains("could not be read"))
  }

  @Test("A late segment, an end during the watch, and old copies in between are healthy")
  func healthy() async throws {
    // A segment comes after 1.4 target durations once.
    let late = Server { time, _ in .init(Self.playlist(newest: time < 5.6 ? 10 : Int((time - 5.6) / 4) + 11))
    }
    #expect(LiveFindings.findings(in: try await watch(late, for: 20).facts, Thresholds()).isEmpty)
    let ending = Server { time, _ in .init(Self.playlist(newest: 10, ends: time > 3)) }
    let (ended, _) = try await watch(ending, for: 20)
    #expect(ended.live?.hasEnded == true)
    #expect(LiveFindings.findings(in: ended, Thresholds()).isEmpty)
    let caches = Server { time, count in .init(Self.playlist(newest: Int(time / 4) + 10 - (count % 2))) }
    #expect(LiveFindings.findings(in: try await watch(caches, for: 20).facts, Thresholds()).isEmpty)
    let restarted = Server { time, _ in
      .init(Self.playlist(newest: time < 8 ? Int(time / 4) + 900 : Int(time / 4)))
    }
    #expect(LiveFindings.findings(in: try await watch(restarted, for: 40).facts, Thresholds()).isEmpty)
  }

  @Test("A watch that is too short says nothing")
  func tooShort() async throws {
    let (facts, _) = try await watch(Server { _, _ in .init(Self.playlist(newest: 10)) }, for: 8)
    #expect(LiveFindings.findings(in: facts, Thresholds()).isEmpty)
    #expect(LiveFindings.notChecked(in: facts)?.reason == "it was watched for 8 s, and needs 12 s")
  }

  @Test(
    "An MPD whose segments follow from the clock is stale only if they are not there",
    arguments: [true, false])
  func clocked(hasSegments: Bool) async throws {
    let server = Server { _, _ in .init(Self.clockedMPD, isMissing: !hasSegments) }
    let (facts, requests) = try await watch(server, "dash", for: 12)
    let findings = LiveFindings.findings(in: facts, Thresholds())
    #expect(findings.map(\.name) == (hasSegments ? [] : ["live-stale"]))
    #expect(requests.contains { $0.method == .head })
  }

  @Test("An MPD with a timeline has to grow", arguments: [true, false])
  func timeline(grows: Bool) async throws {
    let server = Server { time, _ in .init(Self.timelineMPD(count: grows ? Int(time / 2) + 10 : 10)) }
    let (facts, _) = try await watch(server, "dash", for: 12)
    #expect(LiveFindings.findings(in: facts, Thresholds()).map(\.name) == (grows ? [] : ["live-stale"]))
  }

  @Test("Cancellation ends it at once", .hangLimit)
  func cancellation() async throws {
    let server = Server { _, _ in .init(Self.playlist(newest: 10)) }
    let facts = Self.facts("hls")
    let task = Task {
      try await LiveWatch(
        facts, fetcher: server, configuration: LoadingConfiguration(), clock: SystemWallClock()
      ).run(for: 3600)
    }
    await server.firstRequest()
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  // MARK: - Private

  private func watch(
    _ server: Server, _ format: String = "hls", for seconds: Double
  ) async throws -> (facts: StreamFacts, requests: [FetchRequest]) {
    let clock = ManualClock(Self.start)
    server.setClock(clock)
    var facts = Self.facts(format)
    facts.live = try await LiveWatch(
      facts, fetcher: server, configuration: LoadingConfiguration(), clock: clock
    ).run(for: seconds)
    return (facts, server.requests)
  }

  private static func facts(_ format: String) -> StreamFacts {
    var facts = StreamFacts()
    facts.format = format
    facts.isLive = true
    facts.url = URL(string: "http://origin.example/live")
    var rung = RungFacts(name: "video", kind: .video)
    rung.url = URL(string: "http://origin.example/live")
    rung.declared = Rung(id: "v", bitsPerSecond: 1, media: .segments(SegmentList([])))
    facts.rungs = [rung]
    return facts
  }

  private static func playlist(newest: Int, ends: Bool = false) -> String {
    let first = max(0, newest - 5)
    var text = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:\(first)\n"
    for number in first...newest { text += "#EXTINF:4,\ns\(number).ts\n" }
    return text + (ends ? "#EXT-X-ENDLIST\n" : "")
  }

  private static let clockedMPD = mpd(
    "<SegmentTemplate media=\"$Number$.m4s\" initialization=\"i.mp4\" duration=\"2\" timescale=\"1\"/>")

  private static func timelineMPD(count: Int) -> String {
    mpd(
      "<SegmentTemplate media=\"$Time$.m4s\" initialization=\"i.mp4\" timescale=\"1\"><SegmentTimeline>"
        + "<S t=\"0\" d=\"2\" r=\"\(count - 1)\"/></SegmentTimeline></SegmentTemplate>", update: "PT2S")
  }

  private static func mpd(_ segments: String, update: String? = nil) -> String {
    """
    <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" profiles="urn:mpeg:dash:profile:isoff-live:2011"
      minBufferTime="PT2S" availabilityStartTime="2025-12-31T23:59:00Z" timeShiftBufferDepth="PT30S"
      \(update.map { "minimumUpdatePeriod=\"\($0)\"" } ?? "")>
      <Period id="p" start="PT0S"><AdaptationSet mimeType="video/mp4"><Representation id="v" bandwidth="1">
        \(segments)
      </Representation></AdaptationSet></Period>
    </MPD>
    """
  }
}

/// A server of one live manifest, in simulated time.
private final class Server: Fetching {
  struct Answer {
    var text: String
    var fields: [String: String] = [:]
    /// Whether segments are missing.
    var isMissing = false

    init(_ text: String, fields: [String: String] = [:], isMissing: Bool = false) {
      (self.text, self.fields, self.isMissing) = (text, fields, isMissing)
    }
  }

  private struct State {
    var clock: ManualClock?
    var requests: [FetchRequest] = []
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let answer: @Sendable (_ time: Double, _ count: Int) -> Answer?
  private let state = Locked(State())
  private let start = WallTime(nanosecondsSince1970: 1_767_225_600_000_000_000)

  /// - Parameter answer: Returns the answer for a time since the start and the number of requests before; nil for 404.
  init(_ answer: @escaping @Sendable (_ time: Double, _ count: Int) -> Answer?) { self.answer = answer }

  var requests: [FetchRequest] { state.withLock { $0.requests } }

  func setClock(_ clock: ManualClock) { state.withLock { $0.clock = clock } }

  func firstRequest() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if state.requests.isEmpty { state.waiter = continuation }
        return !state.requests.isEmpty
      }
      if isOver { continuation.resume() }
    }
  }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let (count, clock, waiter) = state.withLock { state in
      state.requests.append(request)
      return (state.requests.count - 1, state.clock, state.waiter.take())
    }
    waiter?.resume()
    let answer = answer(clock.map { ($0.now - start).seconds } ?? 0, count)
    guard let answer, request.purpose == .manifest || !answer.isMissing else {
      throw ReelError(.server, "404 Not Found", status: 404)
    }
    var metrics = RequestMetrics(url: request.url, purpose: request.purpose, requestCount: 1)
    metrics.status = 200
    metrics.fields = HTTPFields(answer.fields)
    request.report?(metrics)
    let text = Locked<[UInt8]?>(request.method == .head ? nil : Array(answer.text.utf8))
    return FetchResponse(
      url: request.url, contentType: nil, bodyOffset: 0, bodyByteCount: nil, resourceByteCount: nil,
      supportsRanges: true, body: FetchBody { text.withLock { $0.take() } })
  }
}

extension HTTPFields {
  fileprivate init(_ fields: [String: String]) {
    self.init()
    for (name, value) in fields {
      if let name = HTTPField.Name(name) { append(HTTPField(name: name, value: value)) }
    }
  }
}
