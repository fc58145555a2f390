import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

@Suite struct MultivariantPlaylistTests {
  @Test func variantsBecomeOneGroupAndRenditionsGroupsOfTheirOwn() throws {
    let presentation = try hlsPresentation(
      """
      #EXTM3U
      #EXT-X-INDEPENDENT-SEGMENTS
      #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="English",LANGUAGE="en",DEFAULT=YES,CHANNELS="2",URI="en.m3u8"
      #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="Deutsch",LANGUAGE="de",AUTOSELECT=YES,URI="de.m3u8"
      #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="subs",NAME="English",LANGUAGE="en",FORCED=YES,URI="subs.m3u8",\
      CHARACTERISTICS="public.easy-to-read,public.x"
      #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="CC",INSTREAM-ID="CC1"
      #EXT-X-STREAM-INF:BANDWIDTH=2500000,AVERAGE-BANDWIDTH=2200000,CODECS="avc1.64001f, mp4a.40.2",\
      RESOLUTION=720x1280,FRAME-RATE=29.970,VIDEO-RANGE=SDR,AUDIO="aac",SUBTITLES="subs"
      720.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=360x640,FRAME-RATE=30
      360.m3u8?q=1
      #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=100000,URI="iframes.m3u8"
      """)
    #expect(presentation.format == .hls)
    #expect(presentation.duration == nil)
    let groups = try #require(presentation.periods.first).trackGroups
    try #require(groups.map(\.kind) == [.video, .audio, .audio, .text])
    let rungs = groups[0].rungs
    try #require(rungs.count == 2)
    #expect(rungs[0].bitsPerSecond == 2_500_000)
    #expect(rungs[0].averageBitsPerSecond == 2_200_000)
    #expect(rungs[0].codecs == ["avc1.64001f", "mp4a.40.2"])
    #expect(rungs[0].size == PixelSize(width: 720, height: 1280))
    #expect(rungs[0].frameRate == Rational(30_000, 1001))
    #expect(rungs[0].videoRange == "SDR")
    #expect(rungs[0].audioGroup == "aac")
    #expect(rungs[0].media.playlist == "https://origin.example/a/b/720.m3u8")
    #expect(rungs[1].frameRate == Rational(30, 1))
    #expect(rungs[1].audioGroup == nil)
    #expect(rungs[1].media.playlist == "https://origin.example/a/b/360.m3u8?q=1")
    #expect(groups[1].id == "aac")
    #expect(groups[1].label == "English")
    #expect(groups[1].isDefault)
    #expect(groups[1].rungs[0].channels == "2")
    #expect(groups[2].language == "de")
    #expect(!groups[2].isDefault)
    #expect(groups[3].roles == ["public.easy-to-read", "public.x", "forced"])
  }

  @Test func sameFramesWithOtherSoundAreOneRung() throws {
    let presentation = try hlsPresentation(
      """
      #EXTM3U
      #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="high",NAME="e",URI="high.m3u8"
      #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="low",NAME="e",URI="low.m3u8"
      #EXT-X-STREAM-INF:BANDWIDTH=2600000,AUDIO="high"
      v.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=2100000,AUDIO="low"
      v.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=900000,AUDIO="low"
      w.m3u8
      """)
    let rungs = try #require(presentation.periods.first?.trackGroups.first).rungs
    #expect(rungs.map(\.bitsPerSecond) == [2_100_000, 900_000])
    #expect(rungs.map(\.audioGroup) == ["low", "low"])
  }

  @Test func soundMuxedInIsNoGroup() throws {
    let presentation = try hlsPresentation(
      """
      #EXTM3U
      #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="e",DEFAULT=YES
      #EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"
      v.m3u8
      """)
    let groups = try #require(presentation.periods.first).trackGroups
    try #require(groups.map(\.kind) == [.video])
    #expect(groups[0].rungs[0].audioGroup == nil)
  }

  @Test func soundAloneGoesIntoAnAudioGroup() throws {
    let presentation = try hlsPresentation(
      """
      #EXTM3U
      #EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.5"
      audio.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=640000,CODECS="avc1.4d401f,mp4a.40.2"
      video.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=740000
      unknown.m3u8
      """)
    let groups = try #require(presentation.periods.first).trackGroups
    try #require(groups.map(\.kind) == [.video, .audio])
    #expect(groups[0].rungs.count == 2)
    #expect(!groups[1].isDefault)
    let alone = try hlsPresentation(
      "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS=\"mp4a.40.5\"\naudio.m3u8\n")
    #expect(alone.periods.first?.trackGroups.map(\.kind) == [.audio])
    #expect(alone.periods.first?.trackGroups.first?.isDefault == true)
  }

  @Test func onePathwayIsKept() throws {
    let presentation = try hlsPresentation(
      """
      #EXTM3U
      #EXT-X-CONTENT-STEERING:SERVER-URI="/steer",PATHWAY-ID="A"
      #EXT-X-STREAM-INF:BANDWIDTH=1,PATHWAY-ID="A"
      https://a.example/v.m3u8
      #EXT-X-STREAM-INF:BANDWIDTH=1,PATHWAY-ID="B"
      https://b.example/v.m3u8
      """)
    #expect(presentation.periods.first?.trackGroups.first?.rungs.count == 1)
  }

  @Test func variablesReachTheMediaPlaylists() throws {
    let presentation = try hlsPresentation(
      """
      #EXTM3U
      #EXT-X-DEFINE:NAME="host",VALUE="cdn.example"
      #EXT-X-STREAM-INF:BANDWIDTH=1
      https://{$host}/v.m3u8
      """)
    #expect(presentation.variables == ["host": "cdn.example"])
    #expect(
      presentation.periods.first?.trackGroups.first?.rungs.first?.media.playlist
        == "https://cdn.example/v.m3u8")
  }

  @Test func whatIsIncompleteIsAWarning() throws {
    let presentation = try hlsPresentation(
      """
      #EXTM3U
      #EXT-X-STREAM-INF:BANDWIDTH=1
      #EXT-X-STREAM-INF:BANDWIDTH=abc,RESOLUTION=-1x5,CODECS=
      v.m3u8
      stray.m3u8
      #EXT-X-MEDIA:TYPE=AUDIO,NAME="x",URI="a.m3u8"
      #EXT-X-MEDIA:TYPE=OTHER,GROUP-ID="x",URI="a.m3u8"
      #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1
      """)
    #expect(presentation.periods.first?.trackGroups.count == 1)
    let rung = try #require(presentation.periods.first?.trackGroups.first?.rungs.first)
    #expect(rung.bitsPerSecond == nil)
    #expect(rung.size == nil)
    #expect(
      presentation.warnings.map(\.place) == [.line(2), .line(3), .line(5), .line(6), .line(7), .line(8)])
  }

  @Test(arguments: [
    ("#EXT-X-STREAM-INF:BANDWIDTH=1\nfile:///etc/passwd", "is a local file in a remote manifest"),
    ("#EXT-X-STREAM-INF:BANDWIDTH=1", "no variant that can be chosen"),
    ("#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n#EXTINF:1,\na.ts", "a segment in a playlist that has variants"),
    ("#EXT-X-DEFINE:NAME=\"a\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8", "has no VALUE"),
    ("#EXT-X-DEFINE:NAME=\"a\",VALUE=\"1\"\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{$b}.m3u8", "'b' is not defined"),
  ])
  func badInputIsAnError(lines: String, reason: String) {
    let error = manifestError { _ = try hlsPresentation("#EXTM3U\n\(lines)\n") }
    #expect(error?.reason.contains(reason) == true, "\(error?.description ?? "")")
  }

  @Test func theNumberOfVariantsIsBounded() {
    let lines = String(repeating: "#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n", count: 11)
    let error = manifestError {
      _ = try hlsPresentation("#EXTM3U\n\(lines)", limits: ManifestLimits(tracks: 10))
    }
    #expect(error?.reason == "more than 10 variants and renditions")
  }

  @Test func isNoMediaPlaylist() {
    let error = manifestError { _ = try mediaPlaylist("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n") }
    #expect(error?.reason == "a multivariant playlist instead of a media playlist")
  }
}
