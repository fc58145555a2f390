import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite(.hangLimit) struct PreloadTests {
  @Test(arguments: PresentationCase.all, [PreloadTarget.buffered, .warm])
  func `What was preloaded plays on, every frame once, and nothing is fetched twice`(
    _ presentation: PresentationCase, _ target: PreloadTarget
  ) async throws {
    let configuration = presentation.configuration
    let fetcher = FixtureFetcher()
    let player = Player(fetcher: fetcher, configuration: configuration, logger: silentLogger)
    let recording = Recording()
    player.preloadTarget = target
    let item = PlayerItem(.url(try #require(URL(string: "http://fixtures.test/\(presentation.path)"))))
    player.replaceCurrentItem(with: item)
    for await stage in item.preloadStage.values where stage >= .buffered { break }
    let statistics = player.statistics
    #expect(statistics.shownFrameCount == 1)
    try player.attach(recording)
    #expect(recording.all.count == 1)
    let expected = try presentation.expected()
    #expect(recording.all == Array(expected.prefix(1)))

    let events = item.events
    player.preloadTarget = nil
    player.setRate(.infinity)
    _ = await events.first { $0.isEnd }
    #expect(recording.all == expected)
    await player.stopAndWait()
    let asked = fetcher.requests.map { "\($0.url) \($0.range.map { "\($0)" } ?? "")" }
    #expect(Set(asked).count == asked.count, "\(asked)")
  }

  @Test(arguments: [
    PreloadTarget.none, PreloadTarget(stage: .manifest), PreloadTarget(stage: .initialization),
  ])
  func `Loading rests at the stage that is wanted`(_ target: PreloadTarget) async throws {
    let fetcher = FixtureFetcher()
    let player = Player(fetcher: fetcher, logger: silentLogger)
    player.preloadTarget = target
    let item = PlayerItem(.url(try #require(URL(string: "http://fixtures.test/hls-fmp4/master.m3u8"))))
    player.replaceCurrentItem(with: item)
    for await stage in item.preloadStage.values where stage >= target.stage { break }
    #expect(!hasFrame(player))
    #expect(player.statistics.decodedFrameCount == 0)
    #expect(item.preloadStage.value == target.stage)
    #expect(fetcher.requests.isEmpty == (target.stage == .none))
    player.preloadTarget = PreloadTarget(stage: .firstFrame)
    for await stage in item.preloadStage.values where stage >= .firstFrame { break }
    #expect(hasFrame(player))
    await player.stopAndWait()
  }

  @Test(arguments: [
    "hls-fmp4/master.m3u8", "hls-ts/low/index.m3u8", "dash-gpac/multirate.mpd", "media/h264-bframes.mp4",
  ])
  func `An item that rests in the middle gives back its frames, and goes on where it was`(_ path: String)
    async throws
  {
    let whole = try await playThrough(
      .url(try #require(URL(string: "http://fixtures.test/\(path)"))), fetcher: FixtureFetcher())
    let player = Player(fetcher: FixtureFetcher(), logger: silentLogger)
    let recording = Recording()
    try player.attach(recording)
    let item = PlayerItem(.url(try #require(URL(string: "http://fixtures.test/\(path)"))))
    let events = item.events
    player.replaceCurrentItem(with: item)
    // Rests several times on the way.
    for count in [1, 5, 6, 12] {
      player.preloadTarget = nil
      player.setRate(0.25)
      while recording.all.count + player.statistics.droppedFrameCount < count {
        try await Task.sleep(for: .milliseconds(2))
      }
      player.pause()
      player.preloadTarget = .buffered
      try await until { (player.statistics.ring?.frameCount ?? 0) == 0 }
    }
    player.preloadTarget = nil
    player.setRate(.infinity)
    _ = await events.first { $0.isEnd }
    let times = recording.all.map(\.time)
    #expect(times == times.sorted())
    #expect(Set(times).count == times.count)
    // On a slow machine late ones are dropped.
    #expect(Set(recording.all.map(\.md5)).isSubset(of: whole.shown.map(\.md5)))
    #expect(recording.all.last == whole.shown.last)
    #expect(recording.all.count + player.statistics.droppedFrameCount == whole.shown.count)
    await player.stopAndWait()
  }
}

extension PreloadTarget {
  static let warm = PreloadTarget(stage: .buffered, isDecoderWarm: true)
}

private func hasFrame(_ player: Player) -> Bool {
  if let frame = player.currentFrame() { return frame.time >= .zero }
  return false
}
