import Foundation
import ReelCore
import ReelModels
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

@Suite("What a modelled player has to know of an item", .hangLimit)
struct ItemReaderTests {
  private func facts(_ path: String, reach: Double = 60) async throws -> ItemFacts {
    let reader = ItemReader(
      fetcher: FixtureFetcher(), configuration: LoadingConfiguration(), logger: silentLogger)
    let url = try #require(URL(string: "http://origin/\(path)"))
    return try await reader.facts(of: .url(url), reach: reach)
  }

  private func size(_ path: String) throws -> Int64 {
    Int64(try Data(contentsOf: Fixtures.folder.appending(path: path)).count)
  }

  @Test("HLS: the sizes of playlists, initializations and segments of all rungs, and of separate audio")
  func hls() async throws {
    let facts = try await facts("hls-fmp4/master.m3u8")
    #expect(facts.format == .hls && facts.video.map(\.bitsPerSecond) == [400_000, 900_000])
    #expect(facts.manifest?.byteCount == (try size("hls-fmp4/master.m3u8")))
    for (rung, name) in zip(facts.video + [try #require(facts.audio)], ["low", "high", "audio"]) {
      #expect(rung.playlist?.byteCount == (try size("hls-fmp4/\(name)/index.m3u8")))
      let requests = rung.segments.map { ($0.url, $0.byteCount) }
      #expect(!requests.isEmpty)
      for (url, byteCount) in requests
        + [rung.initialization.map { ($0.url, $0.byteCount) }].compactMap(\.self)
      {
        #expect(byteCount == (try size("hls-fmp4/\(name)/\(url.lastPathComponent)")))
      }
      #expect(rung.segments.allSatisfy { $0.pieces.map(\.duration).reduce(0, +) > 0 })
    }
    let first = try #require(facts.firstFrameByteCount)
    let segment = facts.video[facts.firstFrameRung].segments[0]
    #expect(first > 100 && first < segment.byteCount)
    #expect(abs(facts.frameDuration - 1 / 30) < 1e-6 && facts.codec == .h264 && facts.pixelCount > 0)
  }

  @Test("A media playlist alone has no other playlist, and only what a walk reaches is asked for")
  func playlist() async throws {
    let whole = try await facts("hls-ts/low/index.m3u8")
    #expect(whole.video.count == 1 && whole.video[0].playlist == nil && whole.video[0].initialization == nil)
    let part = try await facts("hls-ts/low/index.m3u8", reach: 0.1)
    #expect(part.video[0].segments.count == 1 && whole.video[0].segments.count > 1)
  }

  @Test("DASH in one file: the index is a request, and each segment a part of the file")
  func dash() async throws {
    let facts = try await facts("dash-ondemand/manifest.mpd")
    #expect(facts.format == .dash)
    let rung = facts.video[facts.firstFrameRung]
    #expect(rung.index != nil && rung.playlist == nil)
    #expect(Set(rung.segments.map(\.url)).count == rung.segments.count)
    let (sum, whole) = (rung.segments.reduce(0) { $0 + $1.byteCount }, try size("dash-ondemand/low.mp4"))
    #expect(sum > 10_000 && sum < whole)
  }

  @Test("A file is one answer, with the bytes up to the first frame")
  func file() async throws {
    let facts = try await facts("media/h264-bframes.mp4")
    #expect(facts.format == .file && facts.manifest == nil && facts.video[0].index == nil)
    #expect(facts.video[0].segments.map(\.byteCount) == [try size("media/h264-bframes.mp4")])
    #expect((1194...10_000).contains(try #require(facts.firstFrameByteCount)))
  }

  @Test("What is no media is an error")
  func wrong() async throws {
    await #expect(throws: ReelError.self) { try await facts("bad/text.mp4") }
  }
}
