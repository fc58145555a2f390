import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

/// What is wrong with a multivariant playlist by the letter.
@Suite struct MultivariantPlaylistRulesTests {
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
    let found = hlsViolations("#EXTM3U\n\(lines)\n")
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
    let found = hlsViolations("#EXTM3U\n#EXT-X-MEDIA:\(list)\n#EXT-X-STREAM-INF:BANDWIDTH=1\nv\n")
    #expect(found.first?.reason.contains(reason) == true, "\(found.map(\.description))")
    #expect(found.map(\.place) == [.line(2)], "\(found.map(\.description))")
  }

  @Test func groupsAndSessions() {
    let end = "#EXT-X-STREAM-INF:BANDWIDTH=1\nv\n"
    let audio = "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"g\",NAME="
    expectHLSViolation(
      "#EXTM3U\n\(audio)\"n\"\n\(audio)\"n\"\n\(end)", line: 3,
      "the NAME 'n' twice in the group 'g' (RFC 8216 §4.3.4.1.1)")
    expectHLSViolation(
      "#EXTM3U\n\(audio)\"n\",DEFAULT=YES\n\(audio)\"m\",DEFAULT=YES\n\(end)", line: 3,
      "a second DEFAULT=YES in the group 'g'")
    let data = "#EXT-X-SESSION-DATA:DATA-ID=\"d\""
    expectHLSViolation(
      "#EXTM3U\n\(data)\n\(end)", line: 2, "EXT-X-SESSION-DATA has neither VALUE nor URI (RFC 8216 §4.3.4.4)")
    expectHLSViolation("#EXTM3U\n\(data),VALUE=\"a\",URI=\"b\"\n\(end)", line: 2, "has both VALUE and URI")
    expectHLSViolation(
      "#EXTM3U\n\(data),VALUE=\"a\"\n\(data),VALUE=\"b\"\n\(end)", line: 3,
      "a second EXT-X-SESSION-DATA of the DATA-ID 'd'")
    let key = "#EXT-X-SESSION-KEY:METHOD=AES-128,URI=\"k\""
    expectHLSViolation(
      "#EXTM3U\n\(key)\n\(key)\n\(end)", line: 3, "the same EXT-X-SESSION-KEY twice (RFC 8216 §4.3.4.5)")
    expectHLSViolation(
      "#EXTM3U\n#EXT-X-SESSION-KEY:METHOD=NONE\n\(end)", line: 2, "EXT-X-SESSION-KEY with METHOD=NONE")
    let steering = "#EXT-X-CONTENT-STEERING:SERVER-URI=\"s\""
    expectHLSViolation(
      "#EXTM3U\n\(steering)\n\(steering)\n\(end)", line: 3, "EXT-X-CONTENT-STEERING is there more than once")
  }
}
