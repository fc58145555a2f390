internal import Foundation
internal import ReelCore
internal import ReelPlayback
internal import ReelReading
internal import ReelSources

/// Keeps heads of items without a slot in the store in front of the network: one at a time, while no slot uses the network.
///
/// An item is on disk if the store has the answer to each request of its head: what was not stored, or is gone, does not
/// count. The store is asked when a head was loaded, and again from time to time.
final class HeadKeeper: Sendable {
  /// An item whose head is to be stored.
  struct Wanted: Sendable {
    let item: FeedItem
    /// The media from its start to load, and the limits for the rung.
    let target: PreloadTarget
    let playsAudio: Bool
  }

  /// What is known of an item whose head was loaded.
  private struct Entry {
    /// Empty after a failure.
    var requests: [FetchRequest] = []
    var byteCount: Int64 = 0
    var bitRate: Int?
    var isOnDisk: Bool
    var endedAt: Duration
    /// The time at which the store was asked last.
    var checkedAt: Duration
  }

  private struct State {
    var feed = ""
    var wanted: [Wanted] = []
    var entries: [FeedItem.ID: Entry] = [:]
    /// The head that is being loaded.
    var loading: (id: FeedItem.ID, task: Task<Void, Never>)?
    var isClosed = false
  }

  private let store: any MediaStoring
  private let network: PriorityFetcher
  private let configuration: PlayerConfiguration
  private let sharesThroughput: Bool
  private let onStored: @Sendable (FeedItem.ID) -> Void
  private let state = Locked(State())

  /// The time after which a head is tried again that failed, or that the store does not have.
  private static let retryInterval = Duration.seconds(300)
  /// The time after which the store is asked again for a head that is wanted.
  private static let checkInterval = Duration.seconds(60)
  /// The number of items to remember besides the wanted ones.
  private static let entryLimit = 64

  /// Returns nil if nothing is stored.
  ///
  /// - Parameter onStored: Called with each item whose head is on disk now.
  init?(
    network: PriorityFetcher, configuration: PoolConfiguration,
    onStored: @escaping @Sendable (FeedItem.ID) -> Void
  ) {
    guard let store = network.store else { return nil }
    self.store = store
    self.network = network
    self.configuration = configuration.player
    sharesThroughput = configuration.sharesThroughput
    self.onStored = onStored
  }

  /// Loads these heads, in this order, and no others. What was fetched of others stays.
  ///
  /// - Parameter feed: The current feed. In another one, heads that failed are tried again.
  func keep(_ wanted: [Wanted], in feed: String) {
    let abandoned = state.withLock { state -> Task<Void, Never>? in
      if state.feed != feed { state.entries = state.entries.filter { !$0.value.requests.isEmpty } }
      state.feed = feed
      state.wanted = wanted
      let ids = Set(wanted.map(\.item.id))
      if state.entries.count > Self.entryLimit {
        state.entries = state.entries.filter { ids.contains($0.key) }
      }
      guard let loading = state.loading, !ids.contains(loading.id) else { return nil }
      state.loading = nil
      return loading.task
    }
    abandoned?.cancel()
    check(wanted.map(\.item.id), notSince: Self.checkInterval)
    loadNext()
  }

  func close() {
    state.withLock { $0.isClosed = true }
    keep([], in: "")
  }

  /// Returns true if the head of an item was loaded, and the store had it when it was asked last.
  func isOnDisk(_ id: FeedItem.ID) -> Bool { state.withLock { $0.entries[id]?.isOnDisk ?? false } }

  /// Returns the bit rate of the rung of a head on disk, in bits per second; nil for others, and for a media file.
  func bitRate(of id: FeedItem.ID) -> Int? {
    state.withLock { $0.entries[id] }.flatMap { $0.isOnDisk ? $0.bitRate : nil }
  }

  /// The heads that the store has now, in the order in which they were loaded.
  var heads: [MemoryLedger.Head] {
    checkAll()
    return state.withLock { $0.entries }.filter(\.value.isOnDisk)
      .sorted { $0.value.endedAt < $1.value.endedAt }
      .map { MemoryLedger.Head(item: $0.key, byteCount: $0.value.byteCount) }
  }

  /// Asks the store for all heads, because something was removed from it.
  func checkAll() { check(state.withLock { Array($0.entries.keys) }, notSince: .zero) }

  // MARK: - Private

  /// Asks the store for heads that were on disk.
  ///
  /// - Parameter age: Those that were asked for within this time are left out.
  private func check(_ ids: [FeedItem.ID], notSince age: Duration) {
    let now = configuration.clock.now
    for id in ids {
      guard let entry = state.withLock({ $0.entries[id] }), entry.isOnDisk, entry.checkedAt + age <= now
      else {
        continue
      }
      let isOnDisk = entry.requests.allSatisfy(store.stores)
      state.withLock { state in
        state.entries[id]?.isOnDisk = isOnDisk
        state.entries[id]?.checkedAt = now
      }
    }
  }

  /// Begins to load the first head that is wanted and was not tried lately, unless one is being loaded.
  private func loadNext() {
    let (wanted, entries) = state.withLock { ($0.loading == nil ? $0.wanted : [], $0.entries) }
    let now = configuration.clock.now
    let next = wanted.first { wanted in
      entries[wanted.item.id].map { $0.endedAt + Self.retryInterval <= now && !$0.isOnDisk } ?? true
    }
    guard let next else { return }
    // Made and released outside the lock, because slots have locks of their own.
    let loader = makeLoader(for: next)
    state.withLock { state in
      guard !state.isClosed, state.loading == nil,
        state.wanted.contains(where: { $0.item.id == next.item.id })
      else { return }
      state.loading = (next.item.id, load(next.item, with: loader))
    }
  }

  private func load(_ item: FeedItem, with loader: HeadLoader) -> Task<Void, Never> {
    configuration.runtime.task { [weak self] in
      let head = try? await loader.load(item.source, lasting: item.duration)
      if !Task.isCancelled { self?.record(head, of: item.id) }
    }
  }

  private func makeLoader(for wanted: Wanted) -> HeadLoader {
    let item = wanted.item
    let slot = network.makeSlot(rank: PriorityFetcher.backgroundRank)
    slot.setOwner(item.id)
    var loading = configuration.loading
    loading.itemHeaders = item.headers
    return HeadLoader(
      fetcher: slot, configuration: loading, scope: LoadScope(runtime: configuration.runtime),
      clock: configuration.clock, controller: controller(for: wanted.target), playsAudio: wanted.playsAudio,
      duration: wanted.target.bufferDuration, byteLimit: Int64(wanted.target.byteLimit ?? 64 << 20))
  }

  /// Chooses the rung as a player with this target does.
  private func controller(for target: PreloadTarget) -> RungController {
    var conditions = RungConditions()
    conditions.now = configuration.clock.now
    let cap = configuration.adaptsBitRate ? nil : configuration.loading.preferredPeakBitRate
    conditions.peakBitRate = [cap, target.peakBitRate].compactMap(\.self).min()
    conditions.startCap = target.startPeakBitRate
    guard configuration.adaptsBitRate else { return RungController(.fixed) { [conditions] in conditions } }
    let shared = sharesThroughput ? network.throughput?.mean : nil
    let estimate = (shared ?? configuration.initialBandwidth).map { Int($0) }
    return RungController(.adaptive(estimate: estimate)) { [conditions] in conditions }
  }

  /// - Parameter head: Nil after a failure.
  private func record(_ head: HeadLoader.Head?, of id: FeedItem.ID) {
    let now = configuration.clock.now
    let entry = Entry(
      requests: head?.requests ?? [], byteCount: head?.byteCount ?? 0, bitRate: head?.bitRate,
      isOnDisk: head?.requests.allSatisfy(store.stores) ?? false,
      endedAt: now,
      checkedAt: now)
    state.withLock { state in
      if state.loading?.id == id { state.loading = nil }
      state.entries[id] = entry
    }
    if entry.isOnDisk { onStored(id) }
    loadNext()
  }
}
