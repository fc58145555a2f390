import ArgumentParser

/// The command line tool.
struct Reel: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reel",
    abstract: "A headless media player pool over FFmpeg.",
    discussion: """
      Sources are paths, http(s) URLs of media files, HLS or DASH manifests, or - for standard input.

      Exit codes: 0 all well; 64 usage; 65 bad media or manifest; 66 no such file; 69 server or network; \
      70 an internal error; 73 an output can't be made; 74 an output can't be written; 130 interrupted. \
      1 if any of several sources or walks failed, or if an --assert of feed does not hold. \
      Of a list (--input): 1 if any failed permanently, 75 if a retry may help.
      """,
    version: Version.text,
    subcommands: [
      FramesCommand.self, PosterCommand.self, StoryboardCommand.self, PlayCommand.self, MemoryCommand.self,
      FeedCommand.self, LabCommand.self, CalibrateCommand.self, ProbeCommand.self, ManifestCommand.self,
      ServeCommand.self,
      ReportCommand.self,
    ]
  )
}

@main
enum Main {
  static func main() async {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if Set(arguments) == ["--version", "--verbose"] { return print(Version.details) }
    let commands = Reel.configuration.subcommands.compactMap { $0.configuration.commandName }
    if let fault = Typos.unknownCommand(in: arguments, commands: commands) {
      Terminal.use(ColorMode(asking: arguments))
      Console.fault(fault)
      Reel.exit(withError: ExitCode.validationFailure)
    }
    do {
      var command = try Reel.parseAsRoot(arguments)
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
    } catch {
      guard Reel.exitCode(for: error) == .validationFailure else { Reel.exit(withError: error) }
      Terminal.use(ColorMode(asking: arguments))
      let message = Typos.withoutFarSuggestion(Reel.fullMessage(for: error))
      Console.note(TextLayout(usesColor: Terminal.colorsErrors).withStyledError(message))
      Reel.exit(withError: ExitCode.validationFailure)
    }
  }
}
