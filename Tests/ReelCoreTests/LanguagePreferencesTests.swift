import ReelCore
import Testing

@Suite("Preferred languages")
struct LanguagePreferencesTests {
  /// The languages in the order of preference; those of one rank in their own order.
  private func order(_ languages: [String?], for wanted: [String]) -> [String?] {
    let preferences = LanguagePreferences(wanted)
    return languages.enumerated().map { (preferences.rank(of: $1), $0, $1) }.sorted {
      ($0.0, $0.1) < ($1.0, $1.1)
    }
    .map(\.2)
  }

  @Test("Codes of two and three letters are the same language, in any letter case")
  func codes() {
    for (wanted, stated) in [
      ("de", "deu"), ("de", "ger"), ("fre", "fr"), ("ENG", "en"), ("zh", "chi"), ("yue", "yue"),
    ] {
      #expect(order(["und", stated], for: [wanted]) == [stated, "und"], "\(wanted) \(stated)")
    }
    #expect(order(["enm", "en"], for: ["en"]) == ["en", "enm"])
  }

  @Test("A more specific language fits, then a less specific one, then another variety")
  func varieties() {
    #expect(order(["de", "en-GB", "en", "en-US"], for: ["en-US"]) == ["en-US", "en", "en-GB", "de"])
    #expect(order(["de", "pt-BR", "pt"], for: ["pt"]) == ["pt-BR", "pt", "de"])
    #expect(order(["zh_Hans", "zh-Hant-TW"], for: ["zh-Hant"]) == ["zh-Hant-TW", "zh_Hans"])
  }

  @Test("The most wanted language goes first, and no language last")
  func preference() {
    #expect(order([nil, "", "fr", "en", "de-AT"], for: ["de", "en"]) == ["de-AT", "en", nil, "", "fr"])
    #expect(order(["fr", nil], for: []) == ["fr", nil])
  }
}
