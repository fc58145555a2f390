import ReelCore
import ReelManifest

/// The rules of EXT-X-DEFINE and of what it defines (draft-pantos-hls-rfc8216bis §4.3, §4.4.2.3).
struct VariableRules {
  private struct Use {
    var name: String
    var line: Int
  }

  private var defined: [String: Int] = [:]
  /// The first use of each name, no more than so many.
  private static let limit = 10_000
  private var uses: [Use] = []
  private var used: Set<String> = []
  /// Without EXT-X-DEFINE, braces and dollar signs mean nothing.
  private var hasDefinitions: Bool { !defined.isEmpty }

  mutating func read(_ tag: PlaylistRules.Tag, kind: PlaylistKind, log: inout RuleLog) {
    guard tag.name == "EXT-X-DEFINE" else { return }
    let names = ["NAME", "IMPORT", "QUERYPARAM"].filter { tag.attributes[$0] != nil }
    guard names.count == 1, let name = tag.attributes.value(names[0]) else {
      log.add(
        "EXT-X-DEFINE has \(names.isEmpty ? "none" : "more than one") of NAME, IMPORT and QUERYPARAM",
        tag.source, line: tag.line)
      return
    }
    if names[0] == "NAME", tag.attributes["VALUE"] == nil {
      log.add("EXT-X-DEFINE with NAME has no VALUE", tag.source, line: tag.line)
    }
    if names[0] == "IMPORT", kind == .multivariant {
      log.add("EXT-X-DEFINE with IMPORT in a multivariant playlist", tag.source, line: tag.line)
    }
    if !name.utf8.allSatisfy({
      $0.isDigit || $0.isLetter || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
    })
      || name.isEmpty
    {
      log.add("'\(name.excerpt)' is not the name of a variable", tag.source, line: tag.line)
    }
    if defined[name] != nil {
      log.add("EXT-X-DEFINE defines '\(name.excerpt)' a second time", tag.source, line: tag.line)
    } else {
      defined[name] = tag.line
    }
  }

  /// Notes the variables that a text of a line names.
  mutating func use(in text: String, line: Int) {
    for part in text.split(separator: "{$", omittingEmptySubsequences: false).dropFirst() {
      guard let close = part.firstIndex(of: "}") else { continue }
      let name = String(part[..<close])
      if used.count < Self.limit, used.insert(name).inserted { uses.append(Use(name: name, line: line)) }
    }
  }

  func finish(_ log: inout RuleLog) {
    guard hasDefinitions else { return }
    for use in uses where defined[use.name].map({ $0 > use.line }) ?? true {
      log.add(
        "the variable '\(use.name.excerpt)' is not defined before it is used", .draft("4.3"), line: use.line)
    }
  }

  /// The names that a media playlist imports, with empty values.
  static func imports(in bytes: [UInt8]) -> [String: String] {
    var lines = PlaylistLines(bytes)
    var imports: [String: String] = [:]
    while let line = lines.next() {
      guard bytes.has("#EXT-X-DEFINE:", at: line.lowerBound) else { continue }
      let attributes = AttributeSyntax(bytes, in: line.lowerBound + 14..<line.upperBound)
      if let name = attributes.value("IMPORT") { imports[name] = "" }
    }
    return imports
  }
}
