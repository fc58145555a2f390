import Foundation
import ReelCore
import ReelFFmpeg
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelReading
@testable import ReelSources
@testable import ReelStills

@Suite("Storyboards", .hangLimit)
struct StoryboardTests {
  private func make(
    _ spacing: Storyboard.Spacing = .every(1), of source: MediaSource, size: SizeLimit = .square(320)
  ) async throws -> MadeStoryboard {
    try await makeStoryboard(spacing, of: source, size: size)
  }

  private func file(_ path: String) throws -> MediaSource {
    try MediaSource(argument: Fixtures.path(path))
  }

  private func pixels(_ made: MadeStoryboard) -> [[UInt8]] {
    made.tiles.map { if case .eightBit(let pixels) = $0.still.pixels { pixels } else { [] } }
  }

  // MARK: Tiles

  @Test(
    "Every key frame, at its time",
    arguments: [
      "stills/poor-start.mp4", "stills/poor-start-moov-last.mp4", "stills/poor-start.ts",
      "stills/master.m3u8", "stills/master-i-frames.m3u8",
    ])
  func tiles(path: String) async throws {
    let made = try await make(of: file(path))
    #expect(made.times == [0, 1, 2, 3, 4, 5])
    #expect(made.slots == [0, 1, 2, 3, 4, 5])
    #expect(made.storyboard.interval == 1000 && made.storyboard.slotCount == 6)
    #expect(made.storyboard.missing.isEmpty && made.storyboard.faults.isEmpty)
    #expect(made.tiles.allSatisfy { $0.still.size == PixelSize(width: 320, height: 180) })
    #expect(made.tiles.allSatisfy { $0.byteCount > 0 })
    let reference = try await make(of: file("stills/poor-start.mp4"))
    #expect(pixels(made) == pixels(reference))
  }

  @Test("Some of them, over HTTP as from files")
  func spacing() async throws {
    try await Origin.use { origin in
      for path in [
        "stills/poor-start.mp4", "stills/poor-start-moov-last.mp4", "stills/poor-start.ts",
        "stills/master.m3u8",
      ] {
        for source in [try file(path), try origin.source(path)] {
          #expect(try await make(.every(2), of: source).times == [0, 2, 4], "\(path)")
          // The duration of MPEG-TS is not known.
          if path.hasSuffix(".ts") { continue }
          #expect(try await make(.count(3), of: source).times == [0, 2, 4], "\(path)")
        }
      }
    }
  }

  @Test("Key frames that are further apart than the interval are not repeated")
  func sparse() async throws {
    let made = try await make(.every(0.1), of: file("stills/poor-start.mp4"))
    #expect(made.times == [0, 1, 2, 3, 4, 5])
    #expect(made.storyboard.interval == 1000)
    let one = try await make(.every(10), of: file("media/h264-one-frame.mp4"))
    #expect(one.times == [0] && one.storyboard.slotCount == 1)
  }

  @Test(
    "Containers and codecs",
    arguments: [
      "media/h264.mkv", "media/vp9.webm", "media/av1.mp4", "media/hevc-gops.mp4", "media/h264-gops.mp4",
      "media/mpeg2.ts", "media/h264-fragmented.mp4", "media/h264-fragmented-sidx.mp4", "media/h264.flv",
      "hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "dash-timeline/manifest.mpd",
      "dash-ondemand/manifest.mpd", "dash-periods/manifest.mpd", "hls-discontinuity/ts.m3u8",
      "hls-discontinuity/fmp4.m3u8",
    ])
  func sources(path: String) async throws {
    let made = try await make(.every(0.5), of: file(path), size: .square(80))
    #expect(made.times.first.map { $0 < 0.2 } == true, "\(made.times)")
    #expect(made.times == made.times.sorted() && Set(made.times).count == made.times.count)
    #expect(made.storyboard.missing.isEmpty, "\(made.storyboard.missing)")
  }

  // MARK: Bytes

  private func floor(_ made: MadeStoryboard) -> Int64 {
    made.storyboard.indexByteCount + made.storyboard.traffic.keyFrameByteCount
  }

  @Test("Of an MP4 file, the index and the key frames are read", arguments: ["", "-moov-last"])
  func fileBytes(suffix: String) async throws {
    try await Origin.use { origin in
      let source = try origin.source("stills/poor-start\(suffix).mp4")
      let made = try await make(.every(2), of: source)
      let traffic = made.storyboard.traffic
      let index: Int64 = 3000
      // A connection is read in steps of 8 KiB.
      #expect(
        traffic.readByteCount <= (index + traffic.keyFrameByteCount) * 12 / 10 + 2 * 8192, "\(traffic)")
      #expect(traffic.keyFrameByteCount == made.tiles.reduce(0) { $0 + Int64($1.byteCount) })
      let ranges = origin.snapshot.requests.compactMap(\.range).filter { !$0.hasSuffix("-") }
      #expect(ranges.count >= 1, "\(ranges)")
    }
  }

  @Test(
    "Of segments, little more than the key frames is read",
    arguments: ["stills/master.m3u8", "stills/master-i-frames.m3u8"])
  func segmentBytes(path: String) async throws {
    try await Origin.use { origin in
      let made = try await make(.every(2), of: origin.source(path))
      let steps = Int64(made.tiles.count) * 8192
      #expect(
        made.storyboard.traffic.readByteCount <= floor(made) * 12 / 10 + steps,
        "\(made.storyboard.traffic)")
      #expect(made.storyboard.rung?.id == (path.contains("i-frames") ? "i-frames-0" : "0"))
    }
  }

  @Test("A Matroska file with one key frame is not read through")
  func oneKeyFrame() async throws {
    let path = "media/h264.mkv"
    let size = Int64(try Fixtures.bytes(path).count)
    for spacing in [Storyboard.Spacing.every(0.2), .count(1)] {
      let made = try await make(spacing, of: file(path))
      #expect(made.times.count == 1 && made.storyboard.missing.isEmpty)
      // Each opening and seek reads so small a file nearly whole; a search for further key frames would do so once more.
      #expect(made.storyboard.traffic.readByteCount < 4 * size, "\(made.storyboard.traffic)")
    }
  }

  @Test("Gradual refresh: the whole frames after recovery points, without reading anything twice")
  func gradualRefresh() async throws {
    let path = "stills/intra-refresh.mp4"
    let size = Int64(try Fixtures.bytes(path).count)
    let made = try await make(.every(2), of: file(path))
    #expect(made.slots == [0, 1, 2] && made.storyboard.missing.isEmpty, "\(made.storyboard.missing)")
    #expect(made.storyboard.traffic.readByteCount < size, "\(made.storyboard.traffic)")
    // Decoded from the beginning, they are the same.
    let extractor = FrameExtractor(fetcher: makeFetcher())
    for tile in made.tiles {
      let found = Locked<Still?>(nil)
      _ = try await extractor.extract(.times([tile.time]), from: file(path)) { frame in
        let still = try StillRenderer().render(
          frame.decoded, geometry: frame.geometry(target: tile.still.size, gravity: .resize),
          orientation: frame.orientation)
        found.withLock { $0 = still }
      }
      #expect(try pixels(#require(found.withLock { $0 })) == pixels(tile.still), "\(tile.time)")
    }
  }

  private func pixels(_ still: Still) -> [UInt8] {
    if case .eightBit(let pixels) = still.pixels { pixels } else { [] }
  }

  @Test("Recovery points of H.264 in a transport stream", arguments: ["open-gop", "open-gop-mid"])
  func recoveryPoints(name: String) async throws {
    let made = try await make(.every(0.4), of: file("media/h264-\(name).ts"))
    #expect(made.tiles.count >= 2, "\(made.times)")
    #expect(made.tiles.allSatisfy { $0.byteCount > 500 })
    #expect(made.storyboard.missing.isEmpty)
    // Packets were left out in the middle.
    #expect(made.storyboard.faults.isEmpty == (name == "open-gop"))
  }

  @Test("A playlist and an initialization are fetched once for all threads")
  func sharing() async throws {
    try await Origin.use { origin in
      _ = try await make(of: origin.source("stills/master.m3u8"))
      let paths = origin.snapshot.requests.map(\.path)
      #expect(paths.count { $0.hasSuffix("high/playlist.m3u8") } == 1, "\(paths)")
      #expect(paths.count { $0.hasSuffix("init.mp4") } == 1, "\(paths)")
    }
  }

  // MARK: Poor input

  @Test("A segment that is missing leaves its tile out")
  func missing() async throws {
    let configuration = Origin.Configuration(
      directory: Fixtures.folder, faults: try FaultRule.parse("stills/high/segment-2.m4s=status:404"))
    try await Origin.use(configuration) { origin in
      let made = try await make(of: origin.source("stills/high/playlist.m3u8"))
      #expect(made.storyboard.missing.map(\.slot) == [2])
      #expect(made.times == [0, 1, 3, 4, 5])
      #expect(!made.storyboard.faults.isEmpty)
      // Another rung takes its place.
      #expect(try await make(of: origin.source("stills/master.m3u8")).times == [0, 1, 2, 3, 4, 5])
    }
  }

  @Test("A file that is cut off has the key frames before that")
  func truncated() async throws {
    let folder = try TemporaryFolder()
    let bytes = try Fixtures.bytes("stills/poor-start.mp4")
    try folder.write(bytes.prefix(bytes.count * 2 / 3), to: "cut.mp4")
    let made = try await make(of: MediaSource(argument: folder.path("cut.mp4")))
    #expect(made.times.starts(with: [0, 1, 2, 3]))
    #expect(made.tiles.count + made.storyboard.missing.count == 6)
    #expect(!made.storyboard.missing.isEmpty)
  }

  @Test("Too many stills are refused")
  func tooMany() {
    let places: [KeyFramePlace]? = nil
    #expect(throws: ReelError.self) {
      _ = try StoryboardPlan(.every(1), places: places, start: .zero, duration: 86400)
    }
    #expect(throws: ReelError.self) {
      _ = try StoryboardPlan(.count(10), places: places, start: .zero, duration: nil)
    }
  }
}

@Suite("The plan of a storyboard")
struct StoryboardPlanTests {
  private func plan(
    _ spacing: Storyboard.Spacing, _ seconds: [Double], duration: Double, start: Double = 0
  ) throws -> StoryboardPlan {
    try StoryboardPlan(
      spacing,
      places: seconds.map {
        KeyFramePlace(time: MediaTime(seconds: $0), seekTime: MediaTime(seconds: $0))
      },
      start: MediaTime(seconds: start), duration: duration)
  }

  @Test("The nearest key frames")
  func nearest() throws {
    let made = try plan(.every(10), stride(from: 0.0, to: 60, by: 4).map { $0 }, duration: 60)
    #expect(made.slotCount == 6)
    #expect(made.jobs.map(\.slot) == [0, 1, 2, 3, 4, 5])
    #expect(made.jobs.map(\.place.time.seconds) == [0, 12, 20, 32, 40, 52])
  }

  @Test("No key frame twice")
  func unique() throws {
    let made = try plan(.every(1), [0, 0.5, 1, 1.5, 9], duration: 10)
    #expect(made.interval == 2250)
    #expect(Set(made.jobs.map(\.place)).count == made.jobs.count)
    #expect(made.jobs.map(\.slot) == [0, 1, 3])
  }

  @Test("A count, from the start of a window")
  func count() throws {
    let made = try plan(.count(4), stride(from: 100.0, to: 140, by: 2).map { $0 }, duration: 40, start: 100)
    #expect(made.interval == 10_000 && made.slotCount == 4)
    #expect(made.jobs.map(\.place.time.seconds) == [100, 110, 120, 130])
    #expect(try plan(.count(100), [0, 2, 4, 6], duration: 8).slotCount == 4)
  }

  @Test("Advice that can be followed, however long the source claims to be")
  func advice() throws {
    for (duration, words) in [(200_000.0, "--every 20"), (1e11, "--count"), (9e18, "--count")] {
      let error = #expect(throws: ReelError.self) { try plan(.every(10), [0], duration: duration) }
      #expect(error?.advice?.contains(words) == true, "\(String(describing: error))")
    }
    #expect(try plan(.count(3), [0, 5e11, 9e12], duration: 9e18).jobs.count <= 3)
  }

  @Test("A small rest is no slot")
  func remainder() throws {
    #expect(try plan(.every(10), [0, 10, 20], duration: 30.1).slotCount == 3)
    #expect(try plan(.every(10), [0, 10, 20], duration: 32).slotCount == 4)
    #expect(try plan(.every(10), [0], duration: 0.5).slotCount == 1)
  }

  @Test("The last key frame of a source that is read to its end")
  func lastSlot() throws {
    func slot(_ spacing: Storyboard.Spacing, _ seconds: Double, after last: Int) throws -> Int? {
      try StoryboardPlan(spacing, places: nil, start: .zero, duration: 60)
        .slot(at: MediaTime(seconds: seconds), after: last)
    }
    #expect(try slot(.every(10), 48, after: 3) == 4)
    // Nearest to the end, which no slot begins with.
    #expect(try slot(.every(10), 59.5, after: 4) == 5)
    #expect(try slot(.every(10), 59.5, after: 5) == nil)
    // The duration is stated too short.
    #expect(try slot(.every(10), 70, after: 5) == 7)
    #expect(try slot(.count(6), 70, after: 5) == nil)
  }

  @Test("Slots of times")
  func slots() throws {
    let made = try StoryboardPlan(.every(10), places: nil, start: .zero, duration: nil)
    #expect(made.slotCount == nil && made.jobs.isEmpty)
    #expect(made.slot(at: MediaTime(seconds: 18.9)) == 1)
    #expect(made.slot(at: MediaTime(seconds: 19.1)) == 2)
    #expect(made.firstTime(of: 2).seconds == 19)
  }
}
