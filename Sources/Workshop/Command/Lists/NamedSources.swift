import ReelCore
import ReelLab
import ReelSources

/// Works through the sources that the command line names, in their order. The outcome of each is printed and reported at
/// once.
final class NamedSources: Sendable {
  private struct State {
    var begunCount = 0
    /// The number of sources that were not cut off.
    var doneCount = 0
    var errors: [ReelError] = []
  }

  private let style: RunStyle
  private let runOptions: RunOptions
  private let options: SourceOptions
  private let worker: SourceRun.Worker
  private let state = Locked(State())

  init(_ style: RunStyle, _ runOptions: RunOptions, _ options: SourceOptions, _ worker: SourceRun.Worker) {
    (self.style, self.runOptions, self.options, self.worker) = (style, runOptions, options, worker)
  }

  /// Works through the sources. Returns the exit code.
  func run() async -> Int32 {
    do throws(ReelError) {
      if let folder = style.folder, folder != "-" { try OutputFolder.make(folder) }
      await WorkProgress.showing(when: !options.quiet && !style.plays, progressText) { await workThrough() }
      worker.end().forEach(fail)
    } catch {
      fail(error)
    }
    if Task.isCancelled { interrupt() }
    return ExitStatus.code(of: state.withLock { $0.errors }, sourceCount: sources.count)
  }

  // MARK: - Private

  private var sources: [String] { runOptions.sources }
  private var printsRecords: Bool { style.printsRecords ?? options.json }

  private func workThrough() async {
    let parsed = sources.map { text in Result { () throws(ReelError) in try MediaSource(argument: text) } }
    let stems = OutputNames.stems(of: parsed.map { (try? $0.get()) ?? .standardInput })
    await withTaskGroup(of: Void.self) { group in
      for (index, text) in sources.enumerated() {
        if index >= runOptions.jobs ?? style.jobs { await group.next() }
        // If standard output is closed, all other sources would fail in the same way.
        let isClosed = state.withLock { $0.errors.contains(where: \.concernsStandardOutput) }
        if isClosed || Task.isCancelled { break }
        state.withLock { $0.begunCount += 1 }
        let job = SourceRun.Job(
          parsed: parsed[index], text: text.withoutUserInformation, names: nil, folder: style.folder ?? ".",
          stem: stems[index], printsText: !options.json && !options.quiet, timeout: options.timeout,
          overwrites: runOptions.overwrite)
        group.addTask { await self.work(on: job) }
      }
    }
  }

  private func work(on job: SourceRun.Job) async {
    var outcome = await worker.outcome(of: job, style.record)
    if printsRecords, !outcome.isPrinted, let record = outcome.record {
      do throws(ReelError) {
        try Console.print(JSONLine.string(record))
      } catch {
        outcome.error = outcome.error ?? error
      }
    }
    if outcome.error?.kind != .cancelled { state.withLock { $0.doneCount += 1 } }
    guard let error = outcome.error else { return }
    if outcome.isReported { state.withLock { $0.errors.append(error) } } else { fail(error) }
  }

  /// Adds an error, and reports it unless the user has caused it. That nothing more can be printed is reported once.
  private func fail(_ error: ReelError) {
    let isKnown = state.withLock { state in
      defer { state.errors.append(error) }
      return error.concernsStandardOutput && state.errors.contains(where: \.concernsStandardOutput)
    }
    if error.kind != .cancelled, !isKnown { Console.report(error) }
  }

  /// Every source has a record, including those that were not begun.
  private func interrupt() {
    for text in sources.dropFirst(state.withLock { $0.begunCount }) where printsRecords {
      try? Console.print(JSONLine.string(style.record.init(source: text, error: .interrupted)))
    }
    fail(.interrupted)
    if sources.count > 1, !options.quiet { Console.printError("interrupted: \(doneText)") }
  }

  private var doneText: String {
    "\(state.withLock { $0.doneCount }) of \(sources.count.counted("source")) done"
  }

  private func progressText(after time: Duration) -> String {
    sources.count > 1 ? "\(doneText), \(Int(time / .seconds(1))) s" : time.progressText
  }
}
