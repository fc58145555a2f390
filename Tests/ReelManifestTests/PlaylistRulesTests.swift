import Foundation
import ReelCore
import ReelManifest
import Testing

/// What is wrong with a playlist by the letter.
@Suite struct PlaylistRulesTests {
  private func violations(_ text: String, limits: ManifestLimits = ManifestLimits()) -> [ReelError] {
    ManifestReader(limits: limits).violations(in: Array(text.utf8), format: .hls, url: manifestURL)
  }

  /// Checks that a playlist has this violation, and no other.
  private func expect(
    _ text: String, line: Int, _ reason: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let found = violations(text)
    #expect(found.count == 1, "\(found.map(\.description))", sourceLocation: sourceLocation)
    #expect(
      found.first?.reason.contains(reason) == true, "\(found.map(\.description))",
      sourceLocation: sourceLocation)
    #expect(found.first?.place == .line(line), "\(found.map(\.description))", sourceLocation: sourceLocation)
    #expect(found.first?.location == manifestURL.absoluteString, sourceLocation: sourceLocation)
  }

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
    #expect(violations(text).map(\.description) == [])
  }

  // MARK: - Text

  @Test func text() {
    let rest = "#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.ts\n"
    expect("\u{FEFF}#EXTM3U\n\(rest)", line: 1, "begins with a byte order mark (RFC 8216 §4.1)")
    expect(rest, line: 1, "the first line is not #EXTM3U (RFC 8216 §4.3.1.1)")
    expect("\n#EXTM3U\n\(rest)", line: 2, "#EXTM3U does not stand in the first line")
    expect("#EXTM3U\n#EXTM3U\n\(rest)", line: 2, "EXTM3U is there more than once")
    expect("#EXTM3U\n#EXT-X-TARGETDURATION:1\r#EXTINF:1,\na.ts\n", line: 2, "a carriage return alone")
    expect(
      "#EXTM3U\n#EXT-X-TARGETDURATION:1 \n#EXTINF:1,\na.ts\n", line: 2, "white space at the beginning or end")
    expect(
      "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n a.ts\n", line: 4, "white space at the beginning or end")
    expect("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na b.ts\n", line: 4, "white space in the URI")
    expect("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\u{1}\na.ts\n", line: 3, "a control character")
    let bytes =
      Array("#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,".utf8) + [0xFF, 0x0A] + Array("a.ts\n".utf8)
    let found = ManifestReader().violations(in: bytes, format: .hls, url: manifestURL)
    #expect(found.map(\.reason) == ["the line is not UTF-8 (RFC 8216 §4.1)"])
  }

  @Test func whatIsNoPlaylist() {
    #expect(violations("").map(\.reason) == ["the playlist is empty"])
    #expect(violations("<html>").first?.reason.contains("it is an HTML page") == true)
    #expect(
      violations("#EXTM3U\n", limits: ManifestLimits(byteCount: 3)).map(\.reason).first?.contains("limit")
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
    expect("#EXTM3U\n#EXT-X-START:\(list)\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.ts\n", line: 2, reason)
  }

  // MARK: - Media playlists

  /// The line that is wrong is the one with the `!`.
  private func expectMedia(_ lines: String, version: Int, _ reason: String, sourceLocation: SourceLocation) {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXT-X-VERSION:\(version)\n\(lines)"
    let line = text.split(separator: "\n").firstIndex { $0.hasSuffix("!") } ?? -1
    expect(
      text.split(separator: "\n").map { $0.hasSuffix("!") ? $0.dropLast() : $0 }.joined(separator: "\n"),
      line: line + 1, reason, sourceLocation: sourceLocation)
  }

  @Test(arguments: [
    ("#EXTINF:10.6,!\na", "EXTINF 10.6 rounds to more than EXT-X-TARGETDURATION 10 (RFC 8216 §4.3.3.1)"),
    ("#EXTINF:1!\na", "no comma after the duration of EXTINF (RFC 8216 §4.3.2.1)"),
    ("#EXTINF:1,!\n#EXTINF:2,\na", "EXTINF without a URI after it"),
    ("#EXTINF:1,\na\n#EXTINF:1,!", "EXTINF without a URI"),
    ("#EXTINF:1,\na\nb!", "a URI without an EXTINF before it"),
    ("#EXTINF:1,\na\n#EXT-X-ENDLIST\n#EXTINF:1,\nb!", "a segment after EXT-X-ENDLIST"),
    (
      "#EXTINF:1,\na\n#EXT-X-MEDIA-SEQUENCE:4!",
      "EXT-X-MEDIA-SEQUENCE after the first segment (RFC 8216 §4.3.3.2)"
    ),
    (
      "#EXTINF:1,\na\n#EXT-X-DISCONTINUITY-SEQUENCE:4!",
      "EXT-X-DISCONTINUITY-SEQUENCE after the first segment"
    ),
    ("#EXT-X-DISCONTINUITY\n#EXT-X-DISCONTINUITY-SEQUENCE:4!\n#EXTINF:1,\na", "after an EXT-X-DISCONTINUITY"),
    (
      "#EXT-X-TARGETDURATION:10!\n#EXTINF:1,\na",
      "EXT-X-TARGETDURATION is there more than once (RFC 8216 §4.3.3)"
    ),
    ("#EXT-X-ENDLIST:x!\n#EXTINF:1,\na", "EXT-X-ENDLIST has a value"),
    ("#EXT-X-BITRATE:fast!\n#EXTINF:1,\na", "the value 'fast' of EXT-X-BITRATE is not a decimal integer"),
    ("#EXT-X-PLAYLIST-TYPE:vod!\n#EXTINF:1,\na", "EXT-X-PLAYLIST-TYPE 'vod' is neither VOD nor EVENT"),
    ("#EXTINF:1,\n#EXT-X-BYTERANGE:5!\na", "EXT-X-BYTERANGE without an offset"),
    (
      "#EXTINF:1,\n#EXT-X-BYTERANGE:5@0\na\n#EXTINF:1,\n#EXT-X-BYTERANGE:5!\nb",
      "EXT-X-BYTERANGE without an offset"
    ),
    ("#EXTINF:1,\na\n#EXT-X-BYTERANGE:5@0!", "EXT-X-BYTERANGE without a segment after it"),
    ("#EXTINF:1,\n#EXT-X-BYTERANGE:+5@0!\na", "'+5@0' is not a byte range"),
    ("#EXT-X-GAP\n#EXT-X-GAP!\n#EXTINF:1,\na", "EXT-X-GAP twice for one segment"),
    ("#EXTINF:1,\na.m4s!", "fragmented MP4 without an EXT-X-MAP before it (RFC 8216 §3.3)"),
    ("#EXT-X-MAP:BYTERANGE=\"5@0\",URI=a!\n#EXTINF:1,\na", "URI of EXT-X-MAP is not quoted (RFC 8216 §4.2)"),
    ("#EXT-X-KEY:METHOD=AES-128!\n#EXTINF:1,\na", "EXT-X-KEY has no URI (RFC 8216 §4.3.2.4)"),
    ("#EXT-X-KEY:METHOD=NONE,URI=\"a\"!\n#EXTINF:1,\na", "EXT-X-KEY with METHOD=NONE has URI"),
    ("#EXT-X-KEY:METHOD=ROT13,URI=\"a\"!\n#EXTINF:1,\na", "METHOD of EXT-X-KEY 'ROT13' is none of"),
    (
      "#EXT-X-KEY:METHOD=AES-128,URI=\"a\",IV=12!\n#EXTINF:1,\na",
      "IV of EXT-X-KEY '12' is not a hexadecimal sequence"
    ),
    (
      "#EXT-X-KEY:METHOD=AES-128,URI=\"a\",IV=0x\(String(repeating: "0", count: 33))!\n#EXTINF:1,\na",
      "has more than 128 bits"
    ),
    (
      "#EXT-X-KEY:METHOD=AES-128,URI=\"a\",KEYFORMATVERSIONS=\"1/x\"!\n#EXTINF:1,\na",
      "'1/x' is not a list of positive integers"
    ),
    (
      "#EXT-X-PROGRAM-DATE-TIME:2026-02-30T00:00:00Z!\n#EXTINF:1,\na",
      "'2026-02-30T00:00:00Z' is not a date and time"
    ),
    ("#EXT-X-PROGRAM-DATE-TIME:2026-02-03!\n#EXTINF:1,\na", "is not a date and time (RFC 8216 §4.3.2.6)"),
    (
      "#EXTINF:1,\na\n#EXT-X-STREAM-INF:BANDWIDTH=1!",
      "EXT-X-STREAM-INF in a media playlist (RFC 8216 §4.3.4)"
    ),
    ("#EXT-X-SESSION-KEY:METHOD=AES-128,URI=\"k\"!\n#EXTINF:1,\na", "EXT-X-SESSION-KEY in a media playlist"),
    (
      "#EXT-X-DEFINE:VALUE=\"1\"!\n#EXTINF:1,\na",
      "none of NAME, IMPORT and QUERYPARAM (draft-pantos-hls-rfc8216bis §4.4.2.3)"
    ),
    (
      "#EXT-X-DEFINE:NAME=\"a\",IMPORT=\"b\",VALUE=\"\"!\n#EXTINF:1,\na",
      "more than one of NAME, IMPORT and QUERYPARAM"
    ),
    ("#EXT-X-DEFINE:NAME=\"a b\",VALUE=\"\"!\n#EXTINF:1,\na", "'a b' is not the name of a variable"),
    (
      "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"\"\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"\"!\n#EXTINF:1,\na",
      "a second time"
    ),
    (
      "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"\"\n#EXTINF:1,\n{$b}!",
      "the variable 'b' is not defined before it is used"
    ),
    ("#EXT-X-PART:URI=\"p\",DURATION=1!\n#EXTINF:1,\na", "EXT-X-PART in a playlist without EXT-X-PART-INF"),
    ("#EXT-X-PART-INF:PART-TARGET=1!\n#EXTINF:1,\na", "without PART-HOLD-BACK in EXT-X-SERVER-CONTROL"),
    (
      "#EXT-X-PART-INF:PART-TARGET=1\n#EXT-X-SERVER-CONTROL:PART-HOLD-BACK=3\n"
        + "#EXT-X-PART:URI=\"p\",DURATION=1.1!\n#EXTINF:1,\na",
      "the DURATION of EXT-X-PART is more than PART-TARGET (draft-pantos-hls-rfc8216bis §4.4.4.9)"
    ),
    (
      "#EXT-X-SERVER-CONTROL:PART-HOLD-BACK=3\n#EXT-X-PART:URI=\"p\",DURATION=1.1!\n#EXT-X-PART-INF:PART-TARGET=1\n"
        + "#EXTINF:1,\na",
      "the DURATION of EXT-X-PART is more than PART-TARGET"
    ),
    (
      "#EXT-X-SERVER-CONTROL:HOLD-BACK=29!\n#EXTINF:1,\na",
      "HOLD-BACK is less than 3 times EXT-X-TARGETDURATION"
    ),
    ("#EXT-X-SERVER-CONTROL:CAN-SKIP-UNTIL=59!\n#EXTINF:1,\na", "CAN-SKIP-UNTIL is less than 6 times"),
    (
      "#EXT-X-SERVER-CONTROL:CAN-SKIP-DATERANGES=YES!\n#EXTINF:1,\na",
      "CAN-SKIP-DATERANGES without CAN-SKIP-UNTIL"
    ),
    (
      "#EXT-X-PART-INF:PART-TARGET=1\n#EXT-X-SERVER-CONTROL:PART-HOLD-BACK=1.9!\n#EXTINF:1,\na",
      "PART-HOLD-BACK is less than 2 times PART-TARGET"
    ),
    ("#EXTINF:1,\na\n#EXT-X-SKIP:SKIPPED-SEGMENTS=1!", "EXT-X-SKIP after a segment"),
    ("#EXT-X-PRELOAD-HINT:TYPE=PART!\n#EXTINF:1,\na", "EXT-X-PRELOAD-HINT has no URI"),
    (
      "#EXT-X-RENDITION-REPORT:URI=\"a\",LAST-MSN=x!\n#EXTINF:1,\na",
      "LAST-MSN of EXT-X-RENDITION-REPORT 'x' is not"
    ),
  ])
  func mediaPlaylists(lines: String, reason: String) {
    expectMedia(lines, version: 12, reason, sourceLocation: #_sourceLocation)
  }

  @Test(arguments: [
    ("#EXT-X-DATERANGE:START-DATE=\"2026-01-01T00:00:00Z\"", "EXT-X-DATERANGE has no ID (RFC 8216 §4.3.2.7)"),
    ("#EXT-X-DATERANGE:ID=\"a\"", "EXT-X-DATERANGE has no START-DATE"),
    ("#EXT-X-DATERANGE:ID=\"a\",START-DATE=\"today\"", "START-DATE of EXT-X-DATERANGE 'today' is not a date"),
    (
      "#EXT-X-DATERANGE:ID=\"a\",START-DATE=\"2026-01-01T00:00:00Z\",DURATION=-1",
      "DURATION of EXT-X-DATERANGE '-1' is not"
    ),
    (
      "#EXT-X-DATERANGE:ID=\"a\",START-DATE=\"2026-01-01T00:00:01Z\",END-DATE=\"2026-01-01T00:00:00Z\"",
      "END-DATE of EXT-X-DATERANGE is before its START-DATE"
    ),
    (
      "#EXT-X-DATERANGE:ID=\"a\",START-DATE=\"2026-01-01T00:00:00Z\",END-DATE=\"2026-01-01T00:00:02Z\",DURATION=1",
      "END-DATE of EXT-X-DATERANGE is not START-DATE and DURATION"
    ),
    (
      "#EXT-X-DATERANGE:ID=\"a\",START-DATE=\"2026-01-01T00:00:00Z\",END-ON-NEXT=YES",
      "EXT-X-DATERANGE with END-ON-NEXT has no CLASS"
    ),
    (
      "#EXT-X-DATERANGE:ID=\"a\",CLASS=\"c\",START-DATE=\"2026-01-01T00:00:00Z\",END-ON-NEXT=YES,DURATION=1",
      "EXT-X-DATERANGE with END-ON-NEXT has DURATION"
    ),
  ])
  func dateRanges(line: String, reason: String) {
    let end = "#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na\n"
    expect("#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z\n\(line)\n\(end)", line: 3, reason)
  }

  @Test func dateRangesTogether() {
    let range = "#EXT-X-DATERANGE:ID=\"a\",START-DATE=\"2026-01-01T00:00:00Z\""
    let end = "#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na\n"
    expect("#EXTM3U\n\(range)\n\(end)", line: 2, "in a playlist without EXT-X-PROGRAM-DATE-TIME")
    expect(
      "#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z\n\(range),DURATION=1\n\(range),DURATION=2\n\(end)",
      line: 4, "two EXT-X-DATERANGE of the ID 'a' differ in DURATION")
  }

  @Test func aTargetDurationThatIsMissingOrLate() {
    expect("#EXTM3U\n#EXTINF:1,\na\n", line: 3, "there is no EXT-X-TARGETDURATION (RFC 8216 §4.3.3.1)")
    expect(
      "#EXTM3U\n#EXTINF:3,\na\n#EXTINF:9,\nb\n#EXTINF:5,\nc\n#EXT-X-TARGETDURATION:8\n", line: 4,
      "EXTINF 9 rounds to more than EXT-X-TARGETDURATION 8")
    expect(
      "#EXTM3U\n#EXT-X-TARGETDURATION:8.5\n#EXTINF:3,\na\n", line: 2, "'8.5' of EXT-X-TARGETDURATION is not")
  }

  @Test(arguments: [
    (1, "#EXT-X-KEY:METHOD=AES-128,URI=\"k\",IV=0x01", "2 or higher"), (2, "#EXTINF:1.0,\nx", "3 or higher"),
    (3, "#EXTINF:1,\n#EXT-X-BYTERANGE:5@0\nx", "4 or higher"), (3, "#EXT-X-I-FRAMES-ONLY", "4 or higher"),
    (4, "#EXT-X-KEY:METHOD=AES-128,URI=\"k\",KEYFORMAT=\"identity\"", "5 or higher"),
    (
      5, "#EXT-X-MAP:URI=\"m\"",
      "EXT-X-MAP needs an EXT-X-VERSION of 6 or higher, and the playlist states 5 (RFC 8216 §7)"
    ),
    (4, "#EXT-X-I-FRAMES-ONLY\n#EXT-X-MAP:URI=\"m\"", "5 or higher"),
    (
      7, "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"b\"",
      "8 or higher, and the playlist states 7 (draft-pantos-hls-rfc8216bis §8)"
    ),
    (8, "#EXT-X-SKIP:SKIPPED-SEGMENTS=1", "9 or higher"),
    (9, "#EXT-X-SKIP:SKIPPED-SEGMENTS=1,RECENTLY-REMOVED-DATERANGES=\"\"", "10 or higher"),
    (10, "#EXT-X-DEFINE:QUERYPARAM=\"token\"", "11 or higher"),
    (11, "#EXT-X-START:TIME-OFFSET=1,REQ-X=1", "12 or higher"),
  ])
  func versions(version: Int, lines: String, reason: String) {
    let head = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n"
    let found = violations("\(head)#EXT-X-VERSION:\(version)\n\(lines)\n#EXTINF:1,\na\n")
    #expect(found.count == 1, "\(found.map(\.description))")
    #expect(found.first?.reason.contains(reason) == true, "\(found.map(\.description))")
    #expect(violations("\(head)#EXT-X-VERSION:\(version + 1)\n\(lines)\n#EXTINF:1,\na\n").isEmpty)
    #expect(
      violations("\(head)\(lines)\n#EXTINF:1,\na\n").first?.reason.contains("the playlist states none")
        == true)
  }

  // MARK: - Multivariant playlists

  @Test(arguments: [
    ("#EXT-X-STREAM-INF:CODECS=\"avc1\"\nv", 2, "EXT-X-STREAM-INF has no BANDWIDTH (RFC 8216 §4.3.4.2)"),
    (
      "#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS=avc1\nv", 2,
      "CODECS of EXT-X-STREAM-INF is not quoted (RFC 8216 §4.2)"
    ),
    ("#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=1280*720\nv", 2, "'1280*720' is not a resolution"),
    (
      "#EXT-X-STREAM-INF:BANDWIDTH=1,VIDEO-RANGE=HDR\nv", 2,
      "VIDEO-RANGE of EXT-X-STREAM-INF 'HDR' is none of"
    ),
    (
      "#EXT-X-STREAM-INF:BANDWIDTH=1,CLOSED-CAPTIONS=cc\nv", 2,
      "CLOSED-CAPTIONS of EXT-X-STREAM-INF is neither quoted nor NONE"
    ),
    (
      "#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\nv", 2,
      "AUDIO names the group 'a', which no EXT-X-MEDIA of that TYPE has"
    ),
    (
      "#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID=\"a\",NAME=\"n\"\n#EXT-X-STREAM-INF:BANDWIDTH=1,SUBTITLES=\"a\"\nv",
      3,
      "SUBTITLES names the group 'a'"
    ),
    (
      "#EXT-X-STREAM-INF:BANDWIDTH=1,CLOSED-CAPTIONS=NONE\nv\n#EXT-X-STREAM-INF:BANDWIDTH=1\nw", 4,
      "CLOSED-CAPTIONS is NONE in some"
    ),
    (
      "#EXT-X-STREAM-INF:BANDWIDTH=1\n#EXT-X-STREAM-INF:BANDWIDTH=2\nv", 2,
      "EXT-X-STREAM-INF without a URI in the next line"
    ),
    (
      "#EXT-X-STREAM-INF:BANDWIDTH=2\nv\n#EXT-X-STREAM-INF:BANDWIDTH=1", 4,
      "EXT-X-STREAM-INF without a URI after it"
    ),
    ("#EXT-X-STREAM-INF:BANDWIDTH=2\nv\nw", 4, "a URI without an EXT-X-STREAM-INF before it"),
    (
      "#EXT-X-STREAM-INF:BANDWIDTH=2\nv\n#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1", 4,
      "EXT-X-I-FRAME-STREAM-INF has no URI"
    ),
    (
      "#EXT-X-STREAM-INF:BANDWIDTH=2\nv\n#EXT-X-ENDLIST", 4,
      "EXT-X-ENDLIST in a multivariant playlist (RFC 8216 §4.3.3)"
    ),
    (
      "#EXT-X-STREAM-INF:BANDWIDTH=2\nv\n#EXT-X-DISCONTINUITY", 4,
      "EXT-X-DISCONTINUITY in a multivariant playlist (RFC 8216 §4.3.2)"
    ),
    (
      "#EXT-X-VERSION:8\n#EXT-X-DEFINE:IMPORT=\"a\"\n#EXT-X-STREAM-INF:BANDWIDTH=2\nv", 3,
      "IMPORT in a multivariant playlist"
    ),
  ])
  func variants(lines: String, line: Int, reason: String) {
    let found = violations("#EXTM3U\n\(lines)\n")
    #expect(found.first?.reason.contains(reason) == true, "\(found.map(\.description))")
    #expect(found.first?.place == .line(line), "\(found.map(\.description))")
    #expect(found.count == 1 || reason.contains("IMPORT"), "\(found.map(\.description))")
  }

  @Test(arguments: [
    ("TYPE=AUDIO,NAME=\"n\"", "EXT-X-MEDIA has no GROUP-ID (RFC 8216 §4.3.4.1)"),
    ("TYPE=AUDIO,GROUP-ID=\"g\"", "EXT-X-MEDIA has no NAME"),
    ("GROUP-ID=\"g\",NAME=\"n\",TYPE=TEXT", "TYPE of EXT-X-MEDIA 'TEXT' is none of"),
    ("TYPE=AUDIO,GROUP-ID=\"g\",NAME=\"n\",DEFAULT=YES,AUTOSELECT=NO", "DEFAULT=YES has AUTOSELECT=NO"),
    ("TYPE=SUBTITLES,GROUP-ID=\"g\",NAME=\"n\"", "of the TYPE SUBTITLES has no URI"),
    ("TYPE=AUDIO,GROUP-ID=\"g\",NAME=\"n\",FORCED=YES", "FORCED in EXT-X-MEDIA of the TYPE AUDIO"),
    ("TYPE=CLOSED-CAPTIONS,GROUP-ID=\"g\",NAME=\"n\"", "of the TYPE CLOSED-CAPTIONS has no INSTREAM-ID"),
    ("TYPE=CLOSED-CAPTIONS,GROUP-ID=\"g\",NAME=\"n\",INSTREAM-ID=\"CC5\"", "INSTREAM-ID 'CC5' is neither"),
    (
      "TYPE=CLOSED-CAPTIONS,GROUP-ID=\"g\",NAME=\"n\",INSTREAM-ID=\"CC1\",URI=\"u\"",
      "CLOSED-CAPTIONS has a URI"
    ),
    (
      "TYPE=CLOSED-CAPTIONS,GROUP-ID=\"g\",NAME=\"n\",INSTREAM-ID=\"SERVICE1\"",
      "an EXT-X-VERSION of 7 or higher"
    ),
    ("TYPE=AUDIO,GROUP-ID=\"g\",NAME=\"n\",INSTREAM-ID=\"1\"", "an EXT-X-VERSION of 13 or higher"),
  ])
  func renditions(list: String, reason: String) {
    let found = violations("#EXTM3U\n#EXT-X-MEDIA:\(list)\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv\n")
    #expect(found.first?.reason.contains(reason) == true, "\(found.map(\.description))")
    #expect(found.map(\.place) == [.line(2)], "\(found.map(\.description))")
  }

  @Test func groupsAndSessions() {
    let end = "#EXT-X-STREAM-INF:BANDWIDTH=1\nv\n"
    let audio = "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"g\",NAME="
    expect(
      "#EXTM3U\n\(audio)\"n\"\n\(audio)\"n\"\n\(end)", line: 3,
      "the NAME 'n' twice in the group 'g' (RFC 8216 §4.3.4.1.1)")
    expect(
      "#EXTM3U\n\(audio)\"n\",DEFAULT=YES\n\(audio)\"m\",DEFAULT=YES\n\(end)", line: 3,
      "a second DEFAULT=YES in the group 'g'")
    let data = "#EXT-X-SESSION-DATA:DATA-ID=\"d\""
    expect(
      "#EXTM3U\n\(data)\n\(end)", line: 2, "EXT-X-SESSION-DATA has neither VALUE nor URI (RFC 8216 §4.3.4.4)")
    expect("#EXTM3U\n\(data),VALUE=\"a\",URI=\"b\"\n\(end)", line: 2, "has both VALUE and URI")
    expect(
      "#EXTM3U\n\(data),VALUE=\"a\"\n\(data),VALUE=\"b\"\n\(end)", line: 3,
      "a second EXT-X-SESSION-DATA of the DATA-ID 'd'")
    let key = "#EXT-X-SESSION-KEY:METHOD=AES-128,URI=\"k\""
    expect("#EXTM3U\n\(key)\n\(key)\n\(end)", line: 3, "the same EXT-X-SESSION-KEY twice (RFC 8216 §4.3.4.5)")
    expect("#EXTM3U\n#EXT-X-SESSION-KEY:METHOD=NONE\n\(end)", line: 2, "EXT-X-SESSION-KEY with METHOD=NONE")
    let steering = "#EXT-X-CONTENT-STEERING:SERVER-URI=\"s\""
    expect(
      "#EXTM3U\n\(steering)\n\(steering)\n\(end)", line: 3, "EXT-X-CONTENT-STEERING is there more than once")
  }

  // MARK: - All of them

  @Test func theyAreInTheOrderOfLinesAndBounded() {
    var text = "#EXTM3U\n#EXT-X-VERSION:2\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:x\n"
    for _ in 0..<500 { text += "#EXTINF:2.5\nb \n" }
    for limit in [0, 1, 7, 100] {
      let found = violations(text, limits: ManifestLimits(warnings: limit))
      #expect(found.count == limit)
      let lines = found.compactMap(\.line)
      #expect(lines == lines.sorted())
      #expect(lines.first == (limit > 0 ? 4 : nil))
    }
    // The version is found wanting at the end, and stands at the first line that needs it.
    #expect(violations(text).prefix(5).compactMap(\.line) == [4, 5, 5, 5, 6])
  }

  @Test func whatTheReaderRefusesIsListed() {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n"
    expect(text, line: 4, "leads from a remote manifest to a local file")
  }

  @Test func descriptionsHaveWhatTheirReaderSays() {
    let found = ManifestReader().violations(in: Array("<MPD/>".utf8), format: .dash, url: manifestURL)
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
