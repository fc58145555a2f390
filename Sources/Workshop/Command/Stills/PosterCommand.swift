import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelReading
internal import ReelSources
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

      Files are NAME.jpg. -o takes a folder; a file, such as x.png; or - for standard output. y4m keeps the decoded samples and only turns them upright.

      --json prints an object for each source, with every candidate and its measures. --timeout limits the wait for the \
      first frame, and then for each candidate. A candidate that does not arrive in time is left out.

      \(RunOptions.discussion)

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Write a poster of at most 320 pixels in width and height",
      "reel poster https://example.com/master.m3u8 --size 320 -o posters"
    ),
    (
      "Write a poster of each source in a list, and continue later where the run stopped",
      "reel poster --input list.txt -o posters --resume"
    ),
  ]

  @OptionGroup var runOptions: RunOptions

  @OptionGroup var files: FileOptions

  @OptionGroup var still: StillOptions

  @Option(
    help: ArgumentHelp(
      "Lower the quality until the file is no larger than this, such as 30kB.", valueName: "bytes"),
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

  @OptionGroup(title: "Lists") var naming: NameOptions

  @OptionGroup var options: SourceOptions

  func validate() throws {
    let style = try style
    try runOptions.validate(style, options)
    let place = try place
    let format = place.format
    try place.validate(
      isList: style.isList(runOptions), sourceCount: runOptions.sources.count, hasSeveralFrames: false)
    try still.compression.check(format)
    if maxBytes != nil, format.still?.defaultQuality == nil {
      throw ValidationError(
        "\(format.rawValue) has no quality to lower: --max-bytes takes jpeg, webp or avif")
    }
    if format == .y4m, still.size != nil {
      throw ValidationError("y4m holds the decoded samples as they are and can't be combined with --size")
    }
    if hdr == .keep, format.still?.canHoldHDR == false {
      throw ValidationError("--hdr keep needs --format png or avif")
    }
    try OptionValue.check(candidates, of: "--candidates", in: 0...1000)
    if first, at != nil { throw ValidationError("--first and --at can't be combined") }
    if let at, !(at >= 0 && at < 1e9) { throw ValidationError("--at takes a time of 0 or more") }
  }

  func run() async throws {
    let place = try place
    try await SourceRun.run(try style, runOptions, options) { setting in
      if let still = place.format.still { try StillEncoder.check(still) }
      let opener = TrackOpener(
        fetcher: setting.fetcher, configuration: try options.loading(), cores: CoreGate(),
        logger: setting.logger)
      let writer = PosterWriter(
        format: place.format, size: still.size, quality: still.quality, byteLimit: maxBytes, hdr: hdr)
      return SourceRun.Worker { try await write($0, to: place, opener, writer) }
    }
  }

  /// The place and format of the posters.
  var place: StillOutput {
    get throws { try StillOutput(files.place, format: files.format, default: .jpeg) }
  }

  // MARK: - Private

  /// The maximum number of faults in warnings.
  private static let printedFaultCount = 5

  private var choice: Poster.Choice {
    if let at { return .at(MediaTime(seconds: at)) }
    return first ? .first : .best(of: candidates)
  }

  private var style: RunStyle {
    get throws {
      let place = try place
      return RunStyle(
        record: PosterRecord.self, jobs: 32, folder: place.directory, naming: naming,
        format: place.format.fileExtension)
    }
  }

  private func write(
    _ job: SourceRun.Job, to place: StillOutput, _ opener: TrackOpener, _ writer: PosterWriter
  ) async throws -> SourceRun.Outcome {
    let names =
      job.names.map { FrameNames($0, hasSeveral: false) }
      ?? FrameNames(place.fileName ?? "\(job.stem).\(place.format.fileExtension)")
    let choice = choice
    var record = try await job.limited(opener) { opener, lift in
      let extractor = StillExtractor(opener, size: still.size, stillLimit: .seconds(options.timeout))
      try job.place.check(names.first)
      let (poster, file) = try await extractor.poster(choice, of: job.source, recordFirst: lift) { poster in
        try writer.write(poster.frame, to: job.place, names)
      }
      return PosterRecord(
        source: job.text, poster, choice, hdr: writer.format == .y4m ? nil : writer.hdr, file: file)
    }
    record.startup?.queued += job.held
    if let line = PosterText.line(record) { try job.print(line) }
    for fault in (record.faults ?? []).prefix(Self.printedFaultCount) {
      Console.warn("\(job.text): \(fault.message)")
    }
    return SourceRun.Outcome(record)
  }
}
