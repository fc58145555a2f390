import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelFiles
import ReelPlayback
import ReelPool
import ReelStills

extension StillRenderer.HDRHandling: ExpressibleByArgument {}

/// `reel poster`: writes the frame that represents each source.
struct PosterCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "poster",
    abstract: "Write a good frame of each source to a file.",
    discussion: """
      Compares the first frame and key frames of the first 30 s, each decoded on its own, and writes the best. Black, \
      near-uniform, faded, blurred and damaged frames are rejected. If all are, the least bad one is written, and the \
      output says so.

      Of segments and of MP4 files, only what these frames need is fetched. With --size, the cheapest rung that is \
      large enough is read, whatever --bandwidth says: a rung of video, or a playlist of I-frames. Frames are turned \
      upright and their pixels made square. HDR (PQ, HLG) is mapped to SDR by the curve of ITU-R BT.2390.

      --quality is that of libjpeg for JPEG (default 85), libwebp for WebP (80) and libavif for AVIF (60). y4m keeps the \
      decoded samples and only turns them upright.

      --json prints an object for each source, with every candidate and its measures. --timeout limits the wait for the \
      first frame, and then for each candidate. A candidate that does not arrive in time is left out.

      \(BatchOptions.discussion)

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Write a poster of at most 320 pixels in width",
      "reel poster https://example.com/master.m3u8 --size 320 -o posters"
    ),
    (
      "Write a poster of each source in a list, and continue later where the run stopped",
      "reel poster --input list.txt -o posters --resume"
    ),
  ]

  @Argument(help: "Paths, URLs, or - for standard input.")
  var sources: [String] = []

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "The folder to write NAME.jpg to, created if needed; a file, such as x.png; or - for standard output.",
      valueName: "dir|file"))
  var output = "."

  @Flag(help: "Replace existing files, which are an error otherwise.")
  var overwrite = false

  @Option(
    help: ArgumentHelp(
      "The format: jpeg, png, webp, avif, ppm (P6) or y4m. Default: that of the file, or jpeg.",
      valueName: "format"))
  var format: StillFileFormat?

  @Option(help: ArgumentHelp("The quality of JPEG, WebP and AVIF, from 1 to 100.", valueName: "q"))
  var quality: Int?

  @Option(
    help: ArgumentHelp(
      """
      The largest size: a box (320x180), a width (320), or the length of the shorter side (720p). The aspect ratio is \
      kept, and frames are never enlarged.
      """,
      valueName: "size"),
    transform: ImageOptions.stillSize)
  var size: SizeLimit?

  @Option(
    help: ArgumentHelp(
      "Lower the quality until the file is no larger than this, as 30kB.", valueName: "bytes"),
    transform: ImageOptions.byteCount)
  var maxBytes: Int?

  @Option(help: ArgumentHelp("The number of key frames to compare with the first frame.", valueName: "n"))
  var candidates = 6

  @Flag(help: "Write the first frame, whatever it shows.")
  var first = false

  @Option(
    help: ArgumentHelp("Write the frame on show at this time.", valueName: "time"),
    transform: TimeArgument.seconds)
  var at: Double?

  @Option(help: "sdr maps HDR to SDR; keep writes HDR as 16-bit PNG or 10-bit AVIF.")
  var hdr = StillRenderer.HDRHandling.sdr

  @Option(help: ArgumentHelp("The number of sources to open at the same time.", valueName: "n"))
  var jobs = 32

  @OptionGroup(title: "Lists") var list: BatchOptions

  @OptionGroup var options: SourceOptions

  func validate() throws {
    let place = try place
    let format = place.format
    try place.validate(isList: list.isList, sourceCount: sources.count, hasSeveralFrames: false)
    if list.isList {
      try list.validate(sources: sources, output: output)
    } else {
      try SourceOptions.validate(sources)
    }
    if let quality, !(1...100).contains(quality) {
      throw ValidationError("--quality takes a number from 1 to 100")
    }
    if quality != nil || maxBytes != nil, format.still?.defaultQuality == nil {
      throw ValidationError(
        "\(format.rawValue) has no quality: --quality and --max-bytes need jpeg, webp or avif")
    }
    if format == .y4m, size != nil {
      throw ValidationError("y4m holds the decoded samples as they are and can't be combined with --size")
    }
    if hdr == .keep, format.still?.canHoldHDR == false {
      throw ValidationError("--hdr keep needs --format png or avif")
    }
    if !(0...1000).contains(candidates) {
      throw ValidationError("--candidates takes a number from 0 to 1000")
    }
    if first, at != nil { throw ValidationError("--first and --at can't be combined") }
    if let at, !(at >= 0 && at < 1e9) { throw ValidationError("--at takes a time of 0 or more") }
    try SourceRun.validate(output: output, sources: sources, jobs: jobs, options: options)
  }

  func run() async throws {
    let logger = options.bootstrapLogging()
    try place.checkEncoder()
    if list.isList { return try await runList(logger) }
    let errors = try await Interruption.cancelling { try await writeAll(logger: logger) }
    PartialFiles.removeAll()
    try ExitStatus.check(errors, sourceCount: sources.count)
  }

  func job(fetcher: any Fetching, logger: Logger) throws -> PosterJob {
    PosterJob(
      extractor: PosterExtractor(
        fetcher: fetcher, configuration: try options.loading(), size: size,
        stillLimit: .seconds(options.timeout), cores: CoreGate(), logger: logger),
      writer: PosterWriter(
        format: try place.format, size: size, quality: quality, byteLimit: maxBytes, hdr: hdr),
      choice: choice)
  }

  /// Where posters go.
  var place: StillOutput {
    get throws { try StillOutput(output, format: format, default: .jpeg) }
  }

  // MARK: - Private

  /// The number of faults that are named in warnings.
  private static let printedFaultCount = 5

  private var choice: Poster.Choice {
    if let at { return .at(MediaTime(seconds: at)) }
    return first ? .first : .best(of: candidates)
  }

  /// Writes the posters of all sources, `jobs` at a time; returns the errors of those that failed.
  private func writeAll(logger: Logger) async throws -> [ReelError] {
    let job = try job(fetcher: try options.transport(logger: logger), logger: logger)
    let place = try place
    return await SourceRun(sources: sources, jobs: jobs, output: place.directory, options: options).run {
      item in
      let target = PosterWriter.Target(
        directory: place.directory,
        names: FrameNames(place.fileName ?? "\(item.stem).\(place.format.fileExtension)"),
        existing: ExistingFiles(areReplaced: overwrite, of: item.source))
      try await write(item, to: target, job: job)
    } failed: {
      PosterRecord(source: $0, error: $1)
    }
  }

  private func write(_ item: SourceRun.Item, to target: PosterWriter.Target, job: PosterJob) async throws {
    do {
      let record = try await withLimit(
        seconds: options.timeout, source: item.source.name, fetcher: job.extractor.fetcher
      ) { fetcher, lift in
        var job = job
        job.extractor.fetcher = fetcher
        return try await job.run(item.source, argument: item.argument, to: target, recordFirst: lift)
      }
      if options.json {
        try Console.print(JSONLine.string(record))
      } else if !options.quiet, let line = PosterText.line(record) {
        if output == "-" { Console.printError(line) } else { try Console.print(line) }
      }
      for fault in (options.quiet ? [] : record.faults ?? []).prefix(Self.printedFaultCount) {
        Console.warn("\(item.argument.printable): \(fault.message)")
      }
    } catch {
      if options.json {
        try? Console.print(JSONLine.string(PosterRecord(source: item.argument, error: error.asReelError)))
      }
      throw error
    }
  }
}

extension PosterCommand {
  /// Writes the posters of the sources of a list.
  func runList(_ logger: Logger) async throws {
    let configuration = try Batch.Configuration(
      list, sources: sources, output: output, format: try place.format.fileExtension, overwrites: overwrite,
      jobs: jobs,
      printsResults: options.json, isQuiet: options.quiet, resultKeys: PosterRecord.keys)
    try await Batch.run(configuration) { batch in
      let transport = try options.transport(logger: logger) { batch.recordRetryAfter($0, $1) }
      let job = try job(fetcher: transport, logger: logger)
      return { await write($0, job: job) }
    }
  }

  // MARK: - Private

  private func write(_ item: Batch.Item, job: PosterJob) async -> Batch.Outcome {
    let target = PosterWriter.Target(
      directory: item.names.folder, names: FrameNames(item.names, hasSeveral: false),
      existing: item.existingFiles(overwrites: overwrite))
    do {
      var record = try await withLimit(
        seconds: options.timeout, source: item.source.name, fetcher: job.extractor.fetcher
      ) { fetcher, lift in
        var job = job
        job.extractor.fetcher = fetcher
        return try await job.run(item.source, argument: nil, to: target, recordFirst: lift)
      }
      record.startup?.queuedMs += item.held.milliseconds
      if !options.json, !options.quiet, let line = PosterText.line(record) {
        try Console.print(item.line(line))
      }
      return Batch.Outcome(body: try JSONLine.string(record))
    } catch {
      return Batch.Outcome(error: error.asReelError.located(at: item.text))
    }
  }
}

extension PosterRecord {
  /// The names of the fields of a result.
  static let keys: Set<String> = [
    "source", "file", "time", "pts", "pts_time", "why", "good", "chosen", "candidates", "hdr", "tone_mapped",
    "track", "rung", "rung_bandwidth", "read", "startup", "faults",
  ]
}

/// Finds and writes the posters of sources.
struct PosterJob: Sendable {
  var extractor: PosterExtractor
  let writer: PosterWriter
  let choice: Poster.Choice

  /// Writes the poster of one source.
  ///
  /// - Parameters:
  ///   - argument: The source as the user wrote it; nil leaves it out of the record.
  ///   - recordFirst: Called when the first of several candidates is there.
  func run(
    _ source: MediaSource, argument: String?, to target: PosterWriter.Target,
    recordFirst: @escaping @Sendable () -> Void
  ) async throws -> PosterRecord {
    try writer.check(target)
    let (poster, file) = try await extractor.poster(choice, of: source, recordFirst: recordFirst) { poster in
      try writer.write(poster.frame.frame, to: target)
    }
    return PosterRecord(
      source: argument, poster, choice, hdr: writer.format == .y4m ? nil : writer.hdr, file: file)
  }
}
