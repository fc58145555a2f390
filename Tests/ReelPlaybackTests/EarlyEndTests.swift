import Foundation
import ReelCore
import ReelPlayback
import ReelTestSupport
import Testing

@testable import ReelSources

@Suite("Bodies that end before the length that was announced", .hangLimit)
struct EarlyEndTests {
  /// What the rest of a body is refused with that is not there.
  private static let refusal = ReelError(.server, "416 Range Not Satisfiable", status: 416)

  @Test(
    "Where there is no more, what is there is played, and the error is told",
    arguments: [
      ("media/h264-gops.mp4", "h264-gops.mp4", "h264-gops.mp4", StressClip.Clock.media),
      ("media/h264-bframes.ts", "h264-bframes.ts", "h264-bframes.ts", .fromZero),
      ("media/h264.mkv", "h264.mkv", "h264.mkv", .media),
      ("hls-ts/low/index.m3u8", "hls-ts-low", "segment-1.ts", .fromZero),
      ("hls-fmp4/high/index.m3u8", "hls-fmp4-high", "segment-1.m4s", .fromZero),
    ])
  func early(path: String, golden: String, name: String, clock: StressClip.Clock) async throws {
    let clip = try StressClip(path, golden: golden, clock: clock)
    let fetcher = FixtureFetcher { request, _ in
      request.url.lastPathComponent == name ? .endless(Self.refusal) : .none
    }
    let stage = try SimulatedStage(path, fetcher: fetcher)
    let item = stage.item
    stage.begin(rate: .infinity)
    let end = try await stage.end()
    if case .playedToEnd = end {} else { Issue.record("\(end)") }
    #expect(clip.indices(of: stage.recording.all) == Array(clip.expected.indices))
    // A container that states its length ends before the transfer does.
    try await stage.run { !item.errorLog.isEmpty }
    #expect(item.errorLog.allSatisfy { $0.error.status == 416 && $0.error.location?.hasSuffix(name) == true })
    #expect(item.errorLog.count == 1)
    try await stage.close()
  }

  @Test(
    "Media that is cut off with it fails for that reason",
    arguments: ["media/h264-moov-last.mp4", "media/h264-faststart.mp4"])
  func cutOff(path: String) async throws {
    let fetcher = FixtureFetcher { request, _ in
      (request.range?.offset ?? 0) < 12_000
        ? .endless(Self.refusal, after: 12_000 - Int(request.range?.offset ?? 0)) : .error(Self.refusal)
    }
    let stage = try SimulatedStage(path, fetcher: fetcher)
    stage.begin(rate: .infinity)
    let end = try await stage.end()
    if case .failed(let error) = end { #expect(error.status == 416) } else { Issue.record("\(end)") }
    try await stage.close()
  }

  @Test(
    "A Matroska file that is cut off is played as far as it goes, then fails",
    arguments: [9000, 15_000, 20_000])
  func matroska(count: Int) async throws {
    let clip = try StressClip("media/h264.mkv", golden: "h264.mkv", clock: .media)
    let bytes = Array(try Fixtures.bytes(clip.path).prefix(count))
    let stage = try SimulatedStage(clip.path, fetcher: FixtureFetcher { _, _ in .bytes(bytes) })
    stage.begin(rate: .infinity)
    let end = try await stage.end()
    if case .failed(let error) = end {
      #expect(error.kind == .badMedia)
      #expect(error.reason.contains("cut off"))
    } else {
      Issue.record("\(end)")
    }
    // Of the last frames some are there that are shown after one that is not.
    #expect(clip.indices(of: stage.recording.all.prefix(5)) == [0, 1, 2, 3, 4])
    try await stage.close()
  }
}
