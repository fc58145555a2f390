import ArgumentParser

/// The command line tool.
struct Reel: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reel",
    abstract: "A headless media player pool over FFmpeg.",
    discussion: """
      Sources are paths or http(s) URLs of media files, HLS or DASH manifests, or - for standard input.

      Times are written as 2, 2.5s, 500ms, 1:30 or 00:01:30, sizes as 800000, 64M, 64MB or 1.5GiB (M and MB are \
      1,000,000 bytes), and bit rates as 3Mbit, 3M or 800k.

      Results go to standard output, everything else to standard error. --quiet prints no text except errors. Data is \
      printed all the same: JSON, playlists, the URL of serve, and media written to -.

      Exit codes:
      \(HelpText.list(exitCodes))

      \(HelpText.examples(examples))
      """,
    version: Version.text,
    subcommands: [
      FramesCommand.self, PosterCommand.self, StoryboardCommand.self, PlayCommand.self, ViewersCommand.self,
      MemoryCommand.self, FeedCommand.self, LabCommand.self, ProbeCommand.self, CheckCommand.self,
      ManifestCommand.self,
      ServeCommand.self, ReportCommand.self, CacheCommand.self,
    ]
  )

  private static let examples = [
    ("Describe a source", "reel probe https://example.com/master.m3u8"),
    ("Write the first frame of a file", "reel frames video.mp4"),
    (
      "Measure how long viewers of a feed wait on a simulated LTE link",
      "reel feed feed.m3u --virtual --link lte --swipes 20"
    ),
  ]

  private static let exitCodes: [(String, String)] = [
    ("0", "success"),
    (
      "1",
      "one of several sources or walks failed (in list mode: permanently), or an --assert is not met"
    ),
    ("64", "wrong usage"),
    ("65", "invalid or unsupported media or manifest"),
    ("66", "no such file"),
    ("69", "server or network error, or time limit"),
    ("70", "internal error"),
    ("73", "output can't be created"),
    ("74", "output can't be written"),
    ("75", "list mode: a retry may succeed"),
    ("130", "interrupted"),
  ]
}

@main
enum Main {
  static func main() async {
    ProcessSettings.registerArenas()
    let status = await run(Array(CommandLine.arguments.dropFirst()))
    if status != 0 { Reel.exit(withError: ExitCode(status)) }
  }

  /// Runs a command, prints the error of wrong arguments, and returns the exit code.
  private static func run(_ arguments: [String]) async -> Int32 {
    if Set(arguments) == ["--version", "--verbose"] {
      print(Version.details)
      return 0
    }
    let commands = Reel.configuration.subcommands.compactMap { $0.configuration.commandName }
    let fault = Typos.unknownCommand(in: arguments, commands: commands) ?? Typos.removedOption(in: arguments)
    if let fault {
      Terminal.use(ColorMode(asking: arguments))
      Console.fault(fault)
      return ExitCode.validationFailure.rawValue
    }
    do {
      if arguments.count == 2, arguments[0] == "--generate-manual-pages" {
        try await ExitStatus.run {
          try ManualPage.writeAll(to: arguments[1])
          return 0
        }
        return 0
      }
      var command = try Reel.parseAsRoot(arguments)
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
      return 0
    } catch {
      // ArgumentParser does not wrap anything, because HelpText does.
      let message = Reel.fullMessage(for: error, columns: 1_000_000)
      guard Reel.exitCode(for: error) == .validationFailure else {
        // Other messages, such as completions, are printed unchanged.
        guard message.hasPrefix(HelpText.start) else { Reel.exit(withError: error) }
        try? Console.print(HelpText.fitted(message, to: HelpText.columns))
        return 0
      }
      // The errors of sources have already been printed.
      guard !message.isEmpty else { Reel.exit(withError: error) }
      Terminal.use(ColorMode(asking: arguments))
      Console.printError(
        Terminal.errorLayout.withStyledError(HelpText.fittedError(Typos.withoutFarSuggestion(message))))
      return ExitCode.validationFailure.rawValue
    }
  }
}
