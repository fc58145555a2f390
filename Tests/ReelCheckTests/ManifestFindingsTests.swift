import Foundation
@testable import ReelCheck
import ReelCore
import ReelManifest
import ReelRules
import Testing

@Suite("Findings about manifests")
struct ManifestFindingsTests {
  @Test("The violations of one clause in one document are one finding, with the line of the first")
  func grouping() throws {
    let findings = hls(
      """
      #EXTM3U
      #EXT-X-TARGETDURATION:2
      #EXTINF:9,
      a.ts
      #EXTINF:9,
      b.ts
      #EXT-X-ENDLIST

      """)
    let finding = try #require(findings.first)
    #expect(findings.count == 1)
    #expect(finding.name == "manifest-invalid")
    #expect(finding.level == .warning)
    #expect(finding.line == 3)
    #expect(finding.summary.contains("(RFC 8216 §4.3.3.1), and 1 more of this kind"))
    #expect(finding.evidence.first?.value == .number(2))
  }

  @Test(
    "What players may stumble over is a warning",
    arguments: [
      "#EXTM3U\n#EXTINF:2,\na.ts\n#EXT-X-ENDLIST\n",
      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n#EXT-X-ENDLIST\n",
      "#EXTM3U\n#EXT-X-STREAM-INF:CODECS=\"avc1.4d401e\"\na.m3u8\n",
      "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"none\"\na.m3u8\n",
      "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"AUTOSELECT\"\na.m3u8\n",
      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:1.5,\na.ts\n#EXT-X-ENDLIST\n",
    ])
  func warnings(text: String) {
    #expect(hls(text).map(\.level) == [.warning])
  }

  @Test(
    "What no player stumbles over is a note",
    arguments: [
      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2\na.ts\n#EXT-X-ENDLIST\n",
      "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,\na.m3u8\n",
      "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,VIDEO-RANGE=HDR\na.m3u8\n",
      "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n#EXT-X-SESSION-DATA:VALUE=\"a\"\n",
      "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-DATERANGE:ID=\"a\",START-DATE=\"2026-01-01T00:00:00Z\"\n#EXTINF:2,\na.ts\n#EXT-X-ENDLIST\n",
    ])
  func notes(text: String) {
    #expect(hls(text).map(\.level) == [.note])
  }

  @Test("A rung that is lost is an error")
  func losses() {
    let text = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\n"
    #expect(hls(text).map(\.level) == [.error])
  }

  @Test("An MPD without what only its schema requires is a note")
  func schema() {
    let mpd = """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT4S">
        <Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1">
          <SegmentTemplate media="$Number$.m4s" initialization="i.mp4" duration="2" timescale="1"/>
        </Representation></AdaptationSet>
        <AdaptationSet contentType="text"><Representation id="2" mimeType="text/vtt"><BaseURL>a.vtt</BaseURL>
        </Representation></AdaptationSet></Period>
      </MPD>
      """
    let findings = findings(mpd, .dash)
    #expect(findings.contains { $0.summary.contains("a Representation of text has no @bandwidth") })
    #expect(findings.allSatisfy { $0.level == .note })
  }

  @Test(
    "An attribute with another value is a note if no player needs it",
    arguments: [("group", FindingLevel.note), ("maxWidth", .warning)])
  func attributes(name: String, level: FindingLevel) {
    let mpd = """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT4S" minBufferTime="PT1S"
        profiles="urn:mpeg:dash:profile:isoff-on-demand:2011">
        <Period><AdaptationSet mimeType="video/mp4" \(name)="x"><Representation id="1" bandwidth="1">
          <BaseURL>a.mp4</BaseURL></Representation></AdaptationSet></Period>
      </MPD>
      """
    #expect(findings(mpd, .dash).map(\.level) == [level])
  }

  @Test("An MPD whose BaseURL is the only segment is valid")
  func baseURL() {
    let mpd = """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT4S" minBufferTime="PT1S"
        profiles="urn:mpeg:dash:profile:isoff-on-demand:2011">
        <BaseURL>a.mp4</BaseURL>
        <Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1"/></AdaptationSet></Period>
      </MPD>
      """
    #expect(findings(mpd, .dash).isEmpty)
  }

  @Test(
    "A segment that is named like fragmented MP4 and can be read needs no EXT-X-MAP",
    arguments: [true, false])
  func map(isRead: Bool) {
    var facts = StreamFacts()
    let url = URL(string: "http://origin.example/a")!
    facts.violations = RuleChecker().violations(
      in: Array("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.mp4\n#EXT-X-ENDLIST\n".utf8), format: .hls,
      url: url)
    facts.rungs = [RungFacts(name: "a", kind: .video)]
    facts.rungs[0].url = url
    var sample = SegmentFacts(index: 0)
    sample.byteCount = 1000
    if !isRead { sample.failure = SegmentFailure(.segment, .broken, ReelError(.badMedia, "broken")) }
    facts.rungs[0].samples = [0: sample]
    let findings = ManifestFindings.findings(in: facts, Thresholds())
    #expect(findings.map(\.level) == [isRead ? .note : .warning])
    #expect(findings.first?.rung == "a")
  }

  // MARK: - Private

  private func hls(_ text: String) -> [Finding] { findings(text, .hls) }

  private func findings(_ text: String, _ format: ManifestFormat) -> [Finding] {
    var facts = StreamFacts()
    facts.violations = RuleChecker().violations(
      in: Array(text.utf8), format: format, url: URL(string: "http://origin.example/a") ?? URL(filePath: "/a")
    )
    return ManifestFindings.findings(in: facts, Thresholds())
  }
}
