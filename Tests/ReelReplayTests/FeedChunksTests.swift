import Foundation
import ReelCore
import ReelPlayback
import ReelPool
import ReelReplay
import ReelTestSupport
import Testing

@Suite("The chunks of a feed", .hangLimit)
struct FeedChunksTests {
  private func feed(_ paths: [String]) throws -> Feed {
    Feed(name: "fixtures", urls: try paths.map { try #require(URL(string: "http://origin\($0)")) })
  }

  private func chunks(_ path: String) async throws -> ItemChunks {
    let measured = try await FeedChunks.measure(
      try feed([path]), fetcher: FixtureFetcher(), logger: silentLogger)
    return try measured.items[0].get()
  }

  private func size(_ path: String) throws -> Int64 { Int64(try Fixtures.bytes(path).count) }

  @Test("HLS with a multivariant playlist and fMP4 segments")
  func fragmented() async throws {
    let item = try await chunks("/hls-fmp4/master.m3u8")
    #expect(item.manifestByteCount == 500)
    #expect(item.rungs.map(\.id) == ["0", "1"])
    #expect(item.rungs.map(\.bitRate) == [400_000, 900_000])
    #expect(item.rungs.map(\.headerByteCount) == [235 + 847, 235 + 847])
    #expect(item.rungs.map(\.headerRequestCount) == [2, 2])
    #expect(item.rungs[0].chunks.map(\.byteCount) == [16266, 16548, 18395])
    #expect(item.rungs[1].chunks.map(\.byteCount) == [13977, 13507, 15929])
    #expect(item.rungs[0].chunks.allSatisfy { $0.duration == .seconds(1) })
    // What ffprobe says of the second packet's end, without the initialization segment.
    #expect(item.rungs[0].chunks.map(\.startByteCount) == [5102 - 847, nil, nil])
    #expect(item.duration == .seconds(3))
  }

  @Test("HLS with TS segments, without a multivariant playlist, and with byte ranges")
  func transport() async throws {
    let ladder = try await chunks("/hls-ts/master.m3u8")
    #expect(ladder.rungs[0].chunks.map(\.byteCount) == [25756, 25756, 28012])
    #expect(ladder.rungs.map(\.headerByteCount) == [206, 206])
    #expect(ladder.rungs.map(\.headerRequestCount) == [1, 1])
    // The second frame's PES packet begins at byte 3572 and has 1088 bytes.
    let start = try #require(ladder.rungs[0].chunks[0].startByteCount)
    #expect(start >= 4660 && start <= 4660 + 4 * 188)
    let ranges = try await chunks("/hls-byterange-ts/index.m3u8")
    #expect(ranges.manifestByteCount == 277)
    #expect(ranges.rungs.map(\.headerByteCount) == [0])
    #expect(ranges.rungs.map(\.headerRequestCount) == [0])
    #expect(ranges.rungs[0].chunks == ladder.rungs[0].chunks)
    let map = try await chunks("/hls-byterange-fmp4/index.m3u8").rungs[0]
    #expect(map.headerByteCount == 847)
    #expect(map.chunks.map(\.byteCount) == [16242, 16524, 18371])
    #expect(map.chunks[0].startByteCount != nil)
  }

  @Test(
    "DASH",
    arguments: [
      ("/dash-ondemand/manifest.mpd", ["low", "high"], 842), ("/dash-number/manifest.mpd", nil, 798),
      ("/dash-timeline/manifest.mpd", nil, nil), ("/dash-segmentlist/manifest.mpd", nil, nil),
      ("/dash-periods/manifest.mpd", nil, nil),
    ] as [(String, [String]?, Int64?)])
  func dash(path: String, ids: [String]?, header: Int64?) async throws {
    let item = try await chunks(path)
    #expect(item.manifestByteCount == (try size(path)))
    if let ids { #expect(item.rungs.map(\.id) == ids) }
    #expect(item.rungs.map(\.bitRate) == item.rungs.map(\.bitRate).sorted())
    for rung in item.rungs {
      if let header { #expect(rung.headerByteCount == header) }
      #expect(rung.headerRequestCount == 1)
      #expect(rung.chunks.map(\.duration) == item.rungs[0].chunks.map(\.duration))
      #expect(rung.chunks.allSatisfy { $0.byteCount > 0 })
      let first = rung.chunks[0]
      #expect((1...first.byteCount).contains(first.startByteCount ?? 0))
    }
    if path.contains("ondemand") {
      // As the files' `sidx` lists them.
      #expect(
        item.rungs.map { $0.chunks.map(\.byteCount) } == [[16190, 16472, 18319], [13901, 13431, 15853]])
    }
  }

  @Test(
    "Media files: all bytes are counted once",
    arguments: [
      ("/media/h264-gops.mp4", 1), ("/media/h264-faststart.mp4", 1), ("/media/h264-moov-last.mp4", 2),
      ("/media/h264-tracks-last.mkv", 1), ("/media/h264-fragmented.mp4", 1), ("/media/h264-open-gop.ts", 1),
      ("/media/audio-aac.flv", 1),
    ])
  func files(path: String, requests: Int) async throws {
    let item = try await chunks(path)
    let rung = item.rungs[0]
    #expect(item.rungs.count == 1)
    #expect(item.manifestByteCount == 0)
    #expect(rung.bitRate == 0)
    #expect(rung.headerRequestCount == requests)
    let byteCount = rung.headerByteCount + rung.chunks.reduce(0) { $0 + $1.byteCount }
    #expect(byteCount == (try size(path)))
    #expect(rung.chunks.allSatisfy { $0.duration > .zero && $0.byteCount > 0 })
    #expect(rung.chunks.dropLast().allSatisfy { $0.duration >= .seconds(1) })
    let first = rung.chunks[0]
    #expect((1...first.byteCount).contains(first.startByteCount ?? 0))
    if path.contains("moov-last") { #expect(rung.headerByteCount > 48) }
    if path.contains("faststart") { #expect(rung.headerByteCount == 2483) }
  }

  @Test("Encrypted segments have sizes, but no known second frame")
  func encrypted() async throws {
    let rung = try await chunks("/hls-aes128/index.m3u8").rungs[0]
    #expect(rung.chunks.map(\.byteCount) == [25760, 25760, 28016])
    #expect(rung.chunks[0].startByteCount == nil)
  }

  @Test("An item that fails does not concern the others; the same source is measured once")
  func failures() async throws {
    let fetcher = FixtureFetcher()
    let path = "/hls-ts/master.m3u8"
    let feed = try feed([path, "/nothing.mp4", path, "/bad/html.m3u8", "/bad/no-segments.m3u8"])
    let measured = try await FeedChunks.measure(feed, fetcher: fetcher, concurrently: 2, logger: silentLogger)
    #expect(measured.items.count == 5)
    #expect(measured[0] == measured[2])
    #expect(measured[0] != nil)
    #expect(measured.failures.map(\.index) == [1, 3, 4])
    #expect(measured.failures.map(\.error.kind) == [.server, .badMedia, .badManifest])
    #expect(measured[1] == nil)
    #expect(measured[5] == nil)
    #expect(fetcher.keys.filter { $0.contains("low/segment-0.ts") }.count == 2)
  }
}
