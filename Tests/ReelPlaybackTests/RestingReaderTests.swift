import Foundation
import ReelCore
import ReelLab
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite(.hangLimit) struct RestingReaderTests {
  @Test(arguments: PresentationCase.all)
  func `Reading that rests again and again gives every frame once, and fetches nothing twice`(
    _ presentation: PresentationCase
  ) async throws {
    // Small chunks, so that it rests at many places of a segment.
    let fetcher = FixtureFetcher(chunkByteCount: 700)
    let stage = try SimulatedStage(presentation.path, fetcher: fetcher, configure: presentation.configure)
    let (player, item) = (stage.player, stage.item)
    player.preloadTarget = PreloadTarget(stage: .firstFrame)
    player.replaceCurrentItem(with: item)
    try await stage.run(untilLoaded: .firstFrame)
    for milliseconds in [50, 100, 200, 300, 450, 600, 800, 1100, 1500] {
      let target = Duration.milliseconds(milliseconds)
      player.preloadTarget = PreloadTarget(stage: .buffered, bufferDuration: target)
      await stage.simulation.runToRest()
      #expect(player.statistics.bufferedDuration >= target || item.isPlaybackBufferFull.value)
    }
    player.preloadTarget = nil
    player.setRate(.infinity)
    try await stage.end()
    #expect(stage.recording.all == (try presentation.expected()))
    try await stage.close()
    #expect(Set(fetcher.keys).count == fetcher.keys.count, "\(fetcher.keys)")
  }

  @Test
  func `Negative composition offsets of earlier fragments move later frames as without a rest`()
    async throws
  {
    var first = try Fixtures.bytes("hls-fmp4/high/segment-0.m4s")
    try first.moveCompositionOffsets(ofFragment: 0, by: -3000)
    let fetcher = { [first] in
      FixtureFetcher(chunkByteCount: 700) { request, _ in
        request.url.path.hasSuffix("segment-0.m4s") ? .bytes(first) : .none
      }
    }
    let path = "hls-fmp4/high/index.m3u8"
    let straight = try SimulatedStage(path, fetcher: fetcher())
    straight.begin(rate: .infinity)
    try await straight.end()
    try await straight.close()

    let stage = try SimulatedStage(path, fetcher: fetcher())
    stage.player.replaceCurrentItem(with: stage.item)
    for milliseconds in stride(from: 50, to: 3000, by: 170) {
      stage.player.preloadTarget = PreloadTarget(
        stage: .buffered, bufferDuration: .milliseconds(milliseconds))
      await stage.simulation.runToRest()
    }
    stage.player.preloadTarget = nil
    stage.player.setRate(.infinity)
    try await stage.end()
    try await stage.close()
    #expect(stage.recording.all == straight.recording.all)
    #expect(stage.recording.all.count > 60)
  }
}
