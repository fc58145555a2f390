import Foundation
import ReelCore
import ReelFFmpeg
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPlayback
import ReelReading
@testable import ReelSources

/// Media that one rung lacks by its own list (EXT-X-GAP, a hole of a SegmentTimeline) comes from another rung.
@Suite("Gaps of one rung", .hangLimit)
struct RungGapTests {
  // MARK: HLS

  /// Marks segments of playlists of `hls-fmp4` as gaps. None of them is requested.
  private static func fetcher(gaps: [String: Set<Int>], master: String? = nil) -> FixtureFetcher {
    FixtureFetcher { request, _ in
      let path = request.url.path
      let parts = path.split(separator: "/").map(String.init)
      guard let name = parts.last, parts.count > 1 else { return .none }
      if name == "gaps.m3u8", let master { return .bytes(Array(master.utf8)) }
      let gaps = gaps[parts[parts.count - 2]] ?? []
      for index in gaps where name == "segment-\(index).m4s" {
        return .error(ReelError(.internalFault, "a gap was requested"))
      }
      guard name == "index.m3u8", let bytes = try? Fixtures.bytes(String(path.dropFirst())) else {
        return .none
      }
      var text = String(decoding: bytes, as: UTF8.self)
      for index in gaps {
        text = text.replacing("segment-\(index).m4s", with: "#EXT-X-GAP\nsegment-\(index).m4s")
      }
      return .bytes(Array(text.utf8))
    }
  }

  /// The frames, by index, and the rung of each.
  private static func account(
    of shown: [Shown], high: [Shown], low: [Shown]
  ) -> [(index: Int, isHigh: Bool)?] {
    shown.map { frame in
      if let index = high.firstIndex(where: { $0.md5 == frame.md5 }) { return (index, true) }
      return low.firstIndex { $0.md5 == frame.md5 }.map { ($0, false) }
    }
  }

  private static func clips() throws -> (high: [Shown], low: [Shown]) {
    (
      try StressClip("hls-fmp4/master.m3u8", golden: "hls-fmp4-high", clock: .fromZero).expected,
      try StressClip("hls-fmp4/master.m3u8", golden: "hls-fmp4-low", clock: .fromZero).expected
    )
  }

  private func play(_ path: String, _ fetcher: FixtureFetcher) async throws -> (
    frames: [(index: Int, isHigh: Bool)?], item: PlayerItem
  ) {
    let (high, low) = try Self.clips()
    let source = try MediaSource(argument: "http://fixtures.test/\(path)")
    let played = try await simulate(source, fetcher: fetcher)
    if case .playedToEnd = played.end {} else { Issue.record("\(played.end)") }
    return (Self.account(of: played.shown, high: high, low: low), played.item)
  }

  @Test(
    "A segment that one variant marks as a gap is read from the other",
    arguments: [[0], [1], [2], [0, 1], [1, 2]])
  func marked(gaps: Set<Int>) async throws {
    let played = try await play("hls-fmp4/master.m3u8", Self.fetcher(gaps: ["high": gaps]))
    #expect(played.frames.map { $0?.index } == Array(0..<90))
    for frame in played.frames {
      if let frame, gaps.contains(frame.index / 30) { #expect(!frame.isHigh) }
    }
    #expect(played.frames.first??.isHigh == !gaps.contains(0))
    #expect(played.item.errorLog.allSatisfy { $0.loss == nil })
  }

  @Test("What all variants mark as a gap is missing, and the rung stays")
  func markedByAll() async throws {
    let played = try await play("hls-fmp4/master.m3u8", Self.fetcher(gaps: ["high": [1], "low": [1]]))
    #expect(played.frames.map { $0?.index } == Array(0..<30) + Array(60..<90))
    #expect(played.frames.allSatisfy { $0?.isHigh == true })
    let losses = played.item.errorLog.compactMap(\.loss).filter { $0.kind == .video }
    #expect(losses.map(\.reason) == [.missing])
    let range = try #require(losses.first?.range)
    #expect(range == MediaTime(seconds: 1)..<MediaTime(seconds: 2))
  }

  @Test("Variants with different gaps complete each other")
  func alternating() async throws {
    let played = try await play("hls-fmp4/master.m3u8", Self.fetcher(gaps: ["high": [1], "low": [0, 2]]))
    #expect(played.frames.map { $0?.index } == Array(0..<90))
    #expect(played.frames.map { $0?.isHigh } == (0..<90).map { $0 / 30 != 1 })
  }

  @Test("A redundant stream fills the gap of the first")
  func redundant() async throws {
    let variant = "#EXT-X-STREAM-INF:BANDWIDTH=900000,CODECS=\"avc1.64000c\",RESOLUTION=256x144\n"
    let master = "#EXTM3U\n\(variant)high/index.m3u8\n\(variant)../dash-number/high.m3u8\n"
    let backup = FixtureFetcher { request, _ in
      if request.url.path.hasSuffix("gaps.m3u8") { return .bytes(Array(master.utf8)) }
      let isBackup = request.url.path.hasSuffix("high.m3u8")
      guard isBackup || request.url.path.hasSuffix("high/index.m3u8"),
        let bytes = try? Fixtures.bytes("hls-fmp4/high/index.m3u8")
      else { return .none }
      var text = String(decoding: bytes, as: UTF8.self)
      if isBackup {
        text = text.replacing("init.mp4", with: "/hls-fmp4/high/init.mp4").replacing(
          "segment-", with: "/hls-fmp4/high/segment-")
      } else {
        text = text.replacing("segment-1", with: "#EXT-X-GAP\nsegment-1")
      }
      return .bytes(Array(text.utf8))
    }
    let played = try await play("hls-fmp4/gaps.m3u8", backup)
    #expect(played.frames.map { $0?.index } == Array(0..<90))
  }

  @Test("A seek into the gap shows the frame of the other variant", arguments: [1.0, 1.5, 1.9])
  func seek(seconds: Double) async throws {
    let (high, low) = try Self.clips()
    let stage = try SimulatedStage("hls-fmp4/master.m3u8", fetcher: Self.fetcher(gaps: ["high": [1]]))
    stage.item.preferredForwardBufferDuration = .milliseconds(200)
    stage.begin()
    try await stage.run(untilLoaded: .firstFrame)
    let mark = stage.recording.all.count
    #expect(try await stage.seek(to: MediaTime(seconds: seconds)))
    try await stage.end()
    let shown = Self.account(of: Array(stage.recording.all[mark...]), high: high, low: low)
    let first = Int((seconds * 30).rounded())
    // Frames that were due before the seek may come first.
    #expect(shown.drop { ($0?.index ?? 0) < first }.map { $0?.index } == Array(first..<90))
    #expect(shown.contains { $0?.index == first && $0?.isHigh == false })
    try await stage.close()
  }

  @Test("Frames and stills are taken from the other variant")
  func extraction() async throws {
    let (_, low) = try Self.clips()
    let source = try MediaSource(argument: "http://fixtures.test/hls-fmp4/master.m3u8")
    let frames = try await extract(
      .times([MediaTime(seconds: 1.5)]), from: source, fetcher: Self.fetcher(gaps: ["high": [1]])
    ).frames
    #expect(frames.map(\.md5) == [low[45].md5])
  }

  // MARK: DASH

  /// An MPD with the segments 0 to 2 of each of the rungs of `dash-number`, of a second each.
  private static func manifest(low: [Int], high: [Int]) -> String {
    func representation(_ id: String, _ bandwidth: Int, _ segments: [Int]) -> String {
      let timeline = segments.map { "<S t=\"\($0 * 1000)\" d=\"1000\"/>" }.joined()
      let urls = segments.map { "<SegmentURL media=\"\(id)/segment-0000\($0 + 1).m4s\"/>" }.joined()
      return """
        <Representation id="\(id)" bandwidth="\(bandwidth)" codecs="avc1.64000b"><SegmentList timescale="1000">
        <Initialization sourceURL="\(id)/init.mp4"/><SegmentTimeline>\(timeline)</SegmentTimeline>\(urls)
        </SegmentList></Representation>
        """
    }
    return mpd(
      "<AdaptationSet mimeType=\"video/mp4\">\(representation("0", 300_000, low))"
        + "\(representation("1", 700_000, high))</AdaptationSet>",
      attributes: #"type="static" mediaPresentationDuration="PT3S""#)
  }

  private static func fetcher(low: [Int] = [0, 1, 2], high: [Int]) -> FixtureFetcher {
    let text = manifest(low: low, high: high)
    return FixtureFetcher { request, _ in
      request.url.path.hasSuffix("gaps.mpd") ? .bytes(Array(text.utf8)) : .none
    }
  }

  @Test(
    "A hole in the timeline of one Representation is read from the other",
    arguments: [[0, 2], [0, 1], [1, 2], [0], [1], [2]])
  func timeline(segments: [Int]) async throws {
    let played = try await play("dash-number/gaps.mpd", Self.fetcher(high: segments))
    #expect(played.frames.map { $0?.index } == Array(0..<90))
    for frame in played.frames {
      if let frame, !segments.contains(frame.index / 30) { #expect(!frame.isHigh) }
    }
    #expect(
      Set(played.frames.filter { $0?.isHigh == true }.compactMap { $0 }.map { $0.index / 30 })
        == Set(segments))
    #expect(played.item.errorLog.allSatisfy { $0.loss == nil })
  }

  @Test("A hole in all timelines is missing")
  func timelineOfAll() async throws {
    let played = try await play("dash-number/gaps.mpd", Self.fetcher(low: [0, 2], high: [0, 2]))
    #expect(played.frames.map { $0?.index } == Array(0..<30) + Array(60..<90))
    #expect(played.frames.allSatisfy { $0?.isHigh == true })
    #expect(played.item.errorLog.compactMap(\.loss).contains { $0.reason == .missing })
  }

  @Test("A frame within the hole of one Representation is taken from the other", arguments: [0.5, 1.5, 2.5])
  func timelineExtraction(seconds: Double) async throws {
    let (_, low) = try Self.clips()
    let source = try MediaSource(argument: "http://fixtures.test/dash-number/gaps.mpd")
    let missing = Int(seconds)
    let fetcher = Self.fetcher(high: [0, 1, 2].filter { $0 != missing })
    let frames = try await extract(.times([MediaTime(seconds: seconds)]), from: source, fetcher: fetcher)
      .frames
    #expect(frames.map(\.md5) == [low[Int(seconds * 30)].md5])
  }
}
