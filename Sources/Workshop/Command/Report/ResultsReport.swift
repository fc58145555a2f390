import Foundation
import ReelCheck
import ReelCore
import ReelPool
import ReelLab

/// The summary of results files. If a source, or a view of `reel viewers`, has several lines, the last one counts.
struct ResultsReport: Sendable {
  /// Failures with the same cause.
  struct Cause: Encodable, Sendable {
    /// The kind of the error, and the HTTP status if there is one.
    let cause: String
    let count: Int
    /// The number of these that may succeed on a retry.
    let temporary: Int
    /// The message of one of them.
    let example: String
  }

  struct Host: Encodable, Sendable {
    let host: String
    let sources: Int
    let failed: Int
    let temporary: Int
    /// The checked sources with errors; nil if none was checked.
    let errors: Int?
    /// Nil without a written source that has start-up times.
    let startup: LatencySummary?
  }

  /// Sources by their worst finding that is not waived.
  struct Checked: Encodable, Sendable {
    var errors = 0
    var warnings = 0
    var notes = 0
    /// Sources without a finding.
    var clean = 0
  }

  /// A finding of `check`, and the sources that have it.
  struct FindingCount: Encodable, Sendable {
    /// The id and the kind.
    let finding: String
    var level: String
    /// Those that have it at this level, and at no worse one.
    var sources: Int
  }

  /// The views of `reel viewers`, those of all shards together.
  struct Views: Sendable {
    var count = 0
    /// The numbers of the viewers.
    fileprivate var numbers: Set<Int32> = []
    var stalls = 0
    var played = Duration.zero
    var waited = Duration.zero
    /// The views at whose ends their machine was full.
    var machineFull = 0

    /// Why the figures are not those of the servers; nil if they are.
    var bottleneck: String? {
      let share = Double(machineFull) / Double(max(count, 1))
      guard share > MachineUse.allowedShare else { return nil }
      return
        "a machine was full at the end of \(WalkValue.share(share)) of the views: the figures are not those "
        + "of the server"
    }

    var viewers: Int { numbers.count }
    /// The share of waits in the time from the first frames on; nil if nothing was played.
    var rebuffering: Double? { played + waited > .zero ? waited / (played + waited) : nil }
  }

  /// The maximum number of hosts in the JSON form: those with the most failures.
  static let hostLimit = 1000

  /// The streams that a page shows; nil if there is no page.
  private(set) var worst: WorstStreams?
  private(set) var lineCount = 0
  /// The number of lines that are not results, such as an incomplete last one, or that are too long.
  private(set) var unreadableCount = 0
  private var sources: [SourceHash: Source] = [:]
  /// Those of the sources that are views.
  private var viewsByKey: [SourceHash: View] = [:]
  /// Texts shared by many sources, by their number in `Source`.
  private var texts: [String] = []
  private var numbers: [String: Int32] = [:]
  private var examples: [Int32: String] = [:]

  /// The last line of a source, with numbers instead of texts to save memory.
  private struct Source: Sendable {
    var isWritten: Bool
    var isTemporary: Bool
    /// True if something is wrong with its still.
    var isPoor = false
    var cause: Int32
    var host: Int32
    /// The start-up time in milliseconds; NaN if unknown.
    var startup: Float
    /// The waiting time in milliseconds; NaN if unknown.
    var queued = Float.nan
    /// The findings of a checked source; nil for another one.
    var findings: [ListedFinding]?
  }

  /// What `reel viewers` tells of a view.
  private struct View: Sendable, Decodable {
    var viewer: Int32
    var session: Int32
    var number: Int32
    var stalls: Int32
    /// In milliseconds.
    var played: Float
    var waited: Float
    var machineFull: Bool?

    enum CodingKeys: String, CodingKey {
      case viewer, session, number, stalls
      case played = "played_ms"
      case waited = "waited_ms"
      case machineFull = "machine_full"
    }
  }

  /// A finding of a line, with the number of its name.
  private struct ListedFinding: Sendable, Hashable {
    var name: Int32
    /// The index of the level in `FindingLevel.allCases`.
    var level: UInt8
  }

  /// - Parameter keepsWorst: True to keep the streams that a page shows.
  init(keepsWorst: Bool = false) { worst = keepsWorst ? WorstStreams() : nil }

  /// Adds a line, without its newline.
  ///
  /// - Parameter folder: The folder of the results file.
  mutating func add(_ line: ArraySlice<UInt8>, folder: String = ".") {
    if ResultLine.isBlank(line) { return }
    lineCount += 1
    guard let members = ResultLine.members(of: line), let result = ResultLine(members) else {
      unreadableCount += 1
      return
    }
    var source = Source(
      isWritten: result.status != .failed, isTemporary: result.isTemporary, cause: -1, host: number(""),
      startup: .nan)
    if result.status == .checked { source.findings = [] }
    var view: View?
    for member in members {
      switch member.key {
      case "findings" where result.status == .checked: source.findings = findings(member.value)
      case "host": source.host = number(RawJSON.string(member.value) ?? "")
      case "error" where !source.isWritten:
        let (cause, message) = Self.cause(member.value)
        source.cause = number(cause)
        if examples[source.cause] == nil { examples[source.cause] = message }
      case "view": view = try? JSONDecoder().decode(View.self, from: Data(member.value))
      case "startup":
        for time in RawJSON.members(of: member.value) ?? [] {
          switch time.key {
          case "total_ms": source.startup = Self.number(time.value)
          case "queued_ms": source.queued = Self.number(time.value)
          default: break
          }
        }
      default: source.isPoor = source.isPoor || source.isWritten && WorstStreams.isFlaw(member)
      }
    }
    // A line of a list without a URL is identified by its number.
    var name = result.url ?? "line \(lineCount)\u{0}"
    if let view { name += "\u{0}\(view.viewer) \(view.session) \(view.number)" }
    let key = SourceHash(name)
    sources[key] = source
    if let view { viewsByKey[key] = view }
    worst?.add(
      key, result, members, startup: source.startup.isFinite ? Double(source.startup) : 0,
      isPoor: source.isPoor, folder: folder)
    if let findings = source.findings, let url = result.url, worst != nil {
      // Notes make no stream a bad one.
      let faults = findings.filter { $0.level > Self.noteLevel }
      let names = faults.sorted { ($1.level, $0.name) < ($0.level, $1.name) }.map { texts[Int($0.name)] }
      let poorness = faults.reduce(0) { $0 + ($1.level == Self.errorLevel ? 1000 : Double($1.level)) }
      worst?.addFaulty(key, url, findings: names, poorness: poorness, folder: folder)
    }
  }

  var sourceCount: Int { sources.count }
  var writtenCount: Int { sources.values.count { $0.isWritten } }
  /// The number of written sources with a poor still: no candidate was good, frames are damaged, or segments
  /// were missed.
  var poorCount: Int { sources.values.count { $0.isPoor } }
  var temporaryCount: Int { sources.values.count { !$0.isWritten && $0.isTemporary } }
  var permanentCount: Int { sources.values.count { !$0.isWritten && !$0.isTemporary } }
  /// The number of lines that a later line of the same source has replaced.
  var supersededCount: Int { lineCount - unreadableCount - sourceCount }

  /// Nil if there are none.
  var views: Views? {
    var views = Views()
    for view in viewsByKey.values {
      views.count += 1
      views.numbers.insert(view.viewer)
      views.stalls += Int(view.stalls)
      views.played += .milliseconds(Double(view.played))
      views.waited += .milliseconds(Double(view.waited))
      if view.machineFull == true { views.machineFull += 1 }
    }
    return views.count > 0 ? views : nil
  }

  /// The start-up times of written sources.
  var startup: LatencySummary? { Self.summary(sources.values, \.startup) }

  /// The waiting times of written sources; nil if none waited.
  var queued: LatencySummary? {
    Self.summary(sources.values, \.queued).flatMap { $0.max > .zero ? $0 : nil }
  }

  /// The start-up times of written sources in milliseconds, in order.
  var startupTimes: [Double] { Self.times(sources.values, \.startup).sorted() }

  /// The causes of failures, the most frequent first.
  var causes: [Cause] {
    var counts: [Int32: (count: Int, temporary: Int)] = [:]
    for source in sources.values where !source.isWritten {
      counts[source.cause, default: (0, 0)].count += 1
      if source.isTemporary { counts[source.cause, default: (0, 0)].temporary += 1 }
    }
    return counts.map { number, counts in
      Cause(
        cause: number < 0 ? "unknown" : texts[Int(number)], count: counts.count, temporary: counts.temporary,
        example: examples[number] ?? "")
    }.sorted { ($1.count, $0.cause) < ($0.count, $1.cause) }
  }

  /// The checked sources by their worst finding; nil if none was checked.
  var checked: Checked? {
    let levels = sources.values.compactMap { $0.findings.map { $0.map(\.level).max() } }
    guard !levels.isEmpty else { return nil }
    func count(_ level: FindingLevel?) -> Int {
      levels.count { $0 == level.flatMap { FindingLevel.allCases.firstIndex(of: $0) }.map(UInt8.init) }
    }
    return Checked(errors: count(.error), warnings: count(.warning), notes: count(.note), clean: count(nil))
  }

  /// The findings of checked sources, the worst and most frequent first; nil if none was checked.
  var findings: [FindingCount]? {
    var counts: [ListedFinding: Int] = [:]
    var isChecked = false
    for found in sources.values.lazy.compactMap(\.findings) {
      isChecked = true
      var levels: [Int32: UInt8] = [:]
      for finding in found { levels[finding.name] = max(levels[finding.name] ?? 0, finding.level) }
      for (name, level) in levels { counts[ListedFinding(name: name, level: level), default: 0] += 1 }
    }
    guard isChecked else { return nil }
    return counts.sorted {
      ($1.key.level, $1.value, texts[Int($0.key.name)]) < ($0.key.level, $0.value, texts[Int($1.key.name)])
    }.map { finding, count in
      FindingCount(
        finding: texts[Int(finding.name)], level: FindingLevel.allCases[Int(finding.level)].rawValue,
        sources: count)
    }
  }

  /// The hosts, those with the most failures first; local files have none.
  var hosts: [Host] {
    var byHost: [Int32: [Source]] = [:]
    for source in sources.values where !texts[Int(source.host)].isEmpty {
      byHost[source.host, default: []].append(source)
    }
    return byHost.map { number, sources in
      Host(
        host: texts[Int(number)], sources: sources.count, failed: sources.count { !$0.isWritten },
        temporary: sources.count { !$0.isWritten && $0.isTemporary }, errors: Self.errorCount(sources),
        startup: Self.summary(sources, \.startup))
    }.sorted {
      ($1.failed, $1.errors ?? 0, $1.sources, $0.host) < ($0.failed, $0.errors ?? 0, $0.sources, $1.host)
    }
  }

  // MARK: - Private

  private static let errorLevel = UInt8(FindingLevel.allCases.firstIndex(of: .error) ?? 0)
  private static let noteLevel = UInt8(FindingLevel.allCases.firstIndex(of: .note) ?? 0)

  private static func errorCount(_ sources: [Source]) -> Int? {
    let findings = sources.compactMap(\.findings)
    return findings.isEmpty ? nil : findings.count { $0.contains { $0.level == errorLevel } }
  }

  private struct FindingRecord: Decodable {
    let id: String
    let kind: String?
    let level: FindingLevel
    let waived: Waiver?

    /// A reason, or a flag.
    struct Waiver: Decodable {
      let holds: Bool

      init(from decoder: any Decoder) throws {
        holds = (try? decoder.singleValueContainer().decode(Bool.self)) ?? true
      }
    }
  }

  /// Returns the findings of a line that are not waived.
  private mutating func findings(_ value: ArraySlice<UInt8>) -> [ListedFinding] {
    let records = (try? JSONDecoder().decode([FindingRecord].self, from: Data(value))) ?? []
    var found = Set<ListedFinding>()
    for record in records where record.waived?.holds != true {
      let name = record.kind.map { "\(record.id)/\($0)" } ?? record.id
      let level = FindingLevel.allCases.firstIndex(of: record.level) ?? 0
      found.insert(ListedFinding(name: number(name), level: UInt8(level)))
    }
    return Array(found)
  }

  private mutating func number(_ text: String) -> Int32 {
    if let number = numbers[text] { return number }
    let number = Int32(clamping: texts.count)
    texts.append(text)
    numbers[text] = number
    return number
  }

  private static func number(_ value: ArraySlice<UInt8>) -> Float {
    Float(String(decoding: value, as: UTF8.self)) ?? .nan
  }

  /// Returns the known times of written sources in milliseconds.
  private static func times(_ sources: some Sequence<Source>, _ time: (Source) -> Float) -> [Double] {
    sources.compactMap { $0.isWritten && !time($0).isNaN ? Double(time($0)) : nil }
  }

  private static func summary(_ sources: some Sequence<Source>, _ time: (Source) -> Float) -> LatencySummary?
  {
    LatencySummary(times(sources, time).map { .microseconds(Int64(min(max($0, 0), 1e12) * 1e3)) })
  }

  private static func cause(_ error: ArraySlice<UInt8>) -> (cause: String, message: String) {
    var (kind, status, message) = ("unknown", "", "")
    for member in RawJSON.members(of: error) ?? [] {
      switch member.key {
      case "kind": kind = RawJSON.string(member.value) ?? kind
      case "status": status = " " + String(decoding: member.value, as: UTF8.self)
      case "message": message = RawJSON.string(member.value) ?? ""
      default: break
      }
    }
    return (kind + status, message)
  }
}

extension ResultsReport {
  /// Reads a file, or `-` for standard input, line by line. Throws `ReelError.noSuchFile`.
  mutating func add(path: String, lineLimit: Int = ResultsFile.lineLimit) throws(ReelError) {
    let file = try PieceReader(path: path)
    var lines = LineSplitter(limit: lineLimit)
    let folder = path == "-" ? "." : URL(fileURLWithPath: path).deletingLastPathComponent().path
    while true {
      let piece = try file.piece()
      for line in lines.add(piece[...]) {
        if let line {
          add(line[...], folder: folder)
        } else {
          lineCount += 1
          unreadableCount += 1
        }
      }
      if piece.isEmpty { return }
    }
  }

  /// What the results are of.
  var subject: String {
    views.map { "\($0.count.counted("view")) of \($0.viewers.counted("viewer"))" }
      ?? sourceCount.counted("source")
  }

  /// The text form.
  var lines: [String] {
    let layout = Terminal.layout
    let failedCount = permanentCount + temporaryCount
    let failed = layout.styled("\(failedCount) failed", failedCount > 0 ? .bad : nil)
    let (checked, views) = (checked, views)
    let done =
      checked.map { "\(writtenCount) checked (\($0.errors) with errors, \($0.warnings) with warnings only)" }
      ?? "\(writtenCount) \(views == nil ? "written" : "watched")"
    var lines = ["\(subject): \(done), \(failed)"]
    if let views {
      let share = views.rebuffering.map { ", rebuffering \(WalkValue.share($0))" } ?? ""
      lines.append("\(views.stalls.counted("stall"))\(share)")
      if let bottleneck = views.bottleneck { lines.append(layout.styled(bottleneck, .warning)) }
    }
    if temporaryCount > 0 { lines.append("\(temporaryCount) of the failures may succeed on a retry") }
    if supersededCount > 0 {
      lines.append("\(supersededCount.counted("line")) replaced by later ones")
    }
    if unreadableCount > 0 {
      let text = "\(unreadableCount.counted("line")) can't be read"
      lines.append(layout.styled(text, .warning))
    }
    if let startup {
      lines.append("")
      var table = Table([.left, .right])
      table.add(["start-up", "p50", "p95", "p99", "max"])
      for (name, times) in [("", startup), ("queued before", queued)] as [(String, LatencySummary?)] {
        guard let times else { continue }
        table.add([name] + [times.p50, times.p95, times.p99, times.max].map { DurationText.readable($0) })
      }
      lines += table.lines
    }
    let hostLimit = 20
    for table in [findingTable, causeTable, hostTable(limit: hostLimit)] where !table.isEmpty {
      lines += [""] + table.lines
    }
    let more = failingHosts.count - hostLimit
    if more > 0 { lines.append("and \(more.counted("more host")) with failures") }
    return lines
  }

  // MARK: Tables

  var findingTable: Table {
    var table = Table([.left, .left, .right])
    table.add(cells: [.init("finding", plain: "findings"), .init("level"), .init("sources")])
    for finding in findings ?? [] { table.add([finding.finding, finding.level, "\(finding.sources)"]) }
    return table
  }

  var causeTable: Table {
    var table = Table([.left, .right, .right, .left])
    table.add(cells: [
      .init("cause", plain: "failures by cause"), .init("failed", plain: "count"), .init("temporary"),
      .init("example"),
    ])
    for cause in causes {
      table.add(cells: [
        .init(cause.cause.spelledOut), .init("\(cause.count)"), .init("\(cause.temporary)"),
        .init(TextLayout.truncated(Redaction.clean(cause.example), to: 200), plain: cause.example),
      ])
    }
    return table
  }

  /// The hosts with failures, at most as many.
  func hostTable(limit: Int) -> Table {
    var table = Table([.left, .right])
    table.add(cells: [
      .init("host", plain: "failures by host"), .init("failed"), .init("temporary"), .init("sources"),
    ])
    for host in failingHosts.prefix(limit) {
      table.add([host.host, "\(host.failed)", "\(host.temporary)", "\(host.sources)"])
    }
    return table
  }

  var failingHosts: [Host] { hosts.filter { $0.failed > 0 } }

  /// The JSON form.
  var record: JSONFields {
    [
      "sources": sourceCount, "written": writtenCount, "failed": permanentCount + temporaryCount,
      "temporary": temporaryCount, "superseded_lines": supersededCount, "unreadable_lines": unreadableCount,
      "checked": checked, "findings": findings, "startup": startup, "queued": queued, "causes": causes,
      "views": views.map { views -> JSONFields in
        [
          "count": views.count, "viewers": views.viewers, "stalls": views.stalls, "played_ms": views.played,
          "waited_ms": views.waited, "rebuffering": views.rebuffering?.rounded(places: 6),
          "machine_full": views.machineFull, "bottleneck": views.bottleneck,
        ]
      },
      "hosts": Array(hosts.prefix(Self.hostLimit)),
    ]
  }
}

/// The written sources of results files that took longest to start, and those with poor stills.
///
/// It keeps a limited number of each, however many lines there are.
struct WorstStreams: Sendable {
  struct Stream: Sendable {
    let hash: SourceHash
    let url: String
    /// The start-up time in milliseconds; 0 if unknown.
    let startup: Double
    /// The description of the still's flaw; nil for none.
    let flaw: String?
    /// The path of the first still in the results.
    let path: String?
    /// The folder of the results file.
    let folder: String
    /// The badness of the still; higher is worse.
    fileprivate let poorness: Double
  }

  /// The maximum number of streams: more than a page shows, because later lines may replace some.
  static let limit = 64

  /// The slowest sources, the longest first.
  private(set) var slowest: [Stream] = []
  /// The sources with poor stills, the worst first.
  private(set) var poorest: [Stream] = []
  /// The checked sources with findings, the worst first. Their flaw is the list of their findings.
  private(set) var faultiest: [Stream] = []

  /// Adds the line of a source, which replaces an earlier one.
  ///
  /// - Parameters:
  ///   - startup: The start-up time in milliseconds; 0 if unknown.
  ///   - isPoor: True if something is wrong with the still.
  ///   - folder: The folder of the results file.
  mutating func add(
    _ hash: SourceHash, _ result: ResultLine, _ members: [RawJSON.Member], startup: Double, isPoor: Bool,
    folder: String
  ) {
    slowest.removeAll { $0.hash == hash }
    poorest.removeAll { $0.hash == hash }
    faultiest.removeAll { $0.hash == hash }
    guard result.status == .written, let url = result.url else { return }
    let isSlow = slowest.count < Self.limit || startup > slowest.last?.startup ?? 0
    guard isSlow || isPoor else { return }
    let flaw = isPoor ? Self.flaw(members) : nil
    let stream = Stream(
      hash: hash, url: url, startup: startup, flaw: flaw?.words, path: Self.path(members), folder: folder,
      poorness: flaw?.poorness ?? 0)
    Self.insert(stream, into: &slowest) { $0.startup > $1.startup }
    if isPoor { Self.insert(stream, into: &poorest) { $0.poorness > $1.poorness } }
  }

  /// Adds a checked source.
  mutating func addFaulty(
    _ hash: SourceHash, _ url: String, findings: [String], poorness: Double, folder: String
  ) {
    guard !findings.isEmpty else { return }
    let stream = Stream(
      hash: hash, url: url, startup: 0, flaw: findings.joined(separator: ", "), path: nil, folder: folder,
      poorness: poorness)
    Self.insert(stream, into: &faultiest) { $0.poorness > $1.poorness }
  }

  /// Returns true if a field of a result indicates a flaw of the still.
  static func isFlaw(_ member: RawJSON.Member) -> Bool {
    switch member.key {
    case "good": member.value.elementsEqual("false".utf8)
    case "damaged", "missed_segments": (number(member.value) ?? 0) > 0
    default: false
    }
  }

  // MARK: - Private

  private static func insert(
    _ stream: Stream, into streams: inout [Stream], _ isWorse: (Stream, Stream) -> Bool
  ) {
    guard streams.count < limit || streams.last.map({ isWorse(stream, $0) }) ?? true else { return }
    streams.insert(stream, at: streams.firstIndex { isWorse(stream, $0) } ?? streams.count)
    if streams.count > limit { streams.removeLast() }
  }

  private static func flaw(_ members: [RawJSON.Member]) -> (words: String, poorness: Double) {
    var (flaws, poorness) = ([String](), 0.0)
    for member in members where isFlaw(member) {
      let count = Int(min(number(member.value) ?? 0, 1e9))
      switch member.key {
      case "good":
        flaws.append(value("why", members).flatMap(RawJSON.string) ?? "no good frame")
        poorness += 1 - (score(members) ?? 0)
      case "damaged":
        flaws.append(count.counted("damaged frame"))
        poorness += 2
      default:
        flaws.append(count.counted("segment was missed", "segments were missed"))
        poorness += 2
      }
    }
    return (flaws.joined(separator: "; "), poorness)
  }

  private static func value(_ key: String, _ members: [RawJSON.Member]) -> ArraySlice<UInt8>? {
    members.first { $0.key == key }?.value
  }

  private static func number(_ value: ArraySlice<UInt8>?) -> Double? {
    value.flatMap { Double(String(decoding: $0, as: UTF8.self)) }
  }

  private struct Frame: Decodable {
    let path: String
  }

  /// Returns the path of the poster, or of the first frame.
  private static func path(_ members: [RawJSON.Member]) -> String? {
    let decoder = JSONDecoder()
    if let file = value("file", members) { return try? decoder.decode(Frame.self, from: Data(file)).path }
    return value("frames", members).flatMap { try? decoder.decode([Frame].self, from: Data($0)).first?.path }
  }

  private struct Candidate: Decodable {
    let score: Double
  }

  /// Returns the score of the chosen candidate, from 0 to 1.
  private static func score(_ members: [RawJSON.Member]) -> Double? {
    guard let index = number(value("chosen", members)).flatMap({ Int(exactly: $0) }),
      let list = value("candidates", members),
      let candidates = try? JSONDecoder().decode([Candidate].self, from: Data(list)),
      candidates.indices.contains(index)
    else { return nil }
    return candidates[index].score
  }
}
