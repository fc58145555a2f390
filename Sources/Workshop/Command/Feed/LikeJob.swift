import Foundation
import HTTPTypes
import Logging
import ReelCore
import ReelLab
import ReelModels
import ReelPool
import ReelSimulation
import ReelSources

/// One run of `reel feed --like`: walks of a recording, by models of the players that it is of.
struct LikeJob: Sendable {
  private let command: FeedCommand
  private let path: String
  private let logger: Logger

  init(_ command: FeedCommand, like path: String, logger: Logger) {
    (self.command, self.path, self.logger) = (command, path, logger)
  }

  func run() async throws {
    let recording = try PlayerRecording(path: path)
    let stated = try link(of: recording.run)
    let output = try ResultFile.open(command.fit)
    let (read, items) = try await WorkProgress.showing(
      when: !command.options.quiet, { _ in "reading the recording" }
    ) {
      (try RecordedWalks(recording, estimatesLink: stated == nil), try await sources(of: recording))
    }
    let link = try stated ?? estimated(read.estimate)
    let walks = try chosen(read.walks).map { walk throws(ReelError) in try modelled(walk, over: link) }
    if command.fit != nil { try checkPlayers(walks) }
    let (facts, failures) = try await WorkProgress.showing(
      when: !command.options.quiet, { _ in "reading the items" }
    ) { try await self.facts(items, walks, recording.run.items.map(\.name)) }
    var notes = read.notes + failures
    if Self.overlap(read.walks) {
      notes.append("players were at work at the same time: each is walked as if it had the link to itself")
    }
    for note in notes { Console.warn(note) }
    func predict(_ walk: ModelledRecording, _ model: PlayerModel) -> [PredictedSwipe] {
      walk.recorded.predictions(by: model, items: facts, link: link.spec)
    }
    var reports: [LikeReport] = []
    for walk in walks {
      try Task.checkCancellation()
      reports.append(
        LikeReport(
          walk: walk, link: link, itemNames: recording.run.items.map(\.name), notes: notes,
          swipes: predict(walk, walk.model)))
    }
    for report in reports { try print(report) }
    guard let output, let first = walks.first else { return }
    let source = PlayerModel.Source(
      recording: URL(fileURLWithPath: path).lastPathComponent, version: first.recorded.player,
      date: String(recording.run.startedAt.prefix(10)))
    let fit = try ModelFit(first.model, source: source) { model in walks.flatMap { predict($0, model) } }
    try output.complete(with: try fit.model.json() + "\n")
    try print(FitReport(fit: fit, path: command.fit ?? ""))
  }

  // MARK: - Private

  private func print(_ report: some LikeOutput) throws(ReelError) {
    if command.options.json {
      try Console.print(try JSONLine.string(report))
    } else if !command.options.quiet {
      try Console.printText(report.text)
    }
  }

  // MARK: Link

  /// The link to walk over, unless it has to be estimated.
  private func link(of run: RecordedRun) throws(ReelError) -> LikeReport.Link? {
    if let argument = try command.linkArgument() {
      guard !argument.isFolder, let link = try argument.links(seed: command.seed).first else {
        throw ReelError(.usage, "--like takes one link, and \(argument.text) is a folder")
      }
      return .init(spec: link.spec, text: link.text, origin: .option)
    }
    guard let link = run.link else { return nil }
    // The server's link has no slow start, and TLS and names aren't used. A recorded link may be gone.
    if let argument = try? LinkArgument(parsing: link.text), !argument.isConstant,
      var spec = try? argument.links(seed: 0).first?.spec
    {
      spec.features = []
      return .init(spec: spec, text: link.text, origin: .recording)
    }
    guard (0...3.6e6).contains(link.roundTripMs),
      let spec = try? LinkSpec(
        bitsPerSecond: link.bitsPerSecond, roundTripTime: .milliseconds(link.roundTripMs))
    else { throw ReelError(.badManifest, "link: not a link", at: path, place: .line(1)) }
    return .init(spec: spec, text: link.text, origin: .recording)
  }

  private func estimated(_ estimate: LinkEstimate?) throws(ReelError) -> LikeReport.Link {
    guard let estimate else {
      throw ReelError(
        .usage, "the recording names no link, and has too few requests to estimate one", at: path,
        advice: "name it with --link")
    }
    var spec = try LinkSpec(bitsPerSecond: estimate.bitsPerSecond, roundTripTime: estimate.roundTripTime)
    spec.features = .tcp
    return .init(spec: spec, text: spec.description, origin: .estimate)
  }

  // MARK: Walks

  private func chosen(_ walks: [RecordedWalk]) throws(ReelError) -> [RecordedWalk] {
    var walks = walks
    if let name = command.playback {
      walks.removeAll { $0.playback != name }
      guard !walks.isEmpty else {
        throw ReelError(.usage, "the recording has no playback \(name)", at: path)
      }
    }
    walks.removeAll { $0.swipes.count < 2 }
    guard !walks.isEmpty else {
      throw ReelError(
        .usage, "a recording without swipes", at: path,
        advice: "swipe on the page /-/feed of reel serve --record, or report swipes to it")
    }
    return walks
  }

  private func modelled(
    _ walk: RecordedWalk, over link: LikeReport.Link
  ) throws(ReelError) -> ModelledRecording {
    var walk = walk
    if command.pool != nil || command.preload != nil { walk.preloadedCount = nil }
    guard let name = command.playerName ?? walk.modelName else {
      let player = walk.player.map { "\"\($0)\"" } ?? "no name"
      throw ReelError(
        .usage, "no model for the player of playback \(walk.playback), which reports \(player)", at: path,
        advice: "name one with --player: \(PlayerModel.shippedNames.joined(separator: ", ")), or a file")
    }
    let model = try PlayerModel(argument: name).using(players: command.pool, preload: command.preload)
    return ModelledRecording(recorded: walk, model: model)
  }

  /// Throws unless all walks are of one player.
  private func checkPlayers(_ walks: [ModelledRecording]) throws(ReelError) {
    guard Set(walks.map(\.recorded.player)).count > 1 || Set(walks.map(\.model.name)).count > 1 else {
      return
    }
    let list = walks.map { "\($0.recorded.playback) (\($0.recorded.player ?? "no name"))" }
    throw ReelError(
      .usage, "--fit takes one player, and the recording is of several", at: path,
      advice: "choose one with --playback: \(list.prefix(10).joined(separator: ", "))")
  }

  private static func overlap(_ walks: [RecordedWalk]) -> Bool {
    let spans = walks.compactMap(\.span).sorted { $0.lowerBound < $1.lowerBound }
    return zip(spans, spans.dropFirst()).contains { $0.upperBound > $1.lowerBound }
  }

  // MARK: Items

  private typealias Item = (source: MediaSource, headers: HTTPFields)

  /// The items of the recording, in the feed that was served or another place of it.
  private func sources(of recording: PlayerRecording) async throws -> [Item] {
    guard let feed = command.feedPlace ?? recording.run.source else {
      throw ReelError(
        .usage, "the recording does not name its feed", at: path,
        advice: "add the folder or the feed file that was served")
    }
    var isDirectory: ObjCBool = false
    if FileManager.default.fileExists(atPath: feed, isDirectory: &isDirectory), isDirectory.boolValue {
      let folder = URL(fileURLWithPath: feed, isDirectory: true)
      let names = ServedFeed(folder: folder).items.map(\.name)
      return try recording.places(in: names).map { (.url(folder.appending(path: names[$0])), [:]) }
    }
    let fetcher = try command.options.transport(logger: logger)
    let read: (bytes: [UInt8], location: MediaSource)
    do {
      read = try await FeedReading(command.options, fetcher, readsStandardInput: true).read(feed)
    } catch let error as ReelError where error.kind == .noSuchFile && command.feedPlace == nil {
      throw ReelError(
        .noSuchFile, "the feed of the recording is not here", at: feed,
        advice: "name the folder or the feed file")
    }
    let items = try FeedFile(bytes: read.bytes, at: read.location).feed(named: command.feedName).items
    let paths = items.map { $0.source.url?.path(percentEncoded: false) ?? "" }
    return try recording.places(in: paths).map { (items[$0].source, items[$0].headers) }
  }

  /// Reads the items that the walks can reach. Returns nil for the others, and a line for each that can't be read.
  private func facts(
    _ items: [Item], _ walks: [ModelledRecording], _ names: [String]
  ) async throws -> (facts: [ItemFacts?], failures: [String]) {
    let reader = ItemReader(
      fetcher: try command.options.transport(logger: logger),
      configuration: try command.options.loading().playing(feed: command.feed), logger: logger)
    let reach = walks.map { $0.recorded.reach(by: $0.model) }.max() ?? 0
    var (facts, failures) = ([ItemFacts?](repeating: nil, count: items.count), [String]())
    var next = items.indices.makeIterator()
    try await SideBySide.run(4, next: { next.next() }) { index in
      try await reader.facts(of: items[index].source, headers: items[index].headers, reach: reach)
    } ended: { index, result in
      switch result {
      case .success(let read): facts[index] = read
      case .failure(let error as ReelError): failures.append("item \(names[index]) can't be read: \(error)")
      case .failure(let error): throw error
      }
    }
    return (facts, failures.sorted())
  }
}

/// A walk of a recording, and the model that walks it.
struct ModelledRecording: Sendable {
  let recorded: RecordedWalk
  let model: PlayerModel
}
