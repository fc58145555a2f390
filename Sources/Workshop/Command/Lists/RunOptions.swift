import ArgumentParser
import Foundation
import ReelCore

/// The sources of a command and how it works through them: the options of every command that has a `RunStyle`.
///
/// Each option under "Lists" turns on the list mode: results are kept in a file, names do not depend on other runs, and
/// the exit code says whether a retry may help.
struct RunOptions: ParsableArguments {
  /// The paragraph on lists in the help of a command.
  static let discussion = """
    Any option under LISTS turns on list mode, for long lists. Each source gets a line of JSON in a results file, and \
    --resume continues an earlier run. A URL that is listed twice is processed once. --resume compares URLs only, not \
    other options. After 3 temporary failures in a row, the sources of a host are postponed to the end; after 3 more, \
    they are left for a later run. If a server sends Retry-After, no source of its host is opened before that time. \
    The exit code is 0 if all sources were written, 1 if some failed permanently, and 75 if some may succeed on a \
    retry or SIGTERM ended the run. reel report summarizes the results.
    """

  @Argument(help: "Paths, URLs, or - for standard input.", completion: .file())
  var sources: [String] = []

  @Flag(help: "Replace existing files, which are an error otherwise: results of a list too.")
  var overwrite = false

  @Option(
    help: ArgumentHelp(
      """
      The number of sources to open at the same time. Default: 32 (storyboard and check: 4; play: 1; probe, check and \
      manifest without a list: 1).
      """, valueName: "n"))
  var jobs: Int?

  @OptionGroup var cache: CacheOptions

  @OptionGroup(title: "Lists") var list: ListOptions

  /// Checks the options together with the style of the command.
  func validate(_ style: RunStyle, _ options: SourceOptions) throws {
    let isList = style.isList(self)
    try OptionValue.check(jobs, of: "--jobs", in: 1...4096)
    if isList {
      try list.validate(sources: sources, output: style.folder)
    } else {
      if sources.isEmpty { throw ValidationError("name at least one source") }
      if sources.count(where: { $0 == "-" }) > 1 {
        throw ValidationError("standard input can be read only once")
      }
      if overwrite, style.naming == nil {
        throw ValidationError("--overwrite requires a list: it replaces results")
      }
    }
    if style.folder == "" { throw ValidationError("-o takes a folder, or - for standard output") }
    if let folder = style.folder, OutputFolder.isNamedLikeFile(folder) {
      throw ValidationError("-o takes a folder; for one of that name, write \(folder)/")
    }
    if style.folder == "-", sources.count > 1 { throw ValidationError("-o - takes one source") }
    if style.folder == "-", options.json {
      throw ValidationError("-o - and --json both write to standard output")
    }
  }
}

/// The options that turn on the list mode of any command.
struct ListOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      """
      Read sources from a list, or - for standard input. Each line is a URL, a path, or a JSON object with url and any \
      other fields, which are copied to the result; those named like a field of results are put into input. Blank lines \
      and lines that start with # are ignored. Relative paths refer to the folder of the list.
      """, valueName: "file"), completion: .file())
  var input: String?

  @Option(
    help: ArgumentHelp(
      """
      Write results to this file as JSON Lines. Default: results.jsonl, or results-I-of-N.jsonl for a shard, in the \
      output folder or else the current one.
      """, valueName: "file"), completion: .file())
  var results: String?

  @Flag(
    help:
      "Continue an earlier run: skip sources that were written or failed permanently, and retry the others.")
  var resume = false

  @Option(
    help: ArgumentHelp("The largest number of sources of a host to open at the same time.", valueName: "n"))
  var perHost: Int?

  @Option(
    help: ArgumentHelp(
      "The largest number of sources of a host to start per second, evenly spaced; also as 30/min or 500/h.",
      valueName: "n/s"))
  var rateLimit: String?

  @Option(
    help: ArgumentHelp(
      """
      Process only shard I of N, counted from 0. auto/N takes I from JOB_COMPLETION_INDEX, \
      SLURM_ARRAY_TASK_ID or AWS_BATCH_JOB_ARRAY_INDEX.
      """, valueName: "I/N"))
  var shard: String?

  /// Whether any of the options is given.
  var isGiven: Bool {
    input != nil || results != nil || resume || perHost != nil || rateLimit != nil || shard != nil
  }

  func validate() throws {
    if input == "" { throw ValidationError("--input takes a file, or - for standard input") }
    if let results, ["", "-"].contains(results) {
      throw ValidationError("--results takes a file; --json prints the results to standard output")
    }
    try OptionValue.check(perHost, of: "--per-host", in: 1...4096)
    _ = try shardSpec()
    _ = try interval()
  }

  /// Checks the options together with the sources and the output folder of the command.
  func validate(sources: [String], output: String?) throws {
    if input != nil, !sources.isEmpty {
      throw ValidationError("name sources, or a list with --input, not both")
    }
    if input == nil, sources.isEmpty {
      throw ValidationError("name at least one source, or a list with --input")
    }
    if sources.contains("-") { throw ValidationError("standard input can't be a source of a list") }
    if output == "-" { throw ValidationError("-o - takes one source and can't be combined with list mode") }
    if let input, input != "-", let list = FileIdentity(path: input),
      list == FileIdentity(path: resultsPath(output: output ?? "."))
    {
      throw ValidationError("the list and the results are the same file")
    }
  }

  func shardSpec() throws -> Shard? { try Shard.option(shard) }

  func resultsPath(output: String) -> String {
    if let results { return results }
    let shard = try? shardSpec()
    return OutputFolder.path(shard?.resultsName ?? "results.jsonl", in: output)
  }

  /// Returns the time between two sources of a host.
  func interval() throws -> Duration? {
    guard let rateLimit else { return nil }
    let parts = rateLimit.split(separator: "/", omittingEmptySubsequences: false)
    let units: [Substring: Double] = ["s": 1, "min": 60, "h": 3600]
    let unit = parts.count == 2 ? units[parts[1]] : parts.count == 1 ? 1 : nil
    guard let unit, let number = Double(parts[0]), number > 0, number <= 1e6, unit / number <= 86_400 else {
      throw ValidationError("--rate-limit takes a number per second, such as 5/s, 0.5/s, 30/min or 500/h")
    }
    return .seconds(unit / number)
  }
}

/// The names of files in list mode, of a command that writes some.
struct NameOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      """
      The names of files, made of text, / for folders, and {index} {stem} {hash} {host} {time} {format}. Default in \
      list mode: {stem}-{hash}. The extension is added unless the template ends with {format}. If two sources of a list \
      have the same name, the hash is added to the later one.
      """, valueName: "template"))
  var name: String?

  /// The files of lists from a pipe, and of lists with more sources than this, are spread over folders.
  static let folderLimit = 10_000

  /// The template without `--name`.
  static let usual = "{stem}-{hash}"

  func validate() throws { _ = try template() }

  func template() throws -> NameTemplate {
    try OptionValue.read(of: "--name") { () throws(ReelError) in
      try NameTemplate(parsing: name ?? Self.usual)
    }
  }
}

/// One of several parts of a list. Which part a source belongs to depends only on its URL.
struct Shard: Sendable, Equatable {
  /// The index, from 0 to `count` - 1.
  let index: Int
  let count: Int

  /// The variables that `auto` reads: of Kubernetes Indexed Jobs, Slurm job arrays and AWS Batch array jobs.
  static let variables = ["JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID", "AWS_BATCH_JOB_ARRAY_INDEX"]

  /// The name of the file of results, unless `--results` names another one.
  var resultsName: String { "results-\(index)-of-\(count).jsonl" }

  /// Parses the value of `--shard`; nil without one. Throws `ValidationError`.
  static func option(_ text: String?) throws -> Shard? {
    try text.map { text in
      try OptionValue.read(of: "--shard") { () throws(ReelError) in
        try Shard(parsing: text, environment: ProcessInfo.processInfo.environment)
      }
    }
  }

  /// Parses `I/N` or `auto/N`. Throws `ReelError.usage`.
  init(parsing text: String, environment: [String: String]) throws(ReelError) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let count = Self.number(parts[1]), count >= 1 else {
      throw ReelError(.usage, "'\(text)' is not a shard: write I/N with I from 0 to N - 1, or auto/N")
    }
    let index: Int
    var origin = ""
    if parts[0] == "auto" {
      (index, origin) = try Self.environmentIndex(environment)
    } else if let number = Self.number(parts[0]) {
      index = number
    } else {
      throw ReelError(.usage, "'\(text)' is not a shard: write I/N with I from 0 to N - 1, or auto/N")
    }
    guard index < count else {
      throw ReelError(
        .usage, "the shard \(index)\(origin) is out of range: of \(count) shards, the last is \(count - 1)")
    }
    self.index = index
    self.count = count
  }

  /// Returns whether a source belongs to this shard: the first 8 bytes of the hash, big-endian, modulo
  /// `count`.
  func contains(_ hash: SourceHash) -> Bool { hash.high % UInt64(count) == UInt64(index) }

  // MARK: - Private

  private static func environmentIndex(
    _ environment: [String: String]
  ) throws(ReelError) -> (index: Int, origin: String) {
    let found = variables.compactMap { name in environment[name].map { (name, $0) } }.filter { !$0.1.isEmpty }
    guard let (name, value) = found.first else {
      throw ReelError(.usage, "auto needs one of the variables \(variables.joined(separator: ", "))")
    }
    if let other = found.first(where: { $0.1 != value }) {
      throw ReelError(.usage, "\(name) is \(value) and \(other.0) is \(other.1): write I/N instead of auto/N")
    }
    guard let index = number(value[...]) else {
      throw ReelError(.usage, "\(name) is '\(value)', not a number of 0 or more")
    }
    return (index, " (\(name))")
  }

  /// Returns a number that is written with digits only.
  private static func number(_ text: Substring) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text),
      number <= 1_000_000_000
    else { return nil }
    return number
  }
}
