import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelPlayback
import ReelPool

/// `reel calibrate`: measures what decoding costs on this machine.
struct CalibrateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "calibrate",
    abstract: "Measure decoding on this machine, and write the result as a device for feed.",
    discussion: """
      Decodes the first \(DecodeCalibration.frameCount) frames of each source with one thread, as fast as possible, and \
      opens a decoder for the source \(CalibrateCommand.openingCount) times. There is no built-in material: costs depend on \
      codec, size and bit rate, so use sources like those of your feeds. Measure on an idle machine, as elapsed times count.

      The result is a device for reel feed --device, as JSON: the median time to open a decoder and, for each codec, a \
      constant per frame and a cost per pixel. Frames of one size give the whole cost per pixel; two or more sizes separate \
      the two parts. Codecs that were not measured (others) cost as much as the slowest measured one. The limits of \
      decoders, memory and transfers can't be measured, because reel decodes in software: they are null, which means no \
      limit, and can be set in the file.

      Without -o, the device is printed after the summary; with --quiet, alone. --json prints the device and the \
      measurement as one object. --timeout limits the work on each source.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    ("Measure how fast this machine decodes a source", "reel calibrate video.mp4"),
    ("Write the result to a file", "reel calibrate video.mp4 -o device.json"),
    ("Use that file in a simulation", "reel feed feed.m3u --virtual --link lte --device device.json"),
  ]

  /// How often a decoder is opened for each source.
  static let openingCount = 5

  @Argument(help: "Paths or URLs.")
  var sources: [String] = []

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("Write the device to this file; - for standard output.", valueName: "file"))
  var output: String?

  @Option(help: ArgumentHelp("The name of the device.", valueName: "name"))
  var name = "calibrated"

  @OptionGroup var options: SourceOptions

  func validate() throws {
    if sources.isEmpty { throw ValidationError("name at least one source to measure with") }
    if sources.contains("-") { throw ValidationError("standard input can be read only once: name a file") }
    if output == "" { throw ValidationError("--output takes a file") }
    if name.trimmingCharacters(in: .whitespacesAndNewlines).isEmpty || name.count > 100 {
      throw ValidationError("--name takes 1 to 100 characters")
    }
    if output == "-", options.json { throw ValidationError("--json and -o - both write to standard output") }
  }

  func run() async throws {
    let logger = options.bootstrapLogging()
    let errors: [ReelError]
    do {
      errors = try await Interruption.cancelling { try await calibrate(logger) }
    } catch {
      PartialFiles.removeAll()
      let error = error.asReelError
      if error.kind != .cancelled { Console.report(error) }
      throw ExitCode(ExitStatus.code(of: error))
    }
    try ExitStatus.check(errors, sourceCount: sources.count)
  }

  // MARK: - Private

  /// Gives the errors of sources that could not be measured.
  private func calibrate(_ logger: Logger) async throws -> [ReelError] {
    var file: OutputFile?
    // What can't be made is known before the work.
    if let output, output != "-" { file = try ResultFile.open(output) }
    let fetcher = try options.transport(logger: logger, limitsWaits: true)
    let loading = try options.loading()
    let calibration = DecodeCalibration(logger: logger)
    var measurement = DecodeMeasurement()
    var errors: [ReelError] = []
    let count = WorkCount(of: sources.count)
    try await WorkProgress.showing(when: !options.quiet, { count.text(after: $0) }) {
      for argument in sources {
        try Task.checkCancellation()
        do {
          let source = try MediaSource(argument: argument)
          let part = try await withDeadline(
            seconds: options.timeout, source: source.name, fetcher: fetcher
          ) { fetcher in
            try await calibration.measure(
              source, loading: loading, fetcher: fetcher, openings: Self.openingCount)
          }
          measurement.add(part)
        } catch {
          let error = error.asReelError.located(at: argument)
          if error.kind == .cancelled { throw error }
          errors.append(error)
          Console.report(error)
        }
        count.add()
      }
    }
    guard let cost = measurement.cost else { return errors.isEmpty ? [Self.noFrame] : errors }
    let device = DeviceModel(
      name: name, decoderLimit: nil, coreCount: min(ProcessInfo.processInfo.activeProcessorCount, 256),
      decodeCost: cost)
    try file?.write(Array("\(device.json)\n".utf8))
    try file?.commit()
    if options.json {
      try Console.print(JSONLine.string(CalibrationRecord(device, measurement)))
    } else if output == "-" {
      try Console.print(device.json)
    } else {
      if !options.quiet { try Console.printText(CalibrationRecord.text(device, measurement)) }
      if output == nil { try Console.print((options.quiet ? "" : "\n") + device.json) }
    }
    return errors
  }

  private static let noFrame = ReelError(.badMedia, "calibration failed: no frame could be decoded")
}
