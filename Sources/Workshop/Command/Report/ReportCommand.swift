import ArgumentParser
import ReelCore
import ReelLab

/// `reel report`: summarizes results files.
struct ReportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report",
    abstract: "Summarize the results of runs over lists: counts, start-up times and failures.",
    discussion: """
      Reads the results files that commands write in list mode, and those of viewers. Several files, such as those of shards, \
      are read as one. If a source, or a view of a viewer, has several lines, the last one counts. Start-up times are \
      nearest-rank percentiles over the sources that were written, or the views that started.

      --html also writes a self-contained page with the stills of the slowest sources and of those whose stills are poor. \
      Stills larger than 512 KiB are left out.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Summarize a run over a list, and write a page with its stills",
      "reel report posters/results.jsonl --html report.html"
    ),
    ("Summarize it as JSON", "reel report posters/results.jsonl --json"),
  ]

  @Argument(help: "Results files, or - for standard input.", completion: .file())
  var results: [String] = []

  @OptionGroup var print: PrintOptions

  @Option(help: ArgumentHelp("Write an HTML page to this file.", valueName: "file"), completion: .file())
  var html: String?

  func validate() throws {
    if let html {
      if ["", "-"].contains(html) { throw ValidationError("--html takes a file") }
      if let page = FileIdentity(path: html), results.contains(where: { FileIdentity(path: $0) == page }) {
        throw ValidationError("--html would replace the results file \(html)")
      }
    }
    if results.isEmpty { throw ValidationError("name at least one results file") }
    if results.count(where: { $0 == "-" }) > 1 {
      throw ValidationError("standard input can be read only once")
    }
  }

  func run() async throws {
    print.apply()
    try await ExitStatus.run {
      let report = try await WorkProgress.showing(
        when: !print.quiet, { "reading results, \(Int($0 / .seconds(1))) s" }
      ) {
        var report = ResultsReport(keepsWorst: html != nil)
        for path in results { try report.add(path: path) }
        return report
      }
      if report.sourceCount == 0 {
        throw ReelError(.badManifest, "no results", at: results.count == 1 ? results[0] : nil)
      }
      if let html {
        try ResultFile(html).complete(with: ResultsPage(report: report, files: results).html)
      }
      if print.json {
        try Console.print(JSONLine.string(report.record, of: "report"))
      } else if !print.quiet {
        try Console.printText(report.lines.joined(separator: "\n"))
      }
      return 0
    }
  }
}
