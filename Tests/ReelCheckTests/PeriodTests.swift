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

  @Test("A place of a segment does not lie outside its period")
  func places() {
    let rung = rung("720p", .video, [(-0.992, 1.735), (0.743, 2), (3, 2)])
    #expect(rung.segments.map { rung.shownRange(of: $0) } == [0...0.743, 0.743...0.743, 0.743...0.743])
    #expect(rung.segments.indices.filter(rung.isRequested) == [0])
  }
}
