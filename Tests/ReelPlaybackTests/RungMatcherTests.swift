import Foundation
import ReelCore
import ReelManifest
import Testing

@testable import ReelSources

@Suite("Finding a rung in another period")
struct RungMatcherTests {
  private func rung(_ id: String, _ bits: Int?, codecs: [String] = ["avc1.64001f"]) -> Rung {
    Rung(id: id, bitsPerSecond: bits, codecs: codecs, media: .playlist(URL(filePath: "/\(id).m3u8")))
  }

  private func period(_ rungs: [Rung], kind: TrackGroup.Kind = .video, id: String? = nil) -> Period {
    Period(
      id: nil, start: .zero, duration: nil,
      trackGroups: [
        TrackGroup(
          id: id, kind: kind, language: nil, label: nil, roles: [], isDefault: false, rungs: rungs)
      ])
  }

  private func match(_ rung: Rung, in period: Period, role: ReaderRole = .main(wantsAudio: true)) throws
    -> String
  {
    try RungMatcher(rung: rung, role: role, configuration: LoadingConfiguration()).rung(in: period).id
  }

  @Test("The one of the same id, whatever its bit rate")
  func sameID() throws {
    #expect(try match(rung("b", 1), in: period([rung("a", 1), rung("b", 900)])) == "b")
  }

  @Test("Else the one of the nearest bit rate, of equals the first")
  func nearest() throws {
    let other = period([rung("x", 100), rung("y", 300), rung("z", 1000)])
    #expect(try match(rung("b", 120), in: other) == "x")
    #expect(try match(rung("b", 200), in: other) == "x")
    #expect(try match(rung("b", 201), in: other) == "y")
    #expect(try match(rung("b", 5000), in: other) == "z")
    #expect(try match(rung("b", nil), in: other) == "x")
  }

  @Test("Sound is looked for among sound")
  func audio() throws {
    var both = period([rung("v", 100)])
    both.trackGroups += period([rung("s", 100, codecs: ["mp4a.40.2"])], kind: .audio, id: "g").trackGroups
    #expect(try match(rung("b", 100), in: both, role: .audio(group: "g")) == "s")
    #expect(try match(rung("b", 100), in: both) == "v")
  }

  @Test("Where nothing can be played it says so")
  func nothing() {
    #expect(throws: ReelError.self) { try match(rung("b", 100), in: period([rung("s", 1)], kind: .audio)) }
    #expect(throws: ReelError.self) {
      try match(rung("b", 100), in: period([rung("v", 1)]), role: .audio(group: nil))
    }
  }
}
