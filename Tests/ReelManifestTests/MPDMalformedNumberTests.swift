import Foundation
import ReelCore
import ReelTestSupport
import ReelRules
import Testing

@testable import ReelManifest

/// An unreadable number rules out only the Representations that need it.
@Suite struct MPDMalformedNumberTests {
  private let template = #"<SegmentTemplate media="$Number$" duration="2"/>"#

  private func audioSet(_ content: String, id: String = "a1") -> String {
    """
    <AdaptationSet mimeType="audio/mp4">\(content)<Representation id="\(id)" codecs="mp4a.40.2"/></AdaptationSet>
    """
  }

  /// The ids of the rungs of the first period.
  private func ids(_ presentation: Presentation) -> [String] {
    presentation.periods.first?.trackGroups.flatMap(\.rungs).map(\.id) ?? []
  }

  /// Malformed contents of an AdaptationSet, with the expected error.
  private static let broken: [(String, String)] = [
    (#"<SegmentTemplate media="$Number$" duration="two"/>"#, "@duration 'two' is not a whole number"),
    (#"<SegmentTemplate media="$Number$" duration="2.5"/>"#, "@duration '2.5' is not a whole number"),
    (#"<SegmentTemplate media="$Number$" duration="-2"/>"#, "@duration is -2, below 0"),
    (#"<SegmentTemplate media="$Number$" duration="2" timescale="0"/>"#, "@timescale is 0"),
    (#"<SegmentTemplate media="$Number$" duration="2" timescale="x"/>"#, "@timescale 'x' is not a whole"),
    (#"<SegmentTemplate media="$Number$" duration="2" startNumber="x"/>"#, "@startNumber 'x' is not"),
    (#"<SegmentTemplate media="$Number$" duration="2" endNumber="-1"/>"#, "@endNumber is -1, below 0"),
    (#"<SegmentTemplate media="$Number$" duration="2" eptDelta="x"/>"#, "@eptDelta 'x' is not a whole"),
    (
      #"<SegmentTemplate media="$Number$" duration="2" presentationTimeOffset="0x10"/>"#,
      "@presentationTimeOffset '0x10' is not"
    ),
    (
      #"<SegmentTemplate media="$Number$" duration="2"><Initialization range="7-5"/></SegmentTemplate>"#,
      "@range '7-5' is not a byte range"
    ),
    (
      #"<SegmentTemplate media="$Time$"><SegmentTimeline><S d="0"/></SegmentTimeline></SegmentTemplate>"#,
      "S has no @d above 0"
    ),
    (
      #"<SegmentTemplate media="$Time$"><SegmentTimeline><S t="x" d="1"/></SegmentTimeline></SegmentTemplate>"#,
      "@t 'x' is not a whole number"
    ),
    (
      #"<SegmentTemplate media="$Time$"><SegmentTimeline><S d="1" r="x"/></SegmentTimeline></SegmentTemplate>"#,
      "@r 'x' is not a whole number"
    ),
    (
      #"<SegmentTemplate media="$Time$"><SegmentTimeline><S d="1" k="0"/></SegmentTimeline></SegmentTemplate>"#,
      "@k is 0"
    ),
    (
      "<SegmentList duration='2'><SegmentURL/><SegmentURL mediaRange='-7632'/></SegmentList>",
      "@mediaRange '-7632' is not"
    ),
    ("<BaseURL>a</BaseURL><SegmentBase indexRange='7-6-3'/>", "@indexRange '7-6-3' is not a byte range"),
    (
      "<BaseURL>a</BaseURL><SegmentBase><RepresentationIndex range='one'/></SegmentBase>",
      "@range 'one' is not a byte range"
    ),
  ]

  @Test(arguments: broken)
  func aBrokenSetLeavesTheOthers(content: String, reason: String) throws {
    let presentation = try dashPresentation(mpd("\n" + audioSet(content) + videoSet(template)))
    #expect(ids(presentation) == ["v1"])
    #expect(presentation.warnings.count == 1)
    #expect(presentation.warnings.first?.reason.hasPrefix(reason) == true, "\(presentation.warnings)")
    guard case .line(let line, column: _)? = presentation.warnings.first?.place else {
      Issue.record("the warning has no line")
      return
    }
    #expect(line == 4)
  }

  @Test(arguments: broken)
  func aBrokenRepresentationLeavesTheOthers(content: String, reason: String) throws {
    let set = """
      <AdaptationSet mimeType="video/mp4"><Representation id="x">\(content)</Representation>
      <Representation id="y">\(template)</Representation></AdaptationSet>
      """
    let presentation = try dashPresentation(mpd(set))
    #expect(ids(presentation) == ["y"])
    #expect(presentation.warnings.first?.reason.hasPrefix(reason) == true)
    #expect(presentation.periods.first?.videoFailure == presentation.warnings.first)
  }

  @Test(arguments: broken)
  func withNothingLeftTheFirstReasonIsTheError(content: String, reason: String) {
    let error = manifestError {
      _ = try dashPresentation(mpd(audioSet(content) + audioSet("<SegmentTemplate duration='1'/>")))
    }
    #expect(error?.reason.hasPrefix(reason) == true, "\(error?.description ?? "")")
  }

  @Test(arguments: broken)
  func theStrictReadingTellsOfEach(content: String, reason: String) {
    let text = mpd(
      #"<AdaptationSet mimeType="a/b"><Representation id="1" bandwidth="1">\#(content)</Representation></AdaptationSet>"#,
      attributes: #"profiles="p" minBufferTime="PT2S" mediaPresentationDuration="PT20S""#)
    #expect(!RuleChecker().violations(in: Array(text.utf8), format: .dash, url: manifestURL).isEmpty)
  }

  @Test func aDecimalWithAWholeValueIsThatNumber() throws {
    let content =
      #"<SegmentTemplate media="$Bandwidth$-$Number$" timescale="1e6" duration="2000000.0" startNumber="3."/>"#
    let set = """
      <AdaptationSet mimeType="video/mp4">\(content)<Representation id="x" bandwidth="500.00"/></AdaptationSet>
      """
    let presentation = try dashPresentation(mpd(set, attributes: #"mediaPresentationDuration="PT4S""#))
    #expect(try presentation.segments().urls.map { $0.suffix(5) } == ["500-3", "500-4"])
    #expect(try presentation.segments().durations == [2, 2].map { MediaTime(value: $0, timescale: 1) })
    #expect(
      presentation.warnings.map(\.reason) == [
        "@timescale '1e6' is not a whole number: treated as 1000000",
        "@duration '2000000.0' is not a whole number: treated as 2000000",
        "@startNumber '3.' is not a whole number: treated as 3",
      ])
    #expect("9007199254740993.5".wholeNumber == nil)
    #expect("9223372036854775807.0".wholeNumber == .max)
    #expect(["0x10", "nan", "inf", "1e400", ".", "", "1.5", "--1"].compactMap(\.wholeNumber) == [])
  }

  @Test func whatIsInheritedAffectsThoseThatUseIt() throws {
    let own = #"<SegmentTemplate timescale="1" duration="2"/>"#
    let period = """
      <SegmentTemplate timescale="0" media="$Number$" duration="x"/>
      <AdaptationSet mimeType="video/mp4"><Representation id="a"/><Representation id="b">\(own)</Representation>
      <Representation id="c"><BaseURL>c.mp4</BaseURL><SegmentBase indexRange="0-9"/></Representation></AdaptationSet>
      <AdaptationSet mimeType="audio/mp4"><SegmentTemplate timescale="10"/><Representation id="d"/>
      <Representation id="e"><SegmentTemplate><SegmentTimeline><S d="20"/></SegmentTimeline></SegmentTemplate>
      </Representation></AdaptationSet>
      """
    let presentation = try dashPresentation(mpd("\n" + period))
    #expect(ids(presentation) == ["b", "c", "e"])
    // One warning for each value, however many Representations it rules out.
    #expect(
      presentation.warnings.map(\.reason) == [
        "@timescale is 0", "@duration 'x' is not a whole number of 64 bits",
      ])
    #expect(presentation.warnings.map(\.place) == [.line(4, column: 1), .line(4, column: 59)])
  }

  @Test func rangesThatAreNotNeededAreNoReason() throws {
    let content =
      #"<SegmentTemplate media="$Number$" duration="2" indexRange="7-5"><RepresentationIndex range="x"/></SegmentTemplate>"#
    let presentation = try dashPresentation(mpd(videoSet(content)))
    #expect(ids(presentation) == ["v1"])
    #expect(presentation.warnings.count == 2)
  }

  @Test func aTimelineEndsBeforeTheFirstEntryThatCanNotBeRead() throws {
    for entry in [#"<S d="-1"/>"#, #"<S t="x" d="2"/>"#, #"<S d="2" r="x"/>"#, #"<S d="2" n="-1"/>"#] {
      let content =
        #"<SegmentTemplate media="$Time$"><SegmentTimeline><S d="2" r="1"/>\#(entry)<S d="2"/></SegmentTimeline>"#
        + "</SegmentTemplate>"
      let presentation = try dashPresentation(mpd(videoSet(content)))
      #expect(try presentation.segments().count == 2)
      #expect(presentation.warnings.count == 1)
      #expect(presentation.warnings.first?.reason.hasSuffix("the SegmentTimeline ends before it") == true)
    }
  }

  @Test func segmentsWithoutADurationHaveANumberAndAreLeftOut() throws {
    let content =
      #"<SegmentTemplate media="$Number$" startNumber="5"><SegmentTimeline><S t="0" d="2" r="1"/><S d="0" r="1"/>"#
      + #"<S d="2"/><S d="0"/></SegmentTimeline></SegmentTemplate>"#
    let presentation = try dashPresentation(mpd(videoSet(content)))
    let segments = try presentation.segments()
    #expect(segments.map(\.number) == [5, 6, 9])
    #expect(segments.map(\.start.seconds) == [0, 2, 4])
    #expect(presentation.warnings.count == 2)
  }

  @Test(arguments: [
    #"minBufferTime="x""#, #"maxSegmentDuration="PT""#, #"timeShiftBufferDepth="-1""#,
    #"suggestedPresentationDelay="PT1""#, #"minimumUpdatePeriod="soon""#,
  ])
  func whatIsWrongAboveLeavesTheTracks(attribute: String) throws {
    for type in ["static", "dynamic"] {
      let attributes =
        #"type="\#(type)" mediaPresentationDuration="PT20S" availabilityStartTime="2026-01-01T00:00:00Z" \#(attribute)"#
      let text = mpd(videoSet(template), attributes: attributes, period: #"start="PT0S""#)
      let presentation = try dashPresentation(text)
      #expect(try presentation.segments().count == 10)
      #expect(presentation.warnings.count == 1)
      if attribute.contains("Update"), type == "dynamic" {
        #expect(presentation.live?.reload == .after(.zero))
      }
    }
  }

  @Test func aPeriodIsPlacedByTheLengthsOfThoseAfterIt() throws {
    let periods = ["duration='x'", "start='x' duration='PT4S'", "duration='PT6S'"].map {
      "<Period \($0)>\(videoSet(template))</Period>"
    }
    let presentation = try dashPresentation(
      "<MPD mediaPresentationDuration='PT20S'>\(periods.joined())</MPD>")
    #expect(presentation.periods.map(\.start.seconds) == [0, 10, 14])
    #expect(try (0..<3).map { try presentation.segments(period: $0).count } == [5, 2, 3])
  }

  @Test(arguments: [
    ("qualityRanking='best'", "@qualityRanking 'best' is not a whole number: ignored"),
    ("frameRate='fast'", "@frameRate 'fast' is not a frame rate: ignored"),
    ("sar='4'", "@sar '4' is not a ratio: ignored"),
    ("bandwidth='much'", "@bandwidth 'much' is not a positive whole number: ignored"),
  ])
  func whatOnlyDescribesIsPassedOver(attribute: String, reason: String) throws {
    let set =
      #"<AdaptationSet mimeType="video/mp4"><Representation id="x" \#(attribute)>\#(template)</Representation></AdaptationSet>"#
    let presentation = try dashPresentation(mpd(set))
    #expect(ids(presentation) == ["x"])
    #expect(presentation.warnings.map(\.reason) == [reason])
    let violations = RuleChecker().violations(in: Array(mpd(set).utf8), format: .dash, url: manifestURL)
    #expect(violations.contains { $0.error.reason.hasPrefix(String(reason.prefix(14))) }, "\(violations)")
  }

  /// Breaks each number of a presentation in turn. Representations that do not need it still play.
  @Test(arguments: ["", "x", "-1", "0", "1.5", "99999999999999999999", "NaN", "PT-1S"])
  func whateverNumberIsBrokenTheRestPlays(value: String) throws {
    let text = """
      <MPD mediaPresentationDuration="PT20S" minBufferTime="PT2S" maxSegmentDuration="PT2S">
      <Period start="PT0S" duration="PT20S">
      <AdaptationSet mimeType="video/mp4" selectionPriority="1" width="720" height="1280" frameRate="25">
      <SegmentTemplate media="$Number$" timescale="10" duration="20" startNumber="5" endNumber="14"
       presentationTimeOffset="20" eptDelta="1"/><Representation id="v1" bandwidth="9" qualityRanking="1"/>
      <Representation id="v2" bandwidth="10"><SegmentTemplate timescale="100" duration="200"/></Representation>
      </AdaptationSet>
      <AdaptationSet mimeType="audio/mp4"><Representation id="a1" bandwidth="8"><BaseURL>a</BaseURL>
      <SegmentBase timescale="90" indexRange="20-40" presentationTimeOffset="3"><Initialization range="0-19"/>
      </SegmentBase></Representation></AdaptationSet>
      <AdaptationSet mimeType="audio/mp4"><SegmentTemplate media="$Time$" timescale="7"><SegmentTimeline>
      <S t="3" d="14" r="4"/><S n="9" d="7" k="1"/></SegmentTimeline></SegmentTemplate><Representation id="b1"/>
      </AdaptationSet>
      <AdaptationSet mimeType="text/mp4"><SegmentList duration="5" timescale="1"><SegmentURL mediaRange="0-9"/>
      <SegmentURL media="b" mediaRange="10-19"/></SegmentList><Representation id="t1"/></AdaptationSet>
      </Period></MPD>
      """
    #expect(ids(try dashPresentation(text)) == ["v1", "v2", "a1", "b1", "t1"])
    let attribute = try Regex(#"="(PT)?[0-9][^"]*""#)
    let places = text.ranges(of: attribute)
    #expect(places.count == 36)
    for place in places {
      let presentation = try dashPresentation(text.replacingCharacters(in: place, with: "=\"\(value)\""))
      #expect(presentation.periods.count == 1)
      // All others than the broken Representation, and those that inherit the value, remain.
      #expect(ids(presentation).count >= 3, "\(text[..<place.lowerBound].suffix(40))\(value)")
    }
  }
}
