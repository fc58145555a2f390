import Foundation
import ReelCore
import ReelLab
import ReelSimulation
import ReelTesting
import ReelTestSupport
import Testing

@testable import ReelPlayback
import ReelReading

@Suite(.hangLimit) struct PreloadTests {
  @Test(arguments: PresentationCase.all, [PreloadTarget.buffered, .warm])
  func `What was preloaded plays on, every frame once, and nothing is fetched twice`(
    _ presentation: PresentationCase, _ target: PreloadTarget
  ) async throws {
    let fetcher = FixtureFetcher()
    let stage = try SimulatedStage(presentation.path, fetcher: fetcher, configure: presentation.configure)
    let player = stage.player
    try player.detach(stage.recording)
    player.preloadTarget = target
    player.replaceCurrentItem(with: stage.item)
    try await stage.run(untilLoaded: .buffered)
    #expect(player.statistics.shownFrameCount == 1)
    let recording = Recording()
    try player.attach(recording)
    let expected = try presentation.expected()
    #expect(recording.all == Array(expected.prefix(1)))
    // It rests.
    await stage.simulation.runToRest()
    #expect(recording.all.count == 1)
    #expect(stage.simulation.bodyCount == 0)

    player.preloadTarget = nil
    player.setRate(.infinity)
    try await stage.end()
    #expect(recording.all == expected)
    try await stage.close()
    #expect(Set(fetcher.keys).count == fetcher.keys.count, "\(fetcher.keys)")
  }

  @Test(arguments: [
    PreloadTarget.notLoaded, PreloadTarget(stage: .manifest), PreloadTarget(stage: .initialization),
  ])
  func `Loading rests at the stage that is wanted`(_ target: PreloadTarget) async throws {
    let fetcher = FixtureFetcher()
    let stage = try SimulatedStage("hls-fmp4/master.m3u8", fetcher: fetcher)
    let player = stage.player
    player.preloadTarget = target
    player.replaceCurrentItem(with: stage.item)
    await stage.simulation.runToRest()
    #expect(!hasFrame(player))
    #expect(player.statistics.decodedFrameCount == 0)
    #expect(stage.item.preloadStage.value == target.stage)
    #expect(fetcher.requests.isEmpty == (target.stage == .notLoaded))
    player.preloadTarget = PreloadTarget(stage: .firstFrame)
    await stage.simulation.runToRest()
    #expect(hasFrame(player))
    #expect(stage.item.preloadStage.value >= .firstFrame)
    try await stage.close()
  }

  @Test(arguments: [
    "hls-fmp4/master.m3u8", "hls-ts/low/index.m3u8", "dash-gpac/multirate.mpd", "media/h264-bframes.mp4",
  ])
  func `An item that rests in the middle gives back its frames, and goes on where it was`(_ path: String)
    async throws
  {
    let stage = try SimulatedStage(path)
    let whole = try await simulate(stage.item.source)
    let (player, recording) = (stage.player, stage.recording)
    player.replaceCurrentItem(with: stage.item)
    // Rests several times on the way.
    for count in [1, 5, 6, 12] {
      player.preloadTarget = nil
      player.setRate(0.25)
      try await stage.run { recording.all.count >= count }
      player.pause()
      player.preloadTarget = .buffered
      await stage.simulation.runToRest()
      #expect((player.statistics.ring?.frameCount ?? 0) == 0)
      #expect(recording.all.count == count)
    }
    player.preloadTarget = nil
    player.setRate(.infinity)
    try await stage.end()
    #expect(recording.all == whole.shown)
    try await stage.close()
  }
}

extension PreloadTarget {
  static let warm = PreloadTarget(stage: .buffered, isDecoderWarm: true)
}

private func hasFrame(_ player: Player) -> Bool {
  if let frame = player.currentFrame() { return frame.time >= .zero }
  return false
}
