import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite(.hangLimit) struct RestingReaderTests {
  @Test(arguments: PresentationCase.all)
  func `Reading that rests again and again gives every frame once, and fetches nothing twice`(
    _ presentation: PresentationCase
  ) async throws {
    let configuration = presentation.configuration
    // Small chunks, so that it rests at many places of a segment.
    let fetcher = FixtureFetcher(chunkByteCount: 700)
    let player = Player(fetcher: fetcher, configuration: configuration, logger: silentLogger)
    let recording = Recording()
    let item = PlayerItem(.url(try #require(URL(string: "http://fixtures.test/\(presentation.path)"))))
    player.preloadTarget = PreloadTarget(stage: .firstFrame)
    player.replaceCurrentItem(with: item)
    for await stage in item.preloadStage.values where stage >= .firstFrame { break }
    for milliseconds in [50, 100, 200, 300, 450, 600, 800, 1100, 1500] {
      let target = Duration.milliseconds(milliseconds)
      player.preloadTarget = PreloadTarget(stage: .buffered, bufferDuration: target)
      while player.statistics.bufferedDuration < target, !item.isPlaybackBufferFull.value {
        try await Task.sleep(for: .milliseconds(1))
      }
    }
    try player.attach(recording)
    let events = item.events
    player.preloadTarget = nil
    player.setRate(.infinity)
    _ = await events.first { $0.isEnd }
    #expect(recording.all == (try presentation.expected()))
    await player.stopAndWait()
    let asked = fetcher.requests.map { "\($0.url) \($0.range.map { "\($0)" } ?? "")" }
    #expect(Set(asked).count == asked.count, "\(asked)")
  }
}
