import Foundation
import Reel
import ReelStills
import ReelTestSupport
import ReelTesting
import Testing

@Suite("Posters and storyboards", .hangLimit) struct StillProgramsTests {
  private static let url = URL(filePath: Fixtures.path("stills/master.m3u8"))

  @Test("A poster is a JPEG of the best frame")
  func poster() async throws {
    let folder = try TemporaryFolder()
    try await writePoster(of: Self.url, to: folder.url.appending(path: "a.jpg"))
    #expect(try folder.bytes("a.jpg").starts(with: [0xff, 0xd8, 0xff]))
    let poster = try await PosterExtractor().poster(
      of: Self.url, maximumSize: PixelSize(width: 320, height: 320))
    #expect(poster.time == .seconds(5))
    #expect(poster.size == PixelSize(width: 320, height: 180))
    #expect(poster.presentationSize == poster.size)
  }

  @Test("A poster over HTTP, of a frame stored on its side")
  func turned() async throws {
    try await Origin.use { origin in
      let poster = try await PosterExtractor().poster(of: origin.url("media/rotate-90.mp4"))
      #expect(poster.size.height > poster.size.width)
    }
  }

  @Test("A source that can't be read is an error")
  func broken() async {
    let url = URL(filePath: Fixtures.path("bad/text.mp4"))
    let poster = await reelError { _ = try await PosterExtractor().poster(of: url) }
    #expect(poster?.location?.hasSuffix("bad/text.mp4") == true)
    let board = await reelError { _ = try await StoryboardExtractor().storyboard(of: url) }
    #expect(board?.kind == poster?.kind)
  }

  @Test("A storyboard has frames in order, at the interval")
  func storyboard() async throws {
    let board = try await StoryboardExtractor().storyboard(of: Self.url, every: .seconds(2))
    #expect(board.interval.seconds >= 2)
    #expect(board.faults.isEmpty)
    let times = board.frames.map(\.time)
    #expect(times.count > 2 && times == times.sorted() && Set(times).count == times.count)
    #expect(Set(board.frames.map(\.size)) == [PixelSize(width: 320, height: 180)])
    let folder = try TemporaryFolder()
    try await writeStoryboard(of: Self.url, to: folder.url)
    #expect(!folder.names().isEmpty)
    for name in folder.names() {
      #expect(try folder.bytes(name).starts(with: [0x89, 0x50, 0x4e, 0x47]))
    }
  }

  @Test("Sheets have the pixels of the frames")
  func sheets() async throws {
    let board = try await StoryboardExtractor().storyboard(
      of: Self.url, count: 5, maximumSize: PixelSize(width: 32, height: 32))
    let sheets = try board.sheets(columns: 2, rows: 2)
    #expect(sheets.count == 2)
    #expect(sheets.map(\.size) == [PixelSize(width: 64, height: 36), PixelSize(width: 64, height: 18)])
    #expect(sheets.map(\.time) == [board.frames[0].time, board.frames[4].time])
    let (sheet, tile) = (Array(try sheets[0].rgba), Array(try board.frames[3].rgba))
    for row in 0..<18 {
      let start = (18 + row) * 64 * 4 + 32 * 4
      #expect(sheet[start..<start + 32 * 4] == tile[row * 32 * 4..<(row + 1) * 32 * 4])
    }
    #expect(throws: ReelError.self) { try board.sheets(columns: 0, rows: 1) }
    #expect(throws: ReelError.self) { try board.sheets(columns: 1 << 20, rows: 1 << 20) }
    let folder = try TemporaryFolder()
    try await writeSheet(of: Self.url, to: folder.url.appending(path: "a.png"))
    #expect(try folder.bytes("a.png").count > 10_000)
  }

  @Test("A frame that can't be read is a fault, and the others are there")
  func missing() async throws {
    let faults = try FaultRule.parse("*2.m4s=status:404")
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      let whole = try await StoryboardExtractor().storyboard(of: Self.url, every: .seconds(1))
      let board = try await StoryboardExtractor().storyboard(
        of: origin.url("stills/master.m3u8"), every: .seconds(1))
      #expect(board.frames.count < whole.frames.count)
      #expect(!board.faults.isEmpty)
    }
  }

  @Test("Intervals and counts have bounds", arguments: [0, -1, 0.01, .nan, .infinity, 1e7])
  func bounds(seconds: Double) async {
    let error = await reelError {
      _ = try await StoryboardExtractor().storyboard(of: Self.url, every: .seconds(seconds))
    }
    #expect(error?.kind == .usage)
    let count = await reelError { _ = try await StoryboardExtractor().storyboard(of: Self.url, count: 0) }
    #expect(count?.kind == .usage)
  }
}
