import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

/// What is wrong with a media playlist by the letter.
@Suite struct MediaPlaylistRulesTests {
  /// The line that is wrong is the one with the `!`.
  private func expectMedia(_ lines: String, version: Int, _ reason: String, sourceLocation: SourceLocation) {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXT-X-VERSION:\(version)\n\(lines)"
    let line = text.split(separator: "\n").firstIndex { $0.hasSuffix("!") } ?? -1
    expectHLSViolation(
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
    expectHLSViolation(
      "#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z\n\(line)\n\(end)", line: 3, reason)
  }

  @Test func dateRangesTogether() {
    let range = "#EXT-X-DATERANGE:ID=\"a\",START-DATE=\"2026-01-01T00:00:00Z\""
    let end = "#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na\n"
    expectHLSViolation("#EXTM3U\n\(range)\n\(end)", line: 2, "in a playlist without EXT-X-PROGRAM-DATE-TIME")
    expectHLSViolation(
      "#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z\n\(range),DURATION=1\n\(range),DURATION=2\n\(end)",
      line: 4, "two EXT-X-DATERANGE of the ID 'a' differ in DURATION")
  }

  @Test func aTargetDurationThatIsMissingOrLate() {
    expectHLSViolation(
      "#EXTM3U\n#EXTINF:1,\na\n", line: 3, "there is no EXT-X-TARGETDURATION (RFC 8216 §4.3.3.1)")
    expectHLSViolation(
      "#EXTM3U\n#EXTINF:3,\na\n#EXTINF:9,\nb\n#EXTINF:5,\nc\n#EXT-X-TARGETDURATION:8\n", line: 4,
      "EXTINF 9 rounds to more than EXT-X-TARGETDURATION 8")
    expectHLSViolation(
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
    let found = hlsViolations("\(head)#EXT-X-VERSION:\(version)\n\(lines)\n#EXTINF:1,\na\n")
    #expect(found.count == 1, "\(found.map(\.description))")
    #expect(found.first?.reason.contains(reason) == true, "\(found.map(\.description))")
    #expect(hlsViolations("\(head)#EXT-X-VERSION:\(version + 1)\n\(lines)\n#EXTINF:1,\na\n").isEmpty)
    #expect(
      hlsViolations("\(head)\(lines)\n#EXTINF:1,\na\n").first?.reason.contains("the playlist states none")
        == true)
  }
}
