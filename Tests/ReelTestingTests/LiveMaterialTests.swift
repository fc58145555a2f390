import Foundation
import ReelCore
import ReelTestSupport
import ReelTesting
import Testing

@Suite("What a live simulation is made of")
struct LiveMaterialTests {
  @Test("HLS: every playlist once, cut to the length of the first")
  func hls() throws {
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: "hls-fmp4/master.m3u8"))
    #expect(Set(material.tracks.map(\.id)) == ["low/index.m3u8", "high/index.m3u8", "audio/index.m3u8"])
    #expect(material.duration == seconds(3))
    let audio = try #require(material.tracks.first { $0.group.kind == "audio" })
    // The fourth segment, of 21 ms, begins at 3.008 s.
    #expect(audio.segments.map(\.duration) == [seconds(1.002667), seconds(1.002667), seconds(0.994666)])
    #expect(audio.initializations.map(\.file.lastPathComponent) == ["init.mp4"])
  }

  @Test("DASH: with the lengths that the MPD states")
  func dash() throws {
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: "dash-timeline/manifest.mpd"))
    try #require(material.tracks.map(\.id) == ["0", "1", "2"])
    #expect(material.duration == seconds(3))
    let ticks = [45056, 48128, 48128, 2688].map { MediaTime(value: $0, timescale: 48000) }
    #expect(material.tracks[2].segments.map(\.duration) == ticks)
    #expect(try material.tracks[2].segments[3].piece.read().count > 0)
  }

  @Test("Parts of a file are read as parts")
  func ranges() throws {
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: "hls-byterange-ts/index.m3u8"))
    let whole = try Data(contentsOf: Fixtures.folder.appending(path: "hls-byterange-ts/media.ts"))
    try #require(!material.tracks.isEmpty)
    let pieces = try material.tracks[0].segments.map { try $0.piece.read() }
    #expect(pieces.count == 3)
    #expect(pieces.joined().elementsEqual(whole))
  }

  @Test(
    "What can't be looped is an error",
    arguments: [
      ("hls-aes128/index.m3u8", ReelError.Kind.unsupported), ("dash-ondemand/manifest.mpd", .unsupported),
      ("none.m3u8", .noSuchFile), ("bad/no-period.mpd", .badManifest),
    ])
  func refused(_ path: String, _ kind: ReelError.Kind) {
    let error = #expect(throws: ReelError.self) {
      try LiveMaterial(manifest: Fixtures.folder.appending(path: path))
    }
    #expect(error?.kind == kind)
  }
}
