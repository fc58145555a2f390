import ArgumentParser
import Foundation
import Logging
import ReelCore
import ReelPool
import ReelSimulation
import ReelLab
import ReelModels
import ReelSources

/// `reel lab`: compares preload policies over many simulated walks.
struct LabCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lab",
    abstract: "Compare preload policies over many simulated walks.",
    discussion: """
      CONFIG is a JSON file. The lab walks each feed over each link, with each dwell time, on each device, with each \
      pool size, policy and seed, in the simulated time of reel feed --virtual. Walks that differ only in pool size \
      and policy have the same swipes and the same link; differences between policies are computed from such pairs. \
      Relative paths refer to the folder of CONFIG.

        {
          "feeds": ["feed.json"],
          "links": ["recordings/hsdpa,scale=8,rtt=60ms", "lte"],
          "dwells": ["exp:5s", { "dwell": "retention", "back": "10%" }],
          "pools": [3, 5],
          "policies": ["adjacent", "adaptive"],
          "seeds": 4,
          "swipes": 40
        }

      Fields:
      \(HelpText.list(fields))

      Without CONFIG, give the same values with --feed, --link, --policies and so on.

      The whole configuration is checked before the first walk. A lab has at most \(LabConfiguration.runLimit) walks. Each \
      result is appended to --results as JSON Lines when its walk ends. To continue after Ctrl-C or a crash, run the same \
      command again. At the end, the file holds the results in the order of the walks: the same lab gives the same bytes on \
      any number of cores, however often it was interrupted. The exit code is 1 if a walk failed; the next run repeats it.

      --report writes the same table as a page. --csv writes a line for each walk; after Ctrl-C, both have the walks so \
      far. --json prints the summary as one object. --timeout limits the reading of a feed and each wait for a server.

      --advise prints settings for the player of --player, as code to paste: how many players, how much to preload, the \
      first rung and the buffer, each with the figures that speak for it; with --simulated-cache also whether a cache is worth it. Among preloads whose waits can't be told apart, or \
      differ by less than 10 ms, it takes the one that fetches least.

      \(HelpText.examples(examples))
      """)

  private static let examples = [
    (
      "Compare two preload policies on a slow link",
      "reel lab --feed feed.m3u --link 3g --policies none,adaptive --swipes 10"
    ),
    (
      "How many items to preload with hls.js, and how far",
      "reel lab --feed feed.m3u --player hls.js --link lte --advise"
    ),
    ("Check a configuration, and estimate the time that it takes", "reel lab lab.json --dry-run"),
  ]

  private static let fields: [(String, String)] = [
    ("feeds", "feed files, or objects with file, feed and name"),
    (
      "links",
      "as for reel feed; a folder is all recordings in it. Default: "
        + LabConfiguration.defaultLinks.joined(separator: ", ")
    ),
    ("tcp, tls, dns", "false models these only on links that name them; all false is ideal. Default: true"),
    (
      "dwells",
      "texts such as retention,back=5%, or objects with dwell, back, bursts and name. Default: "
        + LabConfiguration.defaultDwell
    ),
    ("devices", "low, mid or high. Default: mid; a modelled player has the costs of its model"),
    ("pools", "numbers of players. Default: 3; of a modelled player, as many as its policies need"),
    (
      "policies",
      "as for reel feed --preload. Default: " + LabConfiguration.defaultPolicies.joined(separator: ", ")
    ),
    (
      "player",
      "a modelled player: a name or a file, with the policies none, ahead:N and adjacent. Default: reel"
    ),
    ("seeds", "a list, or a number n for 1 to n. Default: 1"),
    (
      "swipes",
      "the swipes of a walk, at most \(LabConfiguration.swipeLimit). Default: 20, or those of a trace"
    ),
    ("settle", "the time from the end of a drag to the settle, from which waits count. Default: 0ms"),
    (
      "bandwidth", "auto, to adapt to the measured throughput, or the highest bit rate to open. Default: auto"
    ),
    ("max_height", "ignore rungs with more lines"),
    ("first_rung", "adapted, low or auto. Default: adapted"),
    (
      "simulated_cache, visits, between",
      "a cache on a modelled disk, the visits of each walk, and the time between them, as for reel feed. Default: 0, 1, 1h"
    ),
  ]

  @Argument(help: "A configuration file.", completion: .file())
  var config: String?

  @Option(
    name: .customLong("feed"), parsing: .singleValue,
    help: ArgumentHelp("A feed file. Can be repeated.", valueName: "file"), completion: .file())
  var feeds: [String] = []

  @Option(
    name: .customLong("link"), parsing: .singleValue,
    help: ArgumentHelp("A link, a recording or a folder of recordings. Can be repeated.", valueName: "spec"),
    completion: .links)
  var links: [String] = []

  @Option(
    name: .customLong("dwell"), parsing: .singleValue,
    help: ArgumentHelp(
      "A dwell time, and the shares of swipes after it. Can be repeated.", valueName: "spec"))
  var dwells: [String] = []

  @Option(
    name: .customLong("device"), parsing: .singleValue,
    help: ArgumentHelp("A device. Can be repeated.", valueName: "low|mid|high"), completion: .devices)
  var devices: [String] = []

  @Option(
    help: ArgumentHelp(
      "The player: reel, a model, or the file of one (reel feed --help). Default: reel.",
      valueName: "name|file"), completion: .players)
  var player: String?

  @Option(help: ArgumentHelp("Numbers of players, separated by commas.", valueName: "n,..."))
  var pools: String?

  @Option(
    help: ArgumentHelp(
      "Preload policies, separated by commas, as none,ahead:1,ahead:2,1s.", valueName: "policy,..."),
    completion: .policies)
  var policies: String?

  @Option(help: ArgumentHelp("The number of seeds, or the seeds, separated by commas.", valueName: "n|n,..."))
  var seeds: String?

  @Option(help: ArgumentHelp("The number of swipes of a walk.", valueName: "n"))
  var swipes: Int?

  @Option(
    help: ArgumentHelp(
      "The time from the end of a drag to the settle, from which waits count. Default: 0ms.",
      valueName: "time"))
  var settle: String?

  @Option(
    help: ArgumentHelp("The rung of an item's first segment.", valueName: "adapted|low|auto"),
    completion: .list(["adapted", "low", "auto"]))
  var firstRung: String?

  @Flag(
    name: .customLong("plain-links"),
    help: "Add ideal to every link: model tcp, tls and dns only on links that name them.")
  var hasPlainLinks = false

  @Option(
    help: ArgumentHelp(
      "The policy to compare the others with. Default: the first one.", valueName: "policy"),
    completion: .policies)
  var baseline: String?

  @Option(
    help: ArgumentHelp(
      "The file that keeps results. Default: CONFIG with the extension .results.jsonl; without CONFIG, results are not kept.",
      valueName: "file"), completion: .file())
  var results: String?

  @Flag(
    help:
      "Print settings for the modelled player, with the figures that speak for them. Without policies, walks a few preloads with 10 seeds."
  )
  var advise = false

  @Flag(help: "Discard earlier results and start over.")
  var restart = false

  @Flag(
    help:
      "Check the configuration, try some walks, and print the number of walks and the time that all will take."
  )
  var dryRun = false

  @Option(
    help: ArgumentHelp(
      "The number of walks to run at the same time. Default: one per processor.", valueName: "n"))
  var jobs: Int?

  @OptionGroup var visiting: VisitOptions

  @OptionGroup var outputs: WalkResultOptions

  @OptionGroup var options: SourceOptions

  /// The time after Ctrl-C for summing up the results so far.
  private static let grace = DispatchTimeInterval.seconds(30)

  func validate() throws {
    if config == nil, feeds.isEmpty { throw ValidationError("name a configuration, or a feed with --feed") }
    if config != nil, !given.isEmpty {
      throw ValidationError("\(given.joined(separator: ", ")) can't be combined with a configuration file")
    }
    if config == "-" { throw ValidationError("the configuration can't be standard input: name a file") }
    try OptionValue.check(jobs, of: "--jobs", in: 1...1000)
    var files = [config, resultsPath].compactMap { $0.flatMap(FileIdentity.init(path:)) }
    try WalkResultOptions.checkFile(results, of: "--results")
    for (option, path) in [("--results", results), ("--report", outputs.report), ("--csv", outputs.csv)] {
      guard option != "--results", let path, let file = FileIdentity(path: path) else { continue }
      if files.contains(file) { throw ValidationError("\(option) names a file that the lab already uses") }
      files.append(file)
    }
  }

  func run() async throws {
    let logger = options.bootstrapLogging()
    try await ExitStatus.run {
      let isComplete = try await Interruption.cancelling(within: Self.grace) {
        try await LabJob(self, logger: logger).run()
      }
      return isComplete ? 0 : ExitStatus.failedSource
    }
  }

  // MARK: - Values

  /// The file of results; nil if they are not kept.
  var resultsPath: String? {
    if let results { return results }
    guard let config else { return nil }
    let stem = config.lowercased().hasSuffix(".json") ? String(config.dropLast(5)) : config
    return stem + ".results.jsonl"
  }

  /// Returns the configuration from the file or the options. Links, feeds and so on are not checked.
  func labConfiguration() throws -> LabConfiguration {
    var configuration =
      try config.map { path throws(ReelError) in try LabConfiguration(path: path) } ?? shortForm()
    if let bandwidth = options.bandwidth {
      configuration.bandwidth = try LabConfiguration.bandwidth(parsing: bandwidth)
    }
    if let maxHeight = options.maxHeight { configuration.maximumHeight = maxHeight }
    if configuration.player != nil, configuration.firstRung != .adapted {
      throw ReelError(.usage, "--first-rung can't be combined with --player: the model states it")
    }
    if advise { try configuration.walkForAdvice() }
    return configuration
  }

  // MARK: - Private

  /// The options that state what a configuration has, as far as they are given.
  private var given: [String] {
    [
      ("--device", !devices.isEmpty), ("--feed", !feeds.isEmpty), ("--first-rung", firstRung != nil),
      ("--link", !links.isEmpty), ("--plain-links", hasPlainLinks), ("--player", player != nil),
      ("--policies", policies != nil),
      ("--pools", pools != nil), ("--seeds", seeds != nil), ("--settle", settle != nil),
      ("--swipes", swipes != nil),
      ("--dwell", !dwells.isEmpty),
    ].filter(\.1).map(\.0) + visiting.given
  }

  /// Returns the configuration that the options state.
  private func shortForm() throws(ReelError) -> LabConfiguration {
    var lab = LabConfiguration()
    lab.feeds = feeds.map { LabConfiguration.FeedEntry(file: $0) }
    if !links.isEmpty { lab.links = links }
    if !dwells.isEmpty { lab.dwells = dwells.map { LabConfiguration.DwellEntry(text: $0) } }
    if !devices.isEmpty { lab.devices = devices }
    if let pools { lab.slotCounts = try Self.numbers(pools, of: "--pools") }
    if let player { try lab.use(player: player) }
    if let policies {
      lab.policies = try OptionValue.list(policies).map { text throws(ReelError) in
        try lab.policy(parsing: text)
      }
      lab.statesPolicies = true
    }
    if let seeds {
      let numbers: [UInt64] = try Self.numbers(seeds, of: "--seeds")
      lab.seeds = numbers.count == 1 ? try LabConfiguration.seeds(upTo: numbers[0]) : numbers
    }
    lab.swipeCount = swipes
    if let settle { lab.settle = try WalkPlan.settle(parsing: settle, of: "--settle") }
    if let firstRung { lab.firstRung = try LabConfiguration.firstRung(parsing: firstRung) }
    if hasPlainLinks { lab.linkFeatures = [] }
    lab.visits = try visiting.plan()
    try lab.check()
    return lab
  }

  private static func numbers<Number: FixedWidthInteger>(
    _ text: String, of option: String
  ) throws(ReelError) -> [Number] {
    try OptionValue.list(text).map { word throws(ReelError) in
      guard let number = Number(word) else {
        throw ReelError(.usage, "\(option): \"\(word)\" is not a whole number")
      }
      return number
    }
  }
}

/// One run of `reel lab`.
struct LabJob {
  private let command: LabCommand
  private let logger: Logger

  init(_ command: LabCommand, logger: Logger) {
    self.command = command
    self.logger = logger
  }

  /// Runs the walks that are not done yet, and prints the summary of all. Returns false if a walk failed.
  func run() async throws -> Bool {
    let fetcher = try command.options.transport(logger: logger, limitsWaits: true, pauses: false)
    let progress = LabProgress()
    let isQuiet = command.options.quiet
    let configuration = try command.labConfiguration()
    let baseline = try baseline(configuration)
    let inputs = try await WorkProgress.showing(when: !isQuiet, { _ in "reading feeds and links" }) {
      let reading = try FeedReading(command.options, fetcher)
      return try await LabInputs(configuration) { try await reading.read($0) }
    }
    let runs = inputs.runs
    if command.dryRun {
      if !isQuiet {
        let text = try await WorkProgress.showing({ _ in "trying some walks" }) {
          try await estimate(inputs, runs, try await walks(inputs, fetcher))
        }
        try Console.printText(text)
      }
      return true
    }
    let csv = try ResultFile.open(command.outputs.csv)
    let page = try ResultFile.open(command.outputs.report)
    let header = LabStore.Header(reel: Version.text, fingerprint: inputs.fingerprint, runs: runs.count)
    let store = try LabStore(path: command.resultsPath, header: header, restarts: command.restart)
    let doneCount = store.endedCount - store.failedCount
    if doneCount > 0 { Console.remark("continuing: \(doneCount) of \(runs.count) walks are done") }
    var failure: (any Error)?
    do {
      try await WorkProgress.showing(when: !isQuiet, { _ in progress.text }) {
        try await walk(runs, try await walks(inputs, fetcher), store, progress)
      }
      try store.finish()
    } catch {
      // The measurements until Ctrl-C.
      guard error is CancellationError else { throw error }
      if !isQuiet {
        Console.printError(
          "interrupted: \(store.endedCount) of \(runs.count.counted("walk")) done; "
            + (command.resultsPath == nil
              ? "--results keeps them for another run" : "run the same command again to continue"))
      }
      guard store.endedCount > 0 else { throw error }
      failure = error
    }
    let (results, summary) = try await WorkProgress.showing(when: !isQuiet, { _ in "summarizing" }) {
      let results = try store.results(runs)
      return (results, LabSummary(results, baseline: baseline, plannedCount: runs.count))
    }
    let scene = LabScene(inputs)
    let answer = Redaction.clean(LabAnswer(summary, scene).text)
    let advice =
      command.advise
      ? configuration.player.flatMap {
        Advice(summary, scene, of: $0, configuration.modelledPolicies)
      } : nil
    try printSummary(summary, of: configuration, answer, advice)
    try csv?.complete(with: LabCSV.text(results, of: runs))
    try page?.complete(
      with: LabPage(
        summary: summary, results: results, run: RunDescription(), answer: answer, advice: advice
      ).html)
    report(results.filter { $0.error != nil }, of: runs.count)
    if let failure { throw failure }
    return store.failedCount == 0
  }

  // MARK: - Private

  private func walks(_ inputs: LabInputs, _ fetcher: any Fetching) async throws -> LabWalks {
    try await LabWalks(
      inputs, loading: try command.options.loading(), fetcher: fetcher,
      limit: .seconds(command.options.timeout), logger: logger)
  }

  private func walk(
    _ runs: LabRuns, _ walks: LabWalks, _ store: LabStore, _ progress: LabProgress
  ) async throws {
    let pending = runs.indices.filter { !store.isDone($0) }
    guard !pending.isEmpty else { return }
    var indices = pending.makeIterator()
    progress.begin(total: runs.count, done: store.endedCount - store.failedCount)
    try await SideBySide.run(command.jobs, next: { indices.next() }) { index in
      try await walks.result(of: runs[index], at: runs.places(at: index))
    } ended: { index, outcome in
      let result: LabResult
      switch outcome {
      case .success(let success): result = success
      case .failure(let error):
        result = LabResult(run: runs[index], figures: [:], error: "\(error.asReelError)")
      }
      try store.append(result, at: index)
      progress.record(hasFailed: result.error != nil)
    }
  }

  /// Returns the policy to compare with, as named in results.
  private func baseline(_ configuration: LabConfiguration) throws(ReelError) -> String? {
    let names = configuration.policies.map(\.description)
    guard let text = command.baseline else { return names.first }
    let name = try configuration.policy(parsing: text).description
    guard names.contains(name) else {
      throw ReelError(
        .usage, "--baseline: the lab has no policy \(name)",
        advice: "it has \(names.joined(separator: ", "))")
    }
    return name
  }

  private func printSummary(
    _ summary: LabSummary, of configuration: LabConfiguration, _ answer: String, _ advice: Advice?
  ) throws(ReelError) {
    if command.options.json {
      let record = LabRecord(summary: summary, configuration: configuration, advice: advice)
      try Console.print(try JSONLine.string(record, of: "summary"))
    } else if !command.options.quiet {
      var text = LabTable(summary: summary, answer: answer).text
      if let advice { text += "\n\n\(advice.code)" }
      try Console.printText(text)
    }
  }

  /// The summary and what was simulated, with `advice` if there is one.
  private struct LabRecord: Encodable {
    let summary: LabSummary
    let configuration: LabConfiguration
    let advice: Advice?

    func encode(to encoder: any Encoder) throws {
      try summary.encode(to: encoder)
      try encoder.encode([
        "player": configuration.player?.title, "link_models": configuration.linkFeatures.optionNames,
        "settle_ms": configuration.settle / .milliseconds(1),
        "simulated_cache_bytes": configuration.visits?.byteLimit,
        "between_ms": configuration.visits.map { $0.between / .milliseconds(1) }, "advice": advice,
      ])
    }
  }

  private func report(_ failed: [LabResult], of count: Int) {
    guard !failed.isEmpty else { return }
    let limit = 10
    for result in failed.prefix(limit) {
      Console.fault("\(result.run.summary): \(result.error ?? "")")
    }
    Console.fault(
      "\(failed.count) of \(count.counted("run")) failed; run the same command again to repeat them")
  }

  /// Returns the output of `--dry-run`. Some walks are tried twice, because walks share what they read and decode.
  private func estimate(_ inputs: LabInputs, _ runs: LabRuns, _ walks: LabWalks) async throws -> String {
    let jobs = command.jobs ?? ProcessInfo.processInfo.activeProcessorCount
    let walked = inputs.meanWalkDuration * runs.count
    let count = min(runs.count, max(Self.triedCount, jobs))
    // Over all dimensions, of which the last ones change from run to run.
    let tried = (0..<count).map { min($0 * runs.count / count + $0, runs.count - 1) }
    let first = try await time(of: tried, runs, walks)
    let again = try await time(of: tried, runs, walks)
    let seconds = max(0, first - again) + again * Double(runs.count) / Double(count)
    let configuration = inputs.configuration
    let counts = [
      (inputs.feeds.count, "feed", "feeds"), (inputs.links.count, "link", "links"),
      (inputs.dwells.count, "dwell time", "dwell times"), (inputs.devices.count, "device", "devices"),
      (configuration.slotCounts.count, "pool size", "pool sizes"),
      (configuration.policies.count, "policy", "policies"), (configuration.seeds.count, "seed", "seeds"),
    ]
    let parts = counts.map { count, one, several in count.counted(one, several) }
    return "\(runs.count.counted("walk")): \(parts.joined(separator: " × "))\n"
      + "about \(LabProgress.time(walked / .seconds(1))) of simulated time; about "
      + "\(LabProgress.time(seconds)) on \(jobs.counted("core")), by the time that "
      + "\(count.counted("walk")) took"
  }

  /// The number of walks that are tried for an estimate, at least one for each core.
  private static let triedCount = 6

  /// Returns the seconds that some walks take, side by side.
  private func time(of indices: [Int], _ runs: LabRuns, _ walks: LabWalks) async throws -> Double {
    var next = indices.makeIterator()
    let began = ContinuousClock.now
    try await SideBySide.run(command.jobs, next: { next.next() }) { index in
      try await walks.result(of: runs[index], at: runs.places(at: index))
    } ended: { _, outcome in
      _ = try outcome.get()
    }
    return (ContinuousClock.now - began) / .seconds(1)
  }
}

/// Creates and performs the walks of a lab. They share read and decoded data.
struct LabWalks: Sendable {
  private let inputs: LabInputs
  private let loading: LoadingConfiguration
  private let fetcher: any Fetching
  private let limit: Duration
  private let memory = SimulatedWalk.Memory()
  private let logger: Logger
  /// What was read of the items of each feed; empty for Reel's pool.
  private var items: [ModelledItems] = []

  /// For a modelled player, reads the items that its walks can reach.
  ///
  /// - Parameters:
  ///   - loading: Headers and keys; the configuration states the rungs.
  ///   - limit: The maximum real time to wait for an answer.
  init(
    _ inputs: LabInputs, loading: LoadingConfiguration, fetcher: any Fetching, limit: Duration,
    logger: Logger
  ) async throws {
    self.inputs = inputs
    var loading = loading
    loading.preferredPeakBitRate =
      inputs.configuration.bandwidth ?? LoadingConfiguration().preferredPeakBitRate
    loading.maximumHeight = inputs.configuration.maximumHeight
    self.loading = loading
    self.fetcher = fetcher
    self.limit = limit
    self.logger = logger
    guard inputs.configuration.player != nil else { return }
    for place in inputs.feeds.indices {
      var walks: [(walk: Walk, model: PlayerModel)] = []
      let runs = inputs.runs
      for index in runs.indices {
        let places = runs.places(at: index)
        guard places.feed == place, places.link == 0, places.device == 0 else { continue }
        if let model = try model(at: places) { walks.append((try walk(runs[index], places), model)) }
      }
      var items = ModelledItems()
      let file = inputs.configuration.feeds[place].file
      try await items.read(
        walks,
        with: ItemReader(fetcher: fetcher, configuration: loading.playing(feed: file), logger: logger))
      self.items.append(items)
    }
  }

  /// Performs the walk of a run.
  ///
  /// - Parameter places: The places of the run's values.
  /// - Throws: The same errors as `SimulatedWalk.run()`.
  func result(of run: LabRun, at places: LabRuns.Places) async throws -> LabResult {
    let walk = try walk(run, places)
    let (link, device) = (
      inputs.links[places.link].spec.seeded(with: run.seed), inputs.devices[places.device]
    )
    if let model = try model(at: places) {
      let hasOwnCosts = device.name == LabConfiguration.modelledDevice
      var replay = try ModelledReplay(
        walk, model: model, link: link, items: items[places.feed],
        decodeCost: hasOwnCosts ? nil : device.decodeCost)
      replay.visits = inputs.configuration.visits
      return LabResult(run: run, report: replay.report())
    }
    var simulated = SimulatedWalk(
      walk, decodeCost: device.decodeCost, link: link, fetcher: fetcher, limit: limit, memory: memory,
      logger: logger)
    simulated.visits = inputs.configuration.visits
    return LabResult(run: run, report: try await simulated.run())
  }

  // MARK: - Private

  /// The modelled player of a run; nil for Reel's pool.
  private func model(at places: LabRuns.Places) throws(ReelError) -> PlayerModel? {
    let configuration = inputs.configuration
    return try (configuration.policies[places.policy] as? ModelledPreload)?
      .model(players: configuration.slotCounts[places.slotCount])
  }

  private func walk(_ run: LabRun, _ places: LabRuns.Places) throws(ReelError) -> Walk {
    let configuration = inputs.configuration
    let (feed, link) = (inputs.feeds[places.feed].feed, inputs.links[places.link])
    let (spec, device) = (inputs.dwells[places.dwell].spec, inputs.devices[places.device])
    var pool = PoolConfiguration(
      walkingWith: run.slotCount, configuration.policies[places.policy],
      firstRung: configuration.firstRung,
      loading: loading.playing(feed: configuration.feeds[places.feed].file),
      adaptsBitRate: configuration.bandwidth == nil)
    pool.apply(limitsOf: device)
    var settings = WalkSettings(
      feed: run.feed, itemCount: feed.items.count, slotCount: run.slotCount, policy: run.policy,
      link: link.text, dwell: spec.dwell.description, shares: spec.reportedShares, seed: run.seed)
    settings.linkSpec = link.spec
    settings.device = run.device
    settings.firstRung = configuration.firstRung
    return Walk(
      feed,
      plan: try WalkPlan(
        feed, swipeCount: configuration.swipeCount, spec: spec, settle: configuration.settle,
        seed: run.seed),
      settings: settings, label: run.policy, configuration: pool)
  }
}
