import Foundation
import ReelCore
import ReelManifest
import Testing

@testable import ReelCheck

@Suite("Tracks that are longer than their period")
struct PeriodTests {
  private func rung(_ name: String, _ kind: TrackGroup.Kind, _ segments: [(start: Double, duration: Double)])
    -> RungFacts
  {
    var rung = RungFacts(name: name, kind: kind)
    rung.span = 0...0.743
    rung.place = (0, kind == .video ? 0 : 1, 0)
    rung.segments = SegmentList(
      segments.enumerated().map { index, segment in
        SegmentReference(
          number: Int64(index), url: URL(filePath: "/\(name)-\(index)"),
          start: MediaTime(seconds: segment.start), duration: MediaTime(seconds: segment.duration),
          timestampOffset: .zero)
      })
    rung.sizes = segments.map { _ in nil }
    return rung
  }

  @Test("Both ends are cut off before lists are compared")
  func lists() {
    var facts = StreamFacts()
    facts.format = "dash"
    facts.rungs = [
      rung("720p", .video, [(-0.992, 1.735)]), rung("english", .audio, [(0, 0.5), (0.5, 2)]),
    ]
    #expect(LadderFindings.findings(in: facts, Thresholds()).map(\.summary) == [])
    facts.rungs[1] = rung("english", .audio, [(0, 0.2)])
    #expect(
      LadderFindings.findings(in: facts, Thresholds()).map(\.summary) == [
        "its list ends after 0.2 s, others after 0.743 s"
      ])
  }

  @Test("Time between two periods is a note")
  func gaps() {
    var facts = StreamFacts()
    facts.presentation = Presentation(
      format: .dash, duration: MediaTime(seconds: 9),
      periods: [(0.0, 4.0), (4, 2), (8.5, 0.5)].map {
        Period(id: nil, start: MediaTime(seconds: $0.0), duration: MediaTime(seconds: $0.1), trackGroups: [])
      })
    let found = SegmentFindings.findings(in: facts, Thresholds())
    #expect(found.map(\.summary) == ["between periods 2 and 3: the MPD leaves out 2.5 s"])
    #expect(found.first?.level == .note && found.first?.time == 6...8.5)
  }

  @Test("Damaged frames are placed in the first of their segments, however long they claim to last")
  func damage() throws {
    var rung = rung("720p", .video, [(0, 0.3), (0.3, 0.3)])
    var content = ContentFacts(segments: 0..<2)
    content.frames = [0.1, 0.35].enumerated().map { index, time in
      FrameFacts(
        time: time, duration: 18, segment: index, isDamaged: true, darkShare: 0, change: 1, luma: [],
        lumaSize: PixelSize(width: 0, height: 0), size: PixelSize(width: 16, height: 16),
        presentationSize: PixelSize(width: 16, height: 16))
    }
    content.frames.insert(content.frames[0], at: 0)
    content.frames[0].isDamaged = false
    rung.content = [content]
    var facts = StreamFacts()
    facts.format = "dash"
    facts.rungs = [rung]
    let finding = try #require(
      SegmentFindings.findings(in: facts, Thresholds()).first { $0.id == .decodeError })
    #expect(
      finding.summary
        == "segments 1 and 2 (0 s to 0.6 s): 2 frames from 0.1 s on are damaged (0.6 s)")
    #expect(finding.time == 0.1...0.3)
    #expect(finding.fix == "encode segments 1 and 2 again, or upload them again")
  }

  @Test("A place of a segment does not lie outside its period")
  func places() {
    let rung = rung("720p", .video, [(-0.992, 1.735), (0.743, 2), (3, 2)])
    #expect(rung.segments.map { rung.shownRange(of: $0) } == [0...0.743, 0.743...0.743, 0.743...0.743])
    #expect(rung.segments.indices.filter(rung.isRequested) == [0])
  }
}
