import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

/// What ContentProtection elements state of keys and DRM systems, as packagers write them.
@Suite struct MPDProtectionTests {
  private static let widevine = "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed"
  private static let playReady = "9a04f079-9840-4286-ab92-e65be0885f95"
  private static let fairPlay = "94ce86fb-07ff-4f43-adb8-93d2fa968ca2"
  private static let common = "1077efec-c0b2-4d02-ace3-3c1e52e2fb4b"
  private static let keyID = "31323334-3536-3738-3930-313233343536"

  private func presentation(_ protections: String, before: String = "") throws -> Presentation {
    let template = #"<SegmentTemplate media="$Number$" duration="2"/>"#
    return try dashPresentation(
      """
      <MPD mediaPresentationDuration="PT4S">\(before)<Period>\(videoSet(protections + template))</Period></MPD>
      """)
  }

  private func protection(_ protections: String, before: String = "") throws -> ContentProtection {
    let presentation = try presentation(protections, before: before)
    return try #require(presentation.periods.first?.trackGroups.first?.rungs.first?.protection)
  }

  private func protectionElement(_ scheme: String, value: String? = nil, _ content: String = "") -> String {
    let attribute = value.map { " value=\"\($0)\"" } ?? ""
    return "<ContentProtection schemeIdUri=\"\(scheme)\"\(attribute)>\(content)</ContentProtection>"
  }

  private func element(ofSystem id: String, value: String? = nil, _ content: String = "") -> String {
    protectionElement("urn:uuid:\(id)", value: value, content)
  }

  private func pssh(_ box: [UInt8]) -> String { "<cenc:pssh>\(Data(box).base64EncodedString())</cenc:pssh>" }

  @Test(arguments: [
    ("cenc", "cenc"), ("cbcs", "cbcs"), ("CBC1", "cbc1"), (" cens ", "cens"), ("", nil), (nil, nil),
  ])
  func theSchemeOfCommonEncryption(value: String?, scheme: String?) throws {
    let protection = try protection(protectionElement("urn:mpeg:dash:mp4protection:2011", value: value))
    #expect(protection.commonEncryption == scheme)
    #expect(protection.systems.isEmpty)
  }

  /// Shaka Packager writes a `pssh` for each system, on one line.
  @Test func eachSystemHasItsData() throws {
    let boxes = [
      try psshBox(Self.widevine, data: Array("wv".utf8)), try psshBox(Self.playReady, data: [6, 0]),
      try psshBox(Self.common, keyIDs: [Self.keyID]),
    ]
    let protection = try protection(
      protectionElement("urn:mpeg:dash:mp4protection:2011", value: "cenc")
        + element(ofSystem: Self.widevine, pssh(boxes[0]))
        + element(
          ofSystem: Self.playReady, value: "MSPR 2.0", pssh(boxes[1]) + "<mspr:pro>BgAAAA==</mspr:pro>")
        + element(ofSystem: Self.common, pssh(boxes[2])))
    #expect(protection.systems.map(\.system) == [.widevine, .playReady, .clearKey])
    #expect(protection.systems.map(\.systemData) == boxes.map { [$0] })
    #expect(protection.systems.map(\.playReadyObject) == [nil, [6, 0, 0, 0], nil])
    #expect(protection.schemes == ["Common Encryption (cenc)", "Widevine", "PlayReady", "ClearKey"])
    #expect(protection.systemNames == ["Widevine", "PlayReady", "ClearKey"])
  }

  /// Azure Media Services writes ids in upper case, and only the PlayReady Object; others break lines in base64.
  @Test func writersDiffer() throws {
    let box = try psshBox(Self.widevine, data: [UInt8](repeating: 0x77, count: 90))
    let lines = Data(box).base64EncodedString(options: [.lineLength64Characters, .endLineWithCarriageReturn])
    let protection = try protection(
      """
      <ContentProtection schemeIdUri="urn:uuid:EDEF8BA9-79D6-4ACE-A3C8-27DCD51D21ED"><cenc:pssh
        xmlns:cenc="urn:mpeg:cenc:2013">
        \(lines)
      </cenc:pssh></ContentProtection>
      <ContentProtection schemeIdUri="urn:uuid:79f0049a-4098-8642-ab92-e65be0885f95">
        <mspr:IsEncrypted>1</mspr:IsEncrypted><mspr:pro> BgAAAA== </mspr:pro></ContentProtection>
      """)
    #expect(protection.systems.map(\.system) == [.widevine, .playReady])
    #expect(protection.systems.first?.systemData == [box])
    #expect(protection.systems.last?.playReadyObject == [6, 0, 0, 0])
    #expect(protection.commonEncryption == nil)
  }

  /// A `pssh` in the element of Common Encryption belongs to the system that it names.
  @Test func aBoxNamesItsSystem() throws {
    let (first, second) = (try psshBox(Self.widevine), try psshBox(Self.widevine, data: [1]))
    let protection = try protection(
      protectionElement("urn:mpeg:dash:mp4protection:2011", value: "cenc", pssh(first))
        + element(ofSystem: Self.widevine, pssh(second)))
    #expect(protection.systems.map(\.systemData) == [[first, second]])
  }

  @Test(arguments: [
    (#"value="skd://key/1""#, "", "skd://key/1"),
    ("", "<dashif:Laurl>skd://key/2</dashif:Laurl>", "skd://key/2"),
    ("", "<dashif:laurl> SKD://key/3 </dashif:laurl>", "SKD://key/3"),
    (#"value="FairPlay""#, "<dashif:Laurl>https://fps.example/license</dashif:Laurl>", nil), ("", "", nil),
  ])
  func fairPlay(attribute: String, content: String, uri: String?) throws {
    let protection = try protection(
      "<ContentProtection schemeIdUri=\"urn:uuid:\(Self.fairPlay)\" \(attribute)>\(content)</ContentProtection>"
    )
    #expect(protection.systems.map(\.system) == [.fairPlay])
    #expect(protection.systems.first?.keyURI == uri)
  }

  @Test func aReferenceBringsItsData() throws {
    let box = try psshBox(Self.widevine)
    let protection = try protection(
      #"<ContentProtection ref="wv"/>"#,
      before:
        "<ContentProtection refId=\"wv\" schemeIdUri=\"urn:uuid:\(Self.widevine)\">\(pssh(box))</ContentProtection>"
    )
    #expect(protection.systems.map(\.systemData) == [[box]])
  }

  /// Data that can't be used is a warning with its place; the rest counts.
  @Test(arguments: [
    ("<cenc:pssh>...</cenc:pssh>", "the content of <pssh> is not base64: ignored"),
    ("<cenc:pssh>AAAAIXBzc2g=</cenc:pssh>", "the content of <pssh> is not a pssh box: ignored"),
    ("<mspr:pro>BgA</mspr:pro>", "the content of <pro> is not base64: ignored"),
    (
      "<cenc:pssh>\(String(repeating: "AAAA", count: 6000))</cenc:pssh>",
      "<pssh> has more than 16384 bytes: ignored"
    ),
    ("<cenc:pssh/>", nil), ("<mspr:pro> </mspr:pro>", nil),
  ])
  func malformedData(content: String, warning: String?) throws {
    let box = try psshBox(Self.playReady, data: [1, 2])
    let presentation = try presentation(element(ofSystem: Self.playReady, content + pssh(box)))
    #expect(presentation.warnings.map(\.reason) == (warning.map { [$0] } ?? []))
    #expect(presentation.warnings.allSatisfy { $0.place != nil })
    let rung = try #require(presentation.periods.first?.trackGroups.first?.rungs.first)
    #expect(rung.protection?.systems.map(\.systemData) == [[box]])
    #expect(rung.protection?.systems.first?.playReadyObject == nil)
  }

  /// Some writers state the data alone, without the box around it.
  @Test func dataWithoutItsBox() throws {
    let presentation = try presentation(element(ofSystem: Self.widevine, "<cenc:pssh>CAESEA==</cenc:pssh>"))
    let box = try psshBox(Self.widevine, data: [8, 1, 18, 16])
    let protection = presentation.periods.first?.trackGroups.first?.rungs.first?.protection
    #expect(protection?.systems.map(\.systemData) == [[box]])
    #expect(
      presentation.warnings.map(\.reason) == [
        "the content of <pssh> is not a pssh box: treated as the data of one"
      ])
  }

  @Test func boxesAreCounted() throws {
    let box = pssh(try psshBox(Self.widevine))
    let presentation = try presentation(
      element(ofSystem: Self.widevine, String(repeating: box, count: 20)))
    let protection = presentation.periods.first?.trackGroups.first?.rungs.first?.protection
    #expect(protection?.systems.first?.systemData.count == 8)
    #expect(presentation.warnings.first?.reason == "more than 8 pssh elements: the rest is ignored")
  }
}
