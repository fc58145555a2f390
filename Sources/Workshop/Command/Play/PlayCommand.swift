import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelFiles
import ReelPlayback
import ReelLab
import ReelSources

/// `reel play`: plays sources without a screen.
struct PlayCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "play",
    abstract: "Play sources in real time without a screen, and report how it went.",
    discussion: """
      Plays one source after the other in real time, to the end or for --duration. Frames and audio are discarded, or \
      written with --nut, --y4m, -o and --wav. Each change of state goes to standard error, on a terminal above a line of \
      progress. The summary goes to standard output.

      --json prints an object for each event: event (its name), position (seconds on the source's timeline) and time_ms \
      (milliseconds since the source was started). The last object of a source is its summary. bytes and requests of the \
      summary cover everything that was fetched, those of a rung only its media; memory_bytes is the peak of the process.

      A live source plays until it ends. Ctrl-C ends playback with the summary; NUT, Y4M and WAV files are completed and kept.

      A late frame is dropped and counted if the next one is due too, except with --rate max. A reader of --nut gets each \
      frame, and the audio, with its time. The files of --y4m and --wav are in step: a frame is repeated where others are \
      missing or dropped, and missing audio is silence. With -o, each frame on show is written to that folder as \
      NAME-000001.ppm or .png, without repetitions, and HDR is mapped to SDR.

      --timeout limits the wait for the first frame of each source, and each later wait for media: a source that has \
      nothing to play for that long has failed. So has one whose stalls add up to that much more than ten times what was \
      played between them. Separate audio that does not arrive is given up after half of that time, at most 10s.

      Media that was not shown is listed with the reason: missing (not loaded), damaged, jumped (timestamps, or towards \
      the live edge) or dropped (late). --strict ends with the exit code of the first loss; dropped frames don't count.

      --assert takes a metric, a comparison (<, <=, >, >= or =) and a value with its unit. If an assertion is not met, the \
      exit code is 1. Metrics:
      \(HelpText.list(PlaybackFigures.all.map { ($0.name, $0.meaning) }))

      \(RunOptions.discussion)

      Lines of results have the summary. Events are printed as for named sources.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    ("Play for two seconds, and print how it went", "reel play https://example.com/master.m3u8 --duration 2"),
    (
      "Decode everything as fast as possible, and encode it with ffmpeg",
      "reel play video.mp4 --rate max --nut - | ffmpeg -i - out.mkv"
    ),
    ("Write a report as a page", "reel play https://example.com/master.m3u8 --rate max --report report.html"),
  ]

  @OptionGroup var runOptions: RunOptions

  @OptionGroup var files: FileOptions

  @OptionGroup var image: FrameSizeOptions

  @Option(
    help: ArgumentHelp(
      "The playback speed, from 0.25 to 8; max plays as fast as frames can be decoded.", valueName: "r|max"),
    completion: .list(["max"]),
    transform: Self.rate)
  var rate = 1.0

  @Option(
    help: ArgumentHelp("Stop after this much has been played.", valueName: "time"),
    transform: TimeArgument.seconds)
  var duration: Double?

  @Option(
    help: ArgumentHelp(
      "Start at the frame on show at this position of the timeline; past the end, at the last frame.",
      valueName: "time"), transform: TimeArgument.seconds)
  var start: Double?

  @Flag(help: "Restart at the end without a gap, until --duration or Ctrl-C.")
  var loop = false

  @Flag(help: "Play no audio. Audio in separate streams is not fetched.")
  var mute = false

  @Option(
    help: ArgumentHelp(
      """
      Write the frames on show and the audio as one NUT stream of raw video and PCM; with -, to standard output, and the \
      summary to standard error.
      """, valueName: "file|-"), completion: .file())
  var nut: String?

  @Option(
    help: ArgumentHelp(
      "Write the frames on show as YUV4MPEG2; with -, to standard output, and the summary to standard error.",
      valueName: "file|-"), completion: .file())
  var y4m: String?

  @Option(help: ArgumentHelp("Write the audio as a WAVE file.", valueName: "file"), completion: .file())
  var wav: String?

  @Option(
    name: .customLong("report"),
    help: ArgumentHelp(
      "Write an HTML report of start-up, buffer, rungs, stalls, lateness and events.", valueName: "file"),
    completion: .file())
  var reportFile: String?

  @Flag(help: "Fail if media was missed, damaged or skipped, or audio was lost.")
  var strict = false

  @Option(
    name: .customLong("assert"), parsing: .singleValue,
    help: ArgumentHelp(
      "Fail if this is not met, such as 'second_frame<150ms'. Can be repeated.", valueName: "expr"))
  var assertions: [String] = []

  @Option(
    help: ArgumentHelp(
      "Write a test case for each source, and for each --assert, as JUnit XML.", valueName: "file"),
    completion: .file())
  var junit: String?

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "The preferred audio language. Can be repeated, most preferred first.",
      valueName: "lang"))
  var audioLanguage: [String] = []

  @Option(
    help: ArgumentHelp(
      "How much media to buffer ahead of the frame on show. Default: 3s.", valueName: "time"),
    transform: TimeArgument.seconds)
  var buffer = 3.0

  @Option(help: ArgumentHelp("The number of decoder threads. Default: one per processor.", valueName: "n"))
  var threads: Int?

  @Flag(help: "With --json: add an event for each frame on show, with the MD5 of its decoded samples.")
  var md5 = false

  @OptionGroup(title: "Lists") var naming: NameOptions

  @OptionGroup var options: SourceOptions

  func validate() throws {
    try runOptions.validate(style, options)
    try validateTimes()
    try validateOutputs()
    try OptionValue.check(threads, of: "--threads", in: 1...64)
    if md5, !options.json { throw ValidationError("--md5 requires --json") }
    if audioLanguage.contains(where: \.isEmpty) { throw ValidationError("--audio-language takes a language") }
    try OptionValue.read { () throws(ReelError) in
      for text in assertions { _ = try PlaybackFigures.assertion(text) }
    }
  }

  func run() async throws {
    let areAssertionsMet = Locked(true)
    try await SourceRun.run(style, runOptions, options) { setting in
      let configuration = try configuration()
      let assertions = try assertions.map { text throws(ReelError) in try PlaybackFigures.assertion(text) }
      let reports = try PlayFiles(page: reportFile, junit: junit, isStrict: strict)
      var worker = SourceRun.Worker { job in
        let report = PlayReport(form, recorder: reports.page.map { _ in PlayRecorder() })
        let verdict = await PlayJob(
          self, job, assertions: assertions, configuration: configuration, fetcher: setting.fetcher,
          report: report, logger: setting.logger
        ).run()
        reports.add(verdict, report.recorder?.recording)
        if verdict.summary.assertions?.allSatisfy(\.isMet) == false {
          areAssertionsMet.withLock { $0 = false }
        }
        let error = verdict.failure ?? (strict ? verdict.loss : nil)
        return SourceRun.Outcome(verdict.summary, error: error, isPrinted: true)
      }
      // After Ctrl-C too, with everything recorded until then.
      worker.end = { reports.write() }
      return worker
    }
    if !areAssertionsMet.withLock({ $0 }) { throw ExitCode(ExitStatus.failedSource) }
  }

  // MARK: - Values

  var isList: Bool { style.isList(runOptions) }

  /// Whether there may be several sources.
  var playsSeveral: Bool { isList || runOptions.sources.count > 1 }

  /// The position at which playback begins; nil for the beginning.
  var startTime: MediaTime? { start.map { MediaTime(seconds: $0) } }

  /// The media time to play; nil for no limit.
  var playedTime: MediaTime? { duration.map { MediaTime(seconds: $0) } }

  // MARK: - Private

  private var style: RunStyle {
    // Each source makes its own folder.
    let folder = naming.name != nil || runOptions.list.isGiven ? files.output ?? "." : nil
    return RunStyle(
      record: PlayRecordSummary.self, listJobs: 1, folder: folder, naming: naming,
      format: (files.format ?? .ppm).fileExtension, plays: true)
  }

  private var form: PlayReport.Form {
    if options.json { return .json }
    return options.quiet ? .nothing : .text(toStandardError: y4m == "-" || nut == "-")
  }

  private func configuration() throws -> PlayerConfiguration {
    var configuration = PlayerConfiguration()
    configuration.loading = try options.loading()
    configuration.loading.decoderThreads = threads ?? ProcessInfo.processInfo.activeProcessorCount
    configuration.loading.audioLanguages = audioLanguage
    configuration.adaptsBitRate = options.adaptsBitRate
    configuration.thresholds.audioPatience = min(
      configuration.thresholds.audioPatience, .seconds(options.timeout / 2))
    return configuration
  }

  private func validateTimes() throws {
    if let duration, !(duration > 0 && duration <= 1e9) {
      throw ValidationError("--duration takes a time above 0")
    }
    if let start, !(start >= 0 && start <= 1e9) {
      throw ValidationError("--start takes a time of 0 or more")
    }
    if !(buffer >= 0.1 && buffer <= 3600) {
      throw ValidationError("--buffer takes a time from 100ms to 1h")
    }
    if loop, duration == nil, playsSeveral {
      throw ValidationError("--loop of several sources takes --duration: the first would never end")
    }
  }

  private func validateOutputs() throws {
    for (option, path) in [("--nut", nut), ("--y4m", y4m)] {
      if path == "" { throw ValidationError("\(option) takes a file, or - for standard output") }
      if path == "-", options.json {
        throw ValidationError("\(option) - and --json both write to standard output")
      }
    }
    if nut != nil, y4m != nil || wav != nil {
      throw ValidationError("--nut has frames and audio, and can't be combined with --y4m and --wav")
    }
    if let wav {
      if wav.isEmpty || wav == "-" { throw ValidationError("--wav takes a file") }
      if mute { throw ValidationError("--mute leaves no audio to write: it can't be combined with --wav") }
    }
    if let y4m, let wav, OutputFile.isPipe(wav),
      y4m == "-" ? OutputFile.isStandardOutputPipe : OutputFile.isPipe(y4m)
    {
      throw ValidationError(
        "--y4m and --wav can't both write to pipes, whose reader may read either first; use --nut for one stream of both"
      )
    }
    if playsSeveral, nut != nil || y4m != nil || wav != nil {
      throw ValidationError("--nut, --y4m and --wav take one source")
    }
    try validateReplacements()
    if reportFile == "-" || reportFile == "" { throw ValidationError("--report takes a file") }
    try WalkResultOptions.checkFile(junit, of: "--junit")
    if files.output == "" || files.output == "-" { throw ValidationError("-o takes a folder") }
    if let folder = files.output, OutputFolder.isNamedLikeFile(folder) {
      throw ValidationError("-o takes a folder; for one of that name, write \(folder)/")
    }
    if ![nil, .ppm, .png].contains(files.format) { throw ValidationError("play writes ppm or png") }
    if try naming.template().hasTime {
      throw ValidationError("--name: frames that are played have no {time}")
    }
    if files.output == nil,
      files.format != nil || image.size != nil || image.gravity != nil || naming.name != nil
        || runOptions.overwrite && !isList
    {
      throw ValidationError("--format, --size, --gravity, --name and --overwrite require -o")
    }
    if let jobs = runOptions.jobs, jobs > 1, !options.quiet || options.json {
      throw ValidationError("--jobs requires --quiet without --json: events of several sources would mix")
    }
  }

  /// Refuses outputs that would replace an input or each other.
  private func validateReplacements() throws {
    let read = Set(
      runOptions.sources.compactMap { source in
        (try? MediaSource(argument: source)).flatMap { FileIdentity($0) }
      })
    let written = [
      ("--nut", nut), ("--y4m", y4m), ("--wav", wav), ("--report", reportFile), ("--junit", junit),
    ]
    for (option, path) in written {
      guard let path, path != "-", let written = FileIdentity(path: path), read.contains(written) else {
        continue
      }
      throw ValidationError("\(option) would replace the source: \(path)")
    }
    for (index, (option, path)) in written.enumerated() {
      guard let path, path != "-", path != "/dev/null" else { continue }
      for (other, same) in written.dropFirst(index + 1) where path == same || isSame(path, same) {
        throw ValidationError("\(option) and \(other) take different files")
      }
    }
  }

  private func isSame(_ path: String, _ other: String?) -> Bool {
    guard let other, other != "-", let identity = FileIdentity(path: path) else { return false }
    return identity == FileIdentity(path: other)
  }

  private static func rate(_ text: String) throws -> Double {
    let text = text.lowercased()
    if text == "max" { return .infinity }
    guard let rate = Double(text.hasSuffix("x") ? text.dropLast() : text[...]), rate >= 0.25, rate <= 8 else {
      throw ValidationError("'\(text)' is not a playback speed: use 0.25 to 8, or max")
    }
    return rate
  }
}

/// The files that `reel play` writes about the sources. They are begun before playback: what can't be made is known then.
final class PlayFiles: Sendable {
  let page: ResultFile?
  private let junit: ResultFile?
  private let isStrict: Bool
  private let played = Locked<(recordings: [PlayRecorder.Recording], suites: [JUnitXML.Suite])>(([], []))

  /// Throws `ReelError.cannotCreateOutput`.
  init(page: String?, junit: String?, isStrict: Bool) throws(ReelError) {
    self.page = try ResultFile.open(page)
    self.junit = try ResultFile.open(junit)
    self.isStrict = isStrict
  }

  /// Adds a source that was played.
  func add(_ verdict: PlayJob.Verdict, _ recording: PlayRecorder.Recording?) {
    let newSuites = junit == nil ? [] : [suite(verdict)]
    played.withLock { played in
      if let recording { played.recordings.append(recording) }
      played.suites += newSuites
    }
  }

  /// Writes them; returns the errors of those that failed.
  func write() -> [ReelError] {
    let (recordings, suites) = played.withLock { $0 }
    var failures: [ReelError] = []
    failures.catching { () throws(ReelError) in
      try page?.complete(with: PlayPage(sources: recordings, run: RunDescription()).html)
    }
    failures.catching { () throws(ReelError) in
      try junit?.complete(with: JUnitXML(command: "play", suites: suites).text)
    }
    return failures
  }

  /// A case for the source, and one for each of its assertions.
  private func suite(_ verdict: PlayJob.Verdict) -> JUnitXML.Suite {
    let summary = verdict.summary
    var source = JUnitXML.Case(isStrict ? "plays without loss" : "plays")
    if let error = verdict.failure {
      source.failure = ("\(error)", error.kind.rawValue)
    } else if isStrict, let loss = verdict.loss {
      source.failure = ("\(loss)", loss.kind.rawValue)
    }
    return JUnitXML.Suite(
      name: summary.source, cases: [source] + (summary.assertions ?? []).map { JUnitXML.Case($0) },
      duration: .seconds(summary.wallMs / 1e3))
  }
}
