import ArgumentParser
import ReelCore
import ReelPlayback

/// `reel report`: sums up results files.
struct ReportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report",
    abstract: "Summarize the results of runs over lists: counts, start-up times, failures.",
    discussion: """
      Reads the results files that frames and poster write for a list. The files of several shards are read one after the other, \
      as if they were one. If a source has several lines, the last one counts. Start-up times are those of written \
      sources, by nearest rank.

      --html also writes a page that needs nothing beside itself, with the stills of the slowest streams and of those \
      whose stills are poor. Stills of more than 512 KiB are left out.
      """)

  @Argument(help: "Results files, or - for standard input.")
  var results: [String] = []

  @Flag(help: "Print one JSON object.")
  var json = false

  @Flag(help: "Print nothing but errors.")
  var quiet = false

  @OptionGroup var colorOption: ColorOption

  @Option(help: ArgumentHelp("Write a page to this file.", valueName: "file"))
  var html: String?

  func validate() throws {
    if let html {
      if ["", "-"].contains(html) { throw ValidationError("--html takes a file") }
      if let page = FileIdentity(path: html), results.contains(where: { FileIdentity(path: $0) == page }) {
        throw ValidationError("--html would replace the results file \(html)")
      }
    }
    if results.isEmpty { throw ValidationError("name at least one results file") }
    if results.count(where: { $0 == "-" }) > 1 { throw ValidationError("standard input can be read once") }
  }

  func run() async throws {
    Terminal.use(colorOption.color)
    Console.isQuiet = quiet
    do {
      let report = try await WorkProgress.showing(
        when: !quiet, { "reading results, \(Int($0 / .seconds(1))) s" }
      ) {
        var report = ResultsReport(keepsWorst: html != nil)
        for path in results { try report.add(path: path) }
        return report
      }
      if report.sourceCount == 0 {
        let location = results.count == 1 ? results[0] : nil
        throw ReelError(.badManifest, "no results", at: location)
      }
      if let html {
        let file = try OutputFile(path: html)
        try file.write(Array(ResultsPage(report: report, files: results).html.utf8))
        try file.commit()
      }
      if json {
        try Console.print(JSONLine.string(report.record, of: "report"))
      } else if !quiet {
        try Console.printText(report.lines.joined(separator: "\n"))
      }
    } catch {
      let error = error.asReelError
      Console.report(error)
      throw ExitCode(ExitStatus.code(of: error))
    }
  }
}
