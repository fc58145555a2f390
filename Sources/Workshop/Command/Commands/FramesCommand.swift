import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelFiles
import ReelPlayback

/// `reel frames`: writes frames of sources to files.
struct FramesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "frames",
    abstract: "Write the first frame or other frames of each source to files.",
    discussion: """
      Without --count, --at or --every, writes the first frame in presentation order as NAME-000001.ppm, and ends the \
      transfer as soon as that frame has arrived. Times count from the beginning of the presentation. The frame at a time \
      is the one on show then. Frames are turned upright and their pixels made square; --format y4m keeps the decoded \
      samples and only turns them upright. The other formats map HDR to SDR, and the result says so. A frame is reported \
      as damaged if a reference was missing or an error was concealed.

      --json prints an object for each source. --timeout limits the work on each source.

      \(BatchOptions.discussion)

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Write the first frame of each source as a PNG file to a folder",
      "reel frames https://example.com/master.m3u8 video.mp4 --format png -o frames"
    ),
    (
      "Write the frames on show at 0.25 s and 0.5 s, 320 pixels wide",
      "reel frames video.mp4 --at 0.25 --at 0.5 --size 320x180 -o frames"
    ),
    ("Print the MD5 of every frame", "reel frames video.mp4 --count 0 --md5 --json -o all"),
  ]

  @Argument(help: "Paths, URLs, or - for standard input.")
  var sources: [String] = []

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "The folder to write to, created if needed; a file for one frame, such as x.png; or - for standard output.",
      valueName: "dir|file"))
  var output = "."

  @Flag(help: "Replace existing files, which are an error otherwise.")
  var overwrite = false

  @Option(
    help: ArgumentHelp(
      "The format: jpeg, png, webp, avif, ppm (P6) or y4m. Default: that of the file, or ppm.",
      valueName: "format"))
  var format: StillFileFormat?

  @Option(help: ArgumentHelp("The number of frames to write from the beginning; 0 for all.", valueName: "n"))
  var count: Int?

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "Write the frame on show at this time. Can be repeated; frames are written in order of time.",
      valueName: "time"),
    transform: TimeArgument.seconds)
  var at: [Double] = []

  @Option(
    help: ArgumentHelp("Write the frames on show at 0 and at each multiple of this time.", valueName: "time"),
    transform: TimeArgument.seconds)
  var every: Double?

  @Option(
    help: ArgumentHelp("The size of the written frames, as 320x180.", valueName: "WxH"),
    transform: ImageOptions.size)
  var size: PixelSize?

  @Option(
    help: ArgumentHelp(
      "How a frame fits --size: fit (with bars), fill (cropped) or stretch.", valueName: "gravity"),
    transform: ImageOptions.gravity)
  var gravity = VideoGravity.resizeAspect

  @Option(help: ArgumentHelp("The number of sources to open at the same time.", valueName: "n"))
  var jobs = 32

  @Flag(help: "Add the MD5 of each frame's decoded samples, as ffmpeg -f framemd5 computes it.")
  var md5 = false

  @OptionGroup(title: "Lists") var list: BatchOptions

  @OptionGroup var options: SourceOptions

  func validate() throws {
    let place = try place
    let format = place.format
    try place.validate(
      isList: list.isList, sourceCount: sources.count, hasSeveralFrames: hasSeveralFrames)
    if list.isList {
      try list.validate(sources: sources, output: output)
      if format == .y4m, try list.template().hasTime {
        throw ValidationError("a y4m file holds several frames and can't be combined with {time}")
      }
    } else {
      try SourceOptions.validate(sources)
    }
    if let count, count < 0 { throw ValidationError("--count takes a number of 0 or more") }
    if at.contains(where: { !($0 >= 0 && $0 < 1e9) }) {
      throw ValidationError("--at takes a time of 0 or more")
    }
    if let every, !(every >= 0.001 && every < 1e9) {
      throw ValidationError("--every takes a time of 1ms or more")
    }
    if [count != nil, !at.isEmpty, every != nil].count(where: { $0 }) > 1 {
      throw ValidationError("--count, --at and --every can't be combined")
    }
    if format == .y4m, size != nil {
      throw ValidationError("y4m holds the decoded samples as they are and can't be combined with --size")
    }
    try SourceRun.validate(output: output, sources: sources, jobs: jobs, options: options)
  }

  func run() async throws {
    let logger = options.bootstrapLogging()
    try place.checkEncoder()
    if list.isList { return try await runList(logger) }
    let errors = try await Interruption.cancelling { try await extractAll(logger: logger) }
    PartialFiles.removeAll()
    try ExitStatus.check(errors, sourceCount: sources.count)
  }

  // MARK: - Private

  /// Extracts from every source, `jobs` at a time; returns the errors of those that failed.
  private func extractAll(logger: Logger) async throws -> [ReelError] {
    let extractor = FrameExtractor(
      fetcher: try options.transport(logger: logger), configuration: try configuration(),
      cores: CoreGate(leavesCoreToServer: true),
      logger: logger)
    let place = try place
    return await SourceRun(sources: sources, jobs: jobs, output: place.directory, options: options).run {
      item in
      try await extract(item, to: place, extractor: extractor)
    } failed: {
      FramesRecord(source: $0, error: $1)
    }
  }

  private func extract(
    _ item: SourceRun.Item, to place: StillOutput, extractor: FrameExtractor
  ) async throws {
    let toStandardError = place.directory == "-"
    let print: @Sendable (String) throws -> Void = {
      if toStandardError { Console.printError($0) } else { try Console.print($0) }
    }
    let job = FramesJob(
      argument: item.argument,
      writer: FrameWriter(
        options: FrameWriter.Options(
          directory: place.directory, format: place.format, size: size, gravity: gravity, computesMD5: md5,
          existing: ExistingFiles(areReplaced: overwrite, of: item.source)),
        names: place.fileName.map { FrameNames($0) } ?? FrameNames(stem: item.stem, format: place.format)),
      print: options.json || options.quiet ? nil : print)
    let selection = selection
    do {
      let report = try await withDeadline(
        seconds: options.timeout, source: item.source.name, fetcher: extractor.fetcher
      ) { fetcher in
        var extractor = extractor
        extractor.fetcher = fetcher
        return try await job.run(selection, source: item.source, extractor: extractor)
      }
      if options.json { try Console.print(JSONLine.string(job.record(report, error: nil))) }
    } catch {
      if options.json { try? Console.print(JSONLine.string(job.record(nil, error: error.asReelError))) }
      throw error
    }
  }

  func configuration() throws -> LoadingConfiguration {
    var configuration = try options.loading()
    configuration.decoderThreads =
      sources.count == 1 && !list.isList ? ProcessInfo.processInfo.activeProcessorCount : 1
    return configuration
  }

  /// Where frames go.
  var place: StillOutput {
    get throws { try StillOutput(output, format: format, default: .ppm) }
  }

  /// Whether a source may give more than one frame.
  var hasSeveralFrames: Bool {
    switch selection {
    case .first: false
    case .count(let count): count != 1
    case .times(let times): times.count > 1
    case .every: true
    }
  }

  var selection: FrameSelection {
    if let count { return .count(count) }
    if !at.isEmpty { return .times(at.map { MediaTime(seconds: $0) }) }
    if let every { return .every(MediaTime(seconds: every)) }
    return .first
  }
}

extension FramesCommand {
  /// Extracts from the sources of a list.
  func runList(_ logger: Logger) async throws {
    let configuration = try Batch.Configuration(
      list, sources: sources, output: output, format: try place.format.fileExtension, overwrites: overwrite,
      jobs: jobs,
      printsResults: options.json, isQuiet: options.quiet, resultKeys: FramesRecord.keys)
    let format = try place.format
    try await Batch.run(configuration) { batch in
      let extractor = FrameExtractor(
        fetcher: try options.transport(logger: logger) { batch.recordRetryAfter($0, $1) },
        configuration: try self.configuration(), cores: CoreGate(leavesCoreToServer: true), logger: logger)
      return { await extract($0, format: format, extractor: extractor) }
    }
  }

  // MARK: - Private

  private func extract(
    _ item: Batch.Item, format: StillFileFormat, extractor: FrameExtractor
  ) async -> Batch.Outcome {
    let print: @Sendable (String) throws -> Void = { try Console.print(item.line($0)) }
    let job = FramesJob(
      argument: item.text,
      writer: FrameWriter(
        options: FrameWriter.Options(
          directory: item.names.folder, format: format, size: size, gravity: gravity, computesMD5: md5,
          existing: item.existingFiles(overwrites: overwrite)),
        names: FrameNames(item.names, hasSeveral: hasSeveralFrames && format != .y4m)),
      print: options.json || options.quiet ? nil : print)
    let selection = selection
    var report: FrameExtractor.Report?
    var failure: ReelError?
    do {
      report = try await withDeadline(
        seconds: options.timeout, source: item.source.name, fetcher: extractor.fetcher
      ) { fetcher in
        var extractor = extractor
        extractor.fetcher = fetcher
        return try await job.run(selection, source: item.source, extractor: extractor)
      }
    } catch {
      failure = error.asReelError.located(at: item.text)
    }
    var record = job.record(report, error: nil, hasSource: false)
    record.startup?.queuedMs += item.held.milliseconds
    let body = try? JSONLine.string(record)
    return Batch.Outcome(body: body ?? "{}", error: failure)
  }
}

extension FramesRecord {
  /// The names of the fields of a result.
  static let keys: Set<String> = [
    "source", "frames", "damaged", "missed_segments", "rung_bandwidth", "first_frame_bytes", "startup",
  ]
}

/// Writes the frames of one source to files, and reports on them.
final class FramesJob: Sendable {
  private let argument: String
  private let print: (@Sendable (String) throws -> Void)?
  private let state: Locked<State>

  private struct State {
    let writer: FrameWriter
    var written: [FramesRecord.Frame] = []
    /// How long the conversion of the first frame took.
    var firstConversion = Duration.zero
  }

  /// - Parameter print: Prints the line of a frame; nil for none.
  init(
    argument: String, writer: sending FrameWriter, print: (@Sendable (String) throws -> Void)?
  ) {
    self.argument = argument
    self.print = print
    state = Locked(State(writer: writer), rank: .writer)
  }

  /// Extracts and writes the frames. For more than a few, conversion and writing run in parallel with decoding.
  func run(
    _ selection: FrameSelection, source: MediaSource, extractor: FrameExtractor
  ) async throws -> FrameExtractor.Report {
    try state.withLock { try $0.writer.check() }
    let result: Result<FrameExtractor.Report, any Error>
    let pipeline = FramePipeline { [self] frame in try write(frame) }
    do {
      let isSingle = selection == .first || selection == .count(1)
      var report = try await extractor.extract(selection, from: source) { [self] frame in
        if isSingle { try write(frame) } else { try pipeline.submit(frame) }
      }
      try await pipeline.drain()
      report.startup.entries[.convert, default: .init()].duration = state.withLock { $0.firstConversion }
      result = .success(report)
    } catch {
      try? await pipeline.drain()
      result = .failure(error)
    }
    // Complete frames are kept, even after an error. A Y4M file is complete only with its last frame.
    try state.withLock { state in
      if case .success = result {
        try state.writer.finish()
      } else if state.writer.abandon() {
        // The incomplete file was removed with all its frames.
        state.written = []
      }
    }
    let report = try result.get()
    if report.missedSegmentCount > 0 {
      Console.warn(
        "\(argument): \(report.missedSegmentCount.counted("segment was missed", "segments were missed"))")
    }
    for fault in report.faults { Console.warn("\(fault.located(at: argument))") }
    if let fault = report.clockFault { Console.warn("\(fault.located(at: argument))") }
    return report
  }

  /// The JSON record of the source.
  ///
  /// - Parameter hasSource: False leaves out the source.
  func record(_ report: FrameExtractor.Report?, error: ReelError?, hasSource: Bool = true) -> FramesRecord {
    FramesRecord(
      source: hasSource ? argument : nil, frames: state.withLock { $0.written },
      damaged: report?.damagedCount ?? state.withLock { $0.written.count(where: \.damaged) },
      missedSegments: report.flatMap { $0.missedSegmentCount > 0 ? $0.missedSegmentCount : nil },
      rungBandwidth: report?.rungBitsPerSecond, firstFrameBytes: report?.firstFrameEnd,
      startup: report.map { StartupRecord($0.startup) }, error: error.map(ErrorRecord.init))
  }

  // MARK: - Private

  private func write(_ frame: borrowing TimedFrame) throws {
    let copy = SharedFrame(try frame.clone())
    let written = try state.withLock { state in
      let (written, converted) = try state.writer.write(copy.frame)
      if state.written.isEmpty { state.firstConversion = converted }
      state.written.append(written)
      return written
    }
    try print?(Self.line(for: written))
  }

  private static func line(for written: FramesRecord.Frame) -> String {
    let pts = written.pts == nil ? "unknown" : written.ptsTime.formatted(places: 6)
    var line = "\(written.path.printable)\tpts \(pts)\t\(written.width)x\(written.height)"
    if let md5 = written.md5 { line += "\tmd5 \(md5)" }
    if written.toneMapped { line += "\tHDR, tone mapped" }
    if written.hdrNotToneMapped { line += "\tHDR, not tone mapped" }
    if written.damaged { line += "\tdamaged" }
    return line
  }
}
