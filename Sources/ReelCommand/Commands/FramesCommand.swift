import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelPlayback

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// `reel frames`: writes frames of sources to files.
struct FramesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "frames",
    abstract: "Write the first frame of each source, or others, to files.",
    discussion: """
      Without --count, --at or --every the first frame in presentation order is written, as NAME-000001.ppm, and the \
      transfer is cut as soon as it is there. Times count from the beginning of the presentation; the frame at a \
      time is the one on show then. Frames are turned upright and their pixels made square; --format y4m keeps the \
      decoded samples (turned upright only). HDR is not tone mapped, which the result says. A frame that missed a \
      reference or was concealed is called damaged.
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

  @Option(help: ArgumentHelp("Write so many frames from the beginning; 0 for all.", valueName: "n"))
  var count: Int?

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "Write the frame on show at this time. Can be repeated; the earliest comes first.", valueName: "s"))
  var at: [Double] = []

  @Option(help: ArgumentHelp("Write the frame on show at 0 and at every multiple of this.", valueName: "s"))
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

  @Option(help: ArgumentHelp("Open so many sources at once.", valueName: "n"))
  var jobs = 32

  @Flag(help: "Add the md5 of each frame's decoded samples, as ffmpeg -f framemd5 gives it.")
  var md5 = false

  @OptionGroup var options: SourceOptions

  func validate() throws {
    try SourceOptions.validate(sources)
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
    if !(1...4096).contains(jobs) { throw ValidationError("--jobs takes a number from 1 to 4096") }
    if format == .y4m, size != nil {
      throw ValidationError("y4m holds the decoded samples as they are: --size does not go with it")
    }
    if output.isEmpty { throw ValidationError("-o takes a folder, or - for standard output") }
    if output == "-", sources.count > 1 { throw ValidationError("-o - takes one source") }
    if output == "-", options.json { throw ValidationError("-o - and --json both want standard output") }
  }

  func run() async throws {
    let logger = options.bootstrapLogging()
    let errors = try await Interruption.cancelling { try await extractAll(logger: logger) }
    PartialFiles.removeAll()
    try ExitStatus.check(errors, sourceCount: sources.count)
  }

  // MARK: - Private

  /// Returns the number of sources that were begun.
  private func extract(
    _ parsed: [Result<MediaSource, ReelError>], stems: [String], record: OutputRecord,
    extractor: FrameExtractor, failures: FailureLog, _ count: WorkCount
  ) async -> Int {
    await withTaskGroup(of: Void.self) { group in
      var running = 0
      for (index, source) in parsed.enumerated() {
        if running >= jobs {
          await group.next()
          running -= 1
        }
        if Task.isCancelled || failures.all.contains(where: Self.endsAll) { return index }
        running += 1
        group.addTask {
          do {
            try await extract(
              source.get(), argument: sources[index], stem: stems[index],
              owner: .init(record: record, of: source),
              extractor: extractor)
          } catch {
            let error = error.asReelError
            failures.append(error)
            report(error, argument: sources[index])
          }
          count.add()
        }
      }
      return parsed.count
    }
  }

  /// Extracts from every source, `jobs` at a time; returns the errors of those that failed.
  private func extractAll(logger: Logger) async throws -> [ReelError] {
    do {
      if output != "-" { try makeFolder() }
    } catch {
      Console.report(error.asReelError)
      return [error.asReelError]
    }
    let parsed = sources.map { argument in
      Result { () throws(ReelError) in try MediaSource(argument: argument) }
    }
    let stems = OutputNames.stems(
      of: parsed.map { (try? $0.get()) ?? .standardInput })
    let extractor = FrameExtractor(
      fetcher: options.transport(logger: logger), configuration: try configuration(), gate: CoreGate(),
      logger: logger)
    let record = OutputRecord(directory: output, overwrites: overwrite)
    let failures = FailureLog()
    let count = WorkCount(of: sources.count)
    let begun = await WorkProgress.showing(when: !options.quiet, { count.text(after: $0) }) {
      await extract(parsed, stems: stems, record: record, extractor: extractor, failures: failures, count)
    }
    if Task.isCancelled, options.json {
      // Every source has a line, including those that were not started.
      for argument in sources[begun...] {
        try? Console.print(JSONLine.string(FramesRecord(source: argument, error: .interrupted)))
      }
    }
    if Task.isCancelled { return [ReelError.interrupted] }
    return failures.all
  }

  /// Standard output is closed, so continuing is pointless.
  private static func endsAll(_ error: ReelError) -> Bool {
    error.kind == .cannotWriteOutput && error.location == "standard output"
  }

  private func extract(
    _ source: MediaSource, argument: String, stem: String, owner: OutputFile.Owner, extractor: FrameExtractor
  ) async throws {
    let job = FramesJob(
      argument: argument,
      writer: FrameWriter(
        options: FrameWriter.Options(
          directory: output, format: format, size: size, gravity: gravity, computesMD5: md5, owner: owner),
        stem: stem),
      printsLines: !options.json && !options.quiet, printsToStandardError: output == "-")
    let selection = selection
    do {
      let report = try await withDeadline(seconds: options.timeout, source: source.name) {
        try await job.run(selection, source: source, extractor: extractor)
      }
      if options.json { try Console.print(JSONLine.string(job.record(report, error: nil))) }
    } catch {
      if options.json { try? Console.print(JSONLine.string(job.record(nil, error: error.asReelError))) }
      throw error
    }
  }

  private func report(_ error: ReelError, argument: String) {
    if error.kind != .cancelled { Console.report(error) }
  }

  private func makeFolder() throws {
    var isDirectory: ObjCBool = false
    if FileManager.default.fileExists(atPath: output, isDirectory: &isDirectory) {
      guard isDirectory.boolValue else {
        throw ReelError(.cannotCreateOutput, "is a file, not a folder", at: output)
      }
      return
    }
    var path = output.hasPrefix("/") ? "/" : ""
    for part in output.split(separator: "/") {
      path += path.isEmpty || path.hasSuffix("/") ? String(part) : "/" + part
      guard mkdir(path, 0o777) != 0, errno != EEXIST else { continue }
      throw ReelError(
        .cannotCreateOutput, "the folder can't be made: \(Console.errorText(errno))", at: output)
    }
    guard FileManager.default.fileExists(atPath: output, isDirectory: &isDirectory), isDirectory.boolValue
    else {
      throw ReelError(
        .cannotCreateOutput, "the folder can't be made: \(Console.errorText(ENOTDIR))", at: output)
    }
  }

  private func configuration() throws -> LoadingConfiguration {
    var configuration = try options.loading()
    configuration.decoderThreads = sources.count == 1 ? ProcessInfo.processInfo.activeProcessorCount : 1
    return configuration
  }

  private var selection: FrameSelection {
    if let count { return .count(count) }
    if !at.isEmpty { return .times(at.map { MediaTime(seconds: $0) }) }
    if let every { return .every(MediaTime(seconds: every)) }
    return .first
  }
}
