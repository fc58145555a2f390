import Foundation
import ReelCore

/// The variables of a playlist (EXT-X-DEFINE, draft-pantos-hls-rfc8216bis §4.4.2.3) and their substitution.
///
/// A value may refer to earlier variables, so a few lines can expand to gigabytes: the result is limited, for
/// each text and for the playlist. A duplicate definition and a reference to an unknown variable are errors, as
/// the draft requires.
struct PlaylistVariables: Sendable {
  private(set) var values: [String: String] = [:]
  private let textLimit: Int
  private let countLimit: Int
  private var budget: Int

  init(limits: ManifestLimits) {
    textLimit = limits.urlByteCount
    countLimit = limits.tracks
    budget = limits.byteCount
  }

  /// Defines a variable from the attributes of an EXT-X-DEFINE.
  mutating func define(
    _ attributes: AttributeList, imported: [String: String], url: URL, place: ReelError.Place
  ) throws(ReelError) {
    if let name = attributes["NAME"] {
      guard attributes.contains("VALUE") else {
        throw ReelError(.badManifest, "EXT-X-DEFINE of '\(name.excerpt)' has no VALUE", place: place)
      }
      try set(name, attributes["VALUE"] ?? "", place: place)
    } else if let name = attributes["IMPORT"] {
      guard let value = imported[name] else {
        throw ReelError(
          .badManifest,
          "EXT-X-DEFINE imports '\(name.excerpt)', which the multivariant playlist does not define",
          place: place)
      }
      try set(name, value, place: place)
    } else if let name = attributes["QUERYPARAM"] {
      let items = URLComponents(url: url, resolvingAgainstBaseURL: true)?.queryItems ?? []
      guard let value = items.first(where: { $0.name == name })?.value else {
        throw ReelError(
          .badManifest,
          "EXT-X-DEFINE asks for the query parameter '\(name.excerpt)', which the URL does not have",
          place: place)
      }
      try set(name, value, place: place)
    } else {
      throw ReelError(.badManifest, "EXT-X-DEFINE has neither NAME, IMPORT nor QUERYPARAM", place: place)
    }
  }

  /// `text` with each `{$name}` replaced. A playlist that defines nothing is left as it is.
  mutating func substituting(in text: String, place: ReelError.Place) throws(ReelError) -> String {
    guard !values.isEmpty, text.utf8.contains(UInt8(ascii: "$")), text.contains("{$") else { return text }
    var result = ""
    var rest = text[...]
    while let open = rest.range(of: "{$") {
      guard let close = rest[open.upperBound...].firstIndex(of: "}") else { break }
      let name = String(rest[open.upperBound..<close])
      guard let value = values[name] else {
        throw ReelError(.badManifest, "the variable '\(name.excerpt)' is not defined", place: place)
      }
      result += rest[..<open.lowerBound]
      result += value
      rest = rest[rest.index(after: close)...]
      guard result.utf8.count <= textLimit else {
        throw ReelError(.badManifest, "variables make a text of more than \(textLimit) bytes", place: place)
      }
    }
    result += rest
    budget -= result.utf8.count
    guard budget >= 0 else {
      throw ReelError(.badManifest, "variables make the playlist larger than its limit", place: place)
    }
    return result
  }

  // MARK: - Private

  private mutating func set(_ name: String, _ value: String, place: ReelError.Place) throws(ReelError) {
    guard values.count < countLimit else {
      throw ReelError(.badManifest, "more than \(countLimit) variables", place: place)
    }
    guard values.updateValue(value, forKey: name) == nil else {
      throw ReelError(.badManifest, "EXT-X-DEFINE defines '\(name.excerpt)' a second time", place: place)
    }
  }
}
