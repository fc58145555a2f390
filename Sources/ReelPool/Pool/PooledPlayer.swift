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
    let fetchedBefore: PriorityFetcher.Statistics
    var order: Order
    var isPlaying = false
    /// The stage that was reported last.
    var reported = PreloadStage.none
    /// When the first frame was there, by the clock; nil before.
    var firstFrameAt: Duration?
  }

  /// What is wanted of an item.
  struct Order: Sendable {
    /// In the feed.
    var index: Int
    /// 0 for the current item.
    var rank: Int
    /// Nil for playing.
    var target: PreloadTarget?
    /// False pauses.
    var plays: Bool
    /// When it was wanted to play, by the clock.
    var since: Duration
  }

  let player: Player
  let account: MemoryAccount?
  private let gate: SlotGate
  private let network: PriorityFetcher.Slot
  private let clock: any MonotonicClock
  private let runtime: any PlayerRuntime
  private let state = Locked<Load?>(nil, rank: .load)

  init(_ resources: PoolResources, configuration: PoolConfiguration) {
    clock = configuration.player.clock
    runtime = configuration.player.runtime
    gate = SlotGate(resources.gate, rank: .max)
    network = resources.network.makeSlot(rank: .max)
    account = try? MemoryAccount()
    player = Player(
      fetcher: network, configuration: configuration.player, gate: gate, account: account,
      logger: resources.logger)
    player.actionAtItemEnd = configuration.actionAtItemEnd
  }

  var load: Load? { state.withLock { $0 } }
  var id: FeedItem.ID? { load?.feedItem.id }
  /// A frame of the item is on show.
  var hasFrame: Bool { player.hasFrame }
  /// Waits for more important slots.
  var isHeldBack: Bool { network.isHeldBack }
  var fetched: PriorityFetcher.Statistics {
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
  ///
  /// - Parameter observer: told what happens to it.
  func begin(
    _ feedItem: FeedItem, _ order: Order,
    observer: @escaping @Sendable (PlayerItem, PlayerSignal) -> Void
  ) {
    let item = PlayerItem(feedItem.source, headers: feedItem.headers)
    state.withLock {
      $0 = Load(
        feedItem: feedItem, item: item, began: clock.now, fetchedBefore: network.statistics, order: order)
    }
    setRank(order.rank)
    // The first request is made on another thread. One of less rank is not to overtake it.
    if feedItem.host != nil { network.expectRequest() }
    player.setObserver { observer(item, $0) }
    player.preloadTarget = order.target
    player.replaceCurrentItem(with: item)
    direct(order)
  }

  /// Ranks the load anew, and has it go as far as is wanted.
  func direct(_ order: Order) {
    let change = state.withLock { load -> (rank: Bool, target: Bool, plays: Bool)? in
      guard var next = load else { return nil }
      let change = (
        next.order.rank != order.rank, next.order.target != order.target, next.isPlaying != order.plays
      )
      (next.order, next.isPlaying) = (order, order.plays)
      load = next
      return change
    }
    guard let change else { return }
    if change.rank { setRank(order.rank) }
    if change.plays, !order.plays { player.pause() }
    if change.target { player.preloadTarget = order.target }
    if change.plays, order.plays { player.play(asOf: order.since) }
  }

  /// Plays on by itself, whatever is the current item.
  func directPinned() {
    guard let index = load?.order.index else { return }
    direct(Order(index: index, rank: 0, target: nil, plays: true, since: clock.now))
  }

  /// Is not looked for any more: what it holds is about to end.
  func forget() { state.withLock { $0 = nil } }

  /// Cancels everything, and gives the memory back to the system when nothing of the item runs any more.
  ///
  /// - Returns: ends when that has been done.
  @discardableResult
  func end() -> Task<Void, Never> {
    player.setObserver(nil)
    state.withLock { $0 = nil }
    setRank(.max)
    player.pause()
    player.preloadTarget = PreloadTarget.none
    let wait = player.takeItem()
    return runtime.task { [account] in
      await wait()
      account?.purge()
    }
  }

  /// Notes when the first frame of an item is there, and was shown to outputs if there are any.
  func noteFirstFrame(of item: PlayerItem) {
    guard item.preloadStage.value >= .firstFrame else { return }
    let now = clock.now
    state.withLock { load in
      if load?.item === item, load?.firstFrameAt == nil { load?.firstFrameAt = now }
    }
  }

  /// The stages that have been reached and were not reported yet.
  func takeProgress() -> (load: Load, stages: [PreloadStage])? {
    state.withLock { load in
      guard var next = load else { return nil }
      let stage = next.item.preloadStage.value
      let stages = PreloadStage.allCases.filter { $0 > next.reported && $0 <= stage }
      guard !stages.isEmpty else { return nil }
      next.reported = stage
      load = next
      return (next, stages)
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
  let network: PriorityFetcher
  let logger: Logger
}

extension PooledPlayer.Order {
  /// True where frames and media are there, and none are wanted any more: loading begins anew, for what is wanted.
  func givesBack(_ load: PooledPlayer.Load) -> Bool {
    guard let target else { return false }
    return target.stage < .firstFrame && load.item.preloadStage.value >= .firstFrame
  }
}
