import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelLab
import ReelModels
import ReelPlayback
import ReelPool
import ReelSimulation
import ReelSources

/// `reel viewers`: loads servers as many players do, and reports how their viewers fare.
struct ViewersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "viewers",
    abstract: "Load servers as many viewers do, and report how long they wait.",
    discussion: """
      Each viewer comes within --ramp, chooses a source, starts, plays in real time, adapts, stalls, retries, leaves \
      after --stay, and comes again, until --duration is over. It requests what a player requests: manifests, keys, \
      playlists and segments in order, by the buffer and reload rules of Reel or of --player, over connections of its \
      own. The bytes of media are counted and dropped; the viewers of --decode demux and decode them.

      A view is the playback of one source by one viewer. Viewers choose in the order of the list, each beginning one \
      further; or by the weights of its JSON objects, as in {"url": "a.m3u8", "weight": 3}; or, with --dwell, they swipe \
      through a feed (reel feed --help) without preloading. Dwell times:
      \(HelpText.list(DwellSpec.forms))

      In --header, --secret-header and --query, {viewer} stands for the number of the viewer, from 1, and {token} for its \
      line of --tokens. A parameter of --query goes with every request, but one with {token} only to where credentials \
      go (--header). No report has tokens.

      At most \(HostAdmission.limit) viewers may load a host that is neither this machine nor in a private network; \
      the address that is connected to decides, of redirects too. More than that ends the run with exit code 64, unless \
      --i-may-load names the host. The shards of a run share that number.

      --link models a link for each viewer: a rate and a round-trip time (10Mbit/50ms), a profile \
      (\(LinkSpec.profileList)), or a recording (reel feed --help).

      Each second, --json prints an object with event "second", and at the end one with event "summary". On a terminal, a \
      line of progress is updated. --results writes a line for each view; reel report joins those of shards.

      If the cores or the link of this machine were full for over 5 % of the time, text, page and JSON say that the figures \
      are not the server's. --timeout limits each wait for a server.

      --assert takes a metric, a comparison (<, <=, >, >= or =) and a value with its unit. If an assertion is not met, the \
      exit code is 1. Metrics:
      \(HelpText.list(ViewersFigures.all.map { ($0.name, $0.meaning) }))

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Fifty viewers for two seconds",
      "reel viewers https://example.com/master.m3u8 --viewers 50 --duration 2s"
    ),
    (
      "Viewers of a list who stay for a second on average",
      "reel viewers --input feed.m3u --viewers 9 --duration 3 --stay exp:1s"
    ),
    (
      "Fail if a view fails",
      "reel viewers --input feed.m3u --viewers 4 --duration 2 --assert failed=0"
    ),
  ]

  @Argument(help: "Paths or URLs of media.", completion: .file())
  var sources: [String] = []

  @Option(
    help: ArgumentHelp(
      """
      Read sources from a list, or - for standard input: a URL, a path or a JSON object with url in each line. With \
      --dwell, a feed.
      """, valueName: "file"), completion: .file())
  var input: String?

  @Option(help: ArgumentHelp("The number of viewers, those of all shards together.", valueName: "n"))
  var viewers: Int

  @Option(
    help: ArgumentHelp(
      "The time within which all viewers come. Default: 0, all at once.", valueName: "time"),
    transform: TimeArgument.seconds)
  var ramp = 0.0

  @Option(
    help: ArgumentHelp(
      "The time from the first viewer's coming until all leave. Default: 1min.", valueName: "time"),
    transform: TimeArgument.seconds)
  var duration = 60.0

  @Option(
    help: ArgumentHelp(
      """
      How long a viewer stays before it leaves and comes again: fixed:30s, or exp:90s for times with this mean. Default: \
      to the end of the source or feed.
      """, valueName: "spec"))
  var stay: String?

  @Option(
    help: ArgumentHelp(
      "Swipe through the sources as a feed, with dwell times in a form above.", valueName: "spec"))
  var dwell: String?

  @Option(
    help: ArgumentHelp(
      "Model this link for each viewer, or a mix by share: wifi:60%,lte:30%,3g:10%.", valueName: "spec"),
    completion: .links)
  var link: String?

  @Option(
    help: ArgumentHelp(
      "Load and start as this player: reel, or the name or file of a model.",
      valueName: "name|file"), completion: .players)
  var player = "reel"

  @Option(
    help: ArgumentHelp(
      "The share of viewers that demux and decode what they load. Default: 0%.", valueName: "share"))
  var decode: String?

  @Option(help: ArgumentHelp("The seed for all random choices.", valueName: "n"))
  var seed: UInt64 = 1

  @Option(
    help: ArgumentHelp(
      """
      Run only the viewers of shard I of N, counted from 0. auto/N takes I from JOB_COMPLETION_INDEX, \
      SLURM_ARRAY_TASK_ID or AWS_BATCH_JOB_ARRAY_INDEX.
      """, valueName: "I/N"))
  var shard: String?

  @Option(
    name: .customLong("query"), parsing: .singleValue,
    help: ArgumentHelp(
      "Add this parameter to the URL of each request. Can be repeated.", valueName: "name=value"))
  var query: [String] = []

  @Option(
    help: ArgumentHelp(
      "Add CMCD (CTA-5004, version 1) to requests: in the query or in header fields.",
      valueName: "query|header"), completion: .list(CMCD.Transmission.allCases.map(\.rawValue)))
  var cmcd: CMCD.Transmission?

  @Option(
    help: ArgumentHelp(
      "Read the tokens of {token} from a file: one line for each viewer.", valueName: "file"),
    completion: .file())
  var tokens: String?

  @Option(
    name: .customLong("i-may-load"), parsing: .singleValue,
    help: ArgumentHelp("Allow any number of viewers on this host. Can be repeated.", valueName: "host"))
  var mayLoad: [String] = []

  @Option(
    name: .customLong("assert"), parsing: .singleValue,
    help: ArgumentHelp(
      "Fail if this is not met, such as 'start.p95<2s'. Can be repeated.", valueName: "expr"),
    completion: .list(ViewersFigures.all.map(\.name)))
  var assertions: [String] = []

  @Option(
    name: .customLong("report"),
    help: ArgumentHelp("Write an HTML report with the course over time.", valueName: "file"),
    completion: .file())
  var reportFile: String?

  @Option(
    help: ArgumentHelp("Write the results of --assert as JUnit XML.", valueName: "file"), completion: .file())
  var junit: String?

  @Option(
    help: ArgumentHelp(
      """
      Write a line for each view to this file as JSON Lines. Default: none, or results-I-of-N.jsonl for a shard.
      """, valueName: "file"), completion: .file())
  var results: String?

  @Flag(help: "Replace the results of an earlier run, which are an error otherwise.")
  var overwrite = false

  @Option(
    help: ArgumentHelp(
      """
      Offer the figures so far as OpenMetrics: at http://127.0.0.1:PORT/metrics, at another address of this machine \
      (0.0.0.0:9100), or in a file that is replaced each second.
      """, valueName: "port|file"), completion: .file())
  var metrics: String?

  @OptionGroup var options: SourceOptions

  func validate() throws {
    if sources.isEmpty, input == nil {
      throw ValidationError("name at least one source, or a list with --input")
    }
    if input != nil, !sources.isEmpty {
      throw ValidationError("name sources, or a list with --input, not both")
    }
    if input == "" { throw ValidationError("--input takes a file, or - for standard input") }
    if let host = mayLoad.first(where: { $0.isEmpty || $0.contains("/") }) {
      throw ValidationError("--i-may-load: \"\(host)\" is not a host, such as cdn.example.com")
    }
    if sources.contains("-") { throw ValidationError("standard input can't be a source of viewers") }
    try OptionValue.check(viewers, of: "--viewers", in: 1...1_000_000)
    if !(duration > 0 && duration <= 1e7) { throw ValidationError("--duration takes a time above 0") }
    if !(ramp >= 0 && ramp <= duration) {
      throw ValidationError("--ramp takes a time from 0 to that of --duration")
    }
    try OptionValue.check { () throws(ReelError) in
      _ = try dwell.map { text throws(ReelError) in try DwellSpec(parsing: text) }
      _ = try linkMix()
      _ = try model()
    }
    try OptionValue.read { () throws(ReelError) in
      _ = try staySpec()
      _ = try decodeShare()
      _ = try parameters()
      _ = try metricsPlace()
      for text in assertions { _ = try ViewersFigures.assertion(text) }
    }
    _ = try shardSpec()
    try validateTokens()
    try validateFiles()
  }

  func run() async throws {
    let logger = options.bootstrapLogging()
    try await ExitStatus.run {
      try await Interruption.cancelling { try await ViewersJob(self, logger: logger).run() }
    }
  }

  // MARK: - Values

  /// Nil to stay to the end.
  func staySpec() throws(ReelError) -> DwellSpec? {
    guard let stay else { return nil }
    switch try? DwellSpec(parsing: stay) {
    case .fixed(let time) where time > .zero: return .fixed(time)
    case .exponential(let mean): return .exponential(mean: mean)
    case .fixed, .retention, .trace, nil: break
    }
    throw ReelError(
      .usage, "--stay: \"\(stay)\" is not a time to stay", advice: "write fixed:30s or exp:90s")
  }

  func decodeShare() throws(ReelError) -> Double {
    try decode.map { text throws(ReelError) in try SwipeShares.share(parsing: text, of: "--decode") } ?? 0
  }

  func parameters() throws(ReelError) -> [QueryParameter] {
    try query.map { text throws(ReelError) in try QueryParameter(parsing: text) }
  }

  func metricsPlace() throws(ReelError) -> MetricsPlace? {
    try metrics.map { text throws(ReelError) in try MetricsPlace(parsing: text) }
  }

  /// Nil for Reel's own player.
  func model() throws(ReelError) -> PlayerModel? {
    player.lowercased() == "reel" ? nil : try PlayerModel(argument: player)
  }

  /// Nil for the network of this machine.
  func linkMix() throws(ReelError) -> LinkMix? {
    try link.map { text throws(ReelError) in try LinkMix(parsing: text, unlessIdeal: .all) }
  }

  func shardSpec() throws -> Shard? { try Shard.option(shard) }

  /// The file of `--results`; nil for none.
  func resultsPath() throws -> String? { try results ?? shardSpec()?.resultsName }

  /// What was chosen, for the page.
  var facts: [(name: String, value: String)] {
    var facts: [(name: String, value: String)] = [
      ("viewers", "\(viewers)"), ("come within", DurationText.readable(.seconds(ramp))),
      ("duration", DurationText.readable(.seconds(duration))), ("stay", stay ?? "to the end"),
      ("player", player), ("link", link ?? "not modelled"), ("seed", "\(seed)"),
    ]
    if let dwell { facts.append(("dwell", dwell)) }
    if let decode { facts.append(("decoded", decode)) }
    if let cmcd { facts.append(("CMCD", cmcd.rawValue)) }
    if let shard { facts.append(("shard", shard)) }
    return facts
  }

  // MARK: - Private

  private func validateTokens() throws {
    let texts = options.headers + options.secretHeaders + query
    let usesTokens = texts.contains { $0.contains(ViewerValues.tokenMark) }
    if usesTokens, tokens == nil { throw ValidationError("{token} requires a file of tokens: --tokens") }
    if !usesTokens, tokens != nil {
      throw ValidationError("--tokens requires {token} in --header, --secret-header or --query")
    }
    if ["", "-"].contains(tokens) { throw ValidationError("--tokens takes a file") }
  }

  private func validateFiles() throws {
    for (option, path) in [("--report", reportFile), ("--junit", junit), ("--results", results)] {
      try WalkResultOptions.checkFile(path, of: option)
    }
    if junit != nil, assertions.isEmpty { throw ValidationError("--junit requires --assert") }
    if overwrite, try resultsPath() == nil { throw ValidationError("--overwrite requires --results") }
  }
}

extension CMCD.Transmission: ExpressibleByArgument {}
