import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

@Suite struct MPDErrorTests {
  private let template = #"<SegmentTemplate media="$Number$" duration="2"/>"#

  @Test(arguments: [
    ("", "the MPD is empty"), ("{\"a\":1}", "it is JSON"), ("hello", "it does not start with '<'"),
    ("#EXTM3U", "it starts like a playlist"),
    ("<!DOCTYPE html><html><body></body></html>", "it is an HTML page"),
    ("<html lang='en'></html>", "it is an HTML page"), ("<rss/>", "its root element is <rss>"),
    ("<?xml version='1.0'?>", "there is no element"), ("<MPD></MPD>", "the MPD has no Period"),
    ("<MPD><Period/></MPD>", "the MPD has no selectable Representation"),
    ("<MPD><Period><AdaptationSet/></Period></MPD>", "the MPD has no selectable Representation"),
  ])
  func whatIsNoMPDSaysSo(text: String, reason: String) {
    let error = manifestError { _ = try dashPresentation(text) }
    #expect(error?.reason.contains(reason) == true, "\(error?.description ?? "")")
    #expect(error?.location == "https://origin.example/a/b/manifest?token=1")
  }

  @Test(arguments: [
    (#"<SegmentTemplate media="$Number$" duration="0"/>"#, "@duration is 0"),
    (#"<SegmentTemplate media="$Number$" duration="NaN"/>"#, "@duration 'NaN' is not a whole number"),
    (
      #"<SegmentTemplate media="$Number$" duration="99999999999999999999"/>"#,
      "is not a whole number of 64 bits"
    ),
    (#"<SegmentTemplate media="$Number$" duration="1" timescale="9223372036854775807"/>"#, "63 bits"),
    (#"<SegmentTemplate media="$Number$" duration="1" timescale="90000"/>"#, "more than 1000000 segments"),
    (
      #"<SegmentTemplate media="$Number$" duration="2" startNumber="9223372036854775807"/>"#, "63 bits"
    ),
    (
      #"<SegmentTemplate media="$Number$" duration="2" presentationTimeOffset="9223372036854775807"/>"#,
      "63 bits"
    ),
    (#"<SegmentTemplate duration="2"/>"#, "has no @media"),
    (#"<SegmentTemplate media="$Nonsense$" duration="2"/>"#, "unknown identifier $Nonsense$"),
    (#"<SegmentTemplate media="$Number" duration="2"/>"#, "has a $ without its pair"),
    (#"<SegmentTemplate media="$Number%5s$" duration="2"/>"#, "is not of the form %0[width]d"),
    (#"<SegmentTemplate media="$Number%0999999999d$" duration="2"/>"#, "is not of the form %0[width]d"),
    (#"<SegmentTemplate media="$Number$" initialization="$Time$" duration="2"/>"#, "names a segment"),
    (
      #"<SegmentTemplate media="file:///etc/$Number$" duration="2"/>"#, "is a local file in a remote manifest"
    ),
    (
      #"<SegmentTemplate media="$Number$"><SegmentTimeline><S t="-1" d="1"/></SegmentTimeline></SegmentTemplate>"#,
      "@t is -1, below 0"
    ),
    (
      #"<SegmentTemplate media="$Number$"><SegmentTimeline/></SegmentTemplate>"#,
      "has no segments in its period"
    ),
    (
      #"<SegmentTemplate media="$Number$"><SegmentTimeline><S t="9223372036854775807" d="9"/></SegmentTimeline>"#
        + "</SegmentTemplate>", "exceeds 63 bits"
    ),
    ("<SegmentList duration='2'/>", "the SegmentList has no SegmentURL"),
    ("<SegmentList><SegmentURL/><SegmentURL/></SegmentList>", "no computable segment times"),
    (
      "<SegmentList duration='2'><SegmentURL media='a'/><SegmentURL media='file:///a'/></SegmentList>",
      "is a local file in a remote manifest"
    ),
    ("<SegmentList duration='2'><SegmentURL mediaRange='five'/></SegmentList>", "is not a byte range"),
    ("<SegmentBase indexRange='9-5'/>", "@indexRange '9-5' is not a byte range"),
    ("<BaseURL>file:///etc/passwd</BaseURL>", "is a local file in a remote manifest"),
    ("", "does not say where its segments are"),
  ])
  func badSegmentInformationIsAnError(content: String, reason: String) {
    let error = manifestError { _ = try dashPresentation(mpd(videoSet(content))) }
    #expect(error?.reason.contains(reason) == true, "\(error?.description ?? "")")
    #expect(error?.place != nil)
  }

  @Test func withoutAnyLengthSegmentsCanNotBeCounted() {
    let error = manifestError { _ = try dashPresentation(mpd(videoSet(template), attributes: "")) }
    #expect(error?.reason.hasPrefix("no computable segment count") == true)
    let timeline =
      #"<SegmentTemplate media="$Time$"><SegmentTimeline><S d="1" r="-1"/></SegmentTimeline></SegmentTemplate>"#
    let other = manifestError { _ = try dashPresentation(mpd(videoSet(timeline), attributes: "")) }
    #expect(other?.reason.hasPrefix("no computable segment count") == true)
  }

  @Test(arguments: [
    (#"mediaPresentationDuration="PT-5S""#, ""), ("", #"duration="NaN""#),
  ])
  func aMalformedLengthThatIsNeededIsNamed(attributes: String, period: String) {
    let error = manifestError {
      _ = try dashPresentation(mpd(videoSet(template), attributes: attributes, period: period))
    }
    #expect(error?.reason.hasPrefix("no computable segment count") == true)
    #expect(error?.reason.contains("is not a duration") == true)
    #expect(error?.place == .line(attributes.isEmpty ? 3 : 2, column: attributes.isEmpty ? 3 : 1))
  }

  @Test func aMalformedLengthThatIsNotNeededIsAWarning() throws {
    let attributes = #"minBufferTime="PT-5S" mediaPresentationDuration="PT4S" maxSegmentDuration="NaN""#
    let presentation = try dashPresentation(mpd(videoSet(template), attributes: attributes))
    #expect(
      presentation.warnings.map(\.reason) == [
        "@minBufferTime 'PT-5S' is not a duration: ignored",
        "@maxSegmentDuration 'NaN' is not a duration: ignored",
      ])
    let error = manifestError {
      _ = try dashPresentation(mpd(videoSet(template), attributes: #"minBufferTime="PT-5S""#))
    }
    #expect(error?.reason.contains("PT-5S") == false)
  }

  @Test func oneBadRepresentationDoesNotSpoilTheRest() throws {
    let presentation = try dashPresentation(
      mpd(
        """
        <AdaptationSet mimeType="video/mp4"><Representation id="a"/>
        <Representation id="b">\(template)</Representation></AdaptationSet>
        """))
    #expect(presentation.periods.first?.trackGroups.first?.rungs.map(\.id) == ["b"])
    #expect(
      presentation.warnings.map(\.place) == [.element("MPD/Period[1]/AdaptationSet[1]/Representation[1]")])
  }

  @Test(arguments: ["<SegmentTimeline><S d='2' r='4'/></SegmentTimeline>", ""])
  func theHighestEndNumberIsNoTrap(timeline: String) throws {
    let attributes = #"media="$Number$" startNumber="0" endNumber="9223372036854775807""#
    let duration = timeline.isEmpty ? #"duration="4""# : ""
    let set = videoSet("<SegmentTemplate \(attributes) \(duration)>\(timeline)</SegmentTemplate>")
    #expect(try dashPresentation(mpd(set)).segments().count == 5)
  }

  @Test func warningsHaveTheirPlace() throws {
    let text = mpd(
      videoSet(template, attributes: #"width="x""#) + "\n" + videoSet(template, attributes: #"height="y""#))
    let presentation = try dashPresentation(text)
    #expect(presentation.warnings.map(\.place) == [.line(3, column: 12), .line(6, column: 1)])
  }

  @Test func limitsHold() {
    let sets = String(repeating: videoSet(template), count: 10)
    #expect(
      manifestError { _ = try dashPresentation(mpd(sets), limits: ManifestLimits(tracks: 9)) }?.reason
        .contains("more than 9 periods") == true)
    let entries = String(repeating: "<S d='1'/>", count: 11)
    let timeline =
      "<SegmentTemplate media='$Time$'><SegmentTimeline>\(entries)</SegmentTimeline></SegmentTemplate>"
    #expect(
      manifestError {
        _ = try dashPresentation(mpd(videoSet(timeline)), limits: ManifestLimits(timelineEntries: 10))
      }?.reason == "more than 10 timeline entries")
    #expect(
      manifestError { _ = try dashPresentation(mpd(sets), limits: ManifestLimits(xmlElements: 20)) }?.reason
        == "more than 20 elements")
  }
}
