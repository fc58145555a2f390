import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import ReelRules
import Testing

/// What is wrong with a playlist by the letter.
@Suite struct PlaylistRulesTests {
  // MARK: - By the book

  @Test(arguments: [
    // RFC 8216 §8.1 to §8.3 in their shape
    "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXT-X-VERSION:3\n#EXTINF:9.009,\nhttp://m.example/1.ts\n#EXTINF:3.003,\n"
      + "http://m.example/3.ts\n#EXT-X-ENDLIST\n",
    "#EXTM3U\r\n#EXT-X-VERSION:3\r\n#EXT-X-TARGETDURATION:8\r\n#EXT-X-MEDIA-SEQUENCE:2680\r\n\r\n#EXTINF:7.975,\r\n"
      + "https://priv.example/2680.ts\r\n#EXTINF:8.499,a title, with a comma\r\n2681.ts?x=1,2\r\n",
    "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-MEDIA-SEQUENCE:7794\n#EXT-X-TARGETDURATION:15\n\n"
      + "#EXT-X-KEY:METHOD=AES-128,URI=\"https://priv.example/key.php?r=52\"\n\n#EXTINF:2.833,\na.ts\n"
      + "#EXT-X-KEY:METHOD=NONE\n#EXTINF:15.49,\nb.ts\n",
    // an unknown tag, unknown attributes, a comment, no line feed at the end, ENDLIST before the segments
    "#EXTM3U\n# a comment \n#EXT-X-OTHER:what it likes\n#EXT-X-ENDLIST\n#EXT-X-TARGETDURATION:1\n"
      + "#EXT-X-START:TIME-OFFSET=-1.5,PRECISE=NO,X-NEW=\"a b\"\n#EXTINF:1,\na.ts",
    // Apple's fMP4
    """
    #EXTM3U
    #EXT-X-TARGETDURATION:6
    #EXT-X-VERSION:7
    #EXT-X-MEDIA-SEQUENCE:1
    #EXT-X-PLAYLIST-TYPE:VOD
    #EXT-X-INDEPENDENT-SEGMENTS
    #EXT-X-MAP:URI="main.mp4",BYTERANGE="719@0"
    #EXTINF:6.00000,
    #EXT-X-BYTERANGE:1508000@719
    main.mp4
    #EXT-X-BITRATE:800
    #EXTINF:6.00000,
    #EXT-X-BYTERANGE:1510244
    main.mp4
    #EXT-X-DISCONTINUITY
    #EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://k",KEYFORMAT="com.apple.streamingkeydelivery",KEYFORMATVERSIONS="1/2",\
    IV=0x0123456789ABCDEF0123456789ABCDEF
    #EXT-X-MAP:URI="other.mp4"
    #EXTINF:6.49,
    other1.m4s
    #EXT-X-GAP
    #EXTINF:6,
    other2.m4s
    #EXT-X-ENDLIST
    """,
    // dates
    """
    #EXTM3U
    #EXT-X-VERSION:3
    #EXT-X-TARGETDURATION:4
    #EXT-X-PROGRAM-DATE-TIME:2010-02-19T14:54:23.031+08:00
    #EXT-X-DATERANGE:ID="splice-6FFFFFF0",START-DATE="2014-03-05T11:15:00Z",PLANNED-DURATION=59.993,SCTE35-OUT=0xFC002F
    #EXTINF:4,
    a.ts
    #EXT-X-DATERANGE:ID="splice-6FFFFFF0",DURATION=59.993,SCTE35-IN=0xFC002A
    #EXT-X-DATERANGE:ID="n",CLASS="c",START-DATE="2014-03-05T11:15:00Z",END-ON-NEXT=YES,X-A="b",X-C=0xAB,X-D=1.5
    #EXT-X-DATERANGE:ID="e",START-DATE="2014-03-05T11:15:00Z",END-DATE="2014-03-05T11:15:01.5Z",DURATION=1.5
    #EXTINF:4.0,
    b.ts
    """,
    // low latency, whole and as an update
    """
    #EXTM3U
    #EXT-X-TARGETDURATION:4
    #EXT-X-VERSION:6
    #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=1.0,CAN-SKIP-UNTIL=24.0,HOLD-BACK=12
    #EXT-X-PART-INF:PART-TARGET=0.33334
    #EXT-X-MEDIA-SEQUENCE:266
    #EXT-X-PROGRAM-DATE-TIME:2019-02-14T02:13:36.106Z
    #EXT-X-MAP:URI="init.mp4"
    #EXTINF:4.00008,
    fileSequence266.mp4
    #EXT-X-PART:DURATION=0.33334,URI="filePart267.0.mp4",INDEPENDENT=YES
    #EXT-X-PART:DURATION=0.33334,URI="filePart267.1.mp4",BYTERANGE="10@5"
    #EXT-X-PART:DURATION=0.33334,URI="filePart267.1.mp4",BYTERANGE="10",GAP=YES
    #EXT-X-PRELOAD-HINT:TYPE=PART,URI="filePart267.2.mp4",BYTERANGE-START=15
    #EXT-X-RENDITION-REPORT:URI="../1M/waitForMSN.php",LAST-MSN=267,LAST-PART=2
    """,
    """
    #EXTM3U
    #EXT-X-TARGETDURATION:4
    #EXT-X-VERSION:10
    #EXT-X-MEDIA-SEQUENCE:266
    #EXT-X-SKIP:SKIPPED-SEGMENTS=3,RECENTLY-REMOVED-DATERANGES="a\tb"
    #EXT-X-DATERANGE:ID="x",START-DATE="2014-03-05T11:15:00Z"
    #EXTINF:4.00008,
    fileSequence269.mp4
    """,
    // I-frames
    "#EXTM3U\n#EXT-X-VERSION:5\n#EXT-X-TARGETDURATION:4\n#EXT-X-I-FRAMES-ONLY\n#EXT-X-MAP:URI=\"i\"\n"
      + "#EXTINF:4.1,\n#EXT-X-BYTERANGE:9400@376\ns.ts\n#EXT-X-ENDLIST\n",
    // variables
    "#EXTM3U\n#EXT-X-VERSION:11\n#EXT-X-TARGETDURATION:4\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"\"\n"
      + "#EXT-X-DEFINE:IMPORT=\"b\"\n#EXT-X-DEFINE:QUERYPARAM=\"token\"\n#EXTINF:4,\n{$a}{$b}/x.ts?{$token}\n",
    // multivariant
    """
    #EXTM3U
    #EXT-X-VERSION:7
    #EXT-X-INDEPENDENT-SEGMENTS
    #EXT-X-START:TIME-OFFSET=0
    #EXT-X-CONTENT-STEERING:SERVER-URI="/steering?video=00012",PATHWAY-ID="CDN-A"
    #EXT-X-SESSION-DATA:DATA-ID="com.example.lyrics",URI="lyrics.json"
    #EXT-X-SESSION-DATA:DATA-ID="com.example.title",LANGUAGE="en",VALUE="This is an example"
    #EXT-X-SESSION-DATA:DATA-ID="com.example.title",LANGUAGE="es",VALUE="Este es un ejemplo"
    #EXT-X-SESSION-KEY:METHOD=AES-128,URI="k"
    #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="English",DEFAULT=YES,AUTOSELECT=YES,LANGUAGE="en",URI="en.m3u8"
    #EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="aac",NAME="Commentary",DEFAULT=NO,AUTOSELECT=NO,LANGUAGE="en",CHANNELS="2"
    #EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="aac",NAME="English",FORCED=NO,URI="s.m3u8",CHARACTERISTICS="public.a,public.b"
    #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="CC1",INSTREAM-ID="CC1"
    #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="S",INSTREAM-ID="SERVICE63"
    #EXT-X-STREAM-INF:BANDWIDTH=1280000,AVERAGE-BANDWIDTH=1000000,CODECS="avc1.4d401f,mp4a.40.2",RESOLUTION=640x360,\
    FRAME-RATE=29.970,HDCP-LEVEL=NONE,VIDEO-RANGE=SDR,AUDIO="aac",SUBTITLES="aac",CLOSED-CAPTIONS="cc",PATHWAY-ID="CDN-A"
    low.m3u8
    #EXT-X-STREAM-INF:BANDWIDTH=65000,CODECS="mp4a.40.5",SCORE=1.5,STABLE-VARIANT-ID="a",PROGRAM-ID=1
    https://b.example/audio.m3u8
    #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=86000,URI="low/iframe.m3u8",CODECS="avc1.4d401f"
    """,
    "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,CLOSED-CAPTIONS=NONE\na\n#EXT-X-STREAM-INF:BANDWIDTH=2,"
      + "CLOSED-CAPTIONS=NONE\nb\n",
  ])
  func aPlaylistByTheBookHasNone(text: String) {
    #expect(hlsViolations(text).map(\.description) == [])
  }

  // MARK: - Text

  @Test func text() {
    let rest = "#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.ts\n"
    expectHLSViolation("\u{FEFF}#EXTM3U\n\(rest)", line: 1, "begins with a byte order mark (RFC 8216 §4.1)")
    expectHLSViolation(rest, line: 1, "the first line is not #EXTM3U (RFC 8216 §4.3.1.1)")
    expectHLSViolation("\n#EXTM3U\n\(rest)", line: 2, "#EXTM3U does not stand in the first line")
    expectHLSViolation("#EXTM3U\n#EXTM3U\n\(rest)", line: 2, "EXTM3U is there more than once")
    expectHLSViolation(
      "#EXTM3U\n#EXT-X-TARGETDURATION:1\r#EXTINF:1,\na.ts\n", line: 2, "a carriage return alone")
    expectHLSViolation(
      "#EXTM3U\n#EXT-X-TARGETDURATION:1 \n#EXTINF:1,\na.ts\n", line: 2, "white space at the beginning or end")
    expectHLSViolation(
      "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n a.ts\n", line: 4, "white space at the beginning or end")
    expectHLSViolation(
      "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na b.ts\n", line: 4, "white space in the URI")
    expectHLSViolation(
      "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\u{1}\na.ts\n", line: 3, "a control character")
    let bytes =
      Array("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,".utf8) + [0xFF, 0x0A] + Array("a.ts\n".utf8)
    let found = RuleChecker().violations(in: bytes, format: .hls, url: manifestURL).map(\.error)
    #expect(found.map(\.reason) == ["the line is not UTF-8 (RFC 8216 §4.1)"])
  }

  @Test func whatIsNoPlaylist() {
    #expect(hlsViolations("").map(\.reason) == ["the playlist is empty"])
    #expect(hlsViolations("<html>").first?.reason.contains("it is an HTML page") == true)
    #expect(
      hlsViolations("#EXTM3U\n", limits: ManifestLimits(byteCount: 3)).map(\.reason).first?.contains("limit")
        == true)
  }

  // MARK: - Attribute lists

  @Test(arguments: [
    ("TIME-OFFSET=1,", "a comma at the end of the attribute list in EXT-X-START (RFC 8216 §4.2)"),
    ("TIME-OFFSET=1,,PRECISE=NO", "a comma without an attribute"),
    ("TIME-OFFSET=1,X", "the attribute X without a value"),
    ("TIME-OFFSET=1,X=", "the attribute X without a value"),
    ("TIME-OFFSET=1,x=1", "'x' is not an attribute name"),
    ("TIME-OFFSET=1,X=\"a", "X without its closing quote"),
    ("TIME-OFFSET=1,X=\"a\"b", "'b' after the closing quote of X"),
    ("TIME-OFFSET=1, X=1", "white space around the attribute name X"),
    ("TIME-OFFSET= 1", "white space around the value of TIME-OFFSET"),
    ("TIME-OFFSET=1 ,X=1", "white space around the value of TIME-OFFSET"),
    ("TIME-OFFSET=1,X=\"a\" ,Y=1", "white space around the value of X"),
    ("TIME-OFFSET=1,X=a\"b", "white space or a quote in the unquoted value of X"),
    ("TIME-OFFSET=1,TIME-OFFSET=1", "the attribute TIME-OFFSET twice"),
    ("TIME-OFFSET=\"1\"", "TIME-OFFSET of EXT-X-START is quoted (RFC 8216 §4.2)"),
    ("TIME-OFFSET=1e3", "TIME-OFFSET of EXT-X-START '1e3' is not a decimal number (RFC 8216 §4.3.5.2)"),
    ("TIME-OFFSET=1,PRECISE=yes", "PRECISE of EXT-X-START 'yes' is none of YES, NO"),
    ("PRECISE=NO", "EXT-X-START has no TIME-OFFSET (RFC 8216 §4.3.5.2)"),
  ])
  func attributes(list: String, reason: String) {
    expectHLSViolation(
      "#EXTM3U\n#EXT-X-START:\(list)\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.ts\n", line: 2, reason)
  }

  // MARK: - All of them

  @Test func theyAreInTheOrderOfLinesAndBounded() {
    var text = "#EXTM3U\n#EXT-X-VERSION:2\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:x\n"
    for _ in 0..<500 { text += "#EXTINF:2.5\nb \n" }
    for limit in [0, 1, 7, 100] {
      let found = hlsViolations(text, limits: ManifestLimits(warnings: limit))
      #expect(found.count == limit)
      let lines = found.compactMap(\.line)
      #expect(lines == lines.sorted())
      #expect(lines.first == (limit > 0 ? 4 : nil))
    }
    // The version is found wanting at the end, and stands at the first line that needs it.
    #expect(hlsViolations(text).prefix(5).compactMap(\.line) == [4, 5, 5, 5, 6])
  }

  @Test func whatTheReaderRefusesIsListed() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n"
    expectHLSViolation(text, line: 4, "is a local file in a remote manifest")
  }

  @Test func descriptionsHaveWhatTheirReaderSays() {
    let found = RuleChecker().violations(in: Array("<MPD/>".utf8), format: .dash, url: manifestURL)
      .map(\.error)
    #expect(found.count >= 1)
    #expect(found.first?.location == manifestURL.absoluteString)
  }
}

extension ReelError {
  fileprivate var line: Int? {
    guard case .line(let line, _)? = place else { return nil }
    return line
  }
}
