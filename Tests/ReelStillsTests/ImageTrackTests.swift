import Foundation
import ReelCore
import ReelFFmpeg
import ReelManifest
import ReelTestSupport
import Testing

@testable import ReelReading
@testable import ReelSources
@testable import ReelStills

@Suite("Image tracks beside the video", .hangLimit)
struct ImageTrackTests {
  private static let master = """
    #EXTM3U
    #EXT-X-STREAM-INF:BANDWIDTH=1200000,RESOLUTION=320x180,CODECS="avc1.64000d"
    high/playlist.m3u8
    #EXT-X-STREAM-INF:BANDWIDTH=400000,RESOLUTION=160x90,CODECS="avc1.64000b"
    low/playlist.m3u8
    #EXT-X-IMAGE-STREAM-INF:BANDWIDTH=2000,RESOLUTION=160x90,URI="images.m3u8"
    """

  private static let images = """
    #EXTM3U
    #EXT-X-TARGETDURATION:4
    #EXT-X-IMAGES-ONLY
    #EXTINF:4,
    #EXT-X-TILES:RESOLUTION=160x90,LAYOUT=2x2,DURATION=1
    sheet-0.png
    #EXTINF:2,
    sheet-1.png
    #EXT-X-ENDLIST
    """

  private static let mpd = """
    <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT6S"><Period>
    <AdaptationSet mimeType="video/mp4">
    <SegmentTemplate timescale="1" duration="1" startNumber="0" initialization="$RepresentationID$/init.mp4"
      media="$RepresentationID$/segment-$Number$.m4s"/>
    <Representation id="low" codecs="avc1.64000b" width="160" height="90" bandwidth="400000"/></AdaptationSet>
    <AdaptationSet contentType="image" mimeType="image/png">
    <SegmentTemplate media="sheet-$Number$.png" startNumber="0" duration="4"/>
    <Representation id="thumbs" bandwidth="2000" width="320" height="180">
    <EssentialProperty schemeIdUri="http://dashif.org/guidelines/thumbnail_tile" value="2x2"/></Representation>
    </AdaptationSet></Period></MPD>
    """

  private func fetcher(_ faults: [String: FixtureFetcher.Fault] = [:]) -> FixtureFetcher {
    let files = ["master.m3u8": Self.master, "images.m3u8": Self.images, "images.mpd": Self.mpd]
    return FixtureFetcher { request, _ in
      let name = request.url.lastPathComponent
      return faults[name] ?? files[name].map { .bytes(Array($0.utf8)) } ?? .none
    }
  }

  private func source(_ name: String) throws -> MediaSource {
    try MediaSource(argument: "http://stills.test/stills/\(name)")
  }

  /// True if something of an image track was requested.
  private func readsImages(_ fetcher: FixtureFetcher) -> Bool {
    fetcher.requests.contains {
      $0.url.lastPathComponent == "images.m3u8" || $0.url.pathExtension == "png"
    }
  }

  @Test(
    "Stills are key frames of the video, and no image is requested", arguments: ["master.m3u8", "images.mpd"])
  func stills(name: String) async throws {
    let fetcher = fetcher()
    let posters = StillExtractor(
      TrackOpener(fetcher: fetcher, configuration: LoadingConfiguration(), logger: silentLogger),
      size: .square(160))
    let poster = try await posters.poster(.best(of: 6), of: source(name)) { _ in }.poster
    #expect(poster.track == .video && poster.candidates.count == 6 && poster.faults.isEmpty)
    let made = try await makeStoryboard(of: source(name), from: fetcher)
    let board = made.storyboard
    // The first frame of the MPD's segments is shown at 0.2 s.
    #expect(made.times.map { Int($0) } == [0, 1, 2, 3, 4, 5] && board.track == .video)
    #expect(board.faults.isEmpty && board.missing.isEmpty)
    #expect(!readsImages(fetcher))
  }

  @Test("A probe does not read images")
  func probe() async throws {
    let fetcher = fetcher(["images.m3u8": .never])
    let prober = SourceProber(fetcher: fetcher, logger: silentLogger)
    let described = try await prober.probe(source("master.m3u8"))
    #expect(described.failure == nil && described.firstFrame != nil && described.faults.isEmpty)
    #expect(!readsImages(fetcher))
    let alone = try await prober.probe(source("images.mpd"))
    #expect(alone.presentation?.periods[0].trackGroups.last?.rungs.first?.tiles?.count == 4)
  }

  @Test("A source of images alone is described, but not played, and has no stills")
  func alone() async throws {
    let fetcher = fetcher()
    let described = try await SourceProber(fetcher: fetcher, logger: silentLogger).probe(
      source("images.m3u8"))
    #expect(described.failure == nil && described.firstFrame == nil && described.duration == 6)
    #expect(described.presentation?.periods[0].trackGroups[0].rungs[0].tiles?.count == 4)
    let posters = StillExtractor(
      TrackOpener(fetcher: fetcher, configuration: LoadingConfiguration(), logger: silentLogger),
      size: .square(160))
    for choice in [Poster.Choice.first, .best(of: 6)] {
      let error = await #expect(throws: ReelError.self) {
        _ = try await posters.poster(choice, of: source("images.m3u8")) { _ in }
      }
      #expect(error?.kind == .unsupported && error?.reason == "it contains only images, no video")
    }
  }

  @Test("What is played or served needs no images")
  func loading() async throws {
    let fetcher = fetcher(["images.m3u8": .never])
    func opener(_ fetcher: any Fetching) -> TrackOpener {
      TrackOpener(fetcher: fetcher, configuration: LoadingConfiguration(), logger: silentLogger)
    }
    let loaded = try await opener(fetcher).manifest(at: source("master.m3u8"))
    #expect(loaded.failures.isEmpty && loaded.hasSegments)
    #expect(!readsImages(fetcher))
    // A description of the manifest does not wait for them long.
    let described = try await opener(fetcher).manifest(at: source("master.m3u8"), readsImages: true)
    #expect(described.failures.map(\.error.kind) == [.timedOut] && described.hasSegments)
    let whole = try await opener(self.fetcher()).manifest(at: source("master.m3u8"), readsImages: true)
    #expect(
      whole.failures.isEmpty && whole.presentation.periods[0].trackGroups.last?.rungs[0].tiles?.count == 4)
  }
}
