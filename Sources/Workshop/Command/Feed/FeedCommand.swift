import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelPool
import ReelLab
import ReelModels
import ReelSimulation

/// `reel feed`: simulates a walk through a feed on a pool of players.
struct FeedCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "feed",
    abstract: "Walk a feed as a viewer would, and report how long the viewer waits.",
    discussion: """
      A walk watches an item for its dwell time, then swipes to the next. Some steps are bursts \
      of 3 to 8 swipes (--bursts); some of the others go back (--back). Delays count from the end of the drag, \
      or from the settle, --settle later, when the item may play: first_frame to the first frame, second_frame to the \
      second. A hit is a frame that was decoded when the drag ended. The start of the first item is not a swipe and has no \
      delay.

      FEED is a file, a URL, or - for standard input. The format is detected from the content. Relative paths refer to the \
      folder of FEED:
      \(HelpText.list(Self.feedFormats))
      An item of a JSON feed is a URL or path, or an object with url and any of:
      \(HelpText.list(Self.itemFields))

      --link models the network inside reel, also for local files. It takes a rate and a round-trip \
      time (10Mbit/50ms), a profile (\(LinkSpec.profileList)), or a recorded downlink, which repeats when it ends: a file \
      whose lines hold seconds and Mbit/s, or a time in ms at which 1500 bytes can pass (Mahimahi). A folder stands \
      for all recordings in it: the walk is repeated over each, and the results are printed side by side. Links model \
      tcp, tls and dns of the options below unless they are ideal. Options follow after commas, as in 10Mbit/50ms,ideal or \
      recordings,scale=4,rtt=70ms:
      \(HelpText.list(LinkOptions.forms))

      --virtual models the clock too: a frame costs --decode-cost on one of --cores. The same arguments then give the same \
      report, byte for byte. Memory is computed from the sizes of packets and frames. Of each visit only the first two \
      frames are decoded, so damage in later ones goes unnoticed.

      --device gives the pool the limits of a device (open decoders, cores, memory, transfers) and, with --virtual, its \
      costs of opening a decoder and of decoding a frame. The devices are rough: high and mid decode at the rates that \
      Android 13 and 12 require of their performance class (six videos of 1080p or 720p at 30 fps), low at half the rate \
      of mid:
      \(HelpText.list(DeviceModel.builtIn.map { ($0.name, $0.summary) }))

      --visits repeats the walk, each time with a new pool, after --between. --simulated-cache keeps on a modelled disk what \
      was fetched, as a cache does for servers that send no caching fields, and the pool loads heads of further items to it. A \
      stored answer takes 0.1 to 0.3 ms, and its bytes 2 Gbit/s. The report is that of the first visit, with the figures of \
      all, and what the cache saves against the same walk without it. Of the models, those with a browser's cache have it on \
      disk, and media3 puts heads there.

      --player walks with the model of another player, by arithmetic: it decodes nothing, so there is no memory and no \
      damage to report. --pool and --preload replace what the model says of them; it takes none, adjacent and ahead:N, each \
      with a time: ahead:2,1s. Docs/PlayerModels.md describes models. Those that Reel has:
      \(HelpText.list(PlayerModel.shipped))

      --like walks with a model what a player did in a recording of reel serve --record, and prints for each swipe what \
      was measured and what is predicted. FEED is the folder or feed file that was served; without it, the one that the \
      recording names. The link is that of --link, or that of the recording, or an estimate from its requests. --fit writes \
      the model with fixed costs that fit half of the swipes, and says how well they predict the rest.

      Preload policies:
      \(HelpText.list(PreloadPolicies.forms))

      Dwell times:
      \(HelpText.list(DwellSpec.forms))

      --assert takes a metric, a comparison (<, <=, >, >= or =) and a value with its unit. If an assertion is not met, the \
      exit code is 1. Those that are met are printed after the report. An item that was left before its first frame is opened \
      once more after the walk: if that fails, it counts as failed, else its swipes as abandoned. --list-metrics lists the \
      metrics. Their names:
      \(HelpText.list(Self.metricNames))

      --report shows the walk as a timeline, or with --compare or a folder of recordings the walks side by side. --csv \
      writes a line for each swipe. --json prints an object for each walk. --timeout limits the reading of FEED and each \
      wait for a server.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Walk with hls.js on LTE, without and with the next item in a second player",
      "reel feed feed.m3u --player hls.js --link lte --compare 1,2"
    ),
    (
      "Reel's own pool; fail if the second frame comes late",
      "reel feed feed.m3u --virtual --link lte --assert 'second_frame.p95<400ms'"
    ),
    (
      "Fit the model of a player to what a phone did",
      "reel feed --like phone.jsonl --fit mine.json"
    ),
  ]

  private static let metricNames = [
    (
      "first_frame.p95",
      "a delay (first_frame or second_frame), and p50, p95, p99, max, mean, count, over_100ms or over_1s"
    ),
    ("first_frame.hit.p95", "the same of hits, or with miss of misses"),
    ("wait.transfer", "a part of the wait"),
    ("reached.buffered", "a stage"),
    ("others", "such as hit.ratio, stalls.total, rebuffering, bytes.wasted, memory.pool, failed"),
  ]

  @Argument(
    help: ArgumentHelp("A feed file, its URL, or - for standard input.", valueName: "feed"),
    completion: .file())
  var feedPlace: String?

  var feed: String { feedPlace ?? "" }

  @Flag(help: "List the metrics of --assert, and walk nothing.")
  var listMetrics = false

  @Option(
    name: .customLong("feed"),
    help: ArgumentHelp("The feed to walk, if FEED holds several.", valueName: "name"))
  var feedName: String?

  @Option(
    name: .customLong("player"),
    help: ArgumentHelp(
      "The player: reel, the name of a model above, or the file of one. Default: reel, or with --like the one of the recording.",
      valueName: "name|file"), completion: .players)
  var playerName: String?

  var player: String { playerName ?? "reel" }

  @Option(
    help: ArgumentHelp(
      "Walk with a model what a player did in this recording of reel serve --record, and compare the waits.",
      valueName: "recording"), completion: .file())
  var like: String?

  @Option(
    help: ArgumentHelp("With --like: the playback to walk. Default: each of them.", valueName: "name"))
  var playback: String?

  @Option(
    help: ArgumentHelp("With --like: write the model with costs that fit the recording.", valueName: "file"),
    completion: .file())
  var fit: String?

  @Flag(help: "Print the model of --player as JSON, and walk nothing.")
  var printModel = false

  @Option(
    help: ArgumentHelp("The number of players in the pool. Default: 3, or that of the model.", valueName: "n")
  )
  var pool: Int?

  @Option(help: ArgumentHelp("The number of swipes. Default: 20, or those of the trace.", valueName: "n"))
  var swipes: Int?

  @Option(
    help: ArgumentHelp("The dwell time of the viewer on each item, in a form above.", valueName: "spec"))
  var dwell = "fixed:2s"

  @Option(
    help: ArgumentHelp("The share of steps other than bursts that go back. Default: 15%.", valueName: "share")
  )
  var back: String?

  @Option(
    help: ArgumentHelp("The share of steps that are bursts of quick swipes. Default: 5%.", valueName: "share")
  )
  var bursts: String?

  @Option(
    help: ArgumentHelp(
      "The time from the end of a drag to the settle, from which delays count. Default: 0ms.",
      valueName: "time"))
  var settle: String?

  @Option(help: ArgumentHelp("The seed for all random choices.", valueName: "n"))
  var seed: UInt64 = 1

  @Option(
    help: ArgumentHelp(
      "Model this link: a rate and a round-trip time, a profile, or a file or folder of recordings.",
      valueName: "spec"), completion: .links)
  var link: String?

  @Option(
    help: ArgumentHelp(
      "The preload policy: which items to load ahead, and how far. Default: adaptive, or that of the model.",
      valueName: "policy"),
    completion: .policies)
  var preload: String?

  @Option(
    help: ArgumentHelp(
      "The rung of an item's first segment: low (the lowest) or auto (the highest that arrives in time). Default: chosen like that of any segment.",
      valueName: "rung"))
  var firstRung: StartRung?

  @Flag(help: "Simulate time.")
  var virtual = false

  @Option(
    help: ArgumentHelp("With --virtual: the time to decode a frame. Default: 4ms.", valueName: "time"))
  var decodeCost: String?

  @Option(
    help: ArgumentHelp(
      "Apply the limits of a device and, with --virtual, its costs.", valueName: "low|mid|high"),
    completion: .devices)
  var device: String?

  @Option(
    help: ArgumentHelp(
      "The number of cores that decode; with --virtual, modelled cores. Default: 2.", valueName: "n"))
  var cores: Int?

  @Option(
    help: ArgumentHelp(
      "Repeat the walk with several pools and print them side by side: SIZE or SIZE:POLICY, separated by commas, as 1:none,2:ahead:1,2s.",
      valueName: "pools"))
  var compare: String?

  @Option(
    name: .customLong("assert"), parsing: .singleValue,
    help: ArgumentHelp(
      "Fail if this is not met, such as 'first_frame.p95<150ms'. Can be repeated.", valueName: "expr"),
    completion: .list(WalkFigures.all.map(\.name))
  )
  var assertions: [String] = []

  @OptionGroup var cache: CacheOptions

  @OptionGroup var visiting: VisitOptions

  @OptionGroup var results: WalkResultOptions

  @Option(
    help: ArgumentHelp("Write every event as JSON Lines.", valueName: "file"), completion: .file())
  var trace: String?

  @Option(
    help: ArgumentHelp("Write the results of --assert as JUnit XML.", valueName: "file"), completion: .file())
  var junit: String?

  @Flag(help: "Print a line for each swipe.")
  var details = false

  @OptionGroup var options: SourceOptions

  func validate() throws {
    if listMetrics { return }
    if printModel {
      guard player.lowercased() != "reel" else {
        throw ValidationError("--print-model prints the model of --player, and reel is no model")
      }
      return
    }
    if like != nil { return try checkLike() }
    if fit != nil || playback != nil { throw ValidationError("--fit and --playback require --like") }
    if feedPlace == nil { throw ValidationError("name a feed: a file, its URL, or - for standard input") }
    try OptionValue.check(pool, of: "--pool", in: 1...1000)
    try OptionValue.check(swipes, of: "--swipes", in: 0...WalkPlan.swipeLimit)
    try OptionValue.check(cores, of: "--cores", in: 1...256)
    if player.lowercased() != "reel" {
      let refused = [
        ("--decode-cost", decodeCost != nil), ("--cores", cores != nil), ("--first-rung", firstRung != nil),
      ]
      for (option, isGiven) in refused where isGiven {
        throw ValidationError("\(option) can't be combined with --player: the model states it")
      }
    }
    if cache.given != nil, virtual || link != nil || player.lowercased() != "reel" {
      throw ValidationError(
        "--cache keeps what the real network brings; with a simulated one, use --simulated-cache and --virtual or --player"
      )
    }
    if !virtual, player.lowercased() == "reel", let option = visiting.given.first {
      throw ValidationError("\(option) requires simulated time: --virtual, or a model with --player")
    }
    if !virtual, decodeCost != nil { throw ValidationError("--decode-cost requires --virtual") }
    if device != nil, decodeCost != nil || cores != nil {
      throw ValidationError(
        "--device states costs and cores: it can't be combined with --decode-cost or --cores")
    }
    try OptionValue.read { () throws(ReelError) in
      let link = try linkArgument()
      if link?.isFolder == true, trace != nil {
        throw ReelError(.usage, "--trace can't be combined with a folder of recordings")
      }
      _ = try cost()
      _ = try shares()
      _ = try settleTime()
      _ = try visiting.plan()
      for text in assertions { _ = try WalkAssertion(parsing: text) }
    }
    try OptionValue.check { () throws(ReelError) in
      guard let models = try models() else {
        _ = try pools()
        return
      }
      for model in models { try visiting.plan()?.check(model) }
    }
    if compare != nil, trace != nil {
      throw ValidationError("--trace can't be combined with --compare")
    }
    if junit != nil, assertions.isEmpty { throw ValidationError("--junit requires --assert") }
    try WalkResultOptions.checkFile(trace, of: "--trace")
    if trace?.lowercased().hasSuffix(".json") == true {
      throw ValidationError(
        "--trace writes JSON Lines, not the format of Chrome; use a name such as trace.jsonl")
    }
    try WalkResultOptions.checkFile(junit, of: "--junit")
  }

  func run() async throws {
    if printModel {
      return try await ExitStatus.run {
        let text = PlayerModel.json(of: player.lowercased()).map { String(decoding: $0, as: UTF8.self) }
        try Console.printText(try text ?? PlayerModel(argument: player).json())
        return 0
      }
    }
    if listMetrics {
      let list = HelpText.list(WalkFigures.all.map { ($0.name, $0.meaning) })
      return try await ExitStatus.run {
        try Console.printText(HelpText.fitted(list, to: HelpText.columns))
        return 0
      }
    }
    let logger = options.bootstrapLogging()
    if let like {
      return try await ExitStatus.run {
        try await Interruption.cancelling { try await LikeJob(self, like: like, logger: logger).run() }
        return 0
      }
    }
    try await ExitStatus.run {
      let isMet = try await Interruption.cancelling { try await FeedJob(self, logger: logger).run() }
      return isMet ? 0 : ExitStatus.failedSource
    }
  }

  /// Checks the options of a walk that a recording determines.
  private func checkLike() throws {
    let determined =
      [
        ("--swipes", swipes != nil), ("--settle", settle != nil), ("--back", back != nil),
        ("--bursts", bursts != nil),
        ("--compare", compare != nil), ("--assert", !assertions.isEmpty), ("--junit", junit != nil),
        ("--trace", trace != nil), ("--report", results.report != nil), ("--csv", results.csv != nil),
        ("--device", device != nil), ("--virtual", virtual), ("--decode-cost", decodeCost != nil),
        ("--cores", cores != nil), ("--first-rung", firstRung != nil), ("--cache", cache.given != nil),
      ] + visiting.given.map { ($0, true) }
    for (option, isGiven) in determined where isGiven {
      throw ValidationError("\(option) can't be combined with --like, which walks what was recorded")
    }
    guard playerName?.lowercased() != "reel" else {
      throw ValidationError("--like walks with a model, and --player reel is no model")
    }
    try OptionValue.check(pool, of: "--pool", in: 1...1000)
    try WalkResultOptions.checkFile(like, of: "--like")
    try WalkResultOptions.checkFile(fit, of: "--fit")
    if let like, let fit, FileIdentity(path: like) == FileIdentity(path: fit) {
      throw ValidationError("--fit would replace the recording")
    }
    try OptionValue.read { () throws(ReelError) in _ = try linkArgument() }
  }

  // MARK: - Values

  /// The values of `--first-rung`.
  enum StartRung: String, ExpressibleByArgument, CaseIterable {
    case low
    case auto

    var firstRung: FirstRung { self == .low ? .low : .auto }
  }

  struct Pool {
    let size: Int
    let policy: any PreloadPolicy
    let name: String

    init(size: Int, policy: any PreloadPolicy, name: String? = nil) {
      (self.size, self.policy, self.name) = (size, policy, name ?? policy.description)
    }

    var label: String { "\(size) \(name)" }
  }

  func pools() throws(ReelError) -> [Pool] {
    let usual = try PreloadPolicies.parse(preload ?? "adaptive")
    let pools = try sizes().map { entry throws(ReelError) in
      Pool(
        size: entry.size ?? 3,
        policy: try entry.preload.map { text throws(ReelError) in try PreloadPolicies.parse(text) } ?? usual)
    }
    try checkDistinct(pools.map(\.label))
    return pools
  }

  /// Returns the modelled players, one for each walk; nil for Reel's pool.
  func models() throws(ReelError) -> [PlayerModel]? {
    guard player.lowercased() != "reel" else { return nil }
    let model = try PlayerModel(argument: player)
    let models = try sizes().map { entry throws(ReelError) in
      let policy = entry.preload ?? preload
      let needed = try model.using(players: nil, preload: policy).preload.players
      if let size = entry.size, let policy, size < needed {
        throw ReelError(.usage, "\(policy) needs \(needed.counted("player")), not \(size)")
      }
      return try model.using(players: entry.size, preload: policy)
    }
    try checkDistinct(models.map { "\($0.preload.players) \($0.policyName)" })
    return models
  }

  /// The sizes and policies of the pools, as far as they are stated.
  private func sizes() throws(ReelError) -> [(size: Int?, preload: String?)] {
    guard let compare else { return [(pool, nil)] }
    var sizes: [(size: Int?, preload: String?)] = []
    for entry in OptionValue.list(compare) {
      let parts = entry.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(\.trimmed)
      guard let size = Int(parts[0]), (1...1000).contains(size), parts.count == 1 || !parts[1].isEmpty else {
        throw ReelError(
          .usage, "--compare: \"\(entry)\" is not a pool",
          advice: "write SIZE or SIZE:POLICY, such as 1,3,5:ahead:4")
      }
      sizes.append((size, parts.count > 1 ? parts[1] : nil))
    }
    return sizes
  }

  private func checkDistinct(_ labels: [String]) throws(ReelError) {
    var known: Set<String> = []
    for label in labels where !known.insert(label).inserted {
      throw ReelError(.usage, "--compare: the pool \"\(label)\" appears twice")
    }
  }

  /// Returns how the walk is swiped. Reads the file of a trace.
  func swipeSpec() throws(ReelError) -> SwipeSpec {
    let dwell = try DwellSpec(parsing: dwell)
    if case .trace = dwell, back != nil || bursts != nil {
      throw ReelError(
        .usage, "--back and --bursts can't be combined with a trace, which determines the swipes")
    }
    return try SwipeSpec(dwell: dwell, shares: try shares())
  }

  private func shares() throws(ReelError) -> SwipeShares {
    func share(_ text: String?, _ option: String, usual: Double) throws(ReelError) -> Double {
      guard let text else { return usual }
      return try SwipeShares.share(parsing: text, of: option)
    }
    let usual = SwipeShares.usual
    return try SwipeShares(
      back: try share(back, "--back", usual: usual.back),
      bursts: try share(bursts, "--bursts", usual: usual.bursts))
  }

  /// Returns nil for the real network.
  func linkArgument() throws(ReelError) -> LinkArgument? {
    try link.map { text throws(ReelError) in try LinkArgument(parsing: text, unlessIdeal: .all) }
  }

  func settleTime() throws(ReelError) -> Duration {
    try settle.map { text throws(ReelError) in try WalkPlan.settle(parsing: text, of: "--settle") } ?? .zero
  }

  func cost() throws(ReelError) -> DecodeCost {
    guard let decodeCost else { return DecodeCost() }
    guard let seconds = TimeText.seconds(decodeCost, needsUnit: true), seconds >= 0 else {
      throw ReelError(
        .usage, "--decode-cost: \"\(decodeCost)\" is not a time with a unit", advice: "write 4ms or 800us")
    }
    guard seconds <= Self.decodeCostLimit else {
      let limit = Self.decodeCostLimit.formatted(places: 0)
      throw ReelError(.usage, "--decode-cost: \"\(decodeCost)\" is above the limit of \(limit) s")
    }
    return DecodeCost(frame: .microseconds(Int64((seconds * 1e6).rounded())))
  }

  /// The maximum cost of decoding a frame, in seconds.
  private static let decodeCostLimit = 10.0

  private static let feedFormats = [
    ("list", "one URL or path per line; blank lines and lines that start with # are ignored"),
    (".m3u", "the same; the text after the comma of #EXTINF is the title of the next item"),
    ("JSON", "{\"items\": [...]}, an array of items, or feeds by name: {\"feeds\": {\"following\": [...]}}"),
  ]

  private static let itemFields = [
    ("title, author", "shown in reports"),
    ("likes, comments", "numbers, kept for programs that read the feed"),
    ("poster", "the URL of an image to show on a miss"),
    ("headers", "request header fields, as an object; credentials among them go to the item's server alone"),
    ("secret_headers", "the same, for fields that are credentials although their names do not tell"),
    ("duration", "the duration in seconds, for --dwell retention"),
    ("retention", "the shares of viewers still watching at each second, from second 0"),
  ]
}
