import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelFiles
import ReelPlayback
import ReelPool
import ReelStills

/// `reel storyboard`: writes stills of each source at a regular interval.
struct StoryboardCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "storyboard",
    abstract: "Write stills of each source at a regular interval, for previews.",
    discussion: """
      Each still is a key frame, decoded on its own. From segments and from MP4 and Matroska files, only the index and \
      these frames are fetched, several at a time, from the cheapest rung whose frames are large enough, or from a \
      playlist of I-frames. A still is the key frame nearest to the start of its interval (in segments, only the first \
      key frame counts), and none is used twice: if key frames are further apart than --every, so are the stills. \
      Sources without an index are read to their end.

      --write chooses the files, which share their sheets:
      \(HelpText.list(StoryboardOutput.forms))
      In sheets for HLS and DASH, an interval without a still of its own repeats the previous one. A source has at most \
      10,000 stills, and a sheet 16,384 pixels per side (WebP: 16,383) and 64 Mi pixels.

      Of a live presentation, the current window is shown, with times from its start. HDR is mapped to SDR, and frames \
      are turned upright.

      --timeout limits the wait for the manifest, for the index and for each still. A still that can't be read, or does \
      not arrive in time, is left out, and the others are written. The exit code is then that of its error, except for a \
      live presentation, whose segments expire. --json prints an object for each source.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Write a sheet of stills, one per second, with a WebVTT index",
      "reel storyboard https://example.com/master.m3u8 --every 1 -o storyboard"
    ),
    (
      "Write what players of HLS and DASH read",
      "reel storyboard video.mp4 --every 0.5 --write hls,dash -o storyboard"
    ),
  ]

  @Argument(help: "Paths, URLs, or - for standard input.")
  var sources: [String] = []

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "The folder to write NAME.vtt, NAME-001.jpg and the other files to, created if needed.",
      valueName: "dir"))
  var output = "."

  @Flag(help: "Replace existing files, which are an error otherwise.")
  var overwrite = false

  @Option(
    help: ArgumentHelp(
      "The time from one still to the next, at least 0.1 s: 10, 2.5s, 500ms, 1:30. Default: 10s.",
      valueName: "time"),
    transform: TimeArgument.seconds)
  var every: Double?

  @Option(
    help: ArgumentHelp(
      "Instead of --every: spread this many stills, from 1 to 10,000, evenly over the duration.",
      valueName: "n"))
  var count: Int?

  @Option(
    help: ArgumentHelp(
      "The most columns and rows of tiles in a sheet. A sheet has no more rows than it needs. Default: 10x10.",
      valueName: "CxR"),
    transform: StoryboardGrid.parse)
  var grid = StoryboardGrid(columns: 10, rows: 10)

  @Option(
    help: ArgumentHelp(
      """
      The largest size of a tile in pixels: a width (320), a box (320x180), or the length of the shorter side (180p). \
      The aspect ratio is kept, and frames are never enlarged. Default: 320.
      """,
      valueName: "size"),
    transform: ImageOptions.stillSize)
  var size = SizeLimit.width(320)

  @Option(
    help: ArgumentHelp(
      "The files to write: vtt, hls, dash and bif, separated by commas. Default: vtt.", valueName: "list"),
    transform: StoryboardOutput.list)
  var write: [StoryboardOutput] = [.vtt]

  @Option(help: "The format of sheets: jpeg, png, webp, avif or ppm (P6).")
  var format = StillFileFormat.jpeg

  @Option(
    help: ArgumentHelp(
      "The quality of JPEG (default 85), WebP (80) and AVIF (60), from 1 to 100.", valueName: "q"))
  var quality: Int?

  @Option(help: ArgumentHelp("The number of sources to open at the same time.", valueName: "n"))
  var jobs = 4

  @OptionGroup var options: SourceOptions

  func validate() throws {
    try SourceOptions.validate(sources)
    if let quality, !(1...100).contains(quality) {
      throw ValidationError("--quality takes a number from 1 to 100")
    }
    guard let still = format.still else {
      throw ValidationError(
        "y4m holds decoded samples, and sheets are scaled: use jpeg, png, webp, avif or ppm")
    }
    if quality != nil, still.defaultQuality == nil {
      throw ValidationError("\(format.rawValue) has no quality")
    }
    if every != nil, count != nil { throw ValidationError("--every and --count can't be combined") }
    if let every, !(every >= 0.1 && every < Storyboard.intervalLimit) {
      throw ValidationError("--every takes a time from 0.1 s to 1000000 s")
    }
    if let count, !(1...Storyboard.slotLimit).contains(count) {
      throw ValidationError("--count takes a number from 1 to \(Storyboard.slotLimit)")
    }
    if !(1...256).contains(jobs) { throw ValidationError("--jobs takes a number from 1 to 256") }
    if try output.isEmpty || output == "-" || StillOutput(output, format: nil, default: .jpeg).fileName != nil
    {
      throw ValidationError("-o takes a folder: a storyboard has several files")
    }
  }

  func run() async throws {
    let logger = options.bootstrapLogging()
    let errors = try await Interruption.cancelling { try await writeAll(logger: logger) }
    PartialFiles.removeAll()
    try ExitStatus.check(errors, sourceCount: sources.count)
  }

  // MARK: - Private

  private var style: StoryboardStyle {
    StoryboardStyle(
      directory: output, outputs: write, format: format.still ?? .jpeg, quality: quality, grid: grid)
  }

  /// Writes the storyboards of all sources, `jobs` at a time; returns the errors of those that failed.
  private func writeAll(logger: Logger) async throws -> [ReelError] {
    do {
      if style.writesSheets { try StillEncoder.check(style.format) }
      if write.contains(.bif) { try StillEncoder.check(.jpeg) }
    } catch {
      Console.report(error.asReelError)
      return [error.asReelError]
    }
    let job = StoryboardJob(
      extractor: StoryboardExtractor(
        fetcher: try options.transport(logger: logger), configuration: try options.loading(), size: size,
        stillLimit: .seconds(options.timeout), cores: CoreGate(), logger: logger),
      style: style, spacing: count.map { .count($0) } ?? .every(every ?? 10))
    return await SourceRun(sources: sources, jobs: jobs, output: output, options: options).run { item in
      try await write(item, job: job)
    } failed: {
      StoryboardRecord(source: $0, error: $1)
    }
  }

  private func write(_ item: SourceRun.Item, job: StoryboardJob) async throws {
    let record: StoryboardRecord
    do {
      record = try await withLimit(
        seconds: options.timeout, source: item.source.name, fetcher: job.extractor.fetcher
      ) { fetcher, lift in
        var job = job
        job.extractor.fetcher = fetcher
        return try await job.run(
          item.source, argument: item.argument, stem: item.stem,
          existing: ExistingFiles(areReplaced: overwrite, of: item.source), recordOpening: lift)
      }
      if options.json {
        try Console.print(JSONLine.string(record))
      } else if !options.quiet, let line = StoryboardText.line(record) {
        try Console.print(line)
      }
      for fault in (options.quiet ? [] : record.faults ?? []).prefix(Self.printedMissingCount) {
        Console.warn("\(item.argument.printable): \(fault.message)")
      }
      if !options.quiet, let missing = record.missing {
        for found in missing.prefix(Self.printedMissingCount) {
          let time = (Double(found.slot) * (record.interval ?? 0)).formatted(places: 3)
          Console.warn(
            "\(item.argument.printable): no still at \(time) s: \(found.error.message)")
        }
      }
    } catch {
      if options.json {
        try? Console.print(
          JSONLine.string(StoryboardRecord(source: item.argument, error: error.asReelError)))
      }
      throw error
    }
    if let loss = record.loss { throw loss }
  }

  /// The number of faults, and of missing key frames, that are named in warnings.
  private static let printedMissingCount = 5
}

/// Makes and writes the storyboards of sources.
struct StoryboardJob: Sendable {
  var extractor: StoryboardExtractor
  let style: StoryboardStyle
  let spacing: Storyboard.Spacing

  /// Writes the storyboard of one source.
  ///
  /// - Parameters:
  ///   - argument: The source as the user wrote it.
  ///   - stem: The beginning of the files' names.
  ///   - recordOpening: Called when the source has answered.
  func run(
    _ source: MediaSource, argument: String, stem: String, existing: ExistingFiles,
    recordOpening: @escaping @Sendable () -> Void
  ) async throws -> StoryboardRecord {
    try StoryboardWriter(style, stem: stem, existing: existing).check()
    let (style, clock) = (style, SystemMonotonicClock())
    let began = clock.now
    return try await extractor.storyboard(spacing, of: source, recordOpening: recordOpening) { tiles in
      let before = ThreadTime.now
      let writer = StoryboardWriter(style, stem: stem, existing: existing)
      do {
        while let tile = try tiles.next() {
          try writer.add(tile)
        }
        let storyboard = try tiles.storyboard()
        try writer.finish(storyboard)
        return StoryboardRecord(
          source: argument, storyboard, writer, wall: clock.now - began,
          processor: storyboard.processorTime + (ThreadTime.now - before))
      } catch {
        writer.discard()
        throw error
      }
    }
  }
}
