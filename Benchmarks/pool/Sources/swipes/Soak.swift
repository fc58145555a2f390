internal import ReelCore
internal import ReelPlayback
internal import ReelPool
internal import ReelSources
internal import ReelTransport

/// Does at random what the people before a screen do, over three feeds and one pool, and what the system around them does:
/// swipes one by one and in bursts, drags, changes of the feed, pauses, items that come and go, a pinned player, a trim.
///
/// Every few seconds it is left alone, until the current item shows a frame or is said to have failed: where neither
/// comes, the run fails. With it, a line is printed with the figures that must not grow.
struct Soak {
  private static let feedNames = ["recommended", "following", "subscribed"]
  /// Longer than all retries of a request take.
  private static let limit = Duration.seconds(90)

  private let pool: PlayerPool
  private let service: PlayerService
  private let urls: [String]
  private let clock = ContinuousClock()
  private let log = FrameLog()

  /// - Parameter isWarm: The next item's decoder stays open.
  init(_ urls: [String], isWarm: Bool) throws {
    self.urls = urls
    var configuration = PoolConfiguration()
    configuration.policy = AdjacentPreload(isNextDecoderWarm: isWarm)
    pool = PlayerPool(fetcher: TransportFetcher(), configuration: configuration)
    let sources = try urls.map { try MediaSource(argument: $0) }
    let feeds = Self.feedNames.enumerated().map { number, name in
      Feed(name: name, sources: Array(sources[number...] + sources[..<number]))
    }
    service = PlayerService(pool: pool, feeds: feeds)
    try pool.setSurface(log.makeOutput())
  }

  func run(for length: Duration, seed: UInt64) async throws {
    var random = SeededNumbers(seed: seed)
    var tally = Tally()
    var pinned: PictureInPicturePlayer?
    let began = clock.now
    var nextLook = began
    tally.add(service.playFirst())
    while clock.now - began < length {
      try act(&random, &tally, &pinned)
      try await clock.sleep(for: .milliseconds(Int.random(in: 0...300, using: &random)))
      guard clock.now >= nextLook else { continue }
      service.setPlaying(true)
      try await calmDown(&tally, pinned)
      tell(tally, at: clock.now - began)
      nextLook = clock.now + .seconds(5)
    }
    pinned?.stop()
    pool.close()
    try await clock.sleep(for: .seconds(2))
    tell(tally, at: clock.now - began, isEnd: true)
  }

  /// Swipes through one of the feeds, back and forth.
  func lap(_ count: Int, dwell: Duration) async throws {
    var tally = Tally()
    let began = clock.now
    tally.add(service.playFirst())
    let turn = urls.count - 1
    for number in 1...count {
      try await clock.sleep(for: dwell)
      tally.add((number - 1) / turn % 2 == 0 ? service.next() : service.previous())
      guard number % 100 == 0 else { continue }
      try await calmDown(&tally, nil)
      tell(tally, at: clock.now - began)
    }
    pool.close()
  }

  // MARK: - Private

  private func act(
    _ random: inout SeededNumbers, _ tally: inout Tally, _ pinned: inout PictureInPicturePlayer?
  ) throws {
    let name = service.selectedFeed.value
    let items = service.feeds.first { $0.name == name }?.items ?? []
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<40: tally.add(service.next())
    case 40..<58: tally.add(service.previous())
    case 58..<66: tally.add(service.go(to: Int.random(in: -1...items.count, using: &random)))
    case 66..<72:
      for _ in 0..<Int.random(in: 2...50, using: &random) {
        tally.add(Bool.random(using: &random) ? service.next() : service.previous())
      }
    case 72..<78:
      tally.add(service.endDrag(to: Int.random(in: items.indices, using: &random)))
      if Bool.random(using: &random) { tally.add(service.settle()) }
    case 78..<86: tally.add(service.select(feed: Self.feedNames[Int.random(in: 0..<3, using: &random)]))
    case 86..<89: service.setPlaying(Bool.random(using: &random))
    case 89..<92:
      service.append(try MediaSource(argument: urls[Int.random(in: urls.indices, using: &random)]), to: name)
    case 92..<95:
      if items.count > urls.count / 2 {
        service.remove(items[Int.random(in: items.indices, using: &random)].id)
      }
    case 95..<98:
      pinned?.stop()
      // Refused where the current item has no player yet.
      pinned = pinned == nil ? try? pool.startPictureInPicture(to: CallbackOutput { _ in }) : nil
      tally.pinnedCount += pinned == nil ? 0 : 1
    default: pool.trim(to: Int.random(in: 0...30_000_000, using: &random))
    }
  }

  /// Until the current item has a frame or an error. One of sound alone ends with the limit, too.
  private func calmDown(_ tally: inout Tally, _ pinned: PictureInPicturePlayer?) async throws {
    let began = clock.now
    let isDone = try await wait(for: Self.limit) {
      guard let item = service.nowPlaying.value?.item.id else { return true }
      let slot = pool.readiness.value.first { $0.item == item }
      return slot?.hasFailed ?? false || (slot?.stage ?? .notLoaded) >= .firstFrame
        || pinned?.item.id == item
    }
    tally.longestCalm = max(tally.longestCalm, clock.now - began)
    guard isDone else {
      throw ReelError(
        .internalFault, "no frame and no error: \(pool.readiness.value)",
        at: service.nowPlaying.value.map { "\($0.item.source)" })
    }
    guard let item = service.nowPlaying.value?.item.id else { return }
    if pool.readiness.value.contains(where: { $0.item == item && $0.hasFailed }) { tally.failedCount += 1 }
  }

  private func tell(_ tally: Tally, at time: Duration, isEnd: Bool = false) {
    log.clear()
    let figures = processFigures()
    report([
      "at_s": milliseconds(time) / 1e3, "is_end": isEnd, "threads": figures.threads,
      "descriptors": figures.descriptors, "anonymous_bytes": figures.anonymousBytes,
      "ledger_bytes": pool.memory.total.byteCount, "players": pool.memory.entries.count,
      "swipes": tally.swipeCount,
      "hits": tally.hitCount, "failed": tally.failedCount, "pinned": tally.pinnedCount,
      "longest_swipe_ms": milliseconds(tally.longestSwipe),
      "longest_wait_ms": milliseconds(tally.longestCalm),
    ])
  }

  private struct Tally {
    var swipeCount = 0
    var hitCount = 0
    var failedCount = 0
    var pinnedCount = 0
    var longestSwipe = Duration.zero
    var longestCalm = Duration.zero

    /// Counts what a call that may have been beyond an end of the feed gave.
    mutating func add(_ handover: Handover?) {
      guard let handover, handover.error?.kind != .usage else { return }
      swipeCount += 1
      hitCount += handover.isHit ? 1 : 0
      longestSwipe = max(longestSwipe, handover.duration.value)
    }
  }
}

extension SlotReadiness {
  fileprivate var hasFailed: Bool { waiting == .failed }
}
