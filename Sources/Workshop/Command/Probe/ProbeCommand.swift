import ArgumentParser
import ReelReading
internal import ReelSources

/// `reel probe`: describes sources.
struct ProbeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "probe",
    abstract: "Describe each source: rungs, renditions, segments and first frame.",
    discussion: """
      Opens one rung of a manifest, as frames does, and decodes its first frame. --json prints an object for each source. \
      --timeout limits the work on each source.

      \(RunOptions.discussion)

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    ("Describe a presentation and a file", "reel probe https://example.com/master.m3u8 video.mp4"),
    ("Print the description as JSON", "reel probe https://example.com/master.m3u8 --json"),
    ("Describe each source of a list", "reel probe --input list.txt --quiet"),
  ]

  @OptionGroup var runOptions: RunOptions

  @OptionGroup var options: SourceOptions

  private var style: RunStyle { RunStyle(record: ProbeRecord.self) }

  func validate() throws { try runOptions.validate(style, options) }

  func run() async throws {
    try await SourceRun.run(style, runOptions, options) { setting in
      let opener = TrackOpener(
        fetcher: setting.fetcher, configuration: try options.loading(),
        cores: CoreGate(leavesCoreToServer: true), logger: setting.logger)
      return SourceRun.Worker { job in
        let description = try await job.limited(opener) { opener, _ in
          try await SourceProber(opener).probe(job.source)
        }
        try job.print(text: ProbeText.text(for: description, source: job.text))
        var record = ProbeRecord(source: job.text, description)
        record.startup?.queued += job.held
        // The error of a frame that can't be decoded, beside the description.
        return SourceRun.Outcome(record, error: description.failure)
      }
    }
  }
}
