internal import Foundation
internal import ReelCore
package import ReelSimulation

/// A walk through a feed with the players of a model, by arithmetic: one loop over the arrivals of a link that all players
/// share, the clocks of their playback, and the swipes.
///
/// A pure value. The same input gives the same result on any machine.
package struct ModelledWalk: Sendable {
  package struct Swipe: Sendable, Hashable {
    package var item: Int
    /// The end of the drag, when the item's player comes on show.
    package var draggedAt: Duration
    /// The time from which it may play; nil for an item that is passed by in a burst.
    package var settledAt: Duration?

    package init(to item: Int, draggedAt: Duration, settledAt: Duration?) {
      (self.item, self.draggedAt, self.settledAt) = (item, draggedAt, settledAt)
    }
  }

  package let model: PlayerModel
  /// The facts of the items of the feed; nil for one that the player can't play.
  package let items: [ItemFacts?]
  package let link: LinkSpec
  package let swipes: [Swipe]
  package let end: Duration
  /// The costs of a device, which replace those of the model for opening a decoder and for decoding.
  package var decodeCost: DecodeCost?
  /// The cache on disk that the program has given the player, with what earlier visits have left there; nil for none.
  package var disk: StoredMedia?

  /// - Parameters:
  ///   - swipes: In the order of their times. The first one begins the walk.
  ///   - end: The end of the walk.
  package init(
    _ model: PlayerModel, items: [ItemFacts?], link: LinkSpec, swipes: [Swipe], end: Duration
  ) {
    (self.model, self.items, self.link, self.swipes, self.end) = (model, items, link, swipes, end)
  }

  /// How far an item had come.
  package enum Stage: Int, Sendable, Hashable, Comparable {
    case nothing, onDisk, opened, decoded, buffered

    package static func < (left: Stage, right: Stage) -> Bool { left.rawValue < right.rawValue }
  }

  /// The time for which an item is the current one.
  package struct Visit: Sendable, Hashable {
    package let swipe: Swipe
    /// What there was of the item at the end of the drag.
    package let found: Stage
    package var leftAt = Duration.zero
    /// The times at which the first and the second frame were on show; nil if the item was left before.
    package var shownAt: Duration?
    package var secondAt: Duration?
    /// The time at which everything had come that the first frame needs.
    package var mediaReadyAt: Duration?
    package var stalls: [LinkPlayback.Stall] = []
    /// The bytes of the item at the end of the drag, and those that came from there on.
    package var loadedByteCount: Int64 = 0
    package var byteCount: Int64 = 0
    /// The rungs that were played, in order.
    package var rungs: [Played] = []
  }

  /// A rung, and how much of it was played, in seconds.
  package struct Played: Sendable, Hashable {
    package let rung: Int
    package var seconds: Double
  }

  /// The time for which an item has a player.
  package struct Stay: Sendable, Hashable {
    package let item: Int
    package let player: Int
    package let from: Duration
    package var to: Duration
    package var openedAt: Duration?
    package var decodedAt: Duration?
  }

  package struct Outcome: Sendable {
    package var visits: [Visit] = []
    package var stays: [Stay] = []
    /// All requests, and the item of each.
    package var exchanges: [LinkTraffic.Exchange] = []
    package var owners: [Int] = []
    package var fetchedByteCount: Int64 = 0
    /// The bytes of items that were never on show, and of the others what was not played.
    package var unshownByteCount: Int64 = 0
    /// The cache after the walk, and the bytes that were read from it.
    package var disk: StoredMedia?
    package var diskByteCount: Int64 = 0
  }

  package func run() -> Outcome {
    var loop = WalkLoop(self)
    return loop.run()
  }
}

/// The loop of `ModelledWalk`.
private struct WalkLoop {
  /// A player with its item.
  private struct Held {
    let item: Int
    /// The number of the player.
    let number: Int
    let from: Duration
    var player: SegmentPlayer
    var wasShown = false
  }

  /// The beginning of an item on disk.
  private struct Head {
    let rung: Int
    let urls: [URL]
    let isComplete: Bool
  }

  private let walk: ModelledWalk
  private let model: PlayerModel
  private let rules: LinkPlayback.Rules
  private let parcelByteCount: Int
  private var traffic: LinkTraffic
  private var held: [Held] = []
  private var cached: [URL: Int64] = [:]
  private var disk: StoredMedia?
  /// The player that puts the beginning of an item on disk.
  private var head: Held?
  /// The items whose beginnings are on disk, at least in part.
  private var heads: [Int: Head] = [:]
  /// The bytes that these took of the link, and the items that were on show.
  private var (headByteCounts, shownItems) = ([Int: Int64](), Set<Int>())
  private var outcome = ModelledWalk.Outcome()
  private var visit: ModelledWalk.Visit?
  /// The state of the player at the beginning of the visit.
  private var (visitPosition, visitStallCount) = (0.0, 0)
  private var current = -1
  private var direction = 1
  /// The swipe that is next, and whether it has been dragged.
  private var (next, isDragged) = (0, false)
  private var measuredRate: Double?
  /// The neighbours of the current item that have no player yet, the most important first.
  private var waiting: [Neighbour] = []

  private typealias Neighbour = (item: Int, rule: PlayerModel.Preload.Neighbour)

  /// The time that a parcel takes on the link, at its mean rate.
  private static let parcelDuration = Duration.milliseconds(20)

  init(_ walk: ModelledWalk) {
    self.walk = walk
    disk = walk.disk
    model = walk.model
    rules = walk.model.rules
    let parcel = Double(walk.link.bitsPerSecond) / 8 * (Self.parcelDuration / .seconds(1))
    parcelByteCount = Int(min(parcel, Double(1 << 20)))
    traffic = LinkTraffic(
      LinkModel(walk.link, parcelByteCount: parcelByteCount), client: walk.model.client)
  }

  mutating func run() -> ModelledWalk.Outcome {
    var now = Duration.zero
    while now < walk.end {
      while let time = nextSwipe, time <= now { swipe(at: time) }
      repeat { for index in held.indices { advance(index, at: now) } } while beginPreload(at: now)
      loadHeads(at: now)
      traffic.take(by: now)
      var next = min(walk.end, head?.player.nextTime ?? walk.end)
      for index in held.indices { next = min(next, held[index].player.nextTime ?? next) }
      next = max(now, min(next, nextSwipe ?? next))
      now = traffic.takeNews(by: next)
    }
    leave(at: walk.end)
    for index in held.indices.reversed() { drop(index, at: walk.end) }
    endHead(at: walk.end)
    for (item, byteCount) in headByteCounts where !shownItems.contains(item) {
      outcome.unshownByteCount += byteCount
    }
    outcome.disk = disk
    if disk != nil { outcome.diskByteCount = traffic.exchanges.reduce(0) { $0 + Int64($1.localByteCount) } }
    outcome.exchanges = traffic.exchanges
    outcome.fetchedByteCount = traffic.arrivedCount(of: Array(traffic.exchanges.indices))
    return outcome
  }

  // MARK: - Swipes

  private var nextSwipe: Duration? {
    guard walk.swipes.indices.contains(next) else { return nil }
    return isDragged ? walk.swipes[next].settledAt : walk.swipes[next].draggedAt
  }

  private mutating func swipe(at time: Duration) {
    let swipe = walk.swipes[next]
    if isDragged {
      settle(at: time)
    } else {
      drag(swipe)
    }
    let isOver = isDragged || swipe.settledAt == nil
    next += isOver ? 1 : 0
    isDragged = !isOver
  }

  private mutating func drag(_ swipe: ModelledWalk.Swipe) {
    let time = swipe.draggedAt
    leave(at: time)
    if current >= 0, swipe.item != current { direction = swipe.item < current ? -1 : 1 }
    current = swipe.item
    let neighbours = neighbours
    let wanted = Set(neighbours.map(\.item) + [current])
    var stopCost = Duration.zero
    for index in held.indices.reversed() where !wanted.contains(held[index].item) {
      drop(index, at: time)
      stopCost = .milliseconds(model.costs.stopMs)
    }
    for neighbour in neighbours {
      guard let index = held.firstIndex(where: { $0.item == neighbour.item }) else { continue }
      held[index].player.rules.target = neighbour.rule.forwardS
    }
    waiting = neighbours.filter { neighbour in !held.contains { $0.item == neighbour.item } }
    if let item = head?.item, wanted.contains(item) { endHead(at: time) }
    removeFarHeads()
    guard let index = held.firstIndex(where: { $0.item == current }) else {
      let isOnDisk = heads[current]?.isComplete == true
      visit = ModelledWalk.Visit(swipe: swipe, found: isOnDisk ? .onDisk : .nothing)
      (visitPosition, visitStallCount) = (0, 0)
      guard let index = begin(current, stopping: stopCost, at: time) else { return }
      held[index].player.decodesFrom = time
      held[index].player.showsFrom = time
      return
    }
    var player = held[index].player
    let loadedByteCount = traffic.arrivedCount(of: player.exchanges)
    let isDecoded = player.decodedAt.map { $0 <= time } ?? false
    let found: ModelledWalk.Stage =
      isDecoded ? player.isFull ? .buffered : .decoded : player.openedAt == nil ? .nothing : .opened
    visit = ModelledWalk.Visit(swipe: swipe, found: found)
    visit?.loadedByteCount = loadedByteCount
    (visitPosition, visitStallCount) = (player.position, player.stalls.count)
    player.rules.target = rules.target
    player.decodesFrom = player.decodesFrom ?? time
    player.showsFrom = time + .milliseconds(model.costs.swapMs)
    if isDecoded {
      // A player that has its frame is ready to play.
      let reordering = walk.items[current].map(model.reorderDelay) ?? .zero
      let moves = model.preload.firstFrame == .moving
      player.showsFrom = time + .milliseconds(model.costs.swapMs) + (moves ? reordering : .zero)
      player.rules.costs.play = moves ? .zero : reordering
    }
    held[index].player = player
  }

  private mutating func settle(at time: Duration) {
    guard let index = currentIndex else { return }
    held[index].player.playsFrom = time
  }

  /// Ends the visit of the current item.
  private mutating func leave(at time: Duration) {
    guard var visit else { return }
    visit.leftAt = time
    if let index = currentIndex {
      advance(index, at: time)
      let player = held[index].player
      visit.mediaReadyAt = player.mediaReadyAt
      visit.shownAt = player.shownAt.flatMap { $0 <= time ? $0 : nil }
      if let settledAt = visit.swipe.settledAt, let playedAt = player.playedAt, playedAt >= settledAt {
        let frame = Duration.seconds(walk.items[current]?.frameDuration ?? 0)
        let second = playedAt + player.rules.costs.play + frame
        visit.secondAt = second <= time ? second : nil
      }
      if visit.shownAt != nil {
        held[index].wasShown = true
        shownItems.insert(current)
      }
      visit.rungs = Self.played(of: player, from: visitPosition)
      held[index].player.pause(at: time)
      visit.stalls = Array(held[index].player.stalls.dropFirst(visitStallCount))
      if visit.swipe.settledAt != nil {
        visit.byteCount = traffic.arrivedCount(of: player.exchanges) - visit.loadedByteCount
      }
    }
    outcome.visits.append(visit)
    self.visit = nil
  }

  /// The rungs that were played from a position on.
  private static func played(of player: SegmentPlayer, from start: Double) -> [ModelledWalk.Played] {
    var played: [ModelledWalk.Played] = []
    for segment in player.loadedSegments {
      let seconds = min(segment.end, player.position) - max(segment.start, start)
      guard seconds > 0 else { continue }
      if let last = played.last, last.rung == segment.rung {
        played[played.count - 1].seconds += seconds
      } else {
        played.append(ModelledWalk.Played(rung: segment.rung, seconds: seconds))
      }
    }
    return played
  }

  private var currentIndex: Int? { held.firstIndex { $0.item == current } }

  // MARK: - Players

  /// The items that are preloaded beside the current one, the most important first.
  private var neighbours: [Neighbour] {
    model.preload.items.lazy.map { (item: current + $0.offset * direction, rule: $0) }
      .filter { walk.items.indices.contains($0.item) }.prefix(model.preload.players - 1).map { $0 }
  }

  /// Gives an item a player; returns its index. Nil if the item can't be played.
  private mutating func begin(_ item: Int, stopping stopCost: Duration, at now: Duration) -> Int? {
    guard let player = player(for: item, stopping: stopCost, at: now) else { return nil }
    let number = (0...held.count).first { number in !held.contains { $0.number == number } } ?? 0
    held.append(Held(item: item, number: number, from: now, player: player))
    return held.count - 1
  }

  private func player(for item: Int, stopping stopCost: Duration, at now: Duration) -> SegmentPlayer? {
    guard let facts = walk.items[item] else { return nil }
    var rules = rules
    rules.costs.create += stopCost
    rules.costs.play += model.reorderDelay(of: facts)
    if let cost = walk.decodeCost {
      rules.costs.openDecoder = cost.opening
      rules.costs.decode = cost.duration(of: facts.codec, pixelCount: facts.pixelCount)
    }
    if facts.format == .file {
      rules.loadsWholeSegments = false
      rules.firstFrame?.wholeSegment = false
      rules.firstFrame?.ahead = model.start.firstFrame.fileAheadMs / 1000
    }
    rules.cached = knownByteCounts(at: now)
    let rate = model.adaptation?.shared == true ? measuredRate : nil
    var player = SegmentPlayer(
      model.item(facts, measuredRate: rate, from: heads[item]?.rung), rules: rules,
      pieceByteCount: max(parcelByteCount, 8 << 10),
      at: now)
    player.measuredRate = rate
    return player
  }

  /// Begins the preload that is due. Returns false if there is none.
  private mutating func beginPreload(at now: Duration) -> Bool {
    guard !waiting.isEmpty, let current = currentIndex else { return false }
    for (place, neighbour) in waiting.enumerated() {
      if let after = neighbour.rule.after {
        let isReady =
          if after != 0 {
            held.contains { $0.item == self.current + after * direction && $0.player.isFull }
          } else if model.preload.waitsUntil == .buffered {
            held[current].player.isFull
          } else {
            held[current].player.shownAt.map { $0 <= now } ?? false
          }
        guard isReady else { continue }
      }
      waiting.remove(at: place)
      guard let index = begin(neighbour.item, stopping: .zero, at: now) else { return true }
      held[index].player.rules.target = neighbour.rule.forwardS
      held[index].player.decodesFrom = model.preload.decodes ? now : nil
      return true
    }
    return false
  }

  private mutating func advance(_ index: Int, at now: Duration) {
    held[index].player.advance(&traffic, at: now)
    while outcome.owners.count < traffic.exchanges.count { outcome.owners.append(held[index].item) }
    if let rate = held[index].player.measuredRate { measuredRate = rate }
  }

  /// Takes the player from an item.
  private mutating func drop(_ index: Int, at now: Duration) {
    var held = held.remove(at: index)
    held.player.stop(&traffic, at: now)
    outcome.unshownByteCount +=
      held.wasShown
      ? held.player.unplayedByteCount(traffic) : traffic.arrivedCount(of: held.player.exchanges)
    store(held.player, at: now)
    outcome.stays.append(
      ModelledWalk.Stay(
        item: held.item, player: held.number, from: held.from, to: now, openedAt: held.player.openedAt,
        decodedAt: held.player.decodedAt.flatMap { $0 <= now ? $0 : nil }))
  }

  // MARK: - Disk

  /// The bytes of answers that need no request, or only one that asks whether they have changed, by URL.
  private func knownByteCounts(at now: Duration) -> [URL: Int64] {
    guard let disk else { return cached }
    // CacheDataSource of Media3 never asks again.
    let neverAsks = model.preload.disk != nil
    return disk.heads { resource in
      let isKnown = neverAsks || resource.checkedAt >= disk.visitBegan || disk.isFresh(resource, at: now)
      // The answer without a body counts as one byte, which takes a round trip.
      return max(0, resource.headByteCount - (isKnown ? 0 : 1))
    }
  }

  /// Records what a cache keeps of a player's answers. Of a player with a disk stage, that is the beginnings alone.
  private mutating func store(_ player: SegmentPlayer, isHead: Bool = false, at now: Duration) {
    let isWriting = isHead || model.preload.disk == nil && model.cache
    for exchange in player.exchanges.map({ traffic.exchanges[$0] }) {
      let request = exchange.request
      if disk == nil {
        if isWriting, exchange.isComplete { cached[request.url] = .max }
      } else if isWriting, exchange.crossedCount > 0 {
        // A part of a resource, such as an index, is no manifest.
        let isManifest = [.source, .manifest].contains(request.purpose) && request.url.fragment == nil
        disk?.add(
          0..<Int64(exchange.arrivedCount), of: request.url, size: request.byteCount, isManifest: isManifest,
          at: now)
        disk?.confirm(request.url, at: now)
      } else if exchange.localByteCount > 0 {
        disk?.touch(request.url)
      }
    }
  }

  /// Puts beginnings on disk, one after the other, once all preloads are loaded.
  private mutating func loadHeads(at now: Duration) {
    guard let stage = model.preload.disk, disk != nil else { return }
    while true {
      if head == nil {
        guard waiting.isEmpty, held.allSatisfy({ $0.item == current || $0.player.isFull }),
          let item = nextHead(stage), var player = player(for: item, stopping: .zero, at: now)
        else { return }
        player.rules.target = stage.forwardS
        player.rules.loadsWholeSegments = walk.items[item]?.format != .file
        head = Held(item: item, number: 0, from: now, player: player)
      }
      guard var loading = head else { return }
      loading.player.advance(&traffic, at: now)
      while outcome.owners.count < traffic.exchanges.count { outcome.owners.append(loading.item) }
      head = loading
      guard loading.player.isFull else { return }
      endHead(at: now)
    }
  }

  private mutating func endHead(at now: Duration) {
    guard var head = head.take() else { return }
    let isComplete = head.player.isFull
    head.player.stop(&traffic, at: now)
    store(head.player, isHead: true, at: now)
    heads[head.item] = Head(
      rung: head.player.item.firstRung,
      urls: head.player.exchanges.map { traffic.exchanges[$0].request.url }, isComplete: isComplete)
    headByteCounts[head.item, default: 0] += traffic.arrivedCount(of: head.player.exchanges)
  }

  /// The nearest item without a player whose beginning was not put on disk; of two, that in the direction of travel.
  private func nextHead(_ stage: PlayerModel.Preload.Disk) -> Int? {
    guard stage.items > 1 else { return nil }
    for distance in 1...stage.items / 2 {
      for item in [current + distance * direction, current - distance * direction] {
        guard walk.items.indices.contains(item), walk.items[item] != nil, heads[item]?.isComplete != true,
          !held.contains(where: { $0.item == item })
        else { continue }
        return item
      }
    }
    return nil
  }

  private mutating func removeFarHeads() {
    guard let stage = model.preload.disk else { return }
    for (item, head) in heads where abs(item - current) > stage.items / 2 {
      heads[item] = nil
      for url in head.urls { disk?.remove(url) }
    }
  }
}
