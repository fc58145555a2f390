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
}
