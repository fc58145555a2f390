import ArgumentParser
import Foundation
import Logging
import ReelLab
import ReelPlayback

/// `reel memory`: measures the memory of players that have loaded an item and wait.
struct MemoryCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "memory",
    abstract: "Load players, let them rest or play, and report the memory of each.",
    discussion: """
      Opens one player after the other, loads each to a stage as a pool preloads it, and waits until nothing changes. For \
      each player, prints what it holds, by kind, as the owners of the memory count it. Then come the growth of the \
      process's private memory since before the first player, the part of it that the players do not explain, how many \
      resting players fit a budget, what an open decoder costs and gains, and how many playing players fit. For the last \
      figure, the players of all sources play in a loop for --play, three at a time.

      Budgets are counted as a container (cgroup) counts: memory without a file, the pages of programs and libraries, and \
      the kernel's page tables and stacks. Files that are read are cached on top of that, and given back when memory is \
      short.

      With --stage playing, all players play, and the figures are those of the moment when the process held most.

      Kinds of memory, in MB of 1,000,000 bytes:
      \(HelpText.list(kinds))
      Each source is loaded and closed once before the first reading, so that libraries, threads and connection pools \
      exist by then. Figures are taken at rest, after free memory was returned to the system. Growth counts memory without \
      a file (Anonymous in /proc/self/smaps_rollup), because pages of libraries are private or not depending on other \
      processes.

      A source that fails is reported and its player closed; the others are measured. --timeout limits the loading of each \
      player. --json prints an object for each player, then the summary.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    ("Measure the memory of two resting players", "reel memory https://example.com/master.m3u8 --players 2"),
    ("See how many of them fit in a container of 512 MB", "reel memory video.mp4 --budget 512MB"),
  ]

  private static let kinds: [(String, String)] = [
    ("manifest", "the parsed manifest"),
    ("in flight", "bytes received but not yet demuxed"),
    ("packets", "compressed media"),
    ("frames", "decoded frames"),
    ("decoder", "the decoder's reference frames"),
    ("internals", "everything else that was allocated for the player"),
    ("allocator", "gaps between allocations, and the allocator's tables"),
  ]

  @Argument(help: "Paths or URLs.", completion: .file())
  var sources: [String] = []

  @Option(
    help: ArgumentHelp(
      """
      The number of players. If there are more sources, only the first ones are opened. Default: one per source, at \
      least 3.
      """, valueName: "n"))
  var players: Int?

  @Option(
    help: ArgumentHelp(
      """
      How far to load each player: manifest, initialization, first_frame, buffered (the first frame and --buffer) or \
      playing. Default: buffered.
      """, valueName: "stage"), completion: .list(MeasuredStage.names),
    transform: MeasuredStage.init(argument:))
  var stage = MeasuredStage.loaded(.buffered)

  @Option(
    help: ArgumentHelp("How long players play when playing is measured. Default: 2s.", valueName: "time"),
    transform: TimeArgument.seconds)
  var play = 2.0

  @Option(
    help: ArgumentHelp(
      "How much media a player at stage buffered holds. Default: 3s.", valueName: "time"),
    transform: TimeArgument.seconds)
  var buffer = 3.0

  @Flag(help: "Keep decoders open and the second frame decoded.")
  var warm = false

  @Option(
    help: ArgumentHelp(
      "Report how many players fit in this much memory, including the process itself, such as 64MB. Default: 256MB.",
      valueName: "size"),
    transform: ImageOptions.budget)
  var budget = 256_000_000

  @Option(
    help: ArgumentHelp(
      """
      Keep the players for this time after printing, so that the process can be inspected, and print its process ID to \
      standard error. Open decoders and playing are then not measured.
      """, valueName: "time"),
    transform: TimeArgument.seconds)
  var hold = 0.0

  @OptionGroup var options: SourceOptions

  func validate() throws {
    if sources.isEmpty { throw ValidationError("name at least one source") }
    if sources.contains("-") {
      throw ValidationError("standard input can be read only once, and each player reads its source")
    }
    try OptionValue.check(players, of: "--players", in: 1...10_000)
    if !(buffer >= 0 && buffer <= 3600) { throw ValidationError("--buffer takes a time of up to 1h") }
    if !(hold >= 0 && hold <= 86_400) { throw ValidationError("--hold takes a time of up to 24h") }
    if !(play >= 0.1 && play <= 3600) { throw ValidationError("--play takes a time from 100ms to 1h") }
    if warm, stage == .playing || stage.preload < .firstFrame {
      throw ValidationError("--warm requires --stage first_frame or buffered")
    }
    if hold > 0, stage == .playing {
      throw ValidationError(
        "--hold can't be combined with --stage playing; --play says how long players play")
    }
  }

  func run() async throws {
    let logger = options.bootstrapLogging()
    try await ExitStatus.run {
      let outcome = try await Interruption.cancelling {
        try await measure(
          MemoryJob(
            self, fetcher: try options.transport(logger: logger), configuration: try configuration(),
            logger: logger))
      }
      return ExitStatus.code(of: outcome.errors, sourceCount: outcome.sourceCount)
    }
  }

  // MARK: - Values

  /// The number of players to measure.
  var playerCount: Int { players ?? max(3, sources.count) }

  var target: PreloadTarget {
    PreloadTarget(stage: stage.preload, bufferDuration: .seconds(buffer), isDecoderWarm: warm)
  }

  /// True to measure players while they play, not at rest.
  var plays: Bool { stage == .playing }

  /// The time limit for each source.
  var limit: Duration { .seconds(options.timeout) }

  // MARK: - Private

  private func configuration() throws -> PlayerConfiguration {
    var configuration = PlayerConfiguration()
    configuration.loading = try options.loading()
    configuration.adaptsBitRate = options.adaptsBitRate
    return configuration
  }

  /// Measures, and prints the results.
  private func measure(_ job: MemoryJob) async throws -> MemoryJob.Outcome {
    defer { job.close() }
    let outcome = try await WorkProgress.showing(
      when: !options.quiet, { "\(job.progress), \(Int($0 / .seconds(1))) s" }
    ) { try await job.run() }
    if options.json {
      for line in outcome.players { try Console.print(JSONLine.string(line)) }
      try Console.print(JSONLine.string(outcome.summary))
    } else if !options.quiet {
      try Console.printText(MemoryText.text(of: outcome))
    }
    // The report has been printed, so it is complete even if the rest is interrupted.
    try await job.hold()
    return outcome
  }
}

/// The activity of players while `reel memory` measures them.
enum MeasuredStage: Hashable, Sendable {
  /// The players rest, loaded up to this stage.
  case loaded(PreloadStage)
  case playing

  /// The stage to which players are loaded before they are measured, or play.
  var preload: PreloadStage {
    if case .loaded(let stage) = self { stage } else { .buffered }
  }

  /// Throws `ValidationError`.
  init(argument: String) throws {
    let name = argument.lowercased().filter { $0 != "_" && $0 != "-" }
    guard let stage = Self.all.first(where: { $0.name.filter { $0 != "_" } == name }) else {
      throw ValidationError(
        "'\(argument)' is not a stage: use \(Self.names.dropLast().joined(separator: ", ")) or playing")
    }
    self = stage
  }

  /// The names of the stages in order.
  static var names: [String] { all.map(\.name) }

  private static let all: [MeasuredStage] =
    [.loaded(.manifest), .loaded(.initialization), .loaded(.firstFrame), .loaded(.buffered), .playing]

  private var name: String {
    if case .loaded(let stage) = self { stage.reportName } else { "playing" }
  }
}
