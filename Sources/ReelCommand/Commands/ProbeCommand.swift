import ArgumentParser
import ReelCore
import ReelPlayback

/// `reel probe`: describes sources.
struct ProbeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "probe",
    abstract: "Say what each source is: rungs, renditions, segments, first frame.",
    discussion: "Opens one rung of a manifest, as frames does, and decodes its first frame.")

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
        fetcher: options.transport(logger: logger), configuration: try options.loading(), gate: CoreGate(),
        logger: logger)
      var errors: [ReelError] = []
      for (index, argument) in sources.enumerated() {
        if Task.isCancelled {
          // Every source has a line, including those that were not started.
          for argument in sources[index...] where options.json {
            try? Console.print(JSONLine.string(ProbeRecord(source: argument, error: .interrupted)))
          }
          return errors + [.interrupted]
        }
        do {
          if let error = try await probe(argument, prober: prober) { throw error }
        } catch {
          let error = error.asReelError
          errors.append(error)
          if error.kind != .cancelled { Console.report(error) }
        }
      }
      return errors
    }
    try ExitStatus.check(errors, sourceCount: sources.count)
  }

  // MARK: - Private

  /// Prints the description of a source; returns the error if its frame can't be decoded.
  private func probe(_ argument: String, prober: SourceProber) async throws -> ReelError? {
    do {
      let source = try MediaSource(argument: argument)
      let count = WorkCount(of: 1)
      let description = try await WorkProgress.showing(when: !options.quiet, { count.text(after: $0) }) {
        try await withDeadline(seconds: options.timeout, source: source.name) {
          try await prober.probe(source)
        }
      }
      if options.json {
        try Console.print(JSONLine.string(ProbeRecord(source: argument, description)))
      } else if !options.quiet {
        try Console.print(ProbeText.text(for: description, source: argument))
      }
      return description.failure
    } catch {
      if options.json {
        try? Console.print(JSONLine.string(ProbeRecord(source: argument, error: error.asReelError)))
      }
      throw error
    }
  }
}
