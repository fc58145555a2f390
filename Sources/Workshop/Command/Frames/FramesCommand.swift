import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelReading
import ReelSources

/// `reel frames`: writes frames of sources to files.
struct FramesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "frames",
    abstract: "Write the first frame or other frames of each source to files.",
    discussion: """
      Without --count, --at or --every, writes the first frame in presentation order as NAME-000001.ppm, and ends the \
      transfer as soon as that frame has arrived. -o takes a folder; a file for one frame, such as x.png; or - for \
      standard output. Times count from the beginning of the presentation. The frame at a time \
      is the one on show then. Frames are turned upright and their pixels made square; --format y4m keeps the decoded \
      samples and only turns them upright. The other formats map HDR to SDR, and the result says so. A frame is reported \
      as damaged if a reference was missing or an error was concealed.

      --json prints an object for each source. --timeout limits the work on each source.

      \(RunOptions.discussion)

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Write the first frame of each source as a PNG file to a folder",
      "reel frames https://example.com/master.m3u8 video.mp4 --format png -o frames"
    ),
    (
      "Write the frames on show at 0.25 s and 0.5 s, at most 320 pixels wide and high",
      "reel frames video.mp4 --at 0.25 --at 0.5 --size 320 -o frames"
    ),
    ("Print the MD5 of every frame", "reel frames video.mp4 --count 0 --md5 --json -o all"),
  ]

  @OptionGroup var runOptions: RunOptions

  @OptionGroup var files: FileOptions

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

  @OptionGroup var image: FrameSizeOptions

  @OptionGroup var compression: QualityOptions

  @Flag(help: "Add the MD5 of each frame's decoded samples, as ffmpeg -f framemd5 computes it.")
  var md5 = false

  @OptionGroup(title: "Lists") var naming: NameOptions

  @OptionGroup var options: SourceOptions

  func validate() throws {
    let style = try style
    try runOptions.validate(style, options)
    let (place, isList) = (try place, style.isList(runOptions))
    let format = place.format
    try place.validate(
      isList: isList, sourceCount: runOptions.sources.count, hasSeveralFrames: hasSeveralFrames)
    if isList, format == .y4m, try naming.template().hasTime {
      throw ValidationError("a y4m file holds several frames and can't be combined with {time}")
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
    try compression.check(format)
    if format == .y4m, image.size != nil {
      throw ValidationError("y4m holds the decoded samples as they are and can't be combined with --size")
    }
  }

  func run() async throws {
    let place = try place
    try await SourceRun.run(try style, runOptions, options) { setting in
      if let still = place.format.still { try StillEncoder.check(still) }
      let opener = TrackOpener(
        fetcher: setting.fetcher, configuration: try configuration(),
        cores: CoreGate(leavesCoreToServer: true), logger: setting.logger)
      return SourceRun.Worker { await extract($0, to: place, opener) }
    }
  }

  // MARK: - Private

  private var style: RunStyle {
    get throws {
      let place = try place
      return RunStyle(
        record: FramesRecord.self, jobs: 32, folder: place.directory, naming: naming,
        format: place.format.fileExtension)
    }
  }

  private func extract(_ job: SourceRun.Job, to place: StillOutput, _ opener: TrackOpener) async
    -> SourceRun.Outcome
  {
    let names =
      place.fileName.map { FrameNames($0) }
      ?? job.names.map { FrameNames($0, hasSeveral: hasSeveralFrames && place.format != .y4m) }
      ?? FrameNames(stem: job.stem, format: place.format)
    let frames = FramesJob(
      argument: job.text,
      writer: FrameWriter(
        to: job.place, names, as: place.format, quality: compression.quality,
        size: image.imageSize, computesMD5: md5)
    ) { try job.print($0) }
    let selection = selection
    do {
      let report = try await job.limited(opener) { opener, _ in
        try await frames.run(selection, source: job.source, extractor: FrameExtractor(opener))
      }
      var record = frames.record(report, error: nil)
      record.startup?.queued += job.held
      return SourceRun.Outcome(record)
    } catch {
      let error = error.asReelError
      return SourceRun.Outcome(frames.record(nil, error: error), error: error)
    }
  }

  func configuration() throws -> LoadingConfiguration {
    var configuration = try options.loading()
    configuration.decoderThreads =
      try runOptions.sources.count == 1 && !style.isList(runOptions)
      ? ProcessInfo.processInfo.activeProcessorCount : 1
    return configuration
  }

  /// The place and format of the frames.
  var place: StillOutput {
    get throws { try StillOutput(files.place, format: files.format, default: .ppm) }
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

/// Writes the frames of one source to files, and reports on them.
final class FramesJob: Sendable {
  private let argument: String
  private let print: @Sendable (String) throws -> Void
  private let state: Locked<State>

  private struct State {
    let writer: FrameWriter
    var written: [FramesRecord.Frame] = []
    /// The duration of the first frame's conversion.
    var firstConversion = Duration.zero
  }

  /// - Parameter print: Prints the line of a frame.
  init(
    argument: String, writer: sending FrameWriter, print: @escaping @Sendable (String) throws -> Void
  ) {
    self.argument = argument
    self.print = print
    state = Locked(State(writer: writer), rank: .transfer)
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
  func record(_ report: FrameExtractor.Report?, error: ReelError?) -> FramesRecord {
    FramesRecord(
      source: argument, frames: state.withLock { $0.written },
      damaged: report?.damagedCount ?? state.withLock { $0.written.count(where: \.damaged) },
      missedSegments: report.flatMap { $0.missedSegmentCount > 0 ? $0.missedSegmentCount : nil },
      rungBandwidth: report?.rungBitsPerSecond, firstFrameBytes: report?.firstFrameEnd,
      startup: report?.startup, error: error.map(ErrorRecord.init))
  }

  // MARK: - Private

  private func write(_ frame: VideoFrame) throws {
    let written = try state.withLock { state in
      let (written, converted) = try state.writer.write(frame)
      if state.written.isEmpty { state.firstConversion = converted }
      state.written.append(written)
      return written
    }
    try print(Self.line(for: written))
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
