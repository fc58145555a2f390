import Foundation
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@Suite("Image tracks on the command line", .hangLimit)
struct ImageTrackCommandTests {
  private let clip = Fixtures.path("stills/poor-start.mp4")

  /// A folder with a storyboard: a playlist of images, a multivariant playlist and an MPD.
  private func made() async throws -> TemporaryFolder {
    let folder = try TemporaryFolder()
    let result = try await Command.run(
      "storyboard", clip, "--every", "1", "--size", "80", "--grid", "2x2", "--format", "png", "--write",
      "hls", "-o", folder.path)
    try #require(result.status == 0, "\(result.errorText)")
    // The same images in DASH (DASH-IF IOP 4.3 §6.2.6).
    try folder.write(
      """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT6S" minBufferTime="PT1S"
        profiles="urn:mpeg:dash:profile:isoff-live:2011"><Period id="1" start="PT0S">
      <AdaptationSet contentType="image" mimeType="image/png">
      <SegmentTemplate media="poor-start-$Number%03d$.png" startNumber="1" timescale="1000" duration="4000"/>
      <Representation id="thumbnails" bandwidth="100000" width="160" height="90">
      <EssentialProperty schemeIdUri="http://dashif.org/guidelines/thumbnail_tile" value="2x2"/>
      </Representation></AdaptationSet></Period></MPD>
      """, to: "poor-start.mpd")
    return folder
  }

  /// Runs `body` with an origin that serves the folder, and returns the paths of the requests.
  private func serving(
    _ folder: TemporaryFolder, _ body: (Origin) async throws -> Void
  ) async throws -> [String] {
    try await Origin.use(Origin.Configuration(directory: folder.url)) { origin in
      try await body(origin)
      return origin.snapshot.requests.map(\.path)
    }
  }

  @Test("Probe and manifest list the images")
  func listing() async throws {
    let folder = try await made()
    let probed = try await Command.run("probe", folder.path("poor-start.mpd"))
    #expect(probed.outputText.contains("images thumbnails  "))
    #expect(probed.outputText.contains(", 80x45, 2x2 tiles per image, image/png"), "\(probed.outputText)")
    let hls = try await Command.run("probe", folder.path("poor-start.m3u8"), "--json")
    let images = try #require(hls.object["images"] as? [[String: Any]])
    #expect(images.first?["width"] as? Int == 80 && images.first?["id"] as? String == "images-0")
    #expect(probed.status == 0 && hls.status == 0 && probed.errorText.isEmpty && hls.errorText.isEmpty)
    let playlist = try await Command.run("probe", folder.path("poor-start-images.m3u8"))
    #expect(
      playlist.status == 0 && playlist.outputText.contains("2x2 tiles per image"), "\(playlist.errorText)")
    for name in ["poor-start.m3u8", "poor-start-images.m3u8", "poor-start.mpd"] {
      let record = try await Command.run("manifest", folder.path(name), status: 0).object
      let period = try #require((record["periods"] as? [[String: Any]])?.first)
      let group = try #require((period["track_groups"] as? [[String: Any]])?.first)
      #expect(group["kind"] as? String == "image")
      let tiles = try #require((group["rungs"] as? [[String: Any]])?.first?["tiles"] as? [String: Any])
      #expect(tiles["columns"] as? Int == 2 && tiles["rows"] as? Int == 2, "\(name)")
      #expect(tiles["width"] as? Int == 80 && tiles["duration"] as? Double == 1, "\(name)")
    }
  }

  @Test("Images are not played", arguments: ["poor-start.m3u8", "poor-start-images.m3u8", "poor-start.mpd"])
  func playing(name: String) async throws {
    let folder = try await made()
    for command in [["play"], ["frames", "-o", folder.path]] {
      let result = try await Command.run([command[0], folder.path(name)] + command.dropFirst())
      #expect(result.status != 0)
      #expect(result.errorText.contains("it contains only images, no video"), "\(result.errorText)")
    }
  }

  @Test("What is not shown is not fetched")
  func notFetched() async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.copyItem(atPath: Fixtures.path("stills/low"), toPath: folder.path("low"))
    let master = """
      #EXTM3U
      #EXT-X-STREAM-INF:BANDWIDTH=400000,RESOLUTION=160x90,CODECS="avc1.64000b"
      low/playlist.m3u8
      #EXT-X-IMAGE-STREAM-INF:BANDWIDTH=1,RESOLUTION=160x90,URI="none.m3u8"

      """
    try folder.write(master, to: "master.m3u8")
    let paths = try await serving(folder) { origin in
      let url = origin.url("master.m3u8").absoluteString
      let text = try await Command.run("manifest", url, "--output", "hls", status: 0)
      #expect(text.errorText.contains("image playlists are left out"), "\(text.errorText)")
      try await Command.run("play", url, "--rate", "max", status: 0)
      let stills = try TemporaryFolder()
      for command in [["probe"], ["poster", "--size", "160", "-o", stills.path]] {
        let result = try await Command.run([command[0], url] + command.dropFirst())
        #expect(result.status == 0 && result.errorText.isEmpty, "\(result.errorText)")
      }
    }
    #expect(!paths.contains("/none.m3u8"))
  }
}
