import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelPool
import ReelReplay

/// One run of `reel lab`.
struct LabJob {
  private let command: LabCommand
  private let logger: Logger

  init(_ command: LabCommand, logger: Logger) {
    self.command = command
    self.logger = logger
  }

  /// Runs the walks that are not done yet, and prints the summary of all. False if a walk failed.
  func run() async throws -> Bool {
    let fetcher = try command.options.transport(logger: logger, limitsWaits: true, pauses: false)
    let progress = LabProgress()
    let isQuiet = command.options.quiet
    let configuration = try command.labConfiguration()
    let baseline = try baseline(configuration)
    let inputs = try await WorkProgress.showing(when: !isQuiet, { _ in "reading feeds and links" }) {
      let reading = try FeedReading(command.options, fetcher)
      return try await LabInputs(configuration) { try await reading.read($0) }
    }
    let runs = inputs.runs
    if command.dryRun {
      if !isQuiet { try Console.printText(estimate(inputs, runs)) }
      return true
    }
    let csv = try command.outputs.csv.map { path throws(ReelError) in try ResultFile(path) }
    let page = try command.outputs.report.map { path throws(ReelError) in try ResultFile(path) }
    let header = LabStore.Header(reel: Version.text, fingerprint: inputs.fingerprint, runs: runs.count)
    let store = try LabStore(path: command.resultsPath, header: header, restarts: command.restart)
    let doneCount = store.endedCount - store.failedCount
    if doneCount > 0 { Console.remark("continuing: \(doneCount) of \(runs.count) walks are done") }
    var failure: (any Error)?
    do {
      try await WorkProgress.showing(when: !isQuiet, { _ in progress.text }) {
        try await walk(runs, inputs, fetcher, store, progress)
      }
      try store.finish()
    } catch {
      // What was measured until Ctrl-C.
      guard error is CancellationError, store.endedCount > 0 else { throw error }
      failure = error
    }
    let (results, summary) = try await WorkProgress.showing(when: !isQuiet, { _ in "summarizing" }) {
      let results = try store.results(runs)
      return (results, LabSummary(results, baseline: baseline))
    }
    try printSummary(summary)
    if failure == nil {
      try csv?.write(LabCSV.text(results))
      let run = RunDescription(arguments: Array(CommandLine.arguments.dropFirst()))
      try page?.write(LabPage(summary: summary, results: results, run: run).html)
    }
    report(results.filter { $0.error != nil }, of: runs.count)
    if let failure { throw failure }
    return store.failedCount == 0
  }

  // MARK: - Private

  private func walk(
    _ runs: LabRuns, _ inputs: LabInputs, _ fetcher: any Fetching, _ store: LabStore,
    _ progress: LabProgress
  ) async throws {
    let pending = runs.indices.filter { !store.isDone($0) }
    guard !pending.isEmpty else { return }
    let walks = LabWalks(
      inputs, loading: try command.options.loading(), fetcher: fetcher,
      limit: .seconds(command.options.timeout), logger: logger)
    var indices = pending.makeIterator()
    progress.begin(total: runs.count, done: store.endedCount - store.failedCount)
    try await SideBySide.run(command.jobs, next: { indices.next() }) { index in
      try await walks.result(of: runs[index], at: runs.places(at: index))
    } ended: { index, outcome in
      let result: LabResult
      switch outcome {
      case .success(let success): result = success
      case .failure(let error):
        result = LabResult(run: runs[index], figures: [:], error: "\(error.asReelError)")
      }
      try store.append(result, at: index)
      progress.note(hasFailed: result.error != nil)
    }
  }

  /// The policy to compare with, as results name it.
  private func baseline(_ configuration: LabConfiguration) throws(ReelError) -> String? {
    let names = configuration.policies.map(\.description)
    guard let text = command.baseline else { return names.first }
    let name = try PreloadPolicies.parse(text).description
    guard names.contains(name) else {
      throw ReelError(
        .usage, "--baseline: the lab has no policy \(name)",
        advice: "it has \(names.joined(separator: ", "))")
    }
    return name
  }

  private func printSummary(_ summary: LabSummary) throws(ReelError) {
    if command.options.json {
      try Console.print(try JSONLine.string(summary, of: "summary"))
    } else if !command.options.quiet {
      try Console.printText(LabTable(summary).text)
    }
  }

  private func report(_ failed: [LabResult], of count: Int) {
    guard !failed.isEmpty else { return }
    let limit = 10
    for result in failed.prefix(limit) {
      Console.fault("\(result.run.summary): \(result.error ?? "")".printable)
    }
    Console.fault(
      "\(failed.count) of \(count.counted("run")) failed; run the same command again to repeat them")
  }

  /// What `--dry-run` prints.
  private func estimate(_ inputs: LabInputs, _ runs: LabRuns) -> String {
    let jobs = command.jobs ?? ProcessInfo.processInfo.activeProcessorCount
    let walked = inputs.meanWalkDuration * runs.count
    let seconds = walked / .seconds(1) / Self.speed / Double(jobs)
    let configuration = inputs.configuration
    let counts = [
      (inputs.feeds.count, "feed", "feeds"), (inputs.links.count, "link", "links"),
      (inputs.viewers.count, "viewer", "viewers"), (inputs.devices.count, "device", "devices"),
      (configuration.slotCounts.count, "pool size", "pool sizes"),
      (configuration.policies.count, "policy", "policies"), (configuration.seeds.count, "seed", "seeds"),
    ]
    let parts = counts.map { count, one, several in count.counted(one, several) }
    return "\(runs.count.counted("walk")): \(parts.joined(separator: " × "))\n"
      + "about \(LabProgress.time(walked / .seconds(1))) of simulated time; roughly "
      + "\(LabProgress.time(seconds)) on \(jobs.counted("core"))"
  }

  /// Seconds of modelled time that a core walks in a second, roughly.
  private static let speed = 300.0
}
