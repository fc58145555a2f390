import Logging
import ReelCore
import ReelPlayback

extension PosterCommand {
  /// Writes the posters of the sources of a list.
  func runList(_ logger: Logger) async throws {
    let configuration = try Batch.Configuration(
      list, sources: sources, output: output, format: try place.format.fileExtension, overwrites: overwrite,
      jobs: jobs,
      printsResults: options.json, isQuiet: options.quiet, resultKeys: PosterRecord.keys)
    try await Batch.run(configuration) { batch in
      let transport = try options.transport(logger: logger) { batch.noteRetryAfter($0, $1) }
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
        return try await job.run(item.source, argument: nil, to: target, noteFirst: lift)
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
