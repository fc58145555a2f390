import ArgumentParser
import Foundation
import ReelCheck
import ReelCore
import ReelLab
import ReelModels
import ReelPool
import ReelSimulation

/// `reel check`: finds faults of streams, and what they cost a viewer.
struct CheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Check each source: what is wrong, what it costs a viewer, and what fixes it.",
    discussion: """
      Opens the source as a player does, then reads every rung and rendition alone. The recorded start is replayed in \
      simulated time on each --link: once as it is, and once for each finding without it. A cost is the time that fixing \
      this finding alone would save. Then the rung is played to its end, by the sizes of its segments. --explain \
      describes a finding and names the sources of its rule. --player starts and plays with the model of another player.

      An error means that media can't be seen or heard as it is meant; a warning, that it plays late, stalls, or fails in \
      some players; a note does not affect viewers. Findings:
      \(HelpText.list(Catalogue.all.map { ($0.id.rawValue, $0.title) }))

      The exit code is 0 if there is no error and all expectations are met, else 1; --fail-on changes that. It is 69 if no \
      media arrived in time. A source of which nothing was decoded never passes: that is the error not-checked.

      --expect takes a figure, a comparison (<, <=, >, >= or =) and a value with its unit. A figure that a source lacks \
      is not met. Figures, with LINK for the name of a link:
      \(HelpText.list(CheckFigures.all(links: ["LINK"]).map { ($0.name.replacing("link", with: "LINK"), $0.meaning) }))

      --set changes a threshold:
      \(HelpText.list(Threshold.allCases.map { ($0.rawValue, "\($0.usual.value.formatted(places: 3)) \($0.usual.unit.rawValue)") }))

      \(CheckFile.usualPath) in the current folder, or the file of --waivers, holds links, expect, set, and ignore: a list \
      of objects with id, reason, and optionally url (with * for any text) and until (a date). Waived findings are \
      reported, but do not fail the run. --timeout limits the work on each source; what was found until then is kept. With \
      --cache, what is read from disk says nothing of its server.

      \(RunOptions.discussion)

      A source that was checked has the status checked, whatever was found.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    ("Check a presentation", "reel check https://example.com/master.m3u8"),
    (
      "Fail if the first frame takes 800 ms or more on LTE",
      "reel check https://example.com/master.m3u8 --expect 'start.lte<800ms'"
    ),
    (
      "Check the first segments of each source of a list",
      "reel check --input list.txt --sample start --results checks.jsonl"
    ),
  ]

  /// The time limit of a source in seconds, without that of `--watch`.
  private static let usualTimeout = 120.0

  /// What a run fails for: a level, `unchecked`, or both, as in `warning,unchecked`.
  struct FailOn: ExpressibleByArgument {
    /// The least level that fails; nil for none.
    var level: FindingLevel? = .error
    /// True if each rung fails of which nothing was judged.
    var isUnchecked = false

    static let allValueStrings = ["error", "warning", "never", "unchecked"]

    init() {}

    init?(argument: String) {
      var levels: [String] = []
      for word in argument.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
        guard Self.allValueStrings.contains(word) else { return nil }
        if word == "unchecked" { isUnchecked = true } else { levels.append(word) }
      }
      guard levels.count <= 1 else { return nil }
      if let only = levels.first { level = FindingLevel(rawValue: only) }
    }

    var defaultValueDescription: String { "error" }
  }

  @OptionGroup var runOptions: RunOptions

  @Option(
    name: .customLong("link"), parsing: .singleValue,
    help: ArgumentHelp(
      """
      Replay the start on this link: a rate and a round-trip time, a profile, or a file or folder of recordings, as feed \
      takes it, but without --player ideal unless tcp, tls or dns is added. Can be repeated. Default: lte.
      """, valueName: "spec"), completion: .links)
  var links: [String] = []

  @Option(
    help: ArgumentHelp(
      "The player that starts and plays: reel, the name of a model (reel feed --help lists them), or the file of one. Default: reel.",
      valueName: "name|file"), completion: .players)
  var player = "reel"

  @Option(
    help: ArgumentHelp(
      "The device whose costs of decoding count. Default: mid, or those of the model.",
      valueName: "low|mid|high"),
    completion: .devices)
  var device: String?

  @Option(
    name: .customLong("expect"), parsing: .singleValue,
    help: ArgumentHelp(
      "Fail if this is not met, such as 'start.lte<800ms'. Can be repeated.", valueName: "expr"))
  var expectations: [String] = []

  @Option(
    help: ArgumentHelp(
      "Fail if there is a finding of this level or above. With unchecked, alone or after a comma, also if nothing of a rung was judged.",
      valueName: "error|warning|never|unchecked"),
    completion: .list(["error", "warning", "never", "unchecked"]))
  var failOn = FailOn()

  @Option(
    name: .customLong("ignore"), parsing: .singleValue,
    help: ArgumentHelp("Waive this finding: ID, ID/KIND or ID@RUNG. Can be repeated.", valueName: "id"),
    completion: .findings)
  var ignored: [String] = []

  @Option(
    name: .customLong("set"), parsing: .singleValue,
    help: ArgumentHelp("Change a threshold, such as black.run=5s. Can be repeated.", valueName: "name=value"))
  var changes: [String] = []

  @Option(
    help: ArgumentHelp(
      """
      The segments of each rung to read: the first, the edges (the first two, two in the middle, the last two), all, or \
      this many.
      """, valueName: "start|edges|all|n"), completion: .list(["start", "edges", "all"]))
  var sample = "edges"

  @Option(
    help: ArgumentHelp(
      "The rungs to read: all, or the first and the last of each group.", valueName: "all|first,last"),
    completion: .list(["all", "first,last"]))
  var rungs = "all"

  @Option(
    help: ArgumentHelp("Read at most this much media of each source. Default: no limit.", valueName: "size"))
  var budget: String?

  @Option(
    help: ArgumentHelp("Watch a live presentation for this time.", valueName: "time"),
    transform: TimeArgument.seconds)
  var watch: Double?

  @Option(
    help: ArgumentHelp("Write a test case for each finding and expectation as JUnit XML.", valueName: "file"),
    completion: .file())
  var junit: String?

  @Option(
    name: .customLong("report"), help: ArgumentHelp("Write an HTML report.", valueName: "file"),
    completion: .file())
  var reportFile: String?

  @Option(
    help: ArgumentHelp("Describe a finding, and check nothing.", valueName: "id"),
    completion: .findings)
  var explain: String?

  @Option(
    help: ArgumentHelp(
      "Read waivers and expectations from this file. Default: \(CheckFile.usualPath), if there is one.",
      valueName: "file"), completion: .file())
  var waivers: String?

  @OptionGroup var options: SourceOptions

  func validate() throws {
    if let explain {
      _ = try OptionValue.read { () throws(ReelError) in try FindingPattern(parsing: explain) }
      return
    }
    try runOptions.validate(style, options)
    if runOptions.cache.given != nil, sample != "start" {
      throw ValidationError("--cache takes --sample start: all else judges what the servers have now")
    }
    do throws(ReelError) {
      _ = try file()
    } catch {
      // With the file, and the place in it.
      throw ValidationError("\(error)")
    }
    _ = try OptionValue.read { () throws(ReelError) in
      try gates(links: try linkList().map(\.name))
    }
    _ = try OptionValue.read { () throws(ReelError) in try checkOptions() }
    if isModelled { try OptionValue.check { () throws(ReelError) in _ = try PlayerModel(argument: player) } }
    if let watch, !(watch > 0 && watch <= 1e6) { throw ValidationError("--watch takes a time above 0") }
    for (option, path) in [("--junit", junit), ("--report", reportFile)]
    where path == "" || path == "-" {
      throw ValidationError("\(option) takes a file")
    }
    if let junit, junit == reportFile { throw ValidationError("--junit and --report take different files") }
  }

  func run() async throws {
    if let explain {
      options.print.apply()
      return try await ExitStatus.run {
        let pattern = try FindingPattern(parsing: explain)
        try Console.printText(CheckText.explanation(of: pattern))
        return 0
      }
    }
    let tally = Locked(CheckTally())
    let isList = style.isList(runOptions)
    do {
      try await SourceRun.run(style, runOptions, options) { setting in
        var checkOptions = try checkOptions()
        if isModelled { checkOptions.player = try PlayerModel(argument: player) }
        let gates = try gates(links: checkOptions.links.map(\.name))
        let files = try CheckFiles(page: reportFile, junit: junit)
        let checker = StreamChecker(
          fetcher: setting.fetcher, configuration: try options.loading(), options: checkOptions,
          logger: setting.logger)
        for waiver in gates.waivers where waiver.isExpired(on: gates.today) {
          Console.remark("note: the waiver of \(waiver.pattern.text) has expired on \(waiver.until ?? "")")
        }
        var worker = SourceRun.Worker { job in
          let result: CheckResult
          let began = ContinuousClock.now
          do {
            result = try await checker.check(job.source)
          } catch {
            if !(error is CancellationError) {
              files.addFailure(error.asReelError, of: job.text, after: .now - began)
              tally.withLock { $0.errorCount += 1 }
            }
            throw error
          }
          // Of a list, a later run checks the source again.
          if isList { try Task.checkCancellation() }
          var outcome = try finish(result, job, after: .now - began, gates, files, tally)
          if result.isInterrupted { outcome.error = .interrupted }
          return outcome
        }
        worker.end = {
          let end = tally.withLock { $0 }
          for (number, waiver) in gates.waivers.enumerated()
          where end.checkedCount > 0 && !waiver.isExpired(on: gates.today)
            && !end.usedWaivers.contains(number)
          {
            Console.remark("note: the waiver of \(waiver.pattern.text) was not used")
          }
          var failures = files.write()
          if !options.json, !options.quiet, !Task.isCancelled, end.checkedCount > 0 {
            // The code of a list also depends on what a later run may do.
            if isList {
              Console.printError(end.summary)
            } else {
              let broken = ExitStatus.code(of: failures, sourceCount: runOptions.sources.count)
              let code = end.exitCode(after: broken, isList: false)
              failures.catching { () throws(ReelError) in try Console.print("  exit \(code): \(end.summary)")
              }
            }
          }
          return failures
        }
        return worker
      }
    } catch let code as ExitCode {
      throw ExitCode(tally.withLock { $0 }.exitCode(after: code.rawValue, isList: isList))
    }
    let code = tally.withLock { $0 }.exitCode(after: 0, isList: isList)
    if code != 0 { throw ExitCode(code) }
  }

  // MARK: - Private

  private var style: RunStyle {
    RunStyle(record: CheckRecord.self, success: .checked, listJobs: 4)
  }

  private func file() throws(ReelError) -> CheckFile { try CheckFile(path: waivers) }

  private func linkList() throws(ReelError) -> [LinkArgument.Link] {
    let stated = links.isEmpty ? try file().links : links
    var list: [LinkArgument.Link] = []
    for text in stated.isEmpty ? ["lte"] : stated {
      list += try LinkArgument(parsing: text, unlessIdeal: isModelled ? .all : []).links(seed: 1)
    }
    return list
  }

  /// False for Reel's own player.
  private var isModelled: Bool { player.lowercased() != "reel" }

  private func checkOptions() throws(ReelError) -> CheckOptions {
    var check = CheckOptions()
    check.takesStills = reportFile != nil && runOptions.sources.count == 1
    switch sample {
    case "start": check.sample = .start
    case "edges": check.sample = .edges
    case "all": check.sample = .all
    default:
      guard let count = Int(sample), count > 0 else {
        throw ReelError(.usage, "--sample takes start, edges, all or a number above 0")
      }
      check.sample = .count(count)
    }
    switch rungs {
    case "all": check.rungs = .all
    case "first,last": check.rungs = .firstAndLast
    default: throw ReelError(.usage, "--rungs takes all or first,last")
    }
    check.byteBudget = try budget.map { text throws(ReelError) in
      Int64(try ByteSize(parsing: text, needsUnit: true).byteCount)
    }
    check.timeLimit = .seconds((options.givenTimeout ?? Self.usualTimeout) + (watch ?? 0))
    check.links = try linkList().map { .init(name: $0.name, spec: $0.spec) }
    let named = links.isEmpty ? try file().links : links
    check.areLinksNamed = !named.isEmpty
    if let device { check.device = try DeviceModel(argument: device) }
    check.isDeviceNamed = device != nil
    for (name, value) in try file().set.sorted(by: { $0.key < $1.key }) {
      try ThresholdChange.apply("\(name)=\(value)", to: &check.thresholds)
    }
    for change in changes { try ThresholdChange.apply(change, to: &check.thresholds) }
    check.watch = watch
    return check
  }

  /// - Parameter links: The names of the links.
  private func gates(links: [String]) throws(ReelError) -> CheckGates {
    let file = try file()
    var gates = CheckGates()
    gates.failOn = failOn.level
    gates.failsUnchecked = failOn.isUnchecked
    gates.waivers = file.ignore
    for text in ignored {
      gates.waivers.append(CheckFile.Waiver(pattern: try FindingPattern(parsing: text), reason: "--ignore"))
    }
    for text in file.expect + expectations {
      gates.expectations.append(try CheckFigures.expectation(text, links: links))
    }
    gates.today = String(WallTime.now.description.prefix(10))
    return gates
  }

  private func finish(
    _ result: CheckResult, _ job: SourceRun.Job, after duration: Duration, _ gates: CheckGates,
    _ files: CheckFiles, _ tally: Locked<CheckTally>
  ) throws(ReelError) -> SourceRun.Outcome {
    var used: Set<Int> = []
    var result = result
    result.source = job.text
    let verdict = gates.verdict(on: result) { used.insert($0) }
    let waivers = used
    tally.withLock { $0.add(verdict, usedWaivers: waivers) }
    files.add(verdict, after: duration)
    let text = CheckText(
      verdict: verdict, layout: Terminal.layout,
      usesBlocks: CheckText.usesBlocks(ProcessInfo.processInfo.environment))
    if style.isList(runOptions) {
      try job.print(text.line)
    } else {
      try job.print(text: text.text)
    }
    if options.quiet {
      for index in verdict.failing {
        let finding = verdict.checked.findings[index]
        Console.fault(
          "\(job.text): \(finding.level.rawValue): \(finding.name): \(Redaction.clean(CheckWords.placed(finding)))"
        )
      }
      for unmet in verdict.checked.unmet { Console.fault("\(job.text): error: \(unmet)") }
    }
    return SourceRun.Outcome(
      CheckRecord(verdict, result), error: result.silence ?? temporaryFailure(of: result))
  }

  /// The error of a source of a list that can't be opened now, and that a later run tries again.
  private func temporaryFailure(of result: CheckResult) -> ReelError? {
    guard style.isList(runOptions), result.findings.contains(where: { $0.id == .unreachable }),
      let failure = result.facts.startFailure, failure.isTemporary
    else { return nil }
    return failure
  }
}

/// The outcome of a run of checks.
struct CheckTally: Sendable {
  private(set) var checkedCount = 0
  private(set) var failedCount = 0
  private(set) var silentCount = 0
  /// The number of sources that can't be checked at all.
  var errorCount = 0
  private(set) var levels: [FindingLevel: Int] = [:]
  private(set) var usedWaivers: Set<Int> = []
  private var waivedCount = 0

  mutating func add(_ verdict: CheckGates.Verdict, usedWaivers waivers: Set<Int>) {
    checkedCount += 1
    if verdict.fails { failedCount += 1 }
    if verdict.checked.silence != nil { silentCount += 1 }
    for level in FindingLevel.allCases { levels[level, default: 0] += verdict.checked.count(level) }
    waivedCount += verdict.checked.waivedCount
    usedWaivers.formUnion(waivers)
  }

  /// The exit code of the command, of which the run of sources had this one.
  func exitCode(after code: Int32, isList: Bool) -> Int32 {
    switch code {
    case 0 where !isList && silentCount > 0 && silentCount == checkedCount: 69
    case 0: failedCount + errorCount > 0 ? ExitStatus.failedSource : 0
    case ExitStatus.failedSource where !isList && silentCount > 0 && silentCount == checkedCount: 69
    case 65...69 where checkedCount > silentCount: ExitStatus.failedSource
    default: code
    }
  }

  /// `2 errors, 1 warning in 3 sources`.
  var summary: String {
    if silentCount > 0, silentCount == checkedCount { return "no media arrived in time" }
    let counts = FindingLevel.allCases.reversed().compactMap { level in
      levels[level].flatMap { $0 > 0 ? $0.counted(level.rawValue) : nil }
    }
    let known = CheckWords.known(waived: waivedCount)
    var words = counts.isEmpty ? "no \(known == nil ? "" : "new ")findings" : counts.joined(separator: ", ")
    let count = checkedCount + errorCount
    if count > 1 { words += " in \(count.counted("source"))" }
    return ([words] + [known].compactMap(\.self)).joined(separator: "; ")
  }
}

/// The files of `reel check` that cover all sources: an HTML page and JUnit XML.
final class CheckFiles: Sendable {
  private let page: ResultFile?
  private let junit: ResultFile?
  private let state = Locked<(sources: CheckedSources, suites: [JUnitXML.Suite])>((CheckedSources(), []))

  /// Throws `ReelError.cannotCreateOutput`.
  init(page: String?, junit: String?) throws(ReelError) {
    self.page = try ResultFile.open(page)
    self.junit = try ResultFile.open(junit)
  }

  /// - Parameter duration: How long the check took.
  func add(_ verdict: CheckGates.Verdict, after duration: Duration) {
    let suites = junit == nil ? [] : [Self.suite(verdict, after: duration)]
    let isReported = page != nil
    state.withLock { state in
      if isReported { state.sources.add(verdict.checked) }
      state.suites += suites
    }
  }

  func addFailure(_ error: ReelError, of source: String, after duration: Duration) {
    let suite = Self.suite(
      source, [JUnitXML.Case("checked", failure: ("\(error)", error.kind.rawValue))], duration)
    let suites = junit == nil ? [] : [suite]
    state.withLock { state in
      state.sources.addFailure()
      state.suites += suites
    }
  }

  /// Writes them; returns the errors of those that failed.
  func write() -> [ReelError] {
    let (sources, suites) = state.withLock { $0 }
    var failures: [ReelError] = []
    failures.catching { () throws(ReelError) in
      try page?.complete(with: CheckPage(sources: sources, run: RunDescription()).html)
    }
    failures.catching { () throws(ReelError) in
      let sorted = suites.sorted { $0.name < $1.name }
      try junit?.complete(with: JUnitXML(command: "check", suites: sorted).text)
    }
    return failures
  }

  /// A case for each expectation, each finding, and each id without one. The case of a finding fails if that fails the
  /// run, and is skipped if it is known; one without a finding is skipped if a part of the source was not checked.
  static func suite(_ verdict: CheckGates.Verdict, after duration: Duration = .zero) -> JUnitXML.Suite {
    let checked = verdict.checked
    var cases = verdict.outcomes.map { JUnitXML.Case($0) }
    if let silence = checked.silence {
      cases.append(JUnitXML.Case("checked", failure: ("\(silence)", silence.kind.rawValue)))
      return suite(checked.source, cases, duration)
    }
    for id in FindingID.allCases {
      let indices = checked.findings.indices.filter { checked.findings[$0].id == id }
      for index in indices {
        let finding = checked.findings[index]
        var item = JUnitXML.Case(CheckWords.name(finding))
        if verdict.failing.contains(index) {
          item.failure = ("\(CheckWords.placed(finding)); \(finding.fix)", finding.name)
        } else if let waiver = finding.waiver {
          item.skipped = "a known \(finding.level.rawValue), waived: \(waiver)"
        }
        cases.append(item)
      }
      guard indices.isEmpty else { continue }
      var item = JUnitXML.Case(id.rawValue)
      if let missing = checked.notChecked.first(where: { $0.concerns(id) }) {
        item.skipped = "not checked: \(missing.rung.map { "\($0): " } ?? "")\(missing.reason)"
      } else if checked.coverage.allRungCount == 0, id != .unreachable {
        item.skipped = "not checked: the source could not be opened"
      }
      cases.append(item)
    }
    return suite(checked.source, cases, duration)
  }

  /// Readers of JUnit add up the times of cases, so each has an equal share of the time that the check of the source took.
  private static func suite(
    _ source: String, _ cases: [JUnitXML.Case], _ duration: Duration
  ) -> JUnitXML.Suite {
    let cases = cases.map { item in
      var item = item
      item.duration = duration / cases.count
      return item
    }
    return JUnitXML.Suite(name: source, cases: cases, duration: duration)
  }
}

extension NotChecked {
  /// Returns true if findings of this id may be missing because of it.
  fileprivate func concerns(_ id: FindingID) -> Bool {
    if let own = self.id { return own == id }
    switch id {
    case .unreachable: return false
    case .notChecked: return unjudged != nil
    case .ttfbSlow, .redirects, .noKeepAlive, .noRanges, .responseHeaders, .moovLast, .startBytes,
      .firstRungHeavy, .rungTooHeavy, .manifestInvalid, .liveStale:
      // A rung that was not read leaves these as they are.
      return rung == nil
    default: return true
    }
  }
}

extension CompletionKind {
  fileprivate static let findings = list(FindingID.allCases.map(\.rawValue))
}
