import Foundation
import ReelCheck
import ReelCore
import ReelLab
import ReelModels
import ReelPool

/// Findings that a user names: `ID[/KIND][@RUNG]`.
struct FindingPattern: Sendable, Hashable {
  let id: FindingID
  /// Nil for all kinds.
  let kind: String?
  /// Nil for all rungs, and for the whole source.
  let rung: String?
  let text: String

  /// Throws `ReelError` of kind `usage` for an unknown name, with a similar one.
  init(parsing text: String) throws(ReelError) {
    self.text = text
    let parts = text.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    let names = parts[0].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(
      String.init)
    guard let id = FindingID(rawValue: names[0]) else {
      let similar = Similarity.suggestion(for: names[0], among: FindingID.allCases.map(\.rawValue))
      throw ReelError(
        .usage, "\"\(names[0])\" is not a finding",
        advice: similar.map { "did you mean \($0)?" } ?? "reel check --help lists the findings")
    }
    if names.count > 1 {
      let kinds = Catalogue.entry(for: id).kinds.map(\.name)
      guard kinds.contains(names[1]) else {
        throw ReelError(
          .usage, "\"\(names[1])\" is not a kind of \(id.rawValue)",
          advice: kinds.isEmpty ? "it has none" : "the kinds are \(kinds.joined(separator: ", "))")
      }
    }
    self.id = id
    kind = names.count > 1 ? names[1] : nil
    rung = parts.count > 1 ? parts[1] : nil
  }

  func matches(_ finding: Finding) -> Bool {
    finding.id == id && (kind == nil || kind == finding.kind) && (rung == nil || rung == finding.rung)
  }
}

/// A change of a threshold: `black.run=5s`.
enum ThresholdChange {
  /// Throws `ReelError` of kind `usage`.
  static func apply(_ text: String, to thresholds: inout Thresholds) throws(ReelError) {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else {
      throw ReelError(.usage, "\"\(text)\" sets nothing", advice: "write NAME=VALUE, such as black.run=5s")
    }
    let name = parts[0].trimmingCharacters(in: .whitespaces)
    guard let threshold = Threshold(rawValue: name) else {
      let names = Threshold.allCases.map(\.rawValue)
      let similar = Similarity.suggestion(for: name, among: names).map { "did you mean \($0)?" }
      throw ReelError(
        .usage, "\"\(name)\" is not a threshold",
        advice: similar ?? "write one of \(names.joined(separator: ", "))")
    }
    let value = parts[1].trimmingCharacters(in: .whitespaces)
    guard let number = number(value, threshold.usual.unit), number.isFinite else {
      throw ReelError(
        .usage, "\"\(value)\" is not a value of \(name)", advice: "it takes \(form(threshold.usual.unit))")
    }
    thresholds[threshold] = number
  }

  // MARK: - Private

  private static func number(_ text: String, _ unit: Threshold.Unit) -> Double? {
    func plain(_ suffix: String) -> Double? {
      guard text.lowercased().hasSuffix(suffix.lowercased()) else { return nil }
      return Double(text.dropLast(suffix.count).trimmingCharacters(in: .whitespaces))
    }
    switch unit {
    case .seconds: return TimeText.seconds(text, needsUnit: true).flatMap { $0 >= 0 ? $0 : nil }
    case .milliseconds: return TimeText.seconds(text, needsUnit: true).flatMap { $0 >= 0 ? $0 * 1000 : nil }
    case .percent: return plain("%").flatMap { $0 >= 0 ? $0 : nil }
    case .decibels: return plain("dBFS") ?? plain("dB")
    case .bytes: return (try? ByteSize(parsing: text)).map { Double($0.byteCount) }
    case .times: return (plain("x") ?? Double(text)).flatMap { $0 >= 0 ? $0 : nil }
    }
  }

  private static func form(_ unit: Threshold.Unit) -> String {
    switch unit {
    case .seconds, .milliseconds: "a time with a unit, such as 150ms"
    case .percent: "a share in percent, such as 90%"
    case .decibels: "a level, as -60dB"
    case .bytes: "a size, such as 64kB"
    case .times: "a factor, such as 1.5x"
    }
  }
}

/// The file of waivers and expectations of a repository (`.reel-check.json`).
struct CheckFile: Decodable, Sendable {
  /// A finding that does not fail the gate.
  struct Waiver: Decodable, Sendable {
    private enum Field: String, CodingKey, CaseIterable { case id, url, reason, until }

    let pattern: FindingPattern
    /// The sources that it is for, with `*` for any text; nil for all.
    let url: String?
    let reason: String
    /// The last day, as `2026-12-31`.
    let until: String?

    init(pattern: FindingPattern, url: String? = nil, reason: String, until: String? = nil) {
      (self.pattern, self.url, self.reason, self.until) = (pattern, url, reason, until)
    }

    init(from decoder: any Decoder) throws {
      let fields = try decoder.fields(Field.self)
      let id = try fields.decode(String.self, forKey: .id)
      do {
        pattern = try FindingPattern(parsing: id)
      } catch let error {
        throw Self.corrupted(fields, .id, "\(error)")
      }
      url = try fields.decodeIfPresent(String.self, forKey: .url)
      reason = try fields.decode(String.self, forKey: .reason)
      until = try fields.decodeIfPresent(String.self, forKey: .until)
      if reason.trimmingCharacters(in: .whitespaces).isEmpty {
        throw Self.corrupted(fields, .reason, "state a reason")
      }
      // A year that the clock does not reach is one too; 2000 was a leap year.
      if let until,
        until.utf8.count != 10 || until.prefix(4).contains(where: { !$0.isASCII || !$0.isNumber })
          || WallTime(iso8601: "2000\(until.dropFirst(4))") == nil
      {
        throw Self.corrupted(fields, .until, "must be a day as 2026-12-31")
      }
    }

    func isExpired(on day: String) -> Bool { until.map { $0 < day } ?? false }

    func matches(_ finding: Finding, of source: String) -> Bool {
      pattern.matches(finding) && (url.map { Self.matches(source[...], $0[...]) } ?? true)
    }

    /// Whether `*` in the glob can stand for texts that make it the text.
    static func matches(_ text: Substring, _ glob: Substring) -> Bool {
      let parts = glob.split(separator: "*", omittingEmptySubsequences: false)
      guard parts.count > 1, let first = parts.first, let last = parts.last else { return text == glob }
      guard text.hasPrefix(first) else { return false }
      var rest = text.dropFirst(first.count)
      for part in parts.dropFirst().dropLast() where !part.isEmpty {
        guard let range = rest.firstRange(of: part) else { return false }
        rest = rest[range.upperBound...]
      }
      return rest.hasSuffix(last)
    }

    private static func corrupted(
      _ fields: KeyedDecodingContainer<Field>, _ field: Field, _ reason: String
    ) -> DecodingError {
      .dataCorruptedError(forKey: field, in: fields, debugDescription: reason)
    }
  }

  private enum Field: String, CodingKey, CaseIterable { case links, expect, set, ignore }

  /// The name of the file in the current folder that is read without `--waivers`.
  static let usualPath = ".reel-check.json"
  private static let byteLimit = 4 << 20

  var links: [String] = []
  var expect: [String] = []
  var set: [String: String] = [:]
  var ignore: [Waiver] = []

  init() {}

  init(from decoder: any Decoder) throws {
    let fields = try decoder.fields(Field.self)
    links = try fields.decodeIfPresent([String].self, forKey: .links) ?? []
    expect = try fields.decodeIfPresent([String].self, forKey: .expect) ?? []
    set = try fields.decodeIfPresent([String: String].self, forKey: .set) ?? [:]
    ignore = try fields.decodeIfPresent([Waiver].self, forKey: .ignore) ?? []
  }

  /// Parses the file. Throws `ReelError` with the coding path of what is wrong.
  init(json bytes: [UInt8], path: String) throws(ReelError) {
    do {
      self = try JSONDecoder().decode(Self.self, from: Data(bytes))
    } catch {
      var failure =
        (error as? DecodingError).map { ReelError($0) } ?? error as? ReelError
        ?? ReelError(.badManifest, "\(error)")
      failure.kind = .badManifest
      throw failure.located(at: path)
    }
  }

  /// Reads the file of `--waivers`, or else that of the current folder if there is one.
  init(path: String?) throws(ReelError) {
    // A link to nothing, or a pipe, is a mistake.
    let type = try? FileManager.default.attributesOfItem(atPath: Self.usualPath)[.type] as? FileAttributeType
    guard path != nil || type != nil else {
      self.init()
      return
    }
    let path = path ?? Self.usualPath
    if path == Self.usualPath, let type, type != .typeRegular, type != .typeSymbolicLink {
      throw ReelError(.badManifest, "not a regular file", at: path, advice: "name a file with --waivers")
    }
    try self.init(json: try OptionFiles.bytes(of: path, limit: Self.byteLimit), path: path)
  }
}

/// The rules by which findings fail a run.
struct CheckGates: Sendable {
  /// The outcome of a source.
  struct Verdict: Sendable {
    var checked: CheckedSource
    var outcomes: [AssertionOutcome] = []
    /// The indices of findings that fail the run.
    var failing: [Int] = []

    var fails: Bool { !failing.isEmpty || outcomes.contains { !$0.isMet } || checked.silence != nil }
  }

  /// The least level that fails; nil for none.
  var failOn: FindingLevel? = .error
  /// True if each rung fails of which nothing was judged.
  var failsUnchecked = false
  var waivers: [CheckFile.Waiver] = []
  var expectations: [CheckExpectation] = []
  /// The day on which waivers must be valid, as `2026-12-31`.
  var today = ""

  /// Applies the rules. Calls `use` with the index of each waiver that is used.
  func verdict(on result: CheckResult, use: (Int) -> Void = { _ in }) -> Verdict {
    var result = result
    if failsUnchecked { result.findings += result.omissions }
    for index in result.findings.indices {
      let finding = result.findings[index]
      for (number, waiver) in waivers.enumerated()
      where !waiver.isExpired(on: today) && waiver.matches(finding, of: result.source) {
        use(number)
        result.findings[index].waiver = result.findings[index].waiver ?? waiver.reason
      }
    }
    var verdict = Verdict(checked: CheckedSource(result))
    for expectation in expectations {
      let outcome = expectation.evaluate(result)
      verdict.outcomes.append(outcome)
      if !outcome.isMet {
        verdict.checked.unmet.append(
          outcome.description + CheckFigures.explanation(of: expectation, in: result))
      }
    }
    verdict.failing = result.findings.indices.filter { index in
      let finding = result.findings[index]
      let isWanted = failOn.map { finding.level >= $0 && finding.level > .note } ?? false
      guard isWanted || failsUnchecked && finding.id == .notChecked else { return false }
      return finding.waiver == nil
    }
    return verdict
  }
}
