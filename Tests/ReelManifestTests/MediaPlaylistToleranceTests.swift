import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import ReelRules
import Testing

/// What players go on with, and so do we.
@Suite struct MediaPlaylistToleranceTests {
  @Test(arguments: ["\n", "\r\n", "\r", "\n\n", "\r\n\r\n", " \t\n", " \r"])
  func linesEndInManyWays(end: String) throws {
    let lines = [
      "#EXTM3U", "#EXT-X-TARGETDURATION:2", "#EXTINF:2,title", "a.ts", "#EXTINF:1,", "b.ts", "#EXT-X-ENDLIST",
    ]
    for text in [lines.joined(separator: end), lines.joined(separator: end) + end] {
      let playlist = try mediaPlaylist(text)
      #expect(
        playlist.segments.urls == ["https://origin.example/a/b/a.ts", "https://origin.example/a/b/b.ts"])
      #expect(!playlist.isLive)
      #expect(playlist.warnings.isEmpty)
    }
  }

  /// Where each line looked for the end of the whole text, this would take many minutes.
  @Test(.hangLimit) func manyCarriageReturnsTakeNoLongerThanLineFeeds() {
    let text = "#EXTM3U\r" + String(repeating: "\r", count: 4 << 20) + "x"
    #expect(manifestError { _ = try mediaPlaylist(text) }?.reason.contains("neither variants") == true)
  }

  @Test func lineNumbersCountEveryEnd() {
    let text = "#EXTM3U\r#EXT-X-TARGETDURATION:1\r\n\r\n#EXTINF:1,\n\n#EXT-X-BYTERANGE:-1@0\ra.ts"
    #expect(manifestError { _ = try mediaPlaylist(text) }?.place == .line(6))
  }

  @Test(arguments: [
    ("#EXT-X-MEDIA-SEQUENCE:", "EXT-X-MEDIA-SEQUENCE '' is not a number"),
    ("#EXT-X-MEDIA-SEQUENCE:many", "EXT-X-MEDIA-SEQUENCE 'many' is not a number"),
    ("#EXT-X-DISCONTINUITY-SEQUENCE:A", "EXT-X-DISCONTINUITY-SEQUENCE 'A' is not a number"),
    ("#EXT-X-TARGETDURATION:long", "EXT-X-TARGETDURATION 'long' is not a number"),
    ("#EXT-X-BYTERANGE:", "EXT-X-BYTERANGE without a range"),
    ("#EXT-X-BYTERANGE", "EXT-X-BYTERANGE without a range"), ("#EXT-X-MAP", "EXT-X-MAP without attributes"),
  ])
  func whatIsNoNumberIsPassedOver(line: String, reason: String) throws {
    let playlist = try mediaPlaylist("#EXTM3U\n#EXT-X-TARGETDURATION:1\n\(line)\n#EXTINF:1,\na.ts\n")
    #expect(playlist.segments.map(\.number) == [0])
    #expect(playlist.segments.first?.byteRange == nil)
    #expect(playlist.warnings.map(\.reason) == [reason])
    #expect(playlist.warnings.first?.place == .line(3))
  }

  @Test(arguments: [
    ("#EXT-X-MEDIA-SEQUENCE:99999999999999999999", "is not a whole number of 64 bits"),
    ("#EXT-X-MEDIA-SEQUENCE:1.5", "is not a whole number of 64 bits"),
    ("#EXT-X-DISCONTINUITY-SEQUENCE:1e30", "is not a whole number of 64 bits"),
    (
      "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"1\"\n#EXT-X-DEFINE:NAME=\"a\",VALUE=\"2\"",
      "defines 'a' a second time"
    ),
  ])
  func badNumbersAreErrors(line: String, reason: String) {
    let error = manifestError { _ = try mediaPlaylist("#EXTM3U\n\(line)\n#EXTINF:1,\na.ts\n") }
    #expect(error?.reason.hasSuffix(reason) == true, "\(error?.description ?? "")")
  }

  @Test(arguments: [("-7", -7), ("7.0", 7), ("-9223372036854775808", .min)] as [(String, Int64)])
  func segmentsAreCountedFromAnyWholeNumber(text: String, number: Int64) throws {
    let lines = "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:\(text)\n#EXT-X-DISCONTINUITY-SEQUENCE:\(text)\n"
    let playlist = try mediaPlaylist(lines + "#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.ts\n#EXTINF:1,\nb.ts\n")
    #expect(playlist.segments.map(\.number) == [number, number + 1])
    let what = number < 0 ? "below 0" : "not a whole number"
    #expect(
      playlist.warnings.map(\.reason) == [
        "EXT-X-MEDIA-SEQUENCE '\(text)' is \(what): treated as \(number)",
        "EXT-X-DISCONTINUITY-SEQUENCE '\(text)' is \(what): treated as \(number)",
      ])
    let violations = RuleChecker().violations(in: Array(lines.utf8), format: .hls, url: manifestURL)
    #expect(
      violations.filter { $0.error.reason.contains("SEQUENCE") }.map(\.error.place) == [.line(2), .line(3)])
  }

  @Test func aListMayBeCountedFromBelowZeroUpwards() throws {
    let text = { (first: Int64) in
      "#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:\(first)\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\na.ts\n#EXTINF:1,\nb.ts\n"
    }
    var window = SegmentWindow(try mediaPlaylist(text(-2)).segments, identity: .number)
    #expect(window.update(try mediaPlaylist(text(-1)).segments) == .grew(by: 1))
    #expect(window.update(try mediaPlaylist(text(1)).segments) == .jumped(missed: 0))
    #expect(window.update(try mediaPlaylist(text(.min)).segments) == .steppedBack)
    #expect(window.end == MediaTime(value: 5, timescale: 1))
  }

  @Test(arguments: [";asdf", "", "-1", "-1 tvg-id=\"a\"", "NaN", "inf", "1e30", "99999999999"])
  func aDurationThatIsNoNumberIsTheTarget(text: String) throws {
    let playlist = try mediaPlaylist(
      "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:\(text),\na.ts\n#EXTINF:2,\nb.ts\n")
    #expect(
      playlist.segments.durations == [MediaTime(value: 9, timescale: 1), MediaTime(value: 2, timescale: 1)])
    #expect(
      playlist.warnings.map(\.reason) == [
        "the EXTINF duration '\(text)' is not a duration: treated as the target duration"
      ])
    #expect(playlist.warnings.map(\.place) == [.line(3)])
    let violations = RuleChecker().violations(
      in: Array("#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:\(text),\na.ts\n".utf8), format: .hls,
      url: manifestURL)
    #expect(violations.contains { $0.error.place == .line(3) })
  }

  @Test func whatNoDurationAnnouncesIsNoSegment() throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXT-X-TARGETDURATION:9
      #EXTINF:2,
      a.ts
      #EXT-X-BYTERANGE:5@5
      JUNK
      #EXTINF:3,
      b.ts
      #EXTINF:3,
      """)
    #expect(playlist.segments.urls.map { $0.suffix(4) } == ["a.ts", "b.ts"])
    #expect(playlist.segments.map(\.byteRange) == [nil, nil])
    #expect(
      playlist.warnings.map(\.reason) == ["a URL without EXTINF", "an EXTINF without a segment after it"])
    #expect(playlist.warnings.map(\.place) == [.line(6), .line(9)])
  }

  @Test func aSegmentMayHaveLostItsDuration() throws {
    let text =
      "#EXTM3U\n#EXT-X-TARGETDURATION:8\n#EXTINF:6.64,\n/x/a.ts?q=1\n/x/b.ts\nx.y/c\n#EXTINF:5,\nd.ts\n"
    let playlist = try mediaPlaylist(text)
    try #require(playlist.segments.map(\.url.lastPathComponent) == ["a.ts", "b.ts", "d.ts"])
    #expect(playlist.segments[1].duration == MediaTime(value: 8, timescale: 1))
    #expect(
      playlist.warnings.map(\.reason) == [
        "a segment without EXTINF, assumed to last the target duration", "a URL without EXTINF",
      ])
    #expect(playlist.warnings.map(\.place) == [.line(5), .line(6)])
  }

  @Test(arguments: [
    ("seg.ts?a=1&b=x/y", "https://origin.example/a/b/seg.ts?a=1&b=x/y"),
    ("../../../../up.ts", "https://origin.example/up.ts"), ("//cdn.example/x.ts", "https://cdn.example/x.ts"),
    ("?x=2", "https://origin.example/a/b/manifest?x=2"), ("0", "https://origin.example/a/b/0"),
    ("frag(1)/video's.ts", "https://origin.example/a/b/frag(1)/video's.ts"),
    ("a,b;c=d@e.ts", "https://origin.example/a/b/a,b;c=d@e.ts"),
    ("HTTP://OTHER.example/a.ts", "HTTP://OTHER.example/a.ts"),
  ])
  func referencesAreResolved(reference: String, url: String) throws {
    #expect(try mediaPlaylist("#EXTM3U\n#EXTINF:1,\n\(reference)\n").segments.urls == [url])
  }

  @Test func smallLettersAndSpacesInAttributes() throws {
    let playlist = try mediaPlaylist(
      """
      #EXTM3U
      #EXT-X-KEY: METHOD = aes-128 , URI = "k" , IV = 0X0A
      #EXT-X-START: TIME-OFFSET = 3 , PRECISE = yes , UNKNOWN = "x"
      #EXT-X-SERVER-CONTROL: HOLD-BACK = 7
      #EXTINF:1,
      a.ts
      """)
    #expect(playlist.segments.first?.encryption?.method == "AES-128")
    #expect(playlist.segments.first?.encryption?.initializationVector?.last == 10)
    #expect(playlist.startOffset == StartOffset(MediaTime(value: 3, timescale: 1), isPrecise: true))
    #expect(playlist.live?.delay == MediaTime(value: 7, timescale: 1))
  }

  @Test func keysMayStandBetweenDurationAndURL() throws {
    let playlist = try mediaPlaylist("#EXTM3U\n#EXTINF:1,\n#EXT-X-KEY:METHOD=AES-128,URI=\"k\"\na.ts\n")
    #expect(playlist.segments.first?.encryption?.method == "AES-128")
  }

  /// Whatever the bytes, there is a playlist or an error, and no trap.
  @Test func damagedPlaylistsDoNotTrap() throws {
    let pieces = [
      "#EXTM3U\n", "#EXTINF:", "#EXT-X-PART:", "#EXT-X-KEY:", "#EXT-X-MAP:", "#EXT-X-BYTERANGE:", "URI=\"a\"",
      ",",
      "METHOD=AES-128", "1", "9223372036854775807", "-", ".", "@", "\n", "\r", "\"", "=", "DURATION=1",
      "#EXT-X-PROGRAM-DATE-TIME:", "2026-01-01T00:00:00Z", "#EXT-X-SKIP:SKIPPED-SEGMENTS=",
      "#EXT-X-DATERANGE:ID=\"\"",
      "#EXT-X-MEDIA-SEQUENCE:", "#EXT-X-DISCONTINUITY", "#EXT-X-BITRATE:", "\u{FEFF}", "é", "{$a}", "\0",
      "#EXT-X-DEFINE:NAME=\"a\",VALUE=\"b\"", "#EXT-X-STREAM-INF:", "#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"g\"",
      "\t",
    ]
    var generator = SystemRandomNumberGenerator()
    var readable = 0
    for _ in 0..<4000 {
      let text =
        "#EXTM3U\n"
        + (0..<Int.random(in: 1...24, using: &generator)).map { _ in pieces.randomElement() ?? "" }
        .joined()
      let violations = RuleChecker().violations(in: Array(text.utf8), format: .hls, url: manifestURL)
      do {
        let presentation = try hlsPresentation(text)
        readable += 1
        if case .segments(let segments)? = presentation.periods.first?.trackGroups.first?.rungs.first?.media {
          #expect(segments.map(\.number).count == segments.count)
        }
      } catch {
        #expect(!violations.isEmpty, "\(error) is no violation of\n\(text)")
      }
    }
    #expect(readable > 10)
  }
}
