import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelPlayback

/// `reel frames`: writes frames of sources to files.
struct FramesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "frames",
    abstract: "Write the first frame of each source, or others, to files.",
    discussion: """
      Without --count, --at or --every the first frame in presentation order is written, as NAME-000001.ppm, and the \
      transfer is cut as soon as it is there. Times count from the beginning of the presentation; the frame at a \
      time is the one on show then. Frames are turned upright and their pixels made square; --format y4m keeps the \
      decoded samples (turned upright only). In other formats HDR is mapped to SDR, which the result says. A frame that missed a \
      reference or was concealed is called damaged.

      \(BatchOptions.discussion)
      """)

  @Argument(help: "Paths, URLs, or - for standard input.")
  var sources: [String] = []

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The folder to write to, made if needed; - for standard output.", valueName: "dir"))
  var output = "."

  @Flag(
    help:
      "Replace any existing file. By default, only files that the same source wrote are replaced."
  )
  var overwrite = false

  @Option(help: "ppm (P6), png, or y4m.")
  var format = FramesFormat.ppm

  @Option(help: ArgumentHelp("The number of frames to write from the beginning; 0 for all.", valueName: "n"))
  var count: Int?

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "Write the frame on show at this time. Can be repeated; the earliest comes first.", valueName: "time"),
    transform: TimeArgument.seconds)
  var at: [Double] = []

  @Option(
    help: ArgumentHelp("Write the frame on show at 0 and at every multiple of this.", valueName: "time"),
    transform: TimeArgument.seconds)
  var every: Double?

  @Option(
    help: ArgumentHelp("The size of the written frames, as 320x180.", valueName: "WxH"),
    transform: ImageOptions.size)
  var size: PixelSize?

  @Option(
    help: ArgumentHelp(
      "How a frame fits --size: fit (with bars), fill (cut), or stretch.", valueName: "gravity"),
    transform: ImageOptions.gravity)
  var gravity = VideoGravity.resizeAspect

  @Option(help: ArgumentHelp("The number of sources to open at once.", valueName: "n"))
  var jobs = 32

  @Flag(help: "Add the md5 of each frame's decoded samples, as ffmpeg -f framemd5 gives it.")
  var md5 = false

  @OptionGroup(title: "Lists") var list: BatchOptions

  @OptionGroup var options: SourceOptions

  func validate() throws {
    if list.isList {
      try list.validate(sources: sources, output: output)
      if format == .y4m, try list.template().hasTime {
        throw ValidationError("a y4m file holds several frames: {time} does not go with it")
      }
    } else {
      try SourceOptions.validate(sources)
    }
    if let count, count < 0 { throw ValidationError("--count takes a number from 0 on") }
    if at.contains(where: { !($0 >= 0 && $0 < 1e9) }) {
      throw ValidationError("--at takes seconds from 0 on")
    }
    if let every, !(every >= 0.001 && every < 1e9) {
      throw ValidationError("--every takes seconds from 0.001 on")
    }
    if [count != nil, !at.isEmpty, every != nil].count(where: { $0 }) > 1 {
      throw ValidationError("--count, --at and --every exclude each other")
    }
    if format == .y4m, size != nil {
      throw ValidationError("y4m holds the decoded samples as they are: --size does not go with it")
    }
    try SourceRun.validate(output: output, sources: sources, jobs: jobs, options: options)
  }

  func run() async throws {
    let logger = options.bootstrapLogging()
    if list.isList { return try await runList(logger) }
    let errors = try await Interruption.cancelling { try await extractAll(logger: logger) }
    PartialFiles.removeAll()
    try ExitStatus.check(errors, sourceCount: sources.count)
  }

  // MARK: - Private

  /// Extracts from every source, `jobs` at a time; returns the errors of those that failed.
  private func extractAll(logger: Logger) async throws -> [ReelError] {
    let extractor = FrameExtractor(
      fetcher: try options.transport(logger: logger), configuration: try configuration(), gate: CoreGate(),
      logger: logger)
    let record = OutputRecord(directory: output, overwrites: overwrite)
    return await SourceRun(sources: sources, jobs: jobs, output: output, options: options).run { item in
      try await extract(item, record: record, extractor: extractor)
    } failed: {
      FramesRecord(source: $0, error: $1)
    }
  }

  private func extract(
    _ item: SourceRun.Item, record: OutputRecord, extractor: FrameExtractor
  ) async throws {
    let job = FramesJob(
      argument: item.argument,
      writer: FrameWriter(
        options: FrameWriter.Options(
          directory: output, format: format, size: size, gravity: gravity, computesMD5: md5,
          owner: .init(record: record, source: OutputRecord.Source(of: item.source))),
        names: FrameNames(stem: item.stem, format: format)),
      printsLines: !options.json && !options.quiet, printsToStandardError: output == "-")
    let selection = selection
    do {
      let report = try await withDeadline(seconds: options.timeout, source: item.source.name) {
        try await job.run(selection, source: item.source, extractor: extractor)
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

  var selection: FrameSelection {
    if let count { return .count(count) }
    if !at.isEmpty { return .times(at.map { MediaTime(seconds: $0) }) }
    if let every { return .every(MediaTime(seconds: every)) }
    return .first
  }
}
