import Foundation
import ReelCore
import ReelTestSupport
import ReelManifest
import Testing

@testable import ReelRules

@Suite struct MPDRulesTests {
  private func violations(_ text: String, limits: ManifestLimits = ManifestLimits()) -> [ReelError] {
    MPDRules.violations(in: Array(text.utf8), url: manifestURL, limits: limits).map(\.error)
  }

  private let good = #"profiles="p" minBufferTime="PT2S" mediaPresentationDuration="PT20S""#
  private let template = #"<SegmentTemplate media="$Number$" duration="2"/>"#

  /// The reasons for an MPD whose representation holds `segments`.
  private func reasons(
    _ segments: String, attributes: String? = nil, set: String = #"mimeType="video/mp4""#,
    representation: String = #"id="v" bandwidth="1""#, period: String = ""
  ) -> [String] {
    violations(
      mpd(
        "<AdaptationSet \(set)><Representation \(representation)>\(segments)</Representation></AdaptationSet>",
        attributes: attributes ?? good, period: period)
    ).map(\.reason)
  }

  @Test func aSoundMPDHasNone() {
    #expect(reasons(template) == [])
    let live = """
      <d:MPD xmlns:d="urn:mpeg:dash:schema:mpd:2011" xmlns:x="urn:x" type="dynamic" profiles="p" minBufferTime="PT1S"
       availabilityStartTime="2026-01-01T00:00:00Z" publishTime="2026-01-01T00:00:00Z" minimumUpdatePeriod="PT2S">
      <d:BaseURL>a/</d:BaseURL><d:Location>b</d:Location><d:Period id="1" start="PT0S"><x:any/><d:AdaptationSet>
      <d:Role schemeIdUri="r"/><d:SegmentTemplate timescale="10" media="$Time$"><d:SegmentTimeline>
      <d:S t="0" d="5" r="3"/><d:S d="4" r="-1"/><d:S t="90" d="1"/></d:SegmentTimeline></d:SegmentTemplate>
      <d:Representation id="a" bandwidth="9" mimeType="audio/mp4"/></d:AdaptationSet></d:Period>
      <d:UTCTiming schemeIdUri="u"/></d:MPD>
      """
    #expect(violations(live) == [])
  }

  @Test(arguments: [
    (#"minBufferTime="PT2S" mediaPresentationDuration="PT20S""#, "@profiles is missing"),
    (#"profiles="p" mediaPresentationDuration="PT20S""#, "@minBufferTime is missing"),
    (
      #"profiles="p" minBufferTime="PT2S""#,
      "neither @mediaPresentationDuration, @minimumUpdatePeriod nor @duration of the last Period tells the length"
    ),
    (
      #"profiles="p" minBufferTime="2" mediaPresentationDuration="PT20S""#,
      "@minBufferTime '2' is not an xs:duration of 0 or more"
    ),
    (
      #"profiles="p" minBufferTime="PT2S" mediaPresentationDuration="PT-5S""#,
      "@mediaPresentationDuration 'PT-5S' is not an xs:duration of 0 or more"
    ),
    (
      #"profiles="p" minBufferTime="PT2S" mediaPresentationDuration="PT2S" minimumUpdatePeriod="PT2S""#,
      "@minimumUpdatePeriod is there, @type being static"
    ),
    (
      #"type="live" profiles="p" minBufferTime="PT2S" mediaPresentationDuration="PT2S""#,
      "@type 'live' is neither static nor dynamic"
    ),
  ])
  func attributesOfTheMPD(attributes: String, reason: String) {
    let found = violations(
      mpd(
        #"<AdaptationSet mimeType="a/b"><Representation id="1" bandwidth="1">\#(template)</Representation></AdaptationSet>"#,
        attributes: attributes))
    #expect(found.map(\.reason) == ["\(reason) (ISO/IEC 23009-1 §5.3.1.2)"])
    #expect(found.first?.place == .line(2, column: 1) || found.first?.place == .element("MPD"))
    #expect(found.first?.location == manifestURL.absoluteString)
  }

  @Test func attributesOfALiveMPD() {
    let attributes = #"type="dynamic" profiles="p" minBufferTime="PT2S" minimumUpdatePeriod="PT2S""#
    #expect(
      reasons(template, attributes: attributes).map { $0.prefix(40) } == [
        "@availabilityStartTime is missing, @type", "@publishTime is missing, @type being dyn",
        "a Period has no @id, @type being dynamic",
      ])
    let dates = #" availabilityStartTime="2026-01-01" publishTime="soon""#
    #expect(
      reasons(template, attributes: attributes + dates, period: #"id="1""#).map { $0.prefix(35) } == [
        "@availabilityStartTime '2026-01-01'", "@publishTime 'soon' is not an xs:da",
      ])
  }

  @Test(arguments: [
    ("<MPD", "the tag <MPD> is not closed"), ("", "the MPD is empty"), ("{}", "not XML: it is JSON"),
    ("<a/>", "not an MPD: its root element is <a>"),
  ])
  func whatIsNoMPDIsItsOnlyViolation(text: String, reason: String) {
    #expect(violations(text).map(\.reason) == [reason])
  }

  @Test func theNamespaceIsAskedForOnce() {
    let content =
      "<Period><AdaptationSet><Representation id='1' bandwidth='1' mimeType='m'>\(template)</Representation></AdaptationSet></Period>"
    #expect(
      violations("<MPD \(good)>\(content)</MPD>").map(\.reason) == [
        "the namespace 'urn:mpeg:dash:schema:mpd:2011' is missing (ISO/IEC 23009-1 Annex B)"
      ])
    #expect(
      violations("<MPD xmlns='urn:x' \(good)>\(content)</MPD>").map(\.reason) == [
        "the namespace is 'urn:x', not 'urn:mpeg:dash:schema:mpd:2011' (ISO/IEC 23009-1 Annex B)"
      ])
  }

  @Test(arguments: [
    ("a Representation has no @id", #"bandwidth="1""#),
    ("a Representation has no @bandwidth", #"id="v""#),
    ("@bandwidth '-1' is not a whole number", #"id="v" bandwidth="-1""#),
    ("has white space", #"id="v w" bandwidth="1""#),
  ])
  func attributesOfARepresentation(reason: String, attributes: String) {
    let found = reasons(template, representation: attributes)
    #expect(found.count == 1)
    #expect(found.first?.contains(reason) == true)
  }

  @Test(arguments: [
    ("<SegmentTemplate duration='2'/>", "a SegmentTemplate has no @media"),
    ("<SegmentTemplate media='$Test$' duration='2'/>", "unknown identifier $Test$"),
    ("<SegmentTemplate media='$Number' duration='2'/>", "has a $ without its pair"),
    ("<SegmentTemplate media='$Number$$Time$' duration='2'/>", "has both $Number$ and $Time$"),
    ("<SegmentTemplate media='$Time$'/>", "$Time$ without a SegmentTimeline"),
    (
      "<SegmentTemplate media='$RepresentationID%05d$$Number$' duration='2'/>",
      "a format for $RepresentationID$"
    ),
    (
      "<SegmentTemplate media='$Number$' initialization='$Number$' duration='2'/>",
      "@initialization names a segment"
    ),
    ("<SegmentTemplate media='$Number$' duration='2' timescale='0'/>", "@timescale is 0"),
    (
      "<SegmentTemplate media='$Number$' duration='two'/>",
      "@duration 'two' is not a whole number of 0 or more"
    ),
    (
      "<SegmentTemplate media='$Time$' duration='2'><SegmentTimeline><S d='1'/></SegmentTimeline></SegmentTemplate>",
      "both @duration and SegmentTimeline"
    ),
    (
      "<SegmentTemplate media='$Time$'><SegmentTimeline><S t='1'/></SegmentTimeline></SegmentTemplate>",
      "S has no @d"
    ),
    (
      "<SegmentTemplate media='$Time$'><SegmentTimeline><S t='0' d='4' r='1'/><S t='7' d='1'/></SegmentTimeline></SegmentTemplate>",
      "S@t is 7, before the end of the segments before it (8)"
    ),
    (
      "<SegmentTemplate media='$Time$'><SegmentTimeline><S t='0' d='4' r='-1'/><S d='1'/></SegmentTimeline></SegmentTemplate>",
      "S has no @t, and the one before it @r below 0"
    ),
    (
      "<SegmentTemplate media='$Time$'><SegmentTimeline><S d='9999999999' r='9999999999'/></SegmentTimeline></SegmentTemplate>",
      "end beyond 64 bits"
    ),
    ("<SegmentList><SegmentURL/><SegmentURL/></SegmentList>", "neither @duration nor a SegmentTimeline"),
    (
      "<SegmentList duration='2'><SegmentURL mediaRange='9-5'/></SegmentList>",
      "@mediaRange '9-5' is not a byte range"
    ),
    ("<SegmentBase indexRangeExact='true'/>", "@indexRangeExact without @indexRange"),
    ("<SegmentBase duration='1'/>", "SegmentBase has a @duration"),
    ("<SegmentBase/><SegmentTemplate media='$Number$' duration='2'/>", "of another kind"),
    (
      "<SegmentTemplate media='$Number$' duration='2'/><BaseURL>a</BaseURL>",
      "BaseURL stands after SegmentTemplate"
    ),
    (
      "<SegmentTemplate media='$Number$' duration='2'/><Segments/>",
      "<Segments> is not an element of Representation"
    ),
    ("<Label/><SegmentBase/><x:y/><Role schemeIdUri='a'/>", "<Role> is not an element of Representation"),
    ("<AudioChannelConfiguration/><SegmentBase/>", "AudioChannelConfiguration has no @schemeIdUri"),
    ("", "neither segment information nor a BaseURL"),
  ])
  func segmentInformation(content: String, reason: String) {
    let found = reasons(content)
    #expect(found.count == 1, "\(found)")
    #expect(found.first?.contains(reason) == true, "\(found)")
    #expect(found.first?.contains("(ISO/IEC 23009-1 ") == true)
  }

  @Test(
    "The template and the timeline may stand at different levels",
    arguments: [
      ("<SegmentTemplate media='$Time$'/>", "", "<SegmentTemplate><SegmentTimeline/></SegmentTemplate>"),
      ("", "<SegmentTemplate media='$Time$'/>", "<SegmentTemplate><SegmentTimeline/></SegmentTemplate>"),
      ("<SegmentTemplate><SegmentTimeline/></SegmentTemplate>", "", "<SegmentTemplate media='$Time$'/>"),
      ("<SegmentTemplate><SegmentTimeline/></SegmentTemplate>", "<SegmentTemplate media='$Time$'/>", ""),
      ("<SegmentTemplate media='$Time$'/>", "<SegmentTemplate duration='2'/>", ""),
      ("<SegmentList duration='2'/>", "<SegmentList><SegmentURL/><SegmentURL/></SegmentList>", ""),
      ("<SegmentList><SegmentURL/><SegmentURL/></SegmentList>", "", "<SegmentList duration='2'/>"),
    ])
  func inheritedTimelines(period: String, set: String, representation: String) {
    func reasons(_ period: String, _ set: String, _ representation: String) -> [String] {
      violations(
        """
        <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" \(good)><Period>\(period)<AdaptationSet mimeType="m">\(set)
        <Representation id="1" bandwidth="1">\(representation)</Representation></AdaptationSet></Period></MPD>
        """
      ).map(\.reason)
    }
    #expect(reasons(period, set, representation) == [])
    let without = reasons("", "<SegmentTemplate media='$Time$'/>", "<SegmentTemplate/>")
    #expect(without == ["$Time$ without a SegmentTimeline (ISO/IEC 23009-1 §5.3.9.4.4)"])
  }

  @Test func aRepresentationNeedsAMediaType() {
    #expect(
      reasons(template, set: "").map { $0.prefix(38) } == ["a Representation has no @mimeType, nor"])
  }

  @Test func periodsAndTheirSets() {
    let set =
      #"<AdaptationSet mimeType="m" id="1"><Representation id="a" bandwidth="1">\#(template)</Representation></AdaptationSet>"#
    let found = violations(
      """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" \(good)><Period id="p" start="PT5S" duration="PT5S">\(set)\(set)</Period>
      <Period id="p" start="PT4S">\(set)</Period><Period/></MPD>
      """)
    #expect(
      found.map { $0.reason.prefix(while: { $0 != "(" }) } == [
        "the first Period does not start at 0, @type being static ",
        "the @id '1' of an AdaptationSet is not unique in its Period ",
        "the @id 'a' of a Representation is not unique in its Period ",
        "the @id 'p' of a Period is not unique ", "a Period starts before the one before it ",
        "a Period has no @start, and the one before it no @duration ", "a Period has no AdaptationSet ",
      ])
    #expect(found.last?.place == .element("MPD/Period[3]"))
  }

  @Test func theyAreBounded() {
    let sets = String(repeating: "<AdaptationSet/>", count: 1000)
    #expect(violations(mpd(sets, attributes: good), limits: ManifestLimits(warnings: 7)).count == 7)
  }
}
