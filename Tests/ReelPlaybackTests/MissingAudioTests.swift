import Foundation
import ReelCore
import Testing

@testable import ReelPlayback

@Suite("Sound that does not come", .timeLimit(.minutes(2)))
struct MissingAudioTests {
  @Test(
    "The picture waits for sound of its own for a time, and goes on without it",
    arguments: ["index.m3u8", "init.mp4", "segment-0.m4s", "segment-1.m4s"], [1.0, .infinity])
  func givesUp(name: String, rate: Double) async throws {
    let clip = try StressClip("hls-fmp4/master.m3u8", golden: "hls-fmp4-high", clock: .fromZero)
    let fetcher = FixtureFetcher { request, _ in
      request.url.path.hasSuffix("audio/\(name)") ? .never : .none
    }
    var configuration = StressScene.configuration()
    configuration.thresholds.audioPatience = .milliseconds(200)
    let scene = try StressScene(fetcher: fetcher, configuration: configuration)
    let item = PlayerItem(try clip.source())
    let events = item.events.events
    scene.player.setRate(rate)
    scene.player.replaceCurrentItem(with: item)
    let end = try await scene.bounded("the end of \(clip.path)") { await events.first { $0.isEnd } }
    if case .playedToEnd? = end {} else { Issue.record("\(String(describing: end))") }
    #expect(scene.witness.all.last?.md5 == clip.expected.last?.md5)
    #expect(item.errorLog.contains { $0.error.kind == .timedOut && $0.error.reason.contains("sound") })
    // What waited for it has ended.
    try await scene.until("the end of its requests") { fetcher.underWayCount == 0 }
    await scene.player.stopAndWait()
  }

  @Test("Sound that comes slowly, but comes, is waited for")
  func slow() async throws {
    let clip = try StressClip("hls-fmp4/master.m3u8", golden: "hls-fmp4-high", clock: .fromZero)
    let fetcher = FixtureFetcher(chunkByteCount: 500) { request, _ in
      request.url.path.contains("audio/") ? .slow(.milliseconds(20)) : .none
    }
    var configuration = StressScene.configuration()
    configuration.thresholds.audioPatience = .seconds(20)
    let scene = try StressScene(fetcher: fetcher, configuration: configuration)
    let item = PlayerItem(try clip.source())
    let events = item.events.events
    scene.player.setRate(.infinity)
    scene.player.replaceCurrentItem(with: item)
    _ = try await scene.bounded("the end of \(clip.path)") { await events.first { $0.isEnd } }
    #expect(item.errorLog.isEmpty)
    await scene.player.stopAndWait()
  }
}
