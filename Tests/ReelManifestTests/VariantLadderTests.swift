import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

/// Redundant variants, and variants of other pathways.
@Suite struct VariantLadderTests {
  private func rungs(_ text: String, group: Int = 0) throws -> [Rung] {
    try #require(try hlsPresentation("#EXTM3U\n\(text)\n").periods.first).trackGroups[group].rungs
  }

  @Test func whatDiffersInItsURLOnlyIsOneRung() throws {
    let rungs = try rungs(
      """
      #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360
      https://a.example/low.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360
      https://b.example/low.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=1500000,RESOLUTION=640x360
      https://a.example/mid.m3u8
      #EXT-X-STREAM-INF:RESOLUTION=640x360,BANDWIDTH=1500000
      https://b.example/mid.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360
      https://c.example/low.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360
      https://a.example/low.m3u8
      """)
    #expect(rungs.map(\.media.playlist) == ["https://a.example/low.m3u8", "https://a.example/mid.m3u8"])
    #expect(
      rungs.map { $0.alternateURLs.map(\.absoluteString) } == [
        ["https://b.example/low.m3u8", "https://c.example/low.m3u8"], ["https://b.example/mid.m3u8"],
      ])
  }

  @Test(arguments: [
    "BANDWIDTH=2", "BANDWIDTH=1,CODECS=\"avc1.4d401f\"", "BANDWIDTH=1,AVERAGE-BANDWIDTH=1",
    "BANDWIDTH=1,FRAME-RATE=30", "BANDWIDTH=1,VIDEO-RANGE=PQ", "BANDWIDTH=1,HDCP-LEVEL=TYPE-0",
    "BANDWIDTH=1,SCORE=1.5", "BANDWIDTH=1,NAME=\"other\"",
  ])
  func anotherAttributeIsAnotherRung(attributes: String) throws {
    let rungs = try rungs("#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n#EXT-X-STREAM-INF:\(attributes)\nb.m3u8")
    #expect(rungs.count == 2)
    #expect(rungs.flatMap(\.alternateURLs).isEmpty)
  }

  @Test func anotherSizeAtTheSameURLIsAnotherRung() throws {
    let rungs = try rungs(
      """
      #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360
      a.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=1500000,RESOLUTION=1280x720
      a.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=700000,RESOLUTION=640x360
      a.m3u8
      """)
    #expect(rungs.map(\.size?.height) == [360, 720])
    #expect(rungs.map(\.bitsPerSecond) == [700_000, 1_500_000])
  }

  @Test func soundAloneHasAlternatesToo() throws {
    let rungs = try rungs(
      """
      #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.5"
      a.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.5"
      b.m3u8
      """)
    try #require(rungs.count == 1)
    #expect(rungs[0].alternateURLs.map(\.lastPathComponent) == ["b.m3u8"])
  }

  @Test func backupsOfTheSameFramesWithOtherSoundAreOnce() throws {
    let rungs = try rungs(
      """
      #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="high",NAME="e",URI="high.m3u8"
      #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="low",NAME="e",URI="low.m3u8"
      #EXT-X-STREAM-INF:BANDWIDTH=2600000,AUDIO="high"
      v.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=2600000,AUDIO="high"
      backup/v.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=2100000,AUDIO="low"
      v.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=2100000,AUDIO="low"
      backup/v.m3u8
      """)
    try #require(rungs.map(\.bitsPerSecond) == [2_100_000])
    #expect(rungs[0].media.playlist == "https://origin.example/a/b/v.m3u8")
    #expect(rungs[0].alternateURLs.map(\.absoluteString) == ["https://origin.example/a/b/backup/v.m3u8"])
  }

  @Test func otherPathwaysAreAlternates() throws {
    let rungs = try rungs(
      """
      #EXT-X-CONTENT-STEERING:SERVER-URI="/steer",PATHWAY-ID="A"
      #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aA",NAME="e",URI="https://a.example/s.m3u8"
      #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aB",NAME="e",URI="https://b.example/s.m3u8"
      #EXT-X-STREAM-INF:BANDWIDTH=1,PATHWAY-ID="A",AUDIO="aA"
      https://a.example/1.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=2,PATHWAY-ID="B",AUDIO="aB"
      https://b.example/2.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=1,PATHWAY-ID="B",AUDIO="aB"
      https://b.example/1.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=2,PATHWAY-ID="A",AUDIO="aA"
      https://a.example/2.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=9,PATHWAY-ID="B",AUDIO="aB"
      https://b.example/9.m3u8
      """)
    #expect(rungs.map(\.media.playlist) == ["https://a.example/1.m3u8", "https://a.example/2.m3u8"])
    #expect(
      rungs.map { $0.alternateURLs.map(\.absoluteString) } == [
        ["https://b.example/1.m3u8"], ["https://b.example/2.m3u8"],
      ])
    #expect(rungs.map(\.audioGroup) == ["aA", "aA"])
  }

  @Test func aStableIDTiesVariantsOfOtherPathways() throws {
    let rungs = try rungs(
      """
      #EXT-X-STREAM-INF:BANDWIDTH=100,STABLE-VARIANT-ID="v1"
      a.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=101,STABLE-VARIANT-ID="v1",PATHWAY-ID="B"
      b.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=100,STABLE-VARIANT-ID="v2",PATHWAY-ID="."
      c.m3u8
      """)
    #expect(rungs.map { $0.alternateURLs.map(\.lastPathComponent) } == [["b.m3u8"], []])
  }

  @Test func everyVariantAndAttributeIsRead() throws {
    let text = """
      #EXTM3U
      #EXT-X-VERSION:12
      #EXT-X-CONTENT-STEERING:SERVER-URI="/steer",PATHWAY-ID="A"
      #EXT-X-SESSION-DATA:DATA-ID="a.b",VALUE="v",LANGUAGE="en"
      #EXT-X-SESSION-DATA:DATA-ID="a.c",URI="c.json",FORMAT=RAW
      #EXT-X-CONTENT-STEERING:PATHWAY-ID="A"
      #EXT-X-SESSION-DATA:VALUE="v"
      #EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="skd://k",KEYFORMAT="com.apple.streamingkeydelivery"
      #EXT-X-SESSION-KEY:URI="k"
      #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="n",BIT-DEPTH=24,SAMPLE-RATE=48000,CHANNELS="6",ASSOC-LANGUAGE="de",\
      STABLE-RENDITION-ID="r"
      #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="m",SAMPLE-RATE=0,BIT-DEPTH=deep
      #EXT-X-STREAM-INF:BANDWIDTH=1280000.7,SCORE=2.5,ALLOWED-CPC="x:HW",REQ-VIDEO-LAYOUT="CH-STEREO",\
      SUPPLEMENTAL-CODECS="dvh1.08.07/db4h",CLOSED-CAPTIONS=NONE,HDCP-LEVEL=TYPE-1,PATHWAY-ID="A",VIDEO="v"
      a.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=-5,SCORE=-1,FRAME-RATE=fast
      b.m3u8
      """
    let playlist = try MultivariantPlaylist(Array(text.utf8), url: manifestURL)
    #expect(playlist.renditions.map(\.channels) == ["6", nil])
    let variant = try #require(playlist.variants.first)
    #expect(variant.bandwidth == 1_280_000)
    #expect(variant.score == 2.5)
    #expect(variant.allowedProtection == "x:HW")
    #expect(variant.requiredVideoLayout == "CH-STEREO")
    #expect(variant.supplementalCodecs == ["dvh1.08.07/db4h"])
    #expect(variant.closedCaptionsGroup == "NONE")
    #expect(variant.videoGroup == "v")
    #expect(
      playlist.warnings.map(\.reason) == [
        "EXT-X-CONTENT-STEERING without SERVER-URI", "EXT-X-SESSION-DATA without DATA-ID",
        "EXT-X-KEY has no METHOD", "EXT-X-MEDIA: BIT-DEPTH 'deep', SAMPLE-RATE '0' can't be read",
        "EXT-X-STREAM-INF: BANDWIDTH '-5', FRAME-RATE 'fast', SCORE '-1' can't be read",
      ])
  }
}
