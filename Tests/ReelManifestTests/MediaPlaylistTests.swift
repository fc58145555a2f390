import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

@Suite struct MediaPlaylistTests {
  private let simple = """
    #EXTM3U
    #EXT-X-VERSION:3
    #EXT-X-TARGETDURATION:10
    #EXT-X-MEDIA-SEQUENCE:7
    #EXTINF:9.9768,first
    a.ts
    #EXTINF:9.9768,
    b.ts?x=1&y=2
    #EXTINF:2.5
    /root/c.ts
    #EXT-X-ENDLIST
    """

  @Test func readsSegmentsWithNumbersTimesAndURLs() throws {
    let playlist = try mediaPlaylist(simple)
    #expect(!playlist.isLive)
    try #require(playlist.segments.map(\.number) == [7, 8, 9])
    #expect(
      playlist.segments.urls == [
        "https://origin.example/a/b/a.ts", "https://origin.example/a/b/b.ts?x=1&y=2",
        "https://origin.example/root/c.ts",
      ])
    #expect(playlist.segments[1].start == MediaTime(value: 99_768, timescale: 10_000))
    #expect(playlist.segments[2].duration == MediaTime(value: 5, timescale: 2))
    #expect(playlist.segments.end == MediaTime(value: 224_536, timescale: 10_000))
    #expect(playlist.segments.allSatisfy { $0.timestampOffset == nil && $0.discontinuity == 0 && !$0.isGap })
    #expect(playlist.warnings.isEmpty)
  }

  @Test func isAPresentationByItself() throws {
    let presentation = try hlsPresentation(simple)
    #expect(presentation.format == .hls)
    #expect(presentation.duration == MediaTime(value: 224_536, timescale: 10_000))
    #expect(presentation.periods.count == 1)
    let group = try #require(presentation.periods.first?.trackGroups.first)
    #expect(group.kind == .video)
    #expect(group.rungs.count == 1)
    #expect(try presentation.segments().count == 3)
  }

  @Test func sumsOfDecimalsAreExact() throws {
    let lines = String(repeating: "#EXTINF:5.994666667,\ns.ts\n", count: 7207)
    let playlist = try mediaPlaylist("#EXTM3U\n\(lines)#EXT-X-ENDLIST\n")
    #expect(playlist.segments.end == MediaTime(value: 5_994_666_667 * 7207, timescale: 1_000_000_000))
    let last = try #require(playlist.segments.last)
    #expect(last.start == MediaTime(value: 5_994_666_667 * 7206, timescale: 1_000_000_000))
    #expect(last.duration == MediaTime(value: 5_994_666_667, timescale: 1_000_000_000))
  }

  @Test func digitsBeyondNanosecondsDoNotDrift() throws {
    let lines = String(repeating: "#EXTINF:0.3333333333333,\ns.ts\n", count: 30_000)
    let playlist = try mediaPlaylist("#EXTM3U\n\(lines)#EXT-X-ENDLIST\n")
    #expect(playlist.segments.end == MediaTime(value: 9_999_999_999_999, timescale: 1_000_000_000))
  }

  @Test func toleratesWhatIsOutThere() throws {
    let text =
      "\u{FEFF}\r\n  #EXTM3U  \r\n#EXT-X-UNKNOWN:1,2\r\n# a comment\r\n#EXTINF: 4.0 , a title, with commas\r\n\r\n"
      + "  //cdn.example/x/a 1.ts  \r\n#EXTINF:4 tvg-id=\"1\",b\r\nsub/b%20c.ts\r\n#EXT-X-ENDLIST\r\n"
    let playlist = try mediaPlaylist(text)
    #expect(
      playlist.segments.urls == [
        "https://cdn.example/x/a%201.ts", "https://origin.example/a/b/sub/b%20c.ts",
      ])
    #expect(
      playlist.segments.durations == [MediaTime(value: 4, timescale: 1), MediaTime(value: 4, timescale: 1)])
    #expect(playlist.warnings.map(\.reason) == ["no EXT-X-TARGETDURATION"])
  }

  @Test func commentsAboveTheHeaderAreHarmless() throws {
    #expect(try mediaPlaylist("# written by hand\n#\n\(simple)").segments.count == 3)
  }

  @Test func mapsChangeAndHaveRanges() throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXT-X-MAP:URI="init.mp4",BYTERANGE="720@0"
      #EXTINF:1,
      a.m4s
      #EXTINF:1,
      b.m4s
      #EXT-X-DISCONTINUITY
      #EXT-X-MAP:URI="other/init.mp4",BYTERANGE="100"
      #EXTINF:1,
      c.m4s
      #EXT-X-ENDLIST
      """)
    let maps = playlist.segments.map(\.initialization)
    try #require(maps.count > 2)
    #expect(maps[0]?.url.absoluteString == "https://origin.example/a/b/init.mp4")
    #expect(maps[0]?.byteRange == ByteRange(offset: 0, length: 720))
    #expect(maps[1] == maps[0])
    #expect(maps[2]?.url.absoluteString == "https://origin.example/a/b/other/init.mp4")
    #expect(maps[2]?.byteRange == ByteRange(offset: 0, length: 100))
    #expect(playlist.segments.map(\.discontinuity) == [0, 0, 1])
  }

  @Test func byteRangesImplyTheirOffset() throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXTINF:1,
      whole.ts
      #EXTINF:1,
      #EXT-X-BYTERANGE:100@1000
      file.ts
      #EXT-X-BYTERANGE:50
      #EXTINF:1,
      file.ts
      #EXTINF:1,
      #EXT-X-BYTERANGE:25
      file.ts
      #EXTINF:1,
      #EXT-X-BYTERANGE:25
      another.ts
      #EXT-X-ENDLIST
      """)
    #expect(
      playlist.segments.map(\.byteRange) == [
        nil, ByteRange(offset: 1000, length: 100), ByteRange(offset: 1100, length: 50),
        ByteRange(offset: 1150, length: 25), ByteRange(offset: 1175, length: 25),
      ])
    #expect(playlist.warnings.first?.place == .line(15))
  }

  @Test func keysRotateAndTheVectorFollowsFromTheNumber() throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXT-X-MEDIA-SEQUENCE:258
      #EXTINF:1,
      clear.ts
      #EXT-X-KEY:METHOD=AES-128,URI="k1?id=1,2"
      #EXTINF:1,
      a.ts
      #EXT-X-KEY:METHOD=AES-128,URI="k2",IV=0x0102
      #EXTINF:1,
      b.ts
      #EXT-X-KEY:METHOD=NONE
      #EXTINF:1,
      c.ts
      #EXT-X-ENDLIST
      """)
    let keys = playlist.segments.map(\.encryption)
    try #require(keys.count > 3)
    #expect(keys[0] == nil)
    #expect(keys[1]?.method == "AES-128")
    #expect(keys[1]?.keyURL?.absoluteString == "https://origin.example/a/b/k1?id=1,2")
    #expect(keys[1]?.initializationVector == [UInt8](repeating: 0, count: 14) + [1, 3])
    #expect(keys[2]?.initializationVector == [UInt8](repeating: 0, count: 14) + [1, 2])
    #expect(keys[3] == nil)
  }

  @Test func protectionIsNamed() throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://key",KEYFORMAT="com.apple.streamingkeydelivery"
      #EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="data:,x",KEYFORMAT="urn:uuid:EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED"
      #EXTINF:1,
      a.ts
      #EXT-X-ENDLIST
      """)
    #expect(playlist.segments.first?.encryption?.method == "FairPlay")
    #expect(playlist.segments.first?.encryption?.initializationVector == nil)
  }

  @Test func discontinuitiesAndGaps() throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXT-X-DISCONTINUITY-SEQUENCE:5
      #EXTINF:1,
      a.ts
      #EXT-X-DISCONTINUITY
      #EXT-X-GAP
      #EXTINF:1,
      b.ts
      #EXTINF:1,
      c.ts
      #EXT-X-ENDLIST
      """)
    #expect(playlist.segments.map(\.discontinuity) == [5, 6, 6])
    #expect(playlist.segments.map(\.isGap) == [false, true, false])
  }

  @Test func headerTags() throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXT-X-INDEPENDENT-SEGMENTS
      #EXT-X-START:TIME-OFFSET=-12.5,PRECISE=YES
      #EXTINF:1,
      a.ts
      """)
    #expect(playlist.hasIndependentSegments)
    #expect(playlist.startOffset == StartOffset(MediaTime(value: -25, timescale: 2), isPrecise: true))
  }

  @Test func variablesAreReplaced() throws {
    let text = """
      #EXTM3U
      #EXT-X-DEFINE:NAME="dir",VALUE="x/y"
      #EXT-X-DEFINE:QUERYPARAM="token"
      #EXT-X-DEFINE:IMPORT="host"
      #EXT-X-MAP:URI="{$dir}/init.mp4"
      #EXTINF:1,
      https://{$host}/{$dir}/a.ts?t={$token}
      #EXTINF:1,
      {literal}.ts
      #EXT-X-ENDLIST
      """
    let playlist = try mediaPlaylist(text, variables: ["host": "cdn.example"])
    #expect(playlist.segments.first?.url.absoluteString == "https://cdn.example/x/y/a.ts?t=1")
    #expect(
      playlist.segments.first?.initialization?.url.absoluteString == "https://origin.example/a/b/x/y/init.mp4"
    )
    let error = manifestError { _ = try mediaPlaylist(text) }
    #expect(error?.place == .line(4))
  }

  @Test func variablesCanNotExplode() {
    var text = "#EXTM3U\n#EXT-X-DEFINE:NAME=\"a0\",VALUE=\"xxxxxxxxxxxxxxxx\"\n"
    for level in 1...30 {
      let earlier = String(repeating: "{$a\(level - 1)}", count: 16)
      text += "#EXT-X-DEFINE:NAME=\"a\(level)\",VALUE=\"\(earlier)\"\n"
    }
    let error = manifestError { _ = try mediaPlaylist(text + "#EXTINF:1,\n{$a30}\n") }
    #expect(error?.reason.contains("variables make a text of more than") == true)
  }

  @Test(arguments: [
    ("#EXTINF:1,\n#EXT-X-BYTERANGE:-5@0\na.ts", "is not a byte range"),
    ("#EXTINF:1,\n#EXT-X-BYTERANGE:9223372036854775807@9\na.ts", "ends beyond 63 bits"),
    ("#EXTINF:1,\n#EXT-X-BYTERANGE:5@99999999999999999999\na.ts", "is not a byte range"),
    ("#EXTINF:1,\na.ts\n#EXT-X-MEDIA-SEQUENCE:9223372036854775807", "63 bits"),
    (
      "#EXTINF:1,\na.ts\n#EXT-X-SKIP:SKIPPED-SEGMENTS=9223372036854775807\n#EXT-X-SKIP:SKIPPED-SEGMENTS=1",
      "63 bits"
    ),
    ("#EXT-X-KEY:URI=\"k\"\n#EXTINF:1,\na.ts", "has no METHOD"),
    ("#EXT-X-KEY:METHOD=AES-128,IV=17\n#EXTINF:1,\na.ts", "128 bits"),
    ("#EXT-X-MAP:BYTERANGE=\"1@1\"\n#EXTINF:1,\na.ts", "has no URI"),
    ("#EXTINF:1,\nfile:///etc/passwd", "is a local file in a remote manifest"),
    ("#EXTINF:1,\nFILE:///etc/passwd", "is a local file in a remote manifest"),
    ("#EXT-X-MAP:URI=\"file:///etc/passwd\"\n#EXTINF:1,\na.ts", "is a local file in a remote manifest"),
    ("#EXTINF:1,\na.ts\n#EXT-X-STREAM-INF:BANDWIDTH=1\nb.m3u8", "a variant in a playlist that has segments"),
    ("#EXT-X-TARGETDURATION:4\n#EXT-X-ENDLIST", "has ended and has no segments"),
  ])
  func badInputIsAnErrorWithItsLine(lines: String, reason: String) {
    let error = manifestError { _ = try hlsPresentation("#EXTM3U\n\(lines)\n") }
    #expect(error?.reason.contains(reason) == true, "\(error?.description ?? "")")
    #expect(error?.location == "https://origin.example/a/b/manifest?token=1")
  }

  @Test(arguments: [
    ("", "the playlist is empty"), ("<!DOCTYPE html><html></html>", "it is an HTML page"),
    ("<MPD/>", "it is XML"), ("{\"a\":1}", "it is JSON"), ("hello", "it does not start with #EXTM3U"),
    ("#EXTM3U\nsong.mp3\n", "neither variants"), ("#EXTM3U", "neither variants"), ("# x\n", "it has no tags"),
  ])
  func whatIsNoPlaylistSaysSo(text: String, reason: String) {
    let error = manifestError { _ = try hlsPresentation(text) }
    #expect(error?.reason.contains(reason) == true, "\(error?.description ?? "")")
  }

  @Test func durationsThatAddUpTooFarAreAnError() {
    let lines = String(repeating: "#EXTINF:9000000000,\na.ts\n", count: 3)
    let error = manifestError { _ = try mediaPlaylist("#EXTM3U\n\(lines)") }
    #expect(error?.reason == "the durations add up to more than 292 years")
  }

  @Test func limitsHold() {
    var limits = ManifestLimits()
    limits.segments = 2
    let text = "#EXTM3U\n#EXTINF:1,\na\n#EXTINF:1,\nb\n#EXTINF:1,\nc\n"
    #expect(manifestError { _ = try mediaPlaylist(text, limits: limits) }?.place == .line(7))
    let keys = "#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\n#EXTINF:1,\na\n"
    #expect(
      manifestError { _ = try mediaPlaylist("#EXTM3U\n\(keys)\(keys)\(keys)", limits: limits) }?.reason
        == "more than 2 keys")
    limits = ManifestLimits(byteCount: 10)
    #expect(manifestError { _ = try mediaPlaylist(text, limits: limits) }?.reason.contains("limit") == true)
    limits = ManifestLimits(urlByteCount: 100)
    let long = "#EXTM3U\n#EXTINF:1,\n\(String(repeating: "a", count: 101))\n"
    #expect(manifestError { _ = try mediaPlaylist(long, limits: limits) }?.place == .line(3))
  }

  @Test func aLocalPlaylistReachesLocalFiles() throws {
    let url = URL(fileURLWithPath: "/media/dir/list.m3u8")
    let playlist = try mediaPlaylist(
      "#EXTM3U\n#EXTINF:1,\na b.ts\n#EXTINF:1,\n../up.ts\n#EXTINF:1,\nfile:///x/c.ts\n", url: url)
    #expect(playlist.segments.map(\.url.path) == ["/media/dir/a b.ts", "/media/up.ts", "/x/c.ts"])
    #expect(manifestError { _ = try mediaPlaylist("x", url: url) }?.location == "/media/dir/list.m3u8")
  }

  @Test func findsTheSegmentAtATime() throws {
    let segments = try mediaPlaylist(simple).segments
    #expect(segments.index(at: .zero) == 0)
    #expect(segments.index(at: MediaTime(seconds: 9.9767)) == 0)
    #expect(segments.index(at: MediaTime(seconds: 9.9768)) == 1)
    #expect(segments.index(at: MediaTime(seconds: 1000)) == 2)
  }
}
