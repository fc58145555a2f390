import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelFFmpeg
import ReelPlayback

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
        fetcher: try options.transport(logger: logger) { batch.noteRetryAfter($0, $1) },
        configuration: try self.configuration(), cores: CoreGate(), logger: logger)
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
