import Foundation
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback
import ReelSources

@Suite("What it took to get to the first frame", .hangLimit)
struct StartupReportTests {
  @Test(
    "The decoder's time is in the report whoever is faster",
    arguments: [
      "hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "dash-ondemand/manifest.mpd", "media/h264-bframes.mp4",
    ], [nil, MediaTime(value: 1, timescale: 2)])
  func decode(path: String, start: MediaTime?) async throws {
    let url = try #require(URL(string: "http://fixtures.test/\(path)"))
    for _ in 0..<10 {
      let player = Player(fetcher: FixtureFetcher(), logger: silentLogger)
      player.preloadTarget = PreloadTarget(stage: .firstFrame)
      let item = PlayerItem(.url(url))
      if let start {
        player.replaceCurrentItem(with: item, startingAt: start)
      } else {
        player.replaceCurrentItem(with: item)
      }
      for await stage in item.preloadStage.values where stage >= .firstFrame { break }
      let report = try #require(item.startup)
      #expect(report[.decode].duration > .zero)
      #expect(report[.demux].duration > .zero)
      // They may overlap: each has a thread.
      #expect(report[.decode].duration < report.total)
      #expect(report[.demux].duration < report.total)
      await player.stopAndWait()
    }
  }
}
