import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

/// What a media playlist tells those that follow it, and what low latency adds to it.
@Suite struct MediaPlaylistLiveTests {
  private let lowLatency = """
    #EXTM3U
    #EXT-X-TARGETDURATION:4
    #EXT-X-VERSION:9
    #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.0,HOLD-BACK=12.5,CAN-SKIP-UNTIL=24.0,\
    CAN-SKIP-DATERANGES=YES
    #EXT-X-PART-INF:PART-TARGET=0.33334
    #EXT-X-MEDIA-SEQUENCE:266
    #EXT-X-DISCONTINUITY-SEQUENCE:4
    #EXT-X-SKIP:SKIPPED-SEGMENTS=3,RECENTLY-REMOVED-DATERANGES="a\tb"
    #EXT-X-MAP:URI="init.mp4"
    #EXTINF:4.00008,
    s269.mp4
    #EXT-X-PART:DURATION=0.33334,URI="p270.mp4",BYTERANGE="100@50"
    #EXT-X-PART:DURATION=0.33334,URI="p270.mp4",BYTERANGE="30",INDEPENDENT=YES
    #EXT-X-PART:DURATION=0.2,URI="gone.mp4",GAP=YES
    #EXTINF:4.00008,
    s270.mp4
    #EXT-X-PART:DURATION=0.33334,URI="p271.0.mp4"
    #EXT-X-PRELOAD-HINT:TYPE=PART,URI="p271.1.mp4",BYTERANGE-START=7,BYTERANGE-LENGTH=9
    #EXT-X-PRELOAD-HINT:TYPE=MAP,URI="init2.mp4"
    #EXT-X-RENDITION-REPORT:URI="../1M/list.m3u8",LAST-MSN=271,LAST-PART=1
    """

  @Test func aFollowerGetsWhatItNeeds() throws {
    let playlist = try mediaPlaylist(lowLatency)
    #expect(playlist.segments.map(\.number) == [269, 270])
    #expect(playlist.segments.map(\.discontinuity) == [4, 4])
    let live = try #require(playlist.live)
    #expect(live.reload == .targetDuration(MediaTime(value: 4, timescale: 1)))
    #expect(live.delay == MediaTime(value: 25, timescale: 2))
    #expect(playlist.segments.end == MediaTime(value: 800_016, timescale: 100_000))
  }

  @Test func partsHintsAndReportsAreChecked() throws {
    #expect(
      try mediaPlaylist(lowLatency).warnings.map(\.reason) == [
        "3 segments are skipped, and their durations not known"
      ])
    // The byte range of a part goes on from that of the part before, of the same file.
    let end = Int64.max - 10
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXT-X-TARGETDURATION:4
      #EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=a,HOLD-BACK=b,PART-HOLD-BACK=c
      #EXT-X-PART:DURATION=1,URI="a",BYTERANGE="10@\(end - 10)"
      #EXT-X-PART:DURATION=1,URI="b",BYTERANGE="11"
      #EXT-X-PART:DURATION=1,URI="a",BYTERANGE="10@\(end - 10)"
      #EXT-X-PART:DURATION=1,URI="a",BYTERANGE="11"
      #EXT-X-PRELOAD-HINT:TYPE=PART,URI="a",BYTERANGE-START=-7,BYTERANGE-LENGTH=x
      #EXT-X-RENDITION-REPORT:URI="a",LAST-MSN=-1,LAST-PART=x
      """)
    #expect(
      playlist.warnings.map(\.reason) == [
        "EXT-X-SERVER-CONTROL: CAN-SKIP-UNTIL 'a', HOLD-BACK 'b', PART-HOLD-BACK 'c' can't be read",
        "EXT-X-PART: BYTERANGE '11' can't be read",
        "EXT-X-PRELOAD-HINT: BYTERANGE-START '-7', BYTERANGE-LENGTH 'x' can't be read",
        "EXT-X-RENDITION-REPORT: LAST-MSN '-1', LAST-PART 'x' can't be read",
      ])
    #expect(playlist.warnings.map(\.place) == [.line(3), .line(7), .line(8), .line(9)])
  }

  @Test func partsAloneAreAPlaylistWithNothingYet() throws {
    let playlist = try mediaPlaylist(
      "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-PART-INF:PART-TARGET=1\n#EXT-X-PART:DURATION=1,URI=\"a\"\n")
    #expect(playlist.segments.isEmpty)
    #expect(playlist.isLive)
    #expect(playlist.warnings.isEmpty)
  }

  @Test(arguments: [
    ("#EXT-X-TARGETDURATION:4", 4, 12), ("", 6, 18), ("#EXT-X-TARGETDURATION:0", 6, 18),
    ("#EXT-X-TARGETDURATION:4\n#EXT-X-SERVER-CONTROL:HOLD-BACK=13", 4, 13),
    ("#EXT-X-TARGETDURATION:4\n#EXT-X-SERVER-CONTROL:HOLD-BACK=0", 4, 12),
    ("#EXT-X-TARGETDURATION:4\n#EXT-X-SERVER-CONTROL:HOLD-BACK=-9", 4, 12),
    ("#EXT-X-TARGETDURATION:4\n#EXT-X-START:TIME-OFFSET=-30", 4, 12),
  ])
  func playbackBeginsAtADistanceFromTheEnd(lines: String, target: Int64, delay: Int64) throws {
    let text = "#EXTM3U\n\(lines)\n#EXTINF:6,\na.ts\n#EXTINF:2,\nb.ts\n"
    for live in [try mediaPlaylist(text).live, try hlsPresentation(text).live] {
      #expect(live?.reload == .targetDuration(MediaTime(value: target, timescale: 1)))
      #expect(live?.delay == MediaTime(value: delay, timescale: 1))
    }
  }

  @Test func aPlaylistWithoutLengthIsNotAskedForWithoutPause() throws {
    let live = try mediaPlaylist("#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:1\n#EXTINF:0,\na.ts\n").live
    #expect(live?.reload == .targetDuration(MediaTime(value: 1, timescale: 1)))
  }

  @Test(arguments: [("event", true), ("EVENT", true), ("vod", false), ("VOD", false), ("LIVE", true)])
  func moreMayComeUnlessTheTypeIsVOD(type: String, isLive: Bool) throws {
    #expect(try mediaPlaylist("#EXTM3U\n#EXT-X-PLAYLIST-TYPE:\(type)\n#EXTINF:1,\na\n").isLive == isLive)
  }

  @Test func theSequenceMayStandBehindTheSkip() throws {
    let playlist = try mediaPlaylist(
      "#EXTM3U\n#EXT-X-SKIP:SKIPPED-SEGMENTS=5\n#EXT-X-MEDIA-SEQUENCE:10\n#EXTINF:1,\na.ts\n")
    #expect(playlist.segments.map(\.number) == [15])
  }

  @Test func datesStandAtTheirSegments() throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXT-X-TARGETDURATION:1
      #EXTINF:1,
      a.ts
      #EXT-X-PROGRAM-DATE-TIME:2026-02-03T04:05:06.789Z
      #EXTINF:1,
      b.ts
      #EXTINF:1,
      #EXT-X-PROGRAM-DATE-TIME:2026-02-03T05:05:08+01:00
      c.ts
      #EXT-X-PROGRAM-DATE-TIME:2026-02-29T00:00:00Z
      #EXTINF:1,
      d.ts
      #EXT-X-PROGRAM-DATE-TIME:soon
      #EXTINF:1,
      e.ts
      """)
    let dates = playlist.segments.map(\.programDateTime)
    try #require(dates.count > 4)
    #expect(dates[0] == nil)
    #expect(dates[1]?.description == "2026-02-03T04:05:06.789Z")
    #expect(dates[2]?.description == "2026-02-03T04:05:08Z")
    #expect(dates[3] == nil)
    #expect(dates[4] == nil)
    #expect(playlist.warnings.map(\.place) == [.line(11), .line(14)])
    #expect(playlist.warnings.last?.reason == "EXT-X-PROGRAM-DATE-TIME 'soon' is not a date")
  }

  @Test func dateRangesAreChecked() throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXT-X-DATERANGE:ID="a",CLASS="c",START-DATE="2026-01-01T00:00:00Z",DURATION=20,PLANNED-DURATION=21.5,\
      X-URL="x,y",X-N=3,SCTE35-OUT=0xFC00,CUE="PRE,ONCE"
      #EXT-X-DATERANGE:ID="a",END-DATE="2026-01-01T00:00:20Z",END-ON-NEXT=YES,SCTE35-IN=0xFC01,SCTE35-CMD=0xFC02
      #EXT-X-DATERANGE:CLASS="none"
      #EXT-X-DATERANGE:ID="b",START-DATE="never"
      #EXT-X-DATERANGE:ID="c",PLANNED-DURATION=-1,DURATION=x,END-DATE="later"
      #EXTINF:1,
      a.ts
      """)
    #expect(
      playlist.warnings.map(\.reason) == [
        "EXT-X-DATERANGE without ID", "EXT-X-DATERANGE: START-DATE 'never' can't be read",
        "EXT-X-DATERANGE: END-DATE 'later', DURATION 'x', PLANNED-DURATION '-1' can't be read",
        "no EXT-X-TARGETDURATION",
      ])
  }

  @Test func bitRatesAreChecked() throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXTINF:1,
      a.ts
      #EXT-X-BITRATE:800
      #EXTINF:1,
      b.ts
      #EXTINF:1,
      c.ts
      #EXT-X-BITRATE:900
      #EXTINF:1,
      #EXT-X-BYTERANGE:10@0
      d.ts
      #EXTINF:1,
      e.ts
      #EXT-X-BITRATE:-1
      #EXTINF:1,
      f.ts
      """)
    #expect(playlist.segments.count == 6)
    #expect(playlist.warnings.first?.reason == "EXT-X-BITRATE '-1' is not a rate")
    #expect(playlist.warnings.first?.place == .line(15))
  }

  @Test(arguments: [
    ("#EXT-X-PART:URI=\"a\"", "parts", "EXT-X-PART without a URI or a DURATION"),
    ("#EXT-X-PART:URI=\"a\",DURATION=NaN", "parts", "EXT-X-PART without a URI or a DURATION"),
    ("#EXT-X-PART:URI=\"a\",DURATION=1,BYTERANGE=x", "parts", "EXT-X-PART: BYTERANGE 'x' can't be read"),
    ("#EXT-X-PART-INF:PART-TARGET=-1", "target", "EXT-X-PART-INF without a PART-TARGET"),
    ("#EXT-X-SERVER-CONTROL:HOLD-BACK=inf", "control", "EXT-X-SERVER-CONTROL: HOLD-BACK 'inf'"),
    ("#EXT-X-PRELOAD-HINT:TYPE=ALL,URI=\"a\"", "hint", "EXT-X-PRELOAD-HINT without a URI or a known TYPE"),
    ("#EXT-X-RENDITION-REPORT:LAST-MSN=1", "report", "EXT-X-RENDITION-REPORT without URI"),
    ("#EXT-X-SKIP:SKIPPED-SEGMENTS=-1", "skip", "EXT-X-SKIP without a number"),
    ("#EXT-X-START:TIME-OFFSET=NaN", "start", "EXT-X-START has the TIME-OFFSET 'NaN'"),
    ("#EXT-X-START:PRECISE=YES", "start", "EXT-X-START has no TIME-OFFSET"),
    ("#EXT-X-VERSION:x", "version", "EXT-X-VERSION 'x' is not a version"),
    ("#EXT-X-PLAYLIST-TYPE:LIVE", "type", "EXT-X-PLAYLIST-TYPE 'LIVE' is neither VOD nor EVENT"),
  ])
  func whatPlaybackDoesNotNeedIsAWarning(line: String, what: String, reason: String) throws {
    let playlist = try mediaPlaylist("#EXTM3U\n#EXT-X-TARGETDURATION:1\n\(line)\n#EXTINF:1,\na.ts\n")
    #expect(playlist.segments.count == 1)
    #expect(playlist.warnings.count == 1)
    #expect(playlist.warnings.first?.place == .line(3))
    #expect(playlist.warnings.first?.reason.hasPrefix(reason) == true, "\(playlist.warnings)")
  }

  @Test(arguments: [
    ("#EXT-X-PART:URI=\"a\",DURATION=1\n", ManifestLimits(segments: 2), "more than 2 parts"),
    ("#EXT-X-DATERANGE:ID=\"a\"\n", ManifestLimits(tracks: 2), "more than 2 date ranges"),
    ("#EXT-X-PRELOAD-HINT:TYPE=MAP,URI=\"a\"\n", ManifestLimits(tracks: 2), "more than 2 preload hints"),
    ("#EXT-X-RENDITION-REPORT:URI=\"a\"\n", ManifestLimits(tracks: 2), "more than 2 rendition reports"),
    ("#EXT-X-MAP:URI=\"%\"\n", ManifestLimits(segments: 2), "more than 2 maps"),
    ("#EXT-X-DEFINE:NAME=\"%\",VALUE=\"\"\n", ManifestLimits(tracks: 2), "more than 2 variables"),
  ])
  func theirNumberIsBounded(line: String, limits: ManifestLimits, reason: String) {
    let lines = (0..<3).map { line.replacingOccurrences(of: "%", with: String($0)) }
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n" + lines.joined()
    let error = manifestError { _ = try mediaPlaylist(text, limits: limits) }
    #expect(error?.reason == reason)
    #expect(error?.place == .line(5))
  }
}
