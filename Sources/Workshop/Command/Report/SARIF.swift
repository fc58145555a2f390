import Foundation
import ReelCheck
import ReelCore

/// Checked sources as SARIF 2.1.0 (Static Analysis Results Interchange Format, OASIS Standard 2020).
///
/// The properties have the names of the standard. Code scanning of GitHub, the largest reader, rejects a file in which a
/// location has another scheme than `file`: a URL is written without its scheme, `cdn.example/show/master.m3u8`, and in
/// full, as far as it holds no secrets, in the location's description.
struct SARIF: Encodable, Sendable {
  /// The number of results that GitHub shows; it takes no more than 25,000.
  static let resultLimit = 5000

  struct Text: Encodable, Sendable {
    var text: String

    init(_ text: String) { self.text = Redaction.clean(text) }

    /// A text of the program, which has lines, and no secrets.
    init(fixed text: String) { self.text = text }
  }

  /// §3.49: what a rule looks for.
  struct Rule: Encodable, Sendable {
    struct Configuration: Encodable, Sendable {
      var level: String
    }

    var id: String
    var name: String
    var shortDescription: Text
    var fullDescription: Text
    var help: Text
    /// The first of the sources of the rule.
    var helpUri: String?
    var defaultConfiguration: Configuration
  }

  struct ArtifactLocation: Encodable, Sendable {
    var uri: String
    var description: Text?
  }

  /// §3.30: a line of a manifest, or a place in a segment.
  struct Region: Encodable, Sendable {
    var startLine: Int?
    var byteOffset: Int64?
  }

  struct PhysicalLocation: Encodable, Sendable {
    var artifactLocation: ArtifactLocation
    var region: Region?
  }

  /// §3.33: a rung, or a segment of it.
  struct LogicalLocation: Encodable, Sendable {
    var name: String
    var fullyQualifiedName: String
    var kind: String
  }

  struct Location: Encodable, Sendable {
    var id: Int?
    var message: Text?
    var physicalLocation: PhysicalLocation
    var logicalLocations: [LogicalLocation]?
  }

  /// §3.35: a waiver.
  struct Suppression: Encodable, Sendable {
    var kind = "external"
    var justification: String
  }

  /// The measurements, the costs and the fix, for programs.
  struct Properties: Encodable, Sendable {
    var source: String
    var fix: String?
    var costs: [String]?
    var evidence: [String: String]?
  }

  /// §3.27: a finding.
  struct Result: Encodable, Sendable {
    var ruleId: String
    var ruleIndex: Int
    var level: String
    var message: Text
    var locations: [Location]
    var relatedLocations: [Location]?
    var partialFingerprints: [String: String]
    /// Empty for a finding that is not waived: if a result of a run has suppressions, all have.
    var suppressions: [Suppression]
    var baselineState: String?
    var properties: Properties
  }

  /// §3.58: a check that was not made, or a source that could not be checked.
  struct Notification: Encodable, Sendable {
    var level: String
    var message: Text
    var locations: [Location]
  }

  struct Invocation: Encodable, Sendable {
    var executionSuccessful = true
    var toolExecutionNotifications: [Notification]
  }

  struct Driver: Encodable, Sendable {
    var name = "reel check"
    var version = Version.text
    var semanticVersion = Version.text
    var rules = SARIF.rules
  }

  struct Tool: Encodable, Sendable {
    var driver = Driver()
  }

  struct Run: Encodable, Sendable {
    var tool = Tool()
    var invocations: [Invocation]
    var results: [Result]
    var columnKind = "unicodeCodePoints"
  }

  var schema = "https://json.schemastore.org/sarif-2.1.0.json"
  var version = "2.1.0"
  var runs: [Run]

  private enum CodingKeys: String, CodingKey {
    case schema = "$schema"
    case version, runs
  }

  init(_ sources: CheckedSources) {
    runs = [
      Run(
        invocations: [Invocation(toolExecutionNotifications: sources.notifications.sorted)],
        results: sources.findings.sorted)
    ]
  }

  /// The file. Throws `ReelError.internalFault`.
  var text: String {
    get throws(ReelError) {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      do {
        return String(decoding: try encoder.encode(self), as: UTF8.self).printableJSON + "\n"
      } catch {
        throw ReelError(.internalFault, "SARIF can't be written: \(error)")
      }
    }
  }

  // MARK: Rules

  /// The rule of an expectation that is not met, which is not a finding of a stream.
  static let expectationRule = "expectation"

  /// All rules, whether they found something or not.
  static let rules: [Rule] =
    Catalogue.all.map { entry in
      Rule(
        id: entry.id.rawValue, name: name(entry.id.rawValue), shortDescription: Text(entry.title + "."),
        fullDescription: Text("\(entry.meaning) \(entry.effect)"),
        help: Text(fixed: Catalogue.Match(entry: entry, kind: nil).explanation),
        helpUri: entry.sources.first?.url, defaultConfiguration: .init(level: entry.level.rawValue))
    } + [
      Rule(
        id: expectationRule, name: name(expectationRule),
        shortDescription: Text("An expectation is not met."),
        fullDescription: Text("A figure that --expect limits is above its limit, below it, or missing."),
        help: Text("Mend the findings that cost most, or change the expectation."),
        helpUri: nil, defaultConfiguration: .init(level: "error"))
    ]

  /// The id as `TimestampBreak`.
  private static func name(_ id: String) -> String {
    id.split(separator: "-").map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
  }
}

extension SARIF.ArtifactLocation {
  /// - Parameter place: A URL, or the path of a local file.
  init(_ place: String) {
    let directory =
      URL(fileURLWithPath: FileManager.default.currentDirectoryPath, isDirectory: true).path + "/"
    let place = place.withoutUserInformation
    guard let scheme = place.range(of: "://"), !place.hasPrefix("/") else {
      uri = Self.encoded(Self.relative(place, to: directory))
      return
    }
    if place.hasPrefix("file://") {
      let path = URL(string: place)?.path ?? String(place[scheme.upperBound...])
      uri = Self.encoded(Self.relative(path, to: directory))
      return
    }
    // Without query and fragment.
    uri = Self.encoded(String(place[scheme.upperBound...].prefix { $0 != "?" && $0 != "#" }))
    description = SARIF.Text(place)
  }

  private static func relative(_ path: String, to directory: String) -> String {
    if path.hasPrefix(directory) { return String(path.dropFirst(directory.count)) }
    return path.hasPrefix("/") ? "file://" + path : path
  }

  /// Returns a relative reference, or a `file` URL, with the characters that RFC 3986 allows in a path. A colon in the
  /// first part of a relative reference would end a scheme (§4.2). A percent sign begins an encoded character.
  private static func encoded(_ path: String) -> String {
    let (scheme, rest) = path.hasPrefix("file://") ? ("file://", path.dropFirst(7)) : ("", path[...])
    var allowed = CharacterSet(
      charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=@/")
    if path.range(of: "%[0-9A-Fa-f]{2}", options: .regularExpression) != nil { allowed.insert("%") }
    return scheme + (rest.addingPercentEncoding(withAllowedCharacters: allowed) ?? "")
  }
}

extension SARIF.Result {
  private static let ruleIndices = Dictionary(
    uniqueKeysWithValues: SARIF.rules.enumerated().map { ($1.id, $0) })

  /// - Parameter index: The index of the finding.
  init(_ index: Int, of source: CheckedSource) {
    let finding = source.findings[index]
    let costs = CheckWords.costs(finding).map(CheckWords.cost)
    let sentences =
      [
        CheckWords.placed(finding),
        costs.isEmpty ? "" : "Cost: " + costs.joined(separator: "; "),
        finding.fix.isEmpty ? "" : "Fix: " + finding.fix,
      ].filter { !$0.isEmpty }
    self.init(
      rule: finding.id.rawValue, kind: finding.kind, level: finding.level.rawValue,
      message: sentences.map { $0 + "." }.joined(separator: " "), source: source,
      location: SARIF.Location(finding, of: source))
    partialFingerprints = [
      "reelFinding/v1": SARIF.fingerprint([
        finding.name, SARIF.ArtifactLocation(source.source).uri, finding.rung ?? "",
        finding.segment.map(String.init) ?? "",
        finding.url.map { SARIF.ArtifactLocation($0).uri } ?? "",
      ])
    ]
    suppressions =
      source.waived[index].map {
        [SARIF.Suppression(justification: Redaction.clean($0))]
      } ?? []
    baselineState = source.known.map { $0.contains(index) ? "unchanged" : "new" }
    properties.fix = finding.fix.isEmpty ? nil : Redaction.clean(finding.fix)
    properties.costs = costs.isEmpty ? nil : costs
    let evidence = finding.evidence.map { ($0.name, Redaction.clean(CheckWords.evidence($0.value))) }
    properties.evidence = evidence.isEmpty ? nil : Dictionary(evidence) { $1 }
  }

  init(unmet: String, of source: CheckedSource) {
    self.init(
      rule: SARIF.expectationRule, kind: nil, level: "error", message: unmet + ".", source: source,
      location: SARIF.Location(source))
    // Without its figure, which differs from run to run.
    let expectation = unmet.prefix { $0 != " " && $0 != ":" }
    partialFingerprints = [
      "reelFinding/v1": SARIF.fingerprint([
        SARIF.expectationRule, SARIF.ArtifactLocation(source.source).uri, String(expectation),
      ])
    ]
  }

  private init(
    rule: String, kind: String?, level: String, message: String, source: CheckedSource,
    location: SARIF.Location
  ) {
    ruleId = kind.map { "\(rule)/\($0)" } ?? rule
    ruleIndex = Self.ruleIndices[rule] ?? -1
    self.level = level
    self.message = SARIF.Text(message)
    locations = [location]
    relatedLocations = source.listed.map { path, line in
      [
        SARIF.Location(
          id: 1, message: SARIF.Text("the line of the list"),
          physicalLocation: .init(
            artifactLocation: SARIF.ArtifactLocation(path), region: .init(startLine: line)))
      ]
    }
    partialFingerprints = [:]
    suppressions = []
    properties = .init(source: Redaction.clean(source.source))
  }
}

extension SARIF.Location {
  /// The source as a whole.
  init(_ source: CheckedSource) {
    physicalLocation = .init(artifactLocation: .init(source.source), region: .init(startLine: 1))
  }

  /// The line of a manifest, or the byte of a segment.
  init(_ finding: Finding, of source: CheckedSource) {
    self.init(source)
    if let url = finding.url { physicalLocation.artifactLocation = .init(url) }
    // GitHub wants a region; the first line stands for the whole.
    physicalLocation.region =
      if let line = finding.line { .init(startLine: line) } else if let byte = finding.byte {
        .init(byteOffset: byte)
      } else {
        .init(startLine: 1)
      }
    var logical: [SARIF.LogicalLocation] = []
    if let rung = finding.rung {
      logical.append(.init(name: rung, fullyQualifiedName: rung, kind: "rung"))
    }
    if let segment = finding.segment {
      let name = "segment \(segment)"
      logical.append(
        .init(name: name, fullyQualifiedName: finding.rung.map { "\($0)/\(name)" } ?? name, kind: "segment"))
    }
    if !logical.isEmpty { logicalLocations = logical }
  }
}

extension SARIF.Notification {
  init(_ item: NotChecked, of source: CheckedSource) {
    let subject = [item.id?.rawValue, item.rung].compactMap { $0 }.joined(separator: ", ")
    level = "note"
    message = SARIF.Text("not checked\(subject.isEmpty ? "" : " (\(subject))"): \(item.reason).")
    locations = [SARIF.Location(source)]
  }

  init(_ error: ReelError, of source: String) {
    level = "error"
    message = SARIF.Text("\(source) could not be checked: \(error.description).")
    locations = [
      SARIF.Location(physicalLocation: .init(artifactLocation: .init(source), region: .init(startLine: 1)))
    ]
  }
}

extension SARIF {
  /// The same for the same finding in every run.
  fileprivate static func fingerprint(_ parts: [String]) -> String {
    SourceHash(parts.joined(separator: "\u{0}")).text
  }
}
