@testable import ReelCheck
import Testing

@Suite("Catalogue of findings")
struct CatalogueTests {
  /// The kinds and their usual levels: E, W or N. They are a contract.
  private static let table: [FindingID: String] = [
    .unreachable: "status E, network E, tls E, not-media E",
    .segmentMissing: "status E, empty E, not-media E",
    .rungDead: "playlist E, init E, key E, index E, no-frame E, no-answer E", .decodeError: "E",
    .segmentTruncated: "E",
    .black: "whole E, start W, run W", .silent: "W", .frozen: "W",
    .segmentNotIndependent: "no-key-frame W, parameter-sets W, open-gop W",
    .timestampBreak: "gap W, overlap W, jump E, start W", .trackMissing: "absent E, short W",
    .rungContentDiffers: "other E, shifted E", .segmentDurationMismatch: "W",
    .bandwidthMismatch: "understated W, overstated W, average N", .moovLast: "W",
    .startBytes: "key-frame W, padding W, interleaving W, edit W, moov W, playlist W", .firstRungHeavy: "W",
    .rungTooHeavy: "rung W, all E",
    .ttfbSlow: "manifest W, segment W, cold N", .redirects: "W", .noKeepAlive: "W", .noRanges: "W",
    .responseHeaders: "type W, encoding W, length W",
    .codecsMismatch: "family E, profile W, level W, missing W", .resolutionMismatch: "W",
    .frameRateMismatch: "W", .aspectDiffers: "W", .rungsNotAligned: "W", .avOffset: "W",
    .manifestInvalid: "W", .liveStale: "E",
    .notChecked:
      "encrypted E, unsupported E, external E, empty E, time E, sample E, left-out E, faulty E",
  ]

  private func letter(_ level: FindingLevel) -> String { level.rawValue.prefix(1).uppercased() }

  @Test("Every id has an entry with the kinds and levels of the contract", arguments: FindingID.allCases)
  func kinds(of id: FindingID) {
    let entry = Catalogue.entry(for: id)
    #expect(entry.id == id)
    let kinds = entry.kinds.map { "\($0.name) \(letter($0.level))" }.joined(separator: ", ")
    #expect((kinds.isEmpty ? letter(entry.level) : kinds) == Self.table[id])
    #expect(entry.kinds.isEmpty || entry.level == entry.kinds.map(\.level).max())
  }

  @Test("Texts are complete, and written as sentences or phrases", arguments: FindingID.allCases)
  func texts(of id: FindingID) {
    let entry = Catalogue.entry(for: id)
    for sentence in [entry.meaning, entry.effect, entry.measurement] { #expect(sentence.hasSuffix(".")) }
    for phrase in [entry.title, entry.fix] + entry.kinds.map(\.meaning) {
      #expect(!phrase.isEmpty && !phrase.hasSuffix("."))
    }
    #expect(entry.otherLevels.isEmpty || entry.otherLevels.hasSuffix("."))
    #expect(!entry.sources.isEmpty && entry.sources.allSatisfy { $0.url.hasPrefix("https://") })
  }

  @Test("Every threshold but that of printed costs is explained by one entry, that of its name")
  func thresholds() {
    for threshold in Threshold.allCases where threshold != .printedCost {
      let entries = Catalogue.all.filter { $0.thresholds.contains(threshold) }
      #expect(entries.map(\.id.rawValue) == [String(threshold.rawValue.prefix { $0 != "." })])
    }
  }

  @Test("An explanation has the thresholds, the kinds and the sources")
  func explanation() throws {
    let entry = Catalogue.entry(for: .timestampBreak)
    let all = entry.explanation(of: nil)
    #expect(all.hasPrefix("timestamp-break: The timestamps break\n\n"))
    #expect(all.contains("\n  overlap  warning  a segment begins before the end of the one before\n"))
    #expect(all.contains("\n  timestamp-break.gap=100ms\n"))
    #expect(all.contains("\n  RFC 8216 §4.3.2.3: https://www.rfc-editor.org/rfc/rfc8216#section-4.3.2.3\n"))
    let kind = try #require(entry.kinds.first { $0.name == "gap" })
    let gap = entry.explanation(of: kind)
    #expect(gap.hasPrefix("timestamp-break/gap (warning): time without audio or video"))
    #expect(!gap.contains("Kinds:"))
  }
}
