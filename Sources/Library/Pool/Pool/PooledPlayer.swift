internal import Foundation
internal import Logging
internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback
internal import ReelSources

/// A player of the pool, with its access to network, cores and memory. It moves from item to item, and from
/// slot to slot when items change their indices.
final class PooledPlayer: Sendable {
  let player: Player
  let account: MemoryAccount?
  private let resources: PoolResources
  private let sharesThroughput: Bool
  private let gate: SlotGate
  /// Nil if the number of open decoders is not limited.
  private let decoders: PlayerDecoders?
  private let network: PriorityFetcher.Slot
  private let runtime: any PlayerRuntime

  init(_ resources: PoolResources, configuration: PoolConfiguration) {
    runtime = configuration.player.runtime
    self.resources = resources
    sharesThroughput = configuration.sharesThroughput
    gate = SlotGate(resources.gate, rank: .max)
    decoders = resources.decoders?.makePlayer(rank: .max)
    network = resources.network.makeSlot(rank: .max)
    account = configuration.keepsAccounts ? try? MemoryAccount() : nil
    player = Player(
      fetcher: network, configuration: configuration.player, gate: gate, decoders: decoders,
      account: account, logger: resources.logger)
    player.actionAtItemEnd = configuration.actionAtItemEnd
  }

  /// The bytes transferred over the network, for all its items.
  var fetchedByteCount: Int64 { network.statistics.byteCount }
  /// The bytes that came from a store instead.
  var storedByteCount: Int64 { network.statistics.storedByteCount }
  /// True while it waits for slots of better rank.
  var isHeldBack: Bool { network.isHeldBack }
  /// True while it waits for another player to close its decoder.
  var isWaitingForDecoder: Bool { decoders?.isWaiting ?? false }

  /// Begins to load an item.
  ///
  /// - Parameter observer: Receives the player's signals.
  func begin(_ load: PoolState.Load, observer: @escaping @Sendable (PlayerItem, PlayerSignal) -> Void) {
    let (item, order) = (load.item, load.order)
    network.setOwner(load.feedItem.id)
    setRank(order.rank)
    // The first request is sent on another thread. No player of lower rank may overtake it.
    if load.feedItem.host != nil { network.expectRequest() }
    player.setObserver { observer(item, $0) }
    player.preloadTarget = order.target
    player.setMuted(order.isMuted)
    setBounds(of: load)
    player.replaceCurrentItem(with: item)
    if order.plays { player.play(asOf: order.since) }
  }

  /// Carries out a changed order.
  func follow(_ load: PoolState.Load, before old: PoolState.Order) {
    let order = load.order
    if order.rank != old.rank { setRank(order.rank) }
    if old.plays, !order.plays { player.pause() }
    setBounds(of: load)
    if order.target != old.target { player.preloadTarget = order.target }
    if order.isMuted != old.isMuted { player.setMuted(order.isMuted) }
    if order.plays, !old.plays { player.play(asOf: order.since) }
  }

  /// Gives the item that plays as picture in picture a decoder of its own, beyond the limit.
  func pinDecoder() {
    if let decoders, !decoders.isPinned { decoders.isPinned = true }
  }

  /// Cancels everything, and returns the memory to the system once nothing of the item is running.
  ///
  /// - Returns: A task that ends when that is done.
  @discardableResult
  func end() -> Task<Void, Never> {
    player.setObserver(nil)
    setRank(.max)
    if let decoders, decoders.isPinned { decoders.isPinned = false }
    player.pause()
    player.preloadTarget = PreloadTarget.notLoaded
    let wait = player.takeItem()
    return runtime.task { [account] in
      await wait()
      account?.purge()
    }
  }

  // MARK: - Private

  private func setBounds(of load: PoolState.Load) {
    load.item.bounds = load.order.bounds
    if sharesThroughput, let throughput = resources.network.throughput {
      load.item.initialBandwidth = throughput.mean
    }
  }

  private func setRank(_ rank: Int) {
    gate.rank = rank
    decoders?.rank = rank
    network.rank = rank
  }
}

/// The resources that the players of a pool share.
struct PoolResources: Sendable {
  let gate: PriorityGate
  /// The permits of open decoders; nil for no limit.
  let decoders: DecoderPermits?
  let network: PriorityFetcher
  let logger: Logger
}
