import Foundation
import HTTPTypes
import ReelCore
import Testing

@testable import ReelLab

@Suite("Requests with CMCD")
struct CMCDFetcherTests {
  /// Answers with nothing, and keeps the requests.
  private final class Recorder: Fetching {
    private let kept = Locked<[FetchRequest]>([])

    var requests: [FetchRequest] { kept.withLock { $0 } }

    func fetch(_ request: FetchRequest) async throws -> FetchResponse {
      kept.withLock { $0.append(request) }
      return FetchResponse(
        url: request.url, contentType: nil, bodyOffset: 0, bodyByteCount: 0, resourceByteCount: 0,
        supportsRanges: false, body: FetchBody { nil })
    }

    /// The values of each request.
    func cmcd() throws -> [[String: CMCD.Value]] {
      requests.map { request in
        let query = Substring(request.url.query(percentEncoded: true) ?? "")
        return CMCD(headers: request.headers.map { ($0.name.rawName, $0.value) }, query: query)?.values ?? [:]
      }
    }
  }

  private func segment(
    _ url: String, next: String? = nil, range: ByteRange? = nil
  ) throws -> FetchRequest {
    var request = FetchRequest(url: try #require(URL(string: url)), purpose: .segment)
    var media = RequestedMedia(
      tracks: .video, bitRate: 3_200_400, topBitRate: 6_000_000, isDASH: true, isLive: false)
    media.duration = MediaTime(value: 4004, timescale: 1000)
    if let next { media.next = .init(url: try #require(URL(string: next)), range: range) }
    request.media = media
    return request
  }

  private func fetcher(
    _ base: Recorder, _ transmission: CMCD.Transmission = .header,
    _ conditions: @escaping @Sendable (RequestedMedia.Tracks?) -> CMCDFetcher.Conditions = { _ in .init() }
  ) -> CMCDFetcher {
    CMCDFetcher(base, transmission, session: "s1", content: "c1", conditions: conditions)
  }

  @Test("A segment: what it is, what the player knows, what follows", arguments: CMCD.Transmission.allCases)
  func segment(transmission: CMCD.Transmission) async throws {
    let base = Recorder()
    let fetcher = fetcher(base, transmission) { tracks in
      var conditions = CMCDFetcher.Conditions()
      conditions.buffered = tracks == .video ? .milliseconds(9960) : nil
      conditions.throughput = 12_345_678
      conditions.rate = 1.25
      return conditions
    }
    let request = try segment(
      "http://a.test/v/1/s1.mp4?token=x", next: "http://a.test/v/2/s2.mp4?token=x",
      range: ByteRange(offset: 100, length: 50))
    let response = try await fetcher.fetch(request)
    #expect(response.url == request.url)
    #expect(
      try base.cmcd() == [
        [
          "br": .number(3200), "tb": .number(6000), "d": .number(4004), "ot": .text("v"),
          "bl": .number(10_000), "dl": .number(8000), "mtp": .number(12_300), "pr": .number(1.25),
          "sf": .text("d"),
          "st": .text("v"), "sid": .text("s1"), "cid": .text("c1"), "nor": .text("../2/s2.mp4"),
          "nrr": .text("100-149"),
        ]
      ])
    let sent = try #require(base.requests.first)
    switch transmission {
    case .header: #expect(sent.url == request.url)
    case .query:
      #expect(sent.headers.isEmpty)
      #expect(sent.url.absoluteString.hasPrefix("http://a.test/v/1/s1.mp4?token=x&CMCD="))
    }
  }

  @Test("An object has the type of its request, and the format is known from the first media on")
  func types() async throws {
    let base = Recorder()
    let fetcher = fetcher(base)
    let url = try #require(URL(string: "https://a.test/x"))
    _ = try await fetcher.fetch(FetchRequest(url: url, purpose: .source))
    var initialization = try segment("https://a.test/init.mp4")
    initialization.purpose = .initialization
    _ = try await fetcher.fetch(initialization)
    for purpose in [FetchPurpose.manifest, .key, .clock, .segment] {
      _ = try await fetcher.fetch(FetchRequest(url: url, purpose: purpose))
    }
    let values = try base.cmcd()
    #expect(
      values.map { $0["ot"] } == [.text("m"), .text("i"), .text("m"), .text("k"), .text("o"), nil])
    #expect(values.map { $0["sf"] } == [nil] + [CMCD.Value?](repeating: .text("d"), count: 5))
    #expect(values.allSatisfy { $0["br"] == nil && $0["bl"] == nil })
  }

  @Test("A stall is told once, and a wait as long as it lasts")
  func stalls() async throws {
    let base = Recorder()
    let conditions = Locked(CMCDFetcher.Conditions(isWaiting: true))
    let fetcher = fetcher(base) { _ in conditions.withLock { $0 } }
    let request = try segment("http://a.test/s1.mp4")
    _ = try await fetcher.fetch(request)
    conditions.withLock { $0.isWaiting = false }
    _ = try await fetcher.fetch(request)
    conditions.withLock { ($0.isWaiting, $0.stallCount) = (true, 1) }
    for _ in 0..<2 { _ = try await fetcher.fetch(request) }
    let values = try base.cmcd()
    #expect(values.map { $0["su"] != nil } == [true, false, true, true])
    #expect(values.map { $0["bs"] != nil } == [false, false, true, false])
  }

  @Test("The next object is told if it is on the same server")
  func next() async throws {
    let base = Recorder()
    let fetcher = fetcher(base)
    let range = ByteRange(offset: 10, length: nil)
    for next in ["http://a.test/s.mp4", "http://b.test/s.mp4", "http://a.test/t.mp4"] {
      _ = try await fetcher.fetch(try segment("http://a.test/s.mp4", next: next, range: range))
    }
    let values = try base.cmcd()
    #expect(values.map { $0["nor"] } == [nil, nil, .text("t.mp4")])
    #expect(values.map { $0["nrr"] } == [.text("10-"), nil, .text("10-")])
  }

  @Test("A parameter that the URL has already is replaced, and only HTTP has any")
  func replacement() async throws {
    let base = Recorder()
    let fetcher = fetcher(base, .query)
    let urls = ["http://a.test/m?CMCD=br%3D1&a=b", "data:,x", "file:///x"]
    for url in urls {
      _ = try await fetcher.fetch(FetchRequest(url: try #require(URL(string: url)), purpose: .manifest))
    }
    let sent = base.requests.map(\.url.absoluteString)
    #expect(sent[0] == "http://a.test/m?a=b&CMCD=cid%3D%22c1%22%2Cot%3Dm%2Csid%3D%22s1%22")
    #expect(Array(sent[1...]) == Array(urls[1...]))
  }
}
