import Foundation
import ReelCore
import ReelManifest
import Testing

@testable import ReelCheck

@Suite("Pictures of rungs, compared")
struct ContentFindingsTests {
  /// A rung that shows a pattern which moves to the left, `delay` seconds late.
  private func rung(_ name: String, framesPerSecond rate: Double, delay: Double) -> RungFacts {
    var rung = RungFacts(name: name, kind: .video)
    let size = PixelSize(width: 40, height: 1)
    var content = ContentFacts(segments: 0..<1)
    content.frames = (0..<Int(4 * rate)).map { index -> FrameFacts in
      let time = Double(index) / rate
      let luma = (0..<size.width).map { column -> UInt8 in
        let place = Double(column) + 30 * time
        let waves: [Double] = [50 * sin(place / 5), 40 * sin(place / 3.1 + 1), 30 * sin(place / 11)]
        return UInt8(128 + waves.reduce(0, +))
      }
      return FrameFacts(
        time: delay + time, duration: 1 / rate, segment: 0, isDamaged: false, darkShare: 0, change: 1,
        luma: luma, lumaSize: size, size: size, presentationSize: size)
    }
    rung.content = [content]
    return rung
  }

  @Test(
    "A lower frame rate is no shift",
    arguments: [(15, 0.067, nil), (15, 0.4, "shifted"), (30, 0.12, "shifted"), (30, 0, nil)]
      as [(Double, Double, String?)])
  func rates(rate: Double, delay: Double, kind: String?) {
    var facts = StreamFacts()
    facts.format = "hls"
    facts.rungs = [
      rung("360p", framesPerSecond: 30, delay: 0), rung("180p", framesPerSecond: rate, delay: delay),
    ]
    let found = ContentFindings.findings(in: facts, Thresholds()).filter { $0.id == .rungContentDiffers }
    #expect(found.compactMap(\.kind) == [kind].compactMap(\.self))
  }
}
