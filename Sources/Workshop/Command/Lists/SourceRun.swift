import Foundation
import Logging
import ReelCore
import ReelFiles
import ReelLab
import ReelReading
import ReelSources

/// How a command works through its sources: those that the command line names (`NamedSources`), or a list (`Batch`).
///
/// A command with sources has `@OptionGroup var runOptions: RunOptions` and `@OptionGroup var options: SourceOptions`,
/// one that writes files of its sources also `@OptionGroup(title: "Lists") var naming: NameOptions`. It states its style,
/// checks the options with it, and says what is done with one source:
///
/// ```swift
/// private var style: RunStyle { RunStyle(record: ProbeRecord.self) }
///
/// func validate() throws { try runOptions.validate(style, options) }
///
/// func run() async throws {
///   try await SourceRun.run(style, runOptions, options) { setting in
///     let opener = TrackOpener(fetcher: setting.fetcher, …)
///     return SourceRun.Worker { job in
///       let description = try await job.limited(opener) { opener, _ in … }
///       try job.print(text: …)
///       return SourceRun.Outcome(ProbeRecord(source: job.text, description), error: description.failure)
///     }
///   }
/// }
/// ```
///
/// The run does all else: it opens several sources at a time, prints records (`--json`) or adds them to the results file,
/// reports errors, shows progress, ends after Ctrl-C, and throws the exit code. A source whose work throws has a record
/// with that error alone.
struct RunStyle: Sendable {
  /// The record that `--json` prints for a source.
  var record: any SourceRecord.Type
  /// The status of a source without an error in results files.
  var success = ResultLine.Status.written
  /// The number of named sources that are open at once, unless `--jobs` tells.
  var jobs = 1
  /// The same for list mode.
  var listJobs = 32
  /// Whether the records of named sources are printed; nil for only with `--json`.
  var printsRecords: Bool?
  /// The folder of the files, which is made first; `-` for standard output, and nil for none.
  var folder: String?
  /// The names of files in list mode; nil for a command that writes none.
  var naming: NameOptions?
  /// The extension of the files.
  var format = ""
  /// Whether the work plays sources: it shows its own progress, and players' memory is not kept in caches.
  var plays = false

  /// Whether the options turn on the list mode.
  func isList(_ run: RunOptions) -> Bool { run.list.isGiven || naming?.name != nil }
}

/// A command's run over its sources.
enum SourceRun {
  /// Runs a command over its sources. Throws the exit code unless that is 0.
  ///
  /// - Parameter prepare: Makes the worker.
  static func run(
    _ style: RunStyle, _ run: RunOptions, _ options: SourceOptions,
    _ prepare: @escaping @Sendable (Setting) throws -> Worker
  ) async throws {
    let logger = options.bootstrapLogging()
    let batch = style.isList(run) ? Batch(try Batch.Configuration(style, run, options)) : nil
    try await ExitStatus.run {
      try await Interruption.cancelling(isResumable: batch != nil) {
        let transport = try options.transport(logger: logger, recordRetryAfter: batch.map { $0.hold })
        let fetcher = try run.cache.applied(to: transport, logger: logger)
        let worker = try prepare(Setting(fetcher: fetcher, logger: logger))
        let status =
          if let batch { await batch.run(worker) } else {
            await NamedSources(style, run, options, worker).run()
          }
        await CacheOptions.finish(fetcher)
        return status
      }
    }
  }

  /// The ingredients of a worker.
  struct Setting: Sendable {
    /// Has the cache of the run in front. Tells the run when a server asks to be left alone for a while.
    let fetcher: any Fetching
    let logger: Logger
  }

  /// The work of a command on its sources.
  struct Worker: Sendable {
    /// Called with each source, also with one that is none (`Job.source` throws then).
    let work: @Sendable (Job) async throws -> Outcome
    /// Called when all work has ended, after Ctrl-C too. Returns errors of the run as a whole.
    var end: @Sendable () -> [ReelError] = { [] }

    init(_ work: @escaping @Sendable (Job) async throws -> Outcome) { self.work = work }

    /// Works on a source. One whose work throws has a record with that error alone.
    func outcome(of job: Job, _ record: any SourceRecord.Type) async -> Outcome {
      do {
        return try await work(job)
      } catch {
        let error = error.asReelError
        return Outcome(record.init(source: job.text, error: error), error: error)
      }
    }
  }

  /// A source to work on.
  struct Job: Sendable {
    /// The source, or why there is none.
    let parsed: Result<MediaSource, ReelError>
    /// The source as the user or the list has it, without the user name and password of a URL.
    let text: String
    /// The names of its files in list mode; nil for a named source.
    let names: BatchNames?
    /// The folder of its files.
    let folder: String
    /// The name of its files without number and extension. No other source of the run has the same in this folder.
    let stem: String
    let printsText: Bool
    /// The time limit of `--timeout` in seconds.
    let timeout: Double
    /// `--overwrite`.
    let overwrites: Bool
    /// How long the limits of its host have held it, in list mode.
    var held = Duration.zero
    /// True if an earlier attempt, or the run that is continued, may have written some of its files.
    var mayHaveFiles = false

    var source: MediaSource { get throws(ReelError) { try parsed.get() } }

    /// How existing files of the same names are treated.
    var existingFiles: ExistingFiles {
      ExistingFiles(
        areReplaced: overwrites || mayHaveFiles, of: (try? parsed.get()) ?? .standardInput)
    }

    /// The folder and names of its files.
    var place: OutputPlace { OutputPlace(directory: folder, existing: existingFiles) }

    /// Runs `body`, and cancels it after `--timeout`, as `withLimit` does.
    func limited<Result: Sendable>(
      _ opener: TrackOpener,
      _ body: @escaping @Sendable (TrackOpener, _ lift: @escaping @Sendable () -> Void) async throws -> Result
    ) async throws -> Result {
      try await withLimit(seconds: timeout, source: source.name, opener: opener, body)
    }

    /// Prints the line of a file, unless `--json` or `--quiet` is given. In list mode the source is at its end: on a
    /// terminal, as much of it as fits. Throws `ReelError.cannotWriteOutput`.
    func print(_ line: String) throws(ReelError) {
      guard printsText else { return }
      // Standard output has the file.
      if folder == "-" { return Console.printError(line) }
      guard names != nil else { return try Console.print(line) }
      let source = text.printable
      guard let width = Terminal.layout.width else { return try Console.print("\(line)\t\(source)") }
      // A tab leads to the next multiple of eight columns.
      let used = "\(line)\t".reduce(0) { column, character in
        character == "\t" ? (column / 8 + 1) * 8 : column + 1
      }
      try Console.print("\(line)\t\(TextLayout.shortened(source, to: max(24, width - used)))")
    }

    /// Prints the text of a source, unless `--json` or `--quiet` is given. Throws `ReelError.cannotWriteOutput`.
    func print(text: String) throws(ReelError) { if printsText { try Console.printText(text) } }
  }

  /// The outcome of a source.
  struct Outcome: Sendable {
    /// Nil if there is nothing to report of the source but its error.
    let record: (any SourceRecord)?
    /// Nil if all went well.
    var error: ReelError?
    /// Whether the work has printed the record, in a form of its own.
    var isPrinted = false
    /// Whether the work has reported the error.
    var isReported = false

    init(
      _ record: (any SourceRecord)?, error: ReelError? = nil, isPrinted: Bool = false,
      isReported: Bool = false
    ) {
      (self.record, self.error) = (record, error)
      (self.isPrinted, self.isReported) = (isPrinted, isReported)
    }

    /// The members of a line of results.
    var body: [RawJSON.Member] {
      guard let record, let json = try? JSONLine.string(record) else { return [] }
      let members = RawJSON.members(of: Array(json.utf8)[...]) ?? []
      return members.filter { $0.key != "source" && !ResultLine.keys.contains($0.key) }
    }
  }
}
