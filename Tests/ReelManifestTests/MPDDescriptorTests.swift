import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

@Suite struct MPDDescriptorTests {
  private let template = #"<SegmentTemplate media="$RepresentationID$/$Number$" duration="2"/>"#

  private func group(_ content: String, attributes: String = "") throws -> TrackGroup {
    let text = mpd(videoSet(content + template, attributes: attributes))
    return try #require(try dashPresentation(text).periods.first?.trackGroups.first)
  }

  @Test func rolesLabelsAndLanguage() throws {
    let group = try group(
      """
      <Role schemeIdUri="urn:mpeg:dash:role:2011" value="main"/>
      <Role schemeIdUri="urn:mpeg:dash:role:2011" value="caption"/><Label>Director &amp; crew</Label>
      """, attributes: #"id="7" lang="de""#)
    #expect(group.roles == ["main", "caption"])
    #expect(group.isDefault)
    #expect(group.label == "Director & crew")
    #expect(group.language == "de")
    #expect(group.id == "7")
    #expect(group.unplayableReason == nil)
  }

  @Test(arguments: [
    (
      #"<EssentialProperty schemeIdUri="urn:x:y" value="1"/>"#,
      "an unknown essential property: urn:x:y"
    ),
    (#"<EssentialProperty schemeIdUri="http://dashif.org/guidelines/trickmode" value="1"/>"#, "trick mode"),
    (
      #"<SupplementalProperty schemeIdUri="http://dashif.org/guidelines/trickmode" value="1"/>"#, "trick mode"
    ),
    (
      #"<ContentProtection schemeIdUri="urn:mpeg:dash:sea:2012"/>"#, "encrypted: Segment Encryption"
    ),
  ])
  func whatCanNotBePlayedSaysWhy(content: String, reason: String) throws {
    let group = try group(content)
    #expect(group.unplayableReason == reason)
    #expect(group.rungs.count == 1)
  }

  /// Encrypted groups stay playable: they may be decrypted, or begin in the clear.
  @Test(arguments: [
    (
      #"<ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011" value="cenc" "#
        + #"cenc:default_KID="31323334-3536-3738-3930-313233343536 x"/>"#
        + #"<ContentProtection schemeIdUri="urn:uuid:EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED"/>"#,
      ["Common Encryption (cenc)", "Widevine"], ["31323334353637383930313233343536"]
    ),
    (
      #"<ContentProtection schemeIdUri=" urn:uuid:9a04f079-9840-4286-ab92-e65be0885f95"><pro>x</pro></ContentProtection>"#,
      ["PlayReady"], []
    ),
    (
      #"<ContentProtection schemeIdUri="urn:uuid:e2719d58-a985-b3c9-781a-b030af78d30e"/>"#, ["ClearKey"], []
    ),
    (#"<ContentProtection ref="9"/>"#, ["an unnamed scheme"], []),
  ])
  func protectionsAreNamed(content: String, schemes: [String], ids: [String]) throws {
    let group = try group(content)
    #expect(group.unplayableReason == nil)
    #expect(group.rungs[0].protection?.schemes == schemes)
    #expect(group.rungs[0].protection?.keyIDs.map(\.description) == ids)
    #expect(group.encryption == "encrypted: \(schemes.joined(separator: ", "))")
  }

  @Test func aProtectionMayReferToAnother() throws {
    let set = videoSet(#"<ContentProtection ref="1"/><ContentProtection ref="2"/>"# + template)
    let presentation = try dashPresentation(
      """
      <MPD mediaPresentationDuration="PT2S">
      <ContentProtection refId="1" schemeIdUri="urn:uuid:edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"/>
      <Period>\(set)<ContentProtection refId="2" schemeIdUri="urn:mpeg:dash:sea:2012"/></Period></MPD>
      """)
    #expect(
      presentation.periods.first?.trackGroups.first?.unplayableReason
        == "encrypted: Widevine, Segment Encryption")
  }

  @Test func aTrickModeRepresentationIsPassedOver() throws {
    let trick = #"<SupplementalProperty schemeIdUri="http://dashif.org/guidelines/trickmode" value="1"/>"#
    let presentation = try dashPresentation(
      mpd(
        """
        <AdaptationSet mimeType="video/mp4">\(template)<Representation id="a">\(trick)</Representation>
        <Representation id="b"/></AdaptationSet>
        """))
    #expect(presentation.periods.first?.trackGroups.first?.rungs.map(\.id) == ["b"])
  }

  @Test func understoodPropertiesDoNoHarm() throws {
    let group = try group(
      """
      <EssentialProperty schemeIdUri="urn:mpeg:mpegB:cicp:TransferCharacteristics" value="16"/>
      <SupplementalProperty schemeIdUri="urn:x:y"/>
      """)
    #expect(group.unplayableReason == nil)
    try #require(!group.rungs.isEmpty)
    #expect(group.rungs[0].videoRange == "PQ")
  }

  @Test func aRepresentationHasAProtectionOfItsOwn() throws {
    let presentation = try dashPresentation(
      mpd(
        """
        <AdaptationSet mimeType="video/mp4">\(template)
        <Representation id="a"/><Representation id="b"><ContentProtection schemeIdUri="urn:x"/></Representation>
        <Representation id="c" dependencyId="a"/></AdaptationSet>
        """))
    let rungs = try #require(presentation.periods.first?.trackGroups.first).rungs
    #expect(rungs.map(\.id) == ["a", "b"])
    #expect(rungs.map(\.protection?.schemes) == [nil, ["urn:x"]])
    #expect(presentation.warnings.count == 1)
  }

  @Test func thumbnailsAndTextHaveTheirKinds() throws {
    let presentation = try dashPresentation(
      mpd(
        """
        <AdaptationSet mimeType="image/jpeg"><SegmentTemplate media="$Number$.jpg" duration="10"/>
        <Representation id="t" width="1024" height="512"/></AdaptationSet>
        <AdaptationSet contentType="video"><EssentialProperty schemeIdUri="http://dashif.org/guidelines/thumbnail_tile"
        value="5x5"/>\(template)<Representation id="u"/></AdaptationSet>
        <AdaptationSet mimeType="text/vtt" lang="en"><Representation id="s"><BaseURL>en.vtt</BaseURL></Representation>
        </AdaptationSet>
        <AdaptationSet mimeType="application/mp4" codecs="stpp">\(template)<Representation id="p"/></AdaptationSet>
        <AdaptationSet mimeType="application/mp4" codecs="abcd">\(template)<Representation id="m"/></AdaptationSet>
        <AdaptationSet><ContentComponent contentType="audio"/><ContentComponent contentType="video"/>
        \(template)<Representation id="x"/></AdaptationSet>
        <AdaptationSet>\(template)<Representation id="y" codecs="mp4a.40.2"/></AdaptationSet>
        <AdaptationSet>\(template)<Representation id="z"/></AdaptationSet>
        """))
    let groups = try #require(presentation.periods.first?.trackGroups)
    try #require(groups.map(\.kind) == [.image, .image, .text, .text, .image, .video, .audio, .video])
    let sidecar = try presentation.segments(group: 2)
    #expect(sidecar.urls == ["https://origin.example/a/b/en.vtt"])
    #expect(sidecar.first?.duration == MediaTime(value: 20, timescale: 1))
    #expect(groups[1].unplayableReason == nil)
  }

  @Test(arguments: [
    ("urn:mpeg:dash:23003:3:audio_channel_configuration:2011", "6", "6"),
    ("urn:mpeg:mpegB:cicp:ChannelConfiguration", "7", "8"),
    ("urn:mpeg:mpegB:cicp:ChannelConfiguration", "99", nil),
    ("tag:dolby.com,2014:dash:audio_channel_configuration:2011", "F801", "6"),
    ("tag:dolby.com,2014:dash:audio_channel_configuration:2011", "A000", "2"),
    ("urn:mpeg:dash:outputChannelPositionList:2012", "0 1 2", "3"), ("urn:x", "2", nil),
  ])
  func channels(scheme: String, value: String, count: String?) throws {
    let group = try group(#"<AudioChannelConfiguration schemeIdUri="\#(scheme)" value="\#(value)"/>"#)
    try #require(!group.rungs.isEmpty)
    #expect(group.rungs[0].channels == count)
  }

  @Test func whatAnElementHoldsBesidesItsLinkIsUsed() throws {
    let xlink = #"xlink:href="https://ads.example/p.xml""#
    let list = #"<SegmentList duration="2"><SegmentURL media="a"/></SegmentList>"#
    let presentation = try dashPresentation(
      "<MPD mediaPresentationDuration='PT4S'><Period \(xlink)>\(videoSet(list))</Period></MPD>")
    #expect(try presentation.segments().count == 1)
    #expect(presentation.warnings.map(\.kind) == [.unsupported])
    let error = manifestError(.unsupported) {
      _ = try dashPresentation(mpd(videoSet("<SegmentList duration='2' \(xlink)/>")))
    }
    #expect(error?.reason.hasPrefix("the SegmentList is in another file") == true)
    let nothing = #"xlink:href="urn:mpeg:dash:resolve-to-zero:2013""#
    let removed = try dashPresentation(
      """
      <MPD mediaPresentationDuration="PT4S"><Period \(nothing)>\(videoSet(list))</Period>
      <Period start="PT0S">\(videoSet(list))</Period></MPD>
      """)
    try #require(removed.periods.count == 1)
    #expect(removed.periods.first?.duration == MediaTime(value: 4, timescale: 1))
  }

  @Test func whatStandsInOtherFilesIsNotRead() throws {
    let xlink = #"xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href"#
    let error = manifestError(.unsupported) {
      _ = try dashPresentation("<MPD><Period \(xlink)='https://ads.example/p.xml'/></MPD>")
    }
    #expect(error?.place == .element("MPD/Period[1]"))
    let rest = videoSet(template)
    let presentation = try dashPresentation(
      """
      <MPD mediaPresentationDuration="PT4S"><Period \(xlink)="urn:mpeg:dash:resolve-to-zero:2013" duration="PT0S"/>
      <Period start="PT0S"><AdaptationSet \(xlink)="https://ads.example/a.xml"/>\(rest)</Period></MPD>
      """)
    try #require(presentation.periods.count == 1)
    #expect(presentation.periods.first?.trackGroups.count == 1)
  }

  /// Whatever its length is said to be: the period is not read, and the ones after it are.
  @Test(arguments: [
    "duration='PT0S'", "", "xlink:actuate='onRequest'", "duration='PT0S' xlink:actuate='onLoad'",
    "start='PT0S'",
  ])
  func aPeriodInAnotherFileIsTold(attributes: String) throws {
    let link = "xmlns:xlink='http://www.w3.org/1999/xlink' xlink:href='https://ads.example/p.xml'"
    for start in ["", "start='PT0S'"] {
      let presentation = try dashPresentation(
        """
        <MPD mediaPresentationDuration="PT4S"><Period \(link) \(attributes)/>
        <Period \(start) duration="PT4S">\(videoSet(template))</Period></MPD>
        """)
      #expect(presentation.periods.map(\.start) == [.zero])
      #expect(presentation.warnings.contains { $0.kind == .unsupported && $0.reason.contains("xlink:href") })
    }
  }
}
