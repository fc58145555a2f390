internal import Foundation
internal import ReelCache
internal import ReelCore
internal import ReelPlayback
internal import ReelPool
internal import ReelReading
internal import ReelSources
internal import ReelTransport

/// Swipes through a feed with a pool, and prints what each swipe took.
struct Walker {
  private let pool: PlayerPool
  private var isWarm = false
  private let log = FrameLog()
  private let sleeper = Sleeper()
  private let clock = ContinuousClock()

  /// - Parameter isWarm: The next item's decoder stays open, and its second frame is decoded.
  init(isWarm: Bool) throws {
    self.isWarm = isWarm
    // Three players, the neighbours to 3 s of media.
    var configuration = PoolConfiguration()
    configuration.policy = AdjacentPreload(isNextDecoderWarm: isWarm)
    pool = PlayerPool(fetcher: TransportFetcher(), configuration: configuration)
    try pool.setSurface(log.makeOutput())
  }

  /// With the default policy, and with a cache in this folder, if there is one.
  init(cache: URL?) throws {
    let transport = TransportFetcher()
    let fetcher: any Fetching =
      cache.map { MediaCache(at: $0, byteLimit: 1 << 30, inFrontOf: transport) } ?? transport
    pool = PlayerPool(fetcher: fetcher)
    try pool.setSurface(log.makeOutput())
  }

  /// Forward only, item after item, each for as long as `dwell`.
  func swipe(_ urls: [String], count: Int, dwell: Duration) async throws {
    let playlist = try Self.playlist("swipes", urls, count: count + 1)
    pool.show(0, of: playlist)
    try await clock.sleep(for: dwell)
    for index in 1...count { try await swipe(dwell: dwell) { pool.show(index, of: playlist) } }
    pool.close()
  }

  /// Changes between two feeds, to positions that were on show before.
  func change(_ urls: [String], count: Int, dwell: Duration) async throws {
    let sources = try urls.map { try MediaSource(argument: $0) }
    let half = sources.count / 2
    let feeds = [
      Feed(name: "recommended", sources: Array(sources[..<half])),
      Feed(name: "following", sources: Array(sources[half...])),
    ]
    let service = PlayerService(pool: pool, feeds: feeds)
    for feed in feeds {
      service.select(feed: feed.name)
      try await clock.sleep(for: dwell)
      service.next()
      try await clock.sleep(for: dwell)
    }
    for number in 0..<count {
      try await swipe(dwell: dwell) { service.select(feed: feeds[number % 2].name) }
    }
    pool.close()
  }

  /// Back and forth over the items, each as soon as it is buffered, while other players decode.
  ///
  /// - Parameters:
  ///   - others: How many players were taken out of the window and play on.
  ///   - rate: Theirs.
  func handOver(_ urls: [String], count: Int, others: Int, rate: Double, dwell: Duration) async throws {
    var pinned: [PictureInPicturePlayer] = []
    let background = try Self.playlist("others", urls, count: others)
    for index in 0..<others {
      pool.show(index, of: background)
      guard try await wait(until: { pool.currentPlayer?.currentFrame() != nil }) else {
        throw Failure.timeOut
      }
      let player = try pool.startPictureInPicture(to: CallbackOutput { _ in })
      player.player.actionAtItemEnd = .loop
      if rate != 1 { player.player.setRate(rate) }
      pinned.append(player)
    }
    let playlist = try Self.playlist("swipes", urls, count: urls.count)
    var (index, step) = (0, 1)
    pool.show(index, of: playlist)
    for number in 0..<count {
      let before = step
      if !playlist.items.indices.contains(index + step) { step = -step }
      let isTurn = number > 0 && step != before
      index += step
      let next = playlist.items[index].id
      let isReady = try await wait {
        pool.readiness.value.contains {
          $0.item == next && $0.stage >= .buffered && (!isWarm || $0.frameCount > 1)
        }
      }
      guard isReady else { throw Failure.timeOut }
      try await clock.sleep(for: .milliseconds(20))
      let shown = pinned.reduce(0) { $0 + $1.player.statistics.decodedFrameCount }
      try await swipe(
        dwell: dwell, isTurn: isTurn,
        decoded: { pinned.reduce(0) { $0 + $1.player.statistics.decodedFrameCount } - shown }
      ) { pool.show(index, of: playlist) }
    }
    for player in pinned { player.stop() }
    pool.close()
  }

  static func playlist(_ name: String, _ urls: [String], count: Int) throws -> FeedSnapshot {
    let sources = try (0..<count).map { try MediaSource(argument: urls[$0 % urls.count]) }
    return FeedSnapshot(Feed(name: name, sources: sources))
  }

  enum Failure: Error { case timeOut, noFeed }

  // MARK: - Private

  private func swipe(
    dwell: Duration, isTurn: Bool = false, decoded: () -> Int = { 0 }, show: () -> Handover?
  ) async throws {
    log.clear()
    // Each of the three follows upon a wait, as a touch does.
    let alone = spin(milliseconds: 0.08)
    try await clock.sleep(for: .milliseconds(2))
    let waking = spin(milliseconds: 0.08) { sleeper.wake() }
    try await clock.sleep(for: .milliseconds(5))
    let switches = threadSwitches()
    let core = threadTime()
    let began = clock.now
    let shown = show()
    let returned = clock.now
    let worked = threadTime() - core
    let after = threadSwitches()
    guard let handover = shown else { throw Failure.noFeed }
    // On a hit the frame is here; nothing of the item before comes to the surface any more.
    let first = handover.frame?.time
    let (isHit, duration) = (first != nil, handover.duration.value)
    let (stage, wait) = (handover.stage, dwell - (clock.now - began))
    try await clock.sleep(for: max(.zero, wait))
    let frames = log.all
    var second: FrameLog.Entry?
    var firstAt: ContinuousClock.Instant? = returned
    if let first {
      second = frames.first { $0.at > returned && $0.time != first }
    } else {
      // What came late of the item before is further on than this one can be.
      let own = frames.filter { $0.time.seconds < milliseconds(dwell) / 1e3 && $0.at > returned }
      let start = own.firstIndex { $0.time.seconds < 0.05 }
      firstAt = start.map { own[$0].at }
      second = start.flatMap { own[$0...].dropFirst().first }
    }
    var fields: [String: any Encodable & Sendable] = [
      "hit": isHit, "stage": stage.rawValue, "turn": isTurn,
      "decoded_by_others": decoded(),
      "inside_ms": milliseconds(duration), "core_ms": worked,
      "alone_ms": alone, "waking_ms": waking, "waits": after.waits - switches.waits,
      "preemptions": after.preemptions - switches.preemptions,
    ]
    if let first { fields["position_ms"] = first.seconds * 1e3 }
    if let firstAt { fields["first_ms"] = milliseconds(firstAt - began) }
    if let second {
      fields["second_ms"] = milliseconds(second.at - began)
      if let firstAt { fields["gap_ms"] = milliseconds(second.at - firstAt) }
    }
    report(fields)
  }
}
