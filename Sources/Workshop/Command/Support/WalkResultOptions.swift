import ArgumentParser

/// The files that `reel feed` and `reel lab` write beside their results.
struct WalkResultOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Write an HTML report.", valueName: "file"))
  var report: String?

  @Option(help: ArgumentHelp("Write the results as CSV.", valueName: "file"))
  var csv: String?

  func validate() throws {
    try Self.checkFile(report, of: "--report")
    try Self.checkFile(csv, of: "--csv")
  }

  /// Throws `ValidationError` for a path that is no file. Standard output is for the results as text or JSON.
  static func checkFile(_ path: String?, of option: String) throws {
    if path == "-" { throw ValidationError("\(option) takes a file; write ./- for a file named -") }
    if path == "" { throw ValidationError("\(option) takes a file") }
  }
}
