import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelReading
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

      Files are NAME.vtt, NAME-001.jpg and so on; -o takes a folder. --write chooses them, and they share their sheets:
      \(HelpText.list(StoryboardOutput.forms))
      In sheets for HLS, an interval without a still of its own repeats the previous one. A source has at most \
      10,000 stills, and a sheet 16,384 pixels per side (WebP: 16,383) and 64 Mi pixels.

      Of a live presentation, the current window is shown, with times from its start. HDR is mapped to SDR, and frames \
      are turned upright.

      --timeout limits the wait for the manifest, for the index and for each still. A still that can't be read, or does \
      not arrive in time, is left out, and the others are written. The exit code is then that of its error, except for a \
      live presentation, whose segments expire. --json prints an object for each source.

      \(RunOptions.discussion)

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Write a sheet of stills, one per second, with a WebVTT index",
      "reel storyboard https://example.com/master.m3u8 --every 1 -o storyboard"
    ),
    (
      "Write what players of HLS read",
      "reel storyboard video.mp4 --every 0.5 --write hls -o storyboard"
    ),
  ]

  @OptionGroup var runOptions: RunOptions

  @OptionGroup var files: FileOptions

  @OptionGroup var still: StillOptions

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
      "The files to write: vtt, hls, or both, separated by a comma. Default: vtt.", valueName: "list"),
    completion: .list(StoryboardOutput.allCases.map(\.rawValue)),
    transform: StoryboardOutput.list)
  var write: [StoryboardOutput] = [.vtt]

  @OptionGroup(title: "Lists") var naming: NameOptions

  @OptionGroup var options: SourceOptions

  func validate() throws {
    if ["", "-"].contains(files.place) || OutputFolder.isNamedLikeFile(files.place) {
      throw ValidationError("-o takes a folder: a storyboard has several files")
    }
    try runOptions.validate(style, options)
    if try naming.template().hasTime { throw ValidationError("--name: a storyboard has no {time}") }
    guard format.still != nil else {
      throw ValidationError(
        "y4m holds decoded samples, and sheets are scaled: use jpeg, png, webp, avif or ppm")
    }
    try still.compression.check(format)
    if every != nil, count != nil { throw ValidationError("--every and --count can't be combined") }
    if let every, !Storyboard.intervals.contains(every) {
      throw ValidationError("--every takes a time from 0.1 s to 1000000 s")
    }
    try OptionValue.check(count, of: "--count", in: 1...Storyboard.slotLimit)
  }

  func run() async throws {
    try await SourceRun.run(style, runOptions, options) { setting in
      try StillEncoder.check(sheets.format)
      let opener = TrackOpener(
        fetcher: setting.fetcher, configuration: try options.loading(), cores: CoreGate(),
        logger: setting.logger)
      return SourceRun.Worker { try await write($0, opener) }
    }
  }

  // MARK: - Private

  private var format: StillFileFormat { files.format ?? .jpeg }

  private var style: RunStyle {
    RunStyle(
      record: StoryboardRecord.self, jobs: 4, listJobs: 4, folder: files.place, naming: naming,
      format: format.fileExtension)
  }

  private var sheets: StoryboardStyle {
    StoryboardStyle(
      outputs: write, format: format.still ?? .jpeg, quality: still.quality, grid: grid)
  }

  private func write(_ job: SourceRun.Job, _ opener: TrackOpener) async throws -> SourceRun.Outcome {
    let (sheets, place) = (sheets, job.place)
    let spacing = count.map { Storyboard.Spacing.count($0) } ?? .every(every ?? 10)
    let clock = SystemMonotonicClock()
    let record = try await job.limited(opener) { opener, lift in
      let extractor = StillExtractor(opener, size: still.size, stillLimit: .seconds(options.timeout))
      let began = clock.now
      for name in sheets.names(job.stem) { try place.check(name) }
      return try await extractor.storyboard(spacing, of: job.source, recordOpening: lift) { tiles in
        let before = ThreadTime.now
        let writer = StoryboardWriter(sheets, stem: job.stem) { name, bytes throws(ReelError) in
          try place.write(bytes, to: name)
        }
        var frames: [StoryboardRecord.Frame] = []
        do {
          while let tile = try tiles.next() {
            try writer.add(tile)
            frames.append(StoryboardRecord.Frame(tile))
          }
          let storyboard = try tiles.report()
          try writer.finish(storyboard)
          return StoryboardRecord(
            source: job.text, storyboard, writer, frames: frames, at: place, wall: clock.now - began,
            processor: storyboard.processorTime + (ThreadTime.now - before))
        } catch {
          for file in writer.files { try? FileManager.default.removeItem(atPath: place.path(file.name)) }
          throw error
        }
      }
    }
    if let line = StoryboardText.line(record) { try job.print(line) }
    for fault in (record.faults ?? []).prefix(Self.printedMissingCount) {
      Console.warn("\(job.text): \(fault.message)")
    }
    for found in (record.missing ?? []).prefix(Self.printedMissingCount) {
      let time = (Double(found.slot) * (record.interval ?? 0)).formatted(places: 3)
      Console.warn("\(job.text): no still at \(time) s: \(found.error.message)")
    }
    return SourceRun.Outcome(record, error: record.loss)
  }

  /// The maximum number of faults, and of missing key frames, in warnings.
  private static let printedMissingCount = 5
}
