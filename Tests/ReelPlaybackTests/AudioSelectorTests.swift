import Foundation
import ReelCore
import ReelManifest
import Testing

@testable import ReelSources

@Suite("Choosing the sound")
struct AudioSelectorTests {
  private func group(
    _ rung: String, id: String? = nil, language: String? = nil, isDefault: Bool = false, roles: [String] = [],
    codecs: [[String]] = [["mp4a.40.2"]], kind: TrackGroup.Kind = .audio, unplayable: String? = nil
  ) -> TrackGroup {
    TrackGroup(
      id: id, kind: kind, language: language, label: nil, roles: roles, isDefault: isDefault,
      rungs: codecs.enumerated().map { index, codecs in
        Rung(
          id: "\(rung)\(index)", bitsPerSecond: 1, codecs: codecs, media: .playlist(URL(filePath: "/a.m3u8")))
      },
      unplayableReason: unplayable)
  }

  private func choose(_ groups: [TrackGroup], languages: [String] = [], group: String? = nil) throws
    -> [String]
  {
    try AudioSelector(languages: languages).ladder(
      in: Period(id: nil, start: .zero, duration: nil, trackGroups: groups), group: group
    ).map(\.id)
  }

  @Test("The most wanted language goes before the default, that before the main role, that before the order")
  func rank() throws {
    let groups = [
      group("first"), group("main", roles: ["main"]), group("default", isDefault: true),
      group("german", language: "de-AT"), group("english", language: "EN"),
    ]
    #expect(try choose(groups, languages: ["en", "de"]) == ["english0"])
    #expect(try choose(groups, languages: ["fr", "DE"]) == ["german0"])
    #expect(try choose(groups, languages: ["fr"]) == ["default0"])
    #expect(try choose(groups) == ["default0"])
    #expect(try choose([groups[0], groups[1], groups[3]]) == ["main0"])
    #expect(try choose([groups[3], groups[0]]) == ["german0"])
    #expect(try choose(groups, languages: ["eng"]) == ["english0"])
    #expect(try choose(groups, languages: ["en-US"]) == ["english0"])
    #expect(try choose(groups, languages: ["de-CH"]) == ["german0"])
  }

  @Test("Without being asked for, no commentary is chosen where there is other audio")
  func autoselection() throws {
    var commentary = group("commentary", language: "en")
    commentary.isAutoselected = false
    let plain = group("plain", language: "de")
    #expect(try choose([commentary, plain]) == ["plain0"])
    #expect(try choose([commentary, plain], languages: ["en"]) == ["commentary0"])
    #expect(try choose([commentary]) == ["commentary0"])
  }

  @Test("Of several renditions of a language, the default one")
  func sameLanguage() throws {
    let groups = [
      group("commentary", language: "en"), group("plain", language: "en", isDefault: true),
    ]
    #expect(try choose(groups, languages: ["en"]) == ["plain0"])
  }

  @Test("Only the group that goes with the variant is looked in, where it is there")
  func groups() throws {
    let groups = [
      group("low", id: "a", language: "en"), group("high", id: "b"),
      group("high-en", id: "b", language: "en"),
    ]
    #expect(try choose(groups, languages: ["en"], group: "b") == ["high-en0"])
    #expect(try choose(groups, group: "b") == ["high0"])
    #expect(try choose(groups, group: "c") == ["low0"])
  }

  @Test("What can't be decoded is left out, of a group and with it")
  func codecs() throws {
    let groups = [
      group("dts", isDefault: true, codecs: [["dtsc"]]),
      group("protected", isDefault: true, unplayable: "Widevine"),
      group("mixed", codecs: [["ac-4.02"], ["EC-3"], [], ["fLaC"], ["opus"], ["vorbis"]]),
      group("video", isDefault: true, kind: .video),
    ]
    #expect(try choose(groups) == ["mixed1", "mixed2", "mixed3", "mixed4", "mixed5"])
  }

  @Test("Where there is none it says why")
  func none() {
    #expect(throws: ReelError(.unsupported, "Widevine")) {
      try choose([group("protected", unplayable: "Widevine")])
    }
    #expect(throws: ReelError(.unsupported, "no audio that can be played")) {
      try choose([group("dts", codecs: [["dtsc"]]), group("video", kind: .video)])
    }
  }
}
