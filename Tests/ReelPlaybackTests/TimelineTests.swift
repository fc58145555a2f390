import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelReading
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelSources

/// Whatever way a position is reached, the same frame is there: reading on, single times, a start, a seek.
@Suite("One timeline", .hangLimit)
struct TimelineTests {
  /// A playlist of segments in a folder of Fixtures, with durations as they are written.
  struct Listing: Sendable, CustomTestStringConvertible {
    var folder: String
    var durations: [String]
    var map = ""
    var suffix = "ts"

    var testDescription: String { "\(folder), EXTINF \(durations.joined(separator: ", "))" }

    fileprivate var source: (source: MediaSource, fetcher: FixtureFetcher) {
      var text = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:3\n#EXT-X-PLAYLIST-TYPE:VOD\n\(map)"
      for (index, duration) in durations.enumerated() {
        text += "#EXTINF:\(duration),\nsegment-\(index).\(suffix)\n"
      }
      text += "#EXT-X-ENDLIST\n"
      let bytes = Array(text.utf8)
      let fetcher = FixtureFetcher { request, _ in
        request.url.lastPathComponent == "listed.m3u8" ? .bytes(bytes) : .none
      }
      let url = URL(string: "https://origin.example/\(folder)/listed.m3u8") ?? Fixtures.folder
      return (.url(url), fetcher)
    }
  }

  private static let map = "#EXT-X-MAP:URI=\"init.mp4\"\n"
  static let listings = [
    // As they are.
    Listing(folder: "hls-ts/high", durations: ["1.000000", "1.000000", "1.000000"]),
    Listing(folder: "hls-open-gop", durations: ["1.000000", "1.000000", "1.250000"]),
    Listing(
      folder: "hls-open-gop/fmp4", durations: ["1.000000", "1.000000", "1.250000"], map: map, suffix: "m4s"),
    // Too short and too long, as versions below 3 round them.
    Listing(folder: "hls-ts/high", durations: ["2", "2", "2"]),
    Listing(folder: "hls-ts/high", durations: ["0.6", "0.6", "0.6"]),
    Listing(folder: "hls-ts/high", durations: ["3", "1", "1"]),
    Listing(folder: "hls-open-gop", durations: ["2", "2", "2"]),
    Listing(folder: "hls-open-gop/fmp4", durations: ["2", "1", "1"], map: map, suffix: "m4s"),
    // The digits promise what the media does not keep.
    Listing(folder: "hls-ts/high", durations: ["2.000000", "2.000000", "2.000000"]),
    // Counted in the order of decoding.
    Listing(
      folder: "hls-open-gop/fmp4", durations: ["0.750000", "1.000000", "1.250000"], map: map, suffix: "m4s"),
    Listing(folder: "hls-open-gop", durations: ["0.750000", "1.000000", "1.250000"]),
  ]

  private func shown(at time: MediaTime, in frames: [Shown]) -> Shown {
    frames.last { $0.time <= time } ?? frames[0]
  }

  @Test("A playlist whose durations are those of the media, or not", arguments: listings)
  func listing(_ listing: Listing) async throws {
    let (source, fetcher) = listing.source
    let all = try await extract(.count(0), from: source, fetcher: fetcher).frames
    #expect(all.count == (listing.folder.contains("open") ? 36 : 90))
    let interval = try #require(all.dropFirst().first).time - all[0].time
    for (before, after) in zip(all, all.dropFirst()) {
      #expect(abs((after.time - before.time - interval).seconds) < 0.002)
    }
    let step = MediaTime(value: 7, timescale: 10)
    let times = [0.4, 0.7, 0.95, 1.0, 1.4, 1.9, 2.1, 2.5, 2.8].map { MediaTime(seconds: $0) }
    for time in times {
      let frame = shown(at: time, in: all)
      #expect(
        try await extract(.times([time]), from: source, fetcher: fetcher).frames == [frame], "\(time.seconds)"
      )
    }
    let several = try await extract(.times(times), from: source, fetcher: fetcher).frames
    #expect(several == times.map { shown(at: $0, in: all) })
    let every = try await extract(.every(step), from: source, fetcher: fetcher).frames
    #expect(every == (0..<5).map { shown(at: step * Int64($0), in: all) })
    for time in [0.7, 1.4, 2.1].map({ MediaTime(seconds: $0) }) {
      let stage = try SimulatedStage(source, fetcher: fetcher)
      stage.player.setRate(.infinity)
      stage.player.replaceCurrentItem(with: stage.item, startingAt: time)
      _ = try await stage.end()
      try await stage.close()
      let played = all.drop { $0 != shown(at: time, in: all) }
      #expect(stage.recording.all == Array(played), "started at \(time.seconds)")
    }
  }

  @Test(
    "Files, also those whose times come from counting frames",
    arguments: ["annexb.h264", "annexb-bframes.h264", "annexb.hevc", "h264-open-gop.ts", "hevc-open-gop.mp4"])
  func file(name: String) async throws {
    let folder = try TemporaryFolder()
    let bytes = try Data(contentsOf: Fixtures.folder.appending(path: "media/\(name)"))
    // Three times the same elementary stream is one with three key frames.
    let isElementary = name.hasPrefix("annexb")
    let path = try folder.write(isElementary ? bytes + bytes + bytes : bytes, to: name)
    let source = try MediaSource(argument: path)
    let all = try await extract(.count(0), from: source).frames
    let last = all[all.count - 1].time
    for share in [0.2, 0.4, 0.55, 0.7, 0.95] {
      let time = MediaTime(seconds: last.seconds * share)
      let frame = shown(at: time, in: all)
      #expect(try await extract(.times([time]), from: source).frames == [frame], "\(time.seconds)")
      #expect(
        try await extract(.times([.zero, time]), from: source).frames == [all[0], frame], "\(time.seconds)")
      let stage = try SimulatedStage(source, fetcher: FixtureFetcher()) { $0.loading.fetchesFiles = false }
      stage.player.setRate(.infinity)
      stage.player.replaceCurrentItem(with: stage.item, startingAt: time)
      _ = try await stage.end()
      try await stage.close()
      #expect(stage.recording.all == Array(all.drop { $0 != frame }), "started at \(time.seconds)")
    }
  }

  @Test("A rounded list takes few requests more", arguments: ["2", "0.6"])
  func requests(duration: String) async throws {
    let listing = Listing(folder: "hls-ts/high", durations: [duration, duration, duration])
    let (source, fetcher) = listing.source
    _ = try await extract(.times([MediaTime(value: 5, timescale: 2)]), from: source, fetcher: fetcher)
    let segments = fetcher.requests.filter { $0.url.pathExtension == "ts" }
    #expect(segments.count <= 4, "\(segments.map(\.url.lastPathComponent))")
  }
}
