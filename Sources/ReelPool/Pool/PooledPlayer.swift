internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback

/// A player of the pool, with its ways to network, processor and memory; it goes from item to item, and from slot to
/// slot where items change their places.
final class PooledPlayer: Sendable {
  /// What it has been given.
  struct Load: Sendable {
    let feedItem: FeedItem
    let item: PlayerItem
    let began: Duration
    /// What had come over the network before.
    let fetchedBefore: RankedNetwork.Statistics
    /// In the feed.
    var index: Int
    var rank: Int
    /// Nil for playing.
    var target: PreloadTarget?
    var isPlaying = false
    /// The stage that was reported last.
    var reported = PreloadStage.none
  }

  let player: Player
  let account: MemoryAccount?
  private let gate: RankedGate
  private let network: RankedNetwork.Slot
  private let clock: any MonotonicClock
  private let state = Locked<Load?>(nil)

  init(_ resources: PoolResources, configuration: PoolConfiguration) {
    clock = configuration.player.clock
    gate = RankedGate(resources.gate, rank: .max)
    network = resources.network.makeSlot(rank: .max)
    account = try? MemoryAccount()
    player = Player(
      fetcher: network, configuration: configuration.player, gate: gate, account: account,
      logger: resources.logger)
    player.actionAtItemEnd = configuration.actionAtItemEnd
  }

  var load: Load? { state.withLock { $0 } }
  var id: FeedItem.ID? { load?.feedItem.id }
  /// A picture of the item is on show.
  var hasPicture: Bool { player.hasPicture }
  /// Waits for more important slots.
  var isHeldBack: Bool { network.isHeldBack }
  var fetched: RankedNetwork.Statistics {
    let (now, before) = (network.statistics, load?.fetchedBefore)
    var statistics = now
    statistics.byteCount -= before?.byteCount ?? 0
    statistics.requestCount -= before?.requestCount ?? 0
    return statistics
  }

  /// What has come over the network for a load.
  func fetchedByteCount(since load: Load) -> Int64 {
    network.statistics.byteCount - load.fetchedBefore.byteCount
  }

  /// Begins to load an item.
  func begin(
    _ feedItem: FeedItem, at index: Int, rank: Int, target: PreloadTarget?,
    observer: @escaping @Sendable (PlayerSignal) -> Void
  ) {
    let item = PlayerItem(feedItem.source, headers: feedItem.headers)
    state.withLock {
      $0 = Load(
        feedItem: feedItem, item: item, began: clock.now, fetchedBefore: network.statistics,
        index: index, rank: rank,
        target: target)
    }
    setRank(rank)
    player.setObserver(observer)
    player.preloadTarget = target
    player.replaceCurrentItem(with: item)
  }

  /// Ranks the load anew, and has it go as far as that.
  ///
  /// - Parameters:
  ///   - target: nil for playing.
  ///   - plays: false pauses.
  func direct(at index: Int, rank: Int, target: PreloadTarget?, plays: Bool) {
    let change = state.withLock { load -> (rank: Bool, target: Bool, plays: Bool)? in
      guard var next = load else { return nil }
      let change = (next.rank != rank, next.target != target, next.isPlaying != plays)
      next.index = index
      (next.rank, next.target, next.isPlaying) = (rank, target, plays)
      load = next
      return change
    }
    guard let change else { return }
    if change.rank { setRank(rank) }
    if change.plays, !plays { player.pause() }
    if change.target { player.preloadTarget = target }
    if change.plays, plays { player.play() }
  }

  /// Is not looked for any more: what it holds is about to end.
  func forget() { state.withLock { $0 = nil } }

  /// Cancels everything, and gives the memory back to the system.
  func end() {
    player.setObserver(nil)
    state.withLock { $0 = nil }
    setRank(.max)
    player.pause()
    player.preloadTarget = PreloadTarget.none
    player.replaceCurrentItem(with: nil)
    account?.purge()
  }

  /// The stage that has been reached, where it was not reported yet.
  func takeProgress() -> (load: Load, stage: PreloadStage)? {
    state.withLock { load in
      guard var next = load else { return nil }
      let stage = next.item.preloadStage.value
      guard stage > next.reported else { return nil }
      next.reported = stage
      load = next
      return (next, stage)
    }
  }

  // MARK: - Private

  private func setRank(_ rank: Int) {
    gate.rank = rank
    network.rank = rank
  }
}

/// What the players of a pool share.
struct PoolResources: Sendable {
  let gate: PriorityGate
  let network: RankedNetwork
  let logger: Logger
}
