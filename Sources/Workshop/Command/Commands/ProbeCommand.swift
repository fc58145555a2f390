import ArgumentParser
import ReelCore
import ReelPlayback

/// `reel probe`: describes sources.
struct ProbeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "probe",
    abstract: "Describe each source: rungs, renditions, segments and first frame.",
    discussion: """
      Opens one rung of a manifest, as frames does, and decodes its first frame. --json prints an object for each source. \
      --timeout limits the work on each source.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    ("Describe a presentation and a file", "reel probe https://example.com/master.m3u8 video.mp4"),
    ("Print the description as JSON", "reel probe https://example.com/master.m3u8 --json"),
  ]

  @Argument(help: "Paths, URLs, or - for standard input.")
  var sources: [String] = []

  @OptionGroup var options: SourceOptions

  func validate() throws {
    try SourceOptions.validate(sources)
  }

  func run() async throws {
    let logger = options.bootstrapLogging()
    let errors = try await Interruption.cancelling {
      let prober = SourceProber(
        fetcher: try options.transport(logger: logger), configuration: try options.loading(),
        cores: CoreGate(leavesCoreToServer: true),
        logger: logger)
      return await SourceRun(sources: sources, options: options).run { item in
        if let error = try await probe(item, prober: prober) { throw error }
      } failed: {
        ProbeRecord(source: $0, error: $1)
      }
    }
    try ExitStatus.check(errors, sourceCount: sources.count)
  }

  // MARK: - Private

  /// Prints the description of a source; returns the error if its frame can't be decoded.
  private func probe(_ item: SourceRun.Item, prober: SourceProber) async throws -> ReelError? {
    do {
      let description = try await withDeadline(
        seconds: options.timeout, source: item.source.name, fetcher: prober.fetcher
      ) { fetcher in
        var prober = prober
        prober.fetcher = fetcher
        return try await prober.probe(item.source)
      }
      if options.json {
        try Console.print(JSONLine.string(ProbeRecord(source: item.argument, description)))
      } else if !options.quiet {
        try Console.printText(ProbeText.text(for: description, source: item.argument))
      }
      return description.failure
    } catch {
      if options.json {
        try? Console.print(JSONLine.string(ProbeRecord(source: item.argument, error: error.asReelError)))
      }
      throw error
    }
  }
}
