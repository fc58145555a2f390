internal import Foundation

/// The languages that a viewer wants, the most wanted first, as ISO 639 codes or RFC 5646 tags.
package struct LanguagePreferences: Sendable {
  private let tags: [[String]]

  package init(_ languages: [String]) { tags = languages.map(Self.subtags) }

  /// Returns the place of a track with this language among others; the lowest comes first.
  ///
  /// For each wanted language, a track whose language is as specific or more so (`en-US` for `en`) goes before one
  /// that is less specific (`en` for `en-US`), and that before another variety (`en-GB` for `en-US`).
  package func rank(of language: String?) -> Int {
    let stated = Self.subtags(language ?? "")
    for (index, wanted) in tags.enumerated() where !stated.isEmpty && wanted.first == stated.first {
      return index * 3 + (stated.starts(with: wanted) ? 0 : wanted.starts(with: stated) ? 1 : 2)
    }
    return tags.count * 3
  }

  // MARK: - Private

  /// Returns the parts of a tag in lower case, with the two-letter code of the language if it has one.
  private static func subtags(_ tag: String) -> [String] {
    var parts = tag.lowercased().split { $0 == "-" || $0 == "_" }.map(String.init)
    guard let first = parts.first, first.count == 3 else { return parts }
    let code = terminological[first] ?? first
    parts[0] = Locale.LanguageCode(code).identifier(.alpha2) ?? code
    return parts
  }

  /// The codes of ISO 639-2/B that differ from those of ISO 639-2/T.
  private static let terminological = [
    "alb": "sqi", "arm": "hye", "baq": "eus", "bur": "mya", "chi": "zho", "cze": "ces", "dut": "nld",
    "fre": "fra", "geo": "kat", "ger": "deu", "gre": "ell", "ice": "isl", "mac": "mkd", "mao": "mri",
    "may": "msa", "per": "fas", "rum": "ron", "slo": "slk", "tib": "bod", "wel": "cym",
  ]
}
