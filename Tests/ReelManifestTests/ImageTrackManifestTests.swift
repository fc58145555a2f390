import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

@Suite("Image tracks in manifests") struct ImageTrackManifestTests {
  private func size(_ width: Int, _ height: Int) -> PixelSize {
    PixelSize(width: width, height: height)
  }

  private func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value) }

  // MARK: HLS

  private let images =
    #"#EXT-X-IMAGE-STREAM-INF:BANDWIDTH=4200,RESOLUTION=100x42,CODECS="jpeg",URI="tiles.m3u8""#

  @Test func imagePlaylistsAreAGroupOfTheirOwn() throws {
    let presentation = try hlsPresentation(
      """
      #EXTM3U
      #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=360x640
      360.m3u8
      \(images)
      #EXT-X-IMAGE-STREAM-INF:BANDWIDTH=9000,URI=large.m3u8
      #EXT-X-IMAGE-STREAM-INF:BANDWIDTH=9000
      """)
    let groups = try #require(presentation.periods.first).trackGroups
    try #require(groups.map(\.kind) == [.video, .image])
    #expect(groups[1].rungs.map(\.id) == ["images-0", "images-1"])
    #expect(groups[1].rungs[0].tiles == ImageTiles(size: size(100, 42)))
    #expect(groups[1].rungs[0].bitsPerSecond == 4200)
    #expect(groups[1].rungs[0].media.playlist == "https://origin.example/a/b/tiles.m3u8")
    #expect(groups[1].rungs[1].tiles == ImageTiles())
    #expect(presentation.warnings.map(\.reason) == ["EXT-X-IMAGE-STREAM-INF without URI"])
  }

  @Test func thereMayBeNothingButImages() throws {
    let groups = try #require(try hlsPresentation("#EXTM3U\n\(images)").periods.first).trackGroups
    #expect(groups.map(\.kind) == [.image])
  }

  @Test func tilesOfASegment() throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXT-X-TARGETDURATION:20
      #EXT-X-IMAGES-ONLY
      #EXTINF:6.006,
      one.jpg
      #EXTINF:20,
      #EXT-X-TILES:RESOLUTION=243x135,LAYOUT=5x2,DURATION=2
      two.jpg
      #EXTINF:20,
      three.jpg
      #EXT-X-TILES:RESOLUTION=80x45,LAYOUT=1x1
      #EXTINF:4,
      four.jpg
      #EXT-X-ENDLIST
      """)
    let tiles = ImageTiles(columns: 5, rows: 2, size: size(243, 135), duration: seconds(2))
    #expect(playlist.segments.map(\.tiles) == [nil, tiles, tiles, ImageTiles(size: size(80, 45))])
    #expect(playlist.warnings.isEmpty)
  }

  @Test(arguments: ["5", "0x2", "0x0", "5x-1", "1001x1", "100000x100000", "axb", "5x2x3", "", nil])
  func layoutsThatCanNotBeRead(layout: String?) throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXT-X-TARGETDURATION:20
      #EXTINF:20,
      #EXT-X-TILES:RESOLUTION=243x135\(layout.map { ",LAYOUT=\($0)" } ?? ""),DURATION=2
      two.jpg
      #EXT-X-ENDLIST
      """)
    let tiles = try #require(playlist.segments.first?.tiles)
    let fault =
      (layout ?? "").isEmpty
      ? "the tile layout is missing" : "the tile layout '\(layout ?? "")' is not from 1x1 to 1000x1000"
    #expect(tiles.fault == fault && tiles.size == size(243, 135))
    #expect(playlist.warnings.map(\.reason) == ["EXT-X-TILES: \(fault)"])
  }

  @Test(arguments: ["#EXT-X-IMAGES-ONLY", "#EXT-X-TILES:RESOLUTION=80x45,LAYOUT=2x2,DURATION=1"])
  func anImagePlaylistByItself(tag: String) throws {
    let presentation = try hlsPresentation(
      "#EXTM3U\n#EXT-X-TARGETDURATION:4\n\(tag)\n#EXTINF:4,\none.jpg\n#EXT-X-ENDLIST")
    let group = try #require(presentation.periods.first?.trackGroups.first)
    #expect(group.kind == .image)
    #expect(group.rungs[0].tiles?.count == (tag.contains("TILES") ? 4 : 1))
    #expect(presentation.duration == seconds(4))
  }

  @Test func anIFramePlaylistByItself() throws {
    let presentation = try hlsPresentation(
      "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-I-FRAMES-ONLY\n#EXTINF:4,\none.ts\n#EXT-X-ENDLIST")
    let group = try #require(presentation.periods.first?.trackGroups.first)
    #expect(group.kind == .video)
    #expect(group.rungs[0].holdsKeyFramesOnly && group.rungs[0].tiles == nil)
  }

  // MARK: DASH

  private func rung(_ set: String) throws -> (rung: Rung?, kind: TrackGroup.Kind?, warnings: [String]) {
    let presentation = try dashPresentation(mpd(set))
    let group = presentation.periods.first?.trackGroups.first
    return (group?.rungs.first, group?.kind, presentation.warnings.map(\.reason))
  }

  private func property(_ value: String, _ scheme: String = "http://dashif.org/thumbnail_tile") -> String {
    #"<EssentialProperty schemeIdUri="\#(scheme)" value="\#(value)"/>"#
  }

  private let template =
    #"<SegmentTemplate media="$Number$.jpg" timescale="1000" duration="40000"/>"#
  private let sides = #"width="1024" height="1152""#

  @Test func layoutsOfRepresentationsAndOfTheirSet() throws {
    let tiles = ImageTiles(columns: 10, rows: 20, size: size(102, 57), duration: seconds(0.2))
    let supplemental =
      #"<SupplementalProperty schemeIdUri="http://dashif.org/guidelines/thumbnail_tile" value="10x20"/>"#
    for (ofSet, own) in [
      ("", property("10x20")), (property("10x20"), ""), (property("1x1"), property("10x20")),
      (supplemental, ""), ("", supplemental),
    ] {
      let found = try rung(
        """
        <AdaptationSet mimeType="image/jpeg">\(template)\(ofSet)
        <Representation id="t" bandwidth="9000" \(sides)>\(own)</Representation></AdaptationSet>
        """)
      #expect(found.kind == .image)
      #expect(found.rung?.tiles == tiles, "\(ofSet) \(own)")
      #expect(found.rung?.size == size(1024, 1152))
      #expect(found.warnings.isEmpty)
    }
  }

  @Test func withoutALayoutASegmentIsOneImage() throws {
    let found = try rung(
      #"<AdaptationSet contentType="image">\#(template)<Representation id="t" \#(sides)/></AdaptationSet>"#)
    #expect(found.rung?.tiles == ImageTiles(size: size(1024, 1152), duration: seconds(40)))
    let odd = try rung(
      """
      <AdaptationSet contentType="image">\(template)<Representation id="t" \(sides)>\(property("many"))
      </Representation></AdaptationSet>
      """)
    #expect(odd.rung?.tiles?.fault?.contains("'many'") == true)
    #expect(odd.warnings == [odd.rung?.tiles?.fault])
  }

  @Test func aTimelineStatesTheDurationOfEachSegment() throws {
    let found = try rung(
      """
      <AdaptationSet mimeType="image/webp"><SegmentTemplate media="$Time$.webp"><SegmentTimeline>
      <S t="0" d="8" r="1"/><S d="4"/></SegmentTimeline></SegmentTemplate>
      <Representation id="t">\(property("2x2"))</Representation></AdaptationSet>
      """)
    #expect(found.rung?.tiles == ImageTiles(columns: 2, rows: 2))
  }

  @Test func timedMetadataHasNoTiles() throws {
    let found = try rung(
      """
      <AdaptationSet mimeType="application/mp4" codecs="abcd">\(template)<Representation id="m"/></AdaptationSet>
      """)
    #expect(found.kind == .image && found.rung?.tiles == nil)
  }
}
