import ArgumentParser

/// The command line tool.
@main
struct Reel: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reel",
    abstract: "A headless media player pool over FFmpeg.",
    discussion: """
      Sources are paths, http(s) URLs of media files, HLS or DASH manifests, or - for standard input.

      Exit codes: 0 all well; 64 usage; 65 bad media or manifest; 66 no such file; 69 server or network; \
      70 a fault of reel's; 73 an output can't be made; 74 an output can't be written; 130 interrupted. \
      Of several sources: 1 if any failed.
      """,
    version: Version.text,
    subcommands: [
      FramesCommand.self, PlayCommand.self, MemoryCommand.self, FeedCommand.self,
      CalibrateCommand.self, ProbeCommand.self, ManifestCommand.self, ServeCommand.self,
    ]
  )
}
