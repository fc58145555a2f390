import Foundation
import ReelCore
import ReelFFmpeg
import ReelLab
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelPool
@testable import ReelReading
@testable import ReelSources

/// A pool over fixtures, and an account of what its surface was shown and of what it said.
///
/// Its players run in a simulation, which goes on only within the scene's methods. So what a test does comes at a certain
/// moment, and is the same in every run. Tests of what real threads do have scenes on the system's runtime.
final class PoolScene: Sendable {
  enum Runtime: Sendable, CaseIterable {
    case simulated
    case system
  }

  /// What becomes of the surface, in order. Items are told by their place in the scene's feed.
  enum Line: Hashable, Sendable {
    case attached(Int)
    case detached(Int)
    case frame(Shown)
    case poster(PixelSize)
  }

  let fetcher: FixtureFetcher
  /// The store in front of the fetcher and the link; nil for none.
  let store: MemoryStore?
  let pool: PlayerPool
  let feed: Feed
  /// On the system's runtime of the pool alone: what runs for it.
  let threads: WorkerThreads
  /// Stands still on the system's runtime.
  let simulation = SimulatedRuntime()
  private let runtime: Runtime
  private let log = Locked<[Line]>([])
  private let told = Locked<[PoolEvent]>([])
  private let onFrame = Locked<(@Sendable (PoolScene) throws -> Void)?>(nil)

  /// - Parameters:
  ///   - paths: Those of the items, below Fixtures.
  ///   - link: The modelled link that simulated players load over.
  ///   - keeps: Returns true for the requests whose answers are stored; nil for no store.
  init(
    _ paths: [String], runtime: Runtime = .simulated, slots: Int = 3,
    policy: any PreloadPolicy = AdjacentPreload(isNextDecoderWarm: true),
    fetcher: FixtureFetcher = FixtureFetcher(), link: LinkSpec? = nil,
    keeps: (@Sendable (FetchRequest) -> Bool)? = nil, describe: (Int, inout FeedItem) -> Void = { _, _ in },
    configure: (inout PoolConfiguration) -> Void = { _ in }
  ) throws {
    var configuration = PoolConfiguration()
    configuration.slotCount = slots
    configuration.policy = policy
    configuration.player.retryPolicy = ItemRetryPolicy(attempts: 1, baseDelay: .milliseconds(1))
    let threads = WorkerThreads(idleTime: .milliseconds(1))
    switch runtime {
    case .simulated:
      simulation.apply(to: &configuration.player)
      configuration.decodingPermits = 2
    case .system: configuration.player.runtime = SystemRuntime(threads: threads, promptThreads: threads)
    }
    self.runtime = runtime
    configure(&configuration)
    var feed = Feed(name: "feed")
    for (number, path) in paths.enumerated() {
      feed.append(try MediaSource(argument: "http://fixtures.test/\(path)")) { describe(number, &$0) }
    }
    self.feed = feed
    self.fetcher = fetcher
    self.threads = threads
    let base: any Fetching =
      if let link { ThrottledFetcher(fetcher, link: link, in: simulation) } else { fetcher }
    store = keeps.map { MemoryStore(in: base, keeps: $0) }
    pool = PlayerPool(fetcher: store ?? base, configuration: configuration, logger: silentLogger)
    pool.setObserver { [weak self] in self?.record($0) }
    try pool.setSurface(makeOutput())
  }

  /// What notes in the scene what it is shown; the scene is not held by it.
  func makeOutput() -> any FrameOutput { CallbackOutput { [weak self] in try self?.show($0) } }

  var snapshot: FeedSnapshot { FeedSnapshot(feed) }
  func id(_ index: Int) -> FeedItem.ID { feed.items[index].id }
  func url(_ index: Int) -> URL? { if case .url(let url) = feed.items[index].source { url } else { nil } }

  // MARK: Swiping

  /// What a swipe finds; the frame itself is let go. Throws for an index outside the feed.
  @discardableResult
  func show(_ index: Int, phase: SwipePhase = .settled) throws -> (stage: PreloadStage, hasFrame: Bool) {
    let handover = pool.show(index, of: snapshot, phase: phase)
    if let error = handover.error, error.kind == .usage { throw error }
    let (stage, isHit, hasFrame) = (handover.stage, handover.isHit, handover.frame != nil)
    #expect(isHit == hasFrame)
    return (stage, hasFrame)
  }

  /// Goes to an item, and returns when all of its window are as far as they are to be.
  func rest(at index: Int, phase: SwipePhase = .settled) async throws {
    try show(index, phase: phase)
    try await rest()
  }

  /// Returns when the slots have what is wanted, and all of them are as far as they are to be.
  func rest() async throws {
    try await until { self.isResting }
  }

  // MARK: Waiting

  /// Lets the pool run until `condition` holds, and fails if it never does.
  func until(
    sourceLocation: SourceLocation = #_sourceLocation, _ condition: @escaping @Sendable () -> Bool
  ) async throws {
    switch runtime {
    case .simulated:
      let holds = await simulation.run(until: condition)
      try #require(holds, "\(state())", sourceLocation: sourceLocation)
    case .system: try await ReelTestSupport.until(state, condition)
    }
  }

  /// Lets the pool run until `body` has ended.
  @discardableResult
  func run<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) async throws -> Success {
    switch runtime {
    case .simulated: try await simulation.run(body)
    case .system: try await body()
    }
  }

  func ready(_ index: Int) async throws { try await run { [pool] in try await pool.ready(index) } }

  @discardableResult
  func firstFrame(of swipe: Handover) async throws -> Handover {
    try await run { try await swipe.firstFrame() }
  }

  /// Begins `body`, which goes on while the pool runs.
  func begin<Success: Sendable>(
    _ body: @escaping @Sendable () async throws -> Success
  ) -> Task<Success, any Error> {
    switch runtime {
    case .simulated: simulation.throwingTask(body)
    case .system: Task(operation: body)
    }
  }

  /// Closes the pool, and waits until nothing of it is left.
  func close() async throws {
    pool.close()
    switch runtime {
    case .simulated:
      await simulation.runToRest()
      #expect(simulation.bodyCount == 0)
      #expect(fetcher.underWayCount == 0)
    case .system:
      try await until { self.fetcher.underWayCount == 0 && self.threads.count == 0 }
    }
  }

  var isResting: Bool {
    // Asked first: what the slots say is then of the window that is wanted.
    guard pool.core.isSteady else { return false }
    let slots = pool.slotReadiness.filter { $0.item != nil }
    return !slots.isEmpty
      && slots.allSatisfy {
        $0.waiting == .failed || $0.stage >= min($0.target?.stage ?? .buffered, .buffered)
      }
      && fetcher.underWayCount == 0
  }

  /// For who waits in vain.
  func state() -> String {
    "steady: \(pool.core.isSteady), requests: \(fetcher.underWayCount)\n"
      + pool.slotReadiness.map { "\($0)" }.joined(separator: "\n")
  }

  /// Plays the current item to its end, as fast as it goes.
  func playOut() async throws {
    let player = try #require(pool.currentPlayer)
    let count = ends.count
    player.setRate(.infinity)
    try await until { self.ends.count > count }
    if case .failed(let error) = ends.last { throw error }
  }

  private var ends: [PlayerEvent] {
    events.compactMap { event in
      guard case .player(_, let event) = event else { return nil }
      switch event {
      case .playedToEnd, .failed: return event
      default: return nil
      }
    }
  }

  // MARK: Accounts

  var lines: [Line] { log.withLock { $0 } }
  var shown: [Shown] { Self.shown(lines) }
  /// What was shown after that line.
  func shown(since line: Line) -> [Shown] { Self.shown(Array(lines.drop { $0 != line })) }
  func forgetLines() { log.withLock { $0 = [] } }
  /// All that the pool has said.
  var events: [PoolEvent] { told.withLock { $0 } }
  var assigned: [FeedItem.ID] { events.compactMap { if case .assigned(let id, _) = $0 { id } else { nil } } }
  var evicted: [FeedItem.ID] { events.compactMap { if case .evicted(let id, _, _) = $0 { id } else { nil } } }

  /// The slots' items by their places in the scene's feed; nil for an empty slot.
  var slots: [Int?] { pool.slotReadiness.map { $0.item.flatMap(feed.index) } }
  func readiness(_ index: Int) -> SlotReadiness? { pool.slotReadiness.first { $0.item == id(index) } }
  /// What is loaded for an item.
  func item(_ index: Int) -> PlayerItem? { pool.core.state.withLock { $0.slot(of: id(index)) }?.load?.item }

  /// Calls `body` on the player's thread, with its output's lock held, after each frame.
  func setOnFrame(_ body: (@Sendable (PoolScene) throws -> Void)?) { onFrame.withLock { $0 = body } }

  // MARK: - Private

  private static func shown(_ lines: [Line]) -> [Shown] {
    lines.compactMap { if case .frame(let shown) = $0 { shown } else { nil } }
  }

  private func show(_ frame: VideoFrame) throws {
    if frame.stream.videoCodec == nil {
      let size = frame.presentationSize
      log.withLock { $0.append(.poster(size)) }
    } else {
      let shown = try Shown(frame)
      log.withLock { $0.append(.frame(shown)) }
    }
    try onFrame.withLock { $0 }?(self)
  }

  private func record(_ event: PoolEvent) {
    told.withLock { $0.append(event) }
    switch event {
    case .surfaceAttached(let id): log.withLock { $0.append(.attached(feed.index(of: id) ?? -1)) }
    case .surfaceDetached(let id): log.withLock { $0.append(.detached(feed.index(of: id) ?? -1)) }
    default: break
    }
  }
}

extension PoolCore {
  /// The slots have the items of the window, and no others.
  var isSteady: Bool {
    let state = state.withLock { $0 }
    guard !state.isClosed else { return true }
    let plan = makePlan(state)
    let wanted = plan.entries.map(\.item.id)
    let loads = state.slots.compactMap(\.load)
    return state.nextTurn(at: .zero) != .again && Set(loads.map(\.feedItem.id)) == Set(wanted)
      && loads.allSatisfy { load in
        guard let order = plan.entries.first(where: { $0.item.id == load.feedItem.id })?.order else {
          return false
        }
        return load.order.index == order.index && load.order.rank == order.rank
          && load.order.target == order.target && load.order.plays == order.plays
      }
  }
}

/// The frames of an item that a player by itself shows, decoded only once for all tests.
func plainFrames(_ path: String) async throws -> [Shown] {
  let task = playbacks.withLock { playbacks in
    if let task = playbacks[path] { return task }
    let task = Task { try await play(path) }
    playbacks[path] = task
    return task
  }
  return try await task.value
}

private let playbacks = Locked<[String: Task<[Shown], any Error>]>([:])

private func play(_ path: String) async throws -> [Shown] {
  let simulation = SimulatedRuntime()
  var configuration = PlayerConfiguration()
  simulation.apply(to: &configuration)
  let shown = Locked<[Shown]>([])
  let player = Player(fetcher: FixtureFetcher(), configuration: configuration, logger: silentLogger)
  try player.attach(
    CallbackOutput { frame in
      let one = try Shown(frame)
      shown.withLock { $0.append(one) }
    })
  let item = PlayerItem(try MediaSource(argument: "http://fixtures.test/\(path)"))
  try await simulation.run {
    let events = item.events
    player.setRate(.infinity)
    player.replaceCurrentItem(with: item)
    for await event in events {
      if case .playedToEnd = event { break }
      if case .failed(let error) = event { throw error }
    }
    await player.stopAndWait()
  }
  await simulation.runToRest()
  return shown.withLock { $0 }
}
