import ReelCore
import ReelPlayback

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
