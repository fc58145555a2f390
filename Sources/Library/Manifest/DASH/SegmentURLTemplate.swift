package import ReelCore

/// A URL with identifiers to be filled in (ISO/IEC 23009-1 §5.3.9.4.4), compiled once for a Representation.
package struct SegmentURLTemplate: Sendable {
  /// How a number is written: `%05d`.
  struct NumberFormat: Sendable, Hashable {
    var width = 0
    var radix = 10
    var isUppercase = false
  }

  private enum Part: Sendable {
    case literal(Substring)
    case number(NumberFormat)
    case time(NumberFormat)
    case subNumber(NumberFormat)
  }

  private var parts: [Part] = []
  /// True if `$Number$` or `$Time$` makes a difference between segments.
  package private(set) var isPerSegment = false
  /// True if each segment consists of parts.
  package private(set) var usesSubNumber = false

  /// True if it contains `$Number$`.
  package var usesNumber: Bool { parts.contains { if case .number = $0 { true } else { false } } }
  /// True if it contains `$Time$`.
  package var usesTime: Bool { parts.contains { if case .time = $0 { true } else { false } } }

  private static let widthLimit = 32

  /// Compiles `text`. Throws `badManifest` for an identifier that is not known, one that is not closed, or one that
  /// has no value here.
  package init(_ text: String, representationID: String?, bandwidth: Int64?) throws(ReelError) {
    var rest = text[...]
    // The bytes of the replaced identifiers; the text itself is already limited.
    var byteCount = 0
    while let open = rest.firstIndex(of: "$") {
      if open > rest.startIndex { parts.append(.literal(rest[..<open])) }
      let afterOpen = rest.index(after: open)
      guard let close = rest[afterOpen...].firstIndex(of: "$") else {
        throw ReelError(.badManifest, "the template '\(text.excerpt)' has a $ without its pair")
      }
      let identifier = rest[afterOpen..<close]
      rest = rest[rest.index(after: close)...]
      let part = try Self.part(identifier, of: text, representationID, bandwidth)
      if case .literal(let literal) = part { byteCount += literal.utf8.count }
      parts.append(part)
    }
    if !rest.isEmpty { parts.append(.literal(rest)) }
    guard byteCount <= ManifestLimits().urlByteCount else {
      throw ReelError(.badManifest, "the URL is longer than \(ManifestLimits().urlByteCount) bytes")
    }
    for part in parts {
      switch part {
      case .literal: break
      case .number, .time: isPerSegment = true
      case .subNumber: usesSubNumber = true
      }
    }
  }

  /// The text with its identifiers filled in.
  package func text(number: Int64, time: Int64, subNumber: Int64) -> String {
    var text = ""
    for part in parts {
      switch part {
      case .literal(let literal): text += literal
      case .number(let format): text += format.text(number)
      case .time(let format): text += format.text(time)
      case .subNumber(let format): text += format.text(subNumber)
      }
    }
    return text
  }

  // MARK: - Private

  private static func part(
    _ identifier: Substring, of text: String, _ representationID: String?, _ bandwidth: Int64?
  ) throws(ReelError) -> Part {
    if identifier.isEmpty { return .literal("$") }
    let pieces = identifier.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
    let format = pieces.count == 2 ? NumberFormat(pieces[1]) : NumberFormat()
    guard let format, format.width <= widthLimit else {
      throw ReelError(
        .badManifest, "the template '\(text.excerpt)' has a format that is not of the form %0[width]d")
    }
    switch pieces[0] {
    case "Number": return .number(format)
    case "Time": return .time(format)
    case "SubNumber": return .subNumber(format)
    case "RepresentationID":
      guard let representationID else {
        throw ReelError(.badManifest, "the template asks for an @id that the Representation does not have")
      }
      return .literal(representationID[...])
    case "Bandwidth":
      guard let bandwidth else {
        throw ReelError(
          .badManifest, "the template asks for a @bandwidth that the Representation does not have")
      }
      return .literal(format.text(bandwidth)[...])
    default:
      throw ReelError(
        .badManifest, "the template '\(text.excerpt)' has the unknown identifier $\(pieces[0])$")
    }
  }
}

extension SegmentURLTemplate.NumberFormat {
  /// The part after the `%`: `0[width]d`; the `x`, `X` and `o` of older writers are accepted too.
  fileprivate init?(_ text: Substring) {
    guard let conversion = text.last else { return nil }
    switch conversion {
    case "d", "i", "u": radix = 10
    case "x": radix = 16
    case "X": (radix, isUppercase) = (16, true)
    case "o": radix = 8
    default: return nil
    }
    let digits = text.dropLast()
    guard digits.isEmpty || digits.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
    guard let width = digits.isEmpty ? 0 : Int(digits) else { return nil }
    self.width = width
  }

  fileprivate func text(_ value: Int64) -> String {
    let digits = String(value, radix: radix, uppercase: isUppercase)
    return digits.count >= width ? digits : String(repeating: "0", count: width - digits.count) + digits
  }
}
