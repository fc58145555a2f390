internal import Foundation
package import ReelCore
package import ReelModels
internal import ReelPlayback
internal import ReelPool
package import ReelSimulation

/// A walk with the players of a model, as the same report that a walk on Reel's pool gives.
///
/// The events of the walk go to the trace in the order of their times.
package struct ModelledReplay: Sendable {
  private let walk: Walk
  private let model: PlayerModel
  private let link: LinkSpec
  private let items: ModelledItems
  private let decodeCost: DecodeCost?
  /// The visits; nil for one without a cache.
  package var visits: VisitPlan?

  /// - Parameters:
  ///   - walk: The walk; the configuration of its pool has no effect.
  ///   - link: The link; nil for transfers without delay.
  ///   - items: What was read of the items that the walk can reach.
  ///   - decodeCost: The costs of a device.
  package init(
    _ walk: Walk, model: PlayerModel, link: LinkSpec?, items: ModelledItems, decodeCost: DecodeCost? = nil
  ) throws(ReelError) {
    self.walk = walk
    self.model = model
    if let link { self.link = link } else { self.link = try LinkSpec(parsing: "10Gbit/0ms") }
    self.items = items
    self.decodeCost = decodeCost
  }

  /// With several visits, or a cache, this is the report of the first visit, with the figures of all.
  package func report() -> WalkReport {
    guard let visits else { return visit(walk, on: nil).report }
    var walk = walk
    walk.settings.visits = visits
    let empty = visits.byteLimit > 0 && model.stores ? StoredMedia(byteLimit: visits.byteLimit) : nil
    var (reports, disk) = ([WalkReport](), empty)
    for _ in 0..<visits.count {
      let (report, left) = visit(walk, on: disk)
      reports.append(report)
      // The events of the walk are those of the first visit.
      walk.trace = nil
      disk = model.preload.disk?.kept == false ? empty : left
      disk?.endVisit(after: report.duration + visits.between)
    }
    var first = reports[0]
    first.visits = ReturnVisits(reports, without: empty == nil ? nil : visit(walk, on: nil).report)
    return first
  }

  // MARK: - Private

  private func visit(_ walk: Walk, on disk: StoredMedia?) -> (report: WalkReport, disk: StoredMedia?) {
    let (swipes, kinds, end) = swipes
    let items = walk.feed.items.map { item -> ItemFacts? in
      guard let facts = try? self.items[item]?.get(), model.start.formats.contains(facts.format) else {
        return nil
      }
      return facts
    }
    var modelled = ModelledWalk(model, items: items, link: link, swipes: swipes, end: end)
    modelled.decodeCost = decodeCost
    modelled.disk = disk
    let outcome = modelled.run()
    var settings = walk.settings
    (settings.isVirtual, settings.player) = (true, model.title)
    var report = WalkReport(label: walk.label, settings: settings)
    report.duration = end
    report.fetchedByteCount = outcome.fetchedByteCount
    report.unshownByteCount = outcome.unshownByteCount
    report.traffic = WalkReport.Traffic(
      diskByteCount: outcome.diskByteCount, networkByteCount: outcome.fetchedByteCount,
      storedByteCount: outcome.disk?.byteCount ?? 0)
    for (visit, kind) in zip(outcome.visits, kinds) {
      report.swipes.append(record(of: visit, kind, number: report.swipes.count, items[visit.swipe.item]))
    }
    addWaits(to: &report, outcome, walk.trace)
    report.recordFailures(failures(of: outcome))
    return (report, outcome.disk)
  }

  private var swipes: (swipes: [ModelledWalk.Swipe], kinds: [SwipeKind], end: Duration) {
    var swipes = [ModelledWalk.Swipe(to: walk.plan.start, draggedAt: .zero, settledAt: .zero)]
    var (kinds, time) = ([SwipeKind.start], Duration.zero)
    for step in walk.plan.steps {
      time += step.dwell
      for (number, index) in step.path.enumerated() {
        if number > 0 { time += WalkPlan.burstInterval }
        let isLast = number + 1 == step.path.count
        swipes.append(
          .init(to: index, draggedAt: time, settledAt: isLast ? time + walk.plan.settle : nil))
        kinds.append(step.kind)
      }
      time += walk.plan.settle
    }
    return (swipes, kinds, time + walk.plan.closingDwell)
  }

  private func id(_ index: Int) -> FeedItem.ID { walk.feed.items[index].id }

  private func record(
    of visit: ModelledWalk.Visit, _ kind: SwipeKind, number: Int, _ facts: ItemFacts?
  ) -> SwipeRecord {
    let time = visit.swipe.settledAt ?? visit.swipe.draggedAt
    var record = SwipeRecord(
      number: number, time: time, kind: kind, itemIndex: visit.swipe.item,
      itemID: id(visit.swipe.item).description, stage: visit.found.stage)
    record.isPassing = visit.swipe.settledAt == nil
    guard !record.isPassing else { return record }
    record.watched = visit.leftAt - time
    record.timeToFirstFrame = visit.shownAt.map { max(.zero, $0 - time) }
    record.timeToSecondFrame = visit.secondAt.map { max(.zero, $0 - time) }
    record.stallCount = visit.stalls.count
    record.stallDuration = visit.stalls.reduce(.zero) { $0 + $1.duration }
    record.longestStall = visit.stalls.map(\.duration).max() ?? .zero
    record.loadedByteCount = visit.loadedByteCount
    record.byteCount = visit.byteCount
    guard let facts, facts.format != .file else { return record }
    record.rungs = visit.rungs.map { played in
      ShownRung(
        rung: facts.video[played.rung].id, bitRate: facts.video[played.rung].bitsPerSecond,
        duration: .seconds(played.seconds))
    }
    let highest = record.rungs.max { ($0.bitRate ?? 0) < ($1.bitRate ?? 0) }
    (record.rung, record.rungBitRate) = (highest?.rung, highest?.bitRate)
    return record
  }

  private func failures(of outcome: ModelledWalk.Outcome) -> [WalkReport.FailedItem] {
    var failures: [WalkReport.FailedItem] = []
    for index in Set(outcome.visits.map(\.swipe.item) + outcome.stays.map(\.item)).sorted() {
      let error: ReelError? =
        switch items[walk.feed.items[index]] {
        case .failure(let error): error
        case .success(let facts): model.refusal(of: facts.format).map { ReelError(.unsupported, $0) }
        case nil: nil
        }
      guard let error else { continue }
      failures.append(.init(index: index, id: id(index).description, error: error.description))
    }
    return failures
  }

  // MARK: Events

  /// Passes the events of a walk to the trace, and adds to each record what it waited for.
  private func addWaits(
    to report: inout WalkReport, _ outcome: ModelledWalk.Outcome, _ trace: WalkTrace?
  ) {
    let waits = WaitRecorder()
    let trace = (trace ?? WalkTrace(consumers: [])).appending { waits.record($0) }
    trace.begin(at: .zero)
    var events: [(time: Duration, action: (inout WalkReport) -> Void)] = []
    func add(_ time: Duration?, _ action: @escaping (inout WalkReport) -> Void) {
      if let time { events.append((time, action)) }
    }
    for stay in outcome.stays {
      let item = id(stay.item)
      add(stay.from) { _ in trace.record(.assigned, item, at: stay.from, slot: stay.player) }
      for (time, stage) in [(stay.openedAt, PreloadStage.manifest), (stay.decodedAt, .firstFrame)] {
        add(time) { _ in trace.record(.reached, item, at: time, slot: stay.player, stage: stage) }
      }
      add(stay.to) { _ in trace.record(.evicted, item, at: stay.to, slot: stay.player) }
    }
    for (number, exchange) in outcome.exchanges.enumerated() {
      let item = id(outcome.owners[number])
      let request = FetchRequest(url: exchange.request.url, purpose: exchange.request.purpose)
      func record(_ kind: WalkEvent.Kind, _ time: Duration?, _ bytes: Int64? = nil, _ detail: String? = nil) {
        guard let time else { return }
        add(time) { _ in
          trace.record(kind, request, number: number + 1, of: item, at: time, bytes: bytes, detail: detail)
        }
      }
      record(.request, exchange.sentAt)
      record(.response, exchange.answeredAt)
      record(
        .received, exchange.endedAt, Int64(exchange.arrivedCount), exchange.isComplete ? nil : "cancelled")
    }
    let decode = model.rules.costs.openDecoder + model.rules.costs.decode
    for (place, visit) in outcome.visits.enumerated() {
      let item = id(visit.swipe.item)
      if place > 0 {
        add(visit.swipe.draggedAt) { _ in trace.record(.swipe, item, at: visit.swipe.draggedAt) }
      }
      add(visit.swipe.settledAt) { _ in
        trace.record(.settled, item, at: visit.swipe.settledAt, stage: visit.found.stage)
        waits.settle(on: item, at: visit.swipe.settledAt ?? .zero)
      }
      for time in [visit.shownAt, visit.secondAt] {
        add(time) { _ in trace.record(.shown, item, at: time) }
      }
      for stall in visit.stalls {
        add(stall.time) { _ in trace.record(.stalled, item, at: stall.time) }
        add(stall.time + stall.duration) { _ in trace.record(.resumed, item, at: stall.time + stall.duration)
        }
      }
      guard visit.swipe.settledAt != nil else { continue }
      // Before the swipe away from it.
      add(visit.leftAt - .nanoseconds(1)) { report in
        let record = report.swipes[place]
        let wait = record.timeToFirstFrame ?? record.watched
        guard wait > .zero else { return }
        report.swipes[place].waitParts = waits.parts(
          of: wait, decode: record.timeToFirstFrame == nil ? .zero : decode)
        report.swipes[place].cause = SwipeRecord.cause(of: report.swipes[place].waitParts)
      }
    }
    for event in events.enumerated().sorted(by: {
      ($0.element.time, $0.offset) < ($1.element.time, $1.offset)
    }) {
      event.element.action(&report)
    }
  }
}

/// What was read of items, for walks of modelled players.
package struct ModelledItems: Sendable {
  private var facts: [FeedItem.ID: Result<ItemFacts, ReelError>] = [:]

  /// The number of items that are read at once, and the longest part of an item that is read, in seconds.
  private static let concurrency = 4
  static let reachLimit = 600.0

  package init() {}

  subscript(item: FeedItem) -> Result<ItemFacts, ReelError>? { facts[item.id] }

  /// Reads the items that walks of one feed show or preload. One that can't be read has failed for the players.
  ///
  /// - Throws: `CancellationError` if the task is cancelled.
  package mutating func read(_ walks: [(walk: Walk, model: PlayerModel)], with reader: ItemReader)
    async throws
  {
    guard let feed = walks.first?.walk.feed else { return }
    let reach = walks.map { Self.reach(of: $0.walk.plan, by: $0.model) }.max() ?? 0
    let indices = Set(walks.flatMap { Self.indices(of: $0.walk.plan, by: $0.model) }).sorted()
    var next = indices.filter { facts[feed.items[$0].id] == nil }.makeIterator()
    try await SideBySide.run(Self.concurrency, next: { next.next() }) { index in
      let item = feed.items[index]
      return try await reader.facts(of: item.source, headers: item.headers, reach: reach)
    } ended: { index, result in
      switch result {
      case .success(let found): facts[feed.items[index].id] = .success(found)
      case .failure(let error as ReelError): facts[feed.items[index].id] = .failure(error)
      case .failure(let error): throw error
      }
    }
  }

  private static func indices(of plan: WalkPlan, by model: PlayerModel) -> Set<Int> {
    let offsets = model.preload.items.prefix(model.preload.players - 1).flatMap { [$0.offset, -$0.offset] }
    let shown = [plan.start] + plan.steps.flatMap(\.path)
    return Set(shown.flatMap { index in [index] + offsets.map { index + $0 } })
      .filter { (0..<plan.itemCount).contains($0) }
  }

  /// The media of an item that a walk can reach, in seconds.
  private static func reach(of plan: WalkPlan, by model: PlayerModel) -> Double {
    let longest = max(plan.steps.map(\.dwell).max() ?? .zero, plan.closingDwell) + plan.settle
    let forward = max(model.buffer.forwardS, model.preload.items.map(\.forwardS).max() ?? 0)
    return min(longest / .seconds(1) + forward, reachLimit)
  }
}

extension ModelledWalk.Stage {
  fileprivate var stage: PreloadStage {
    switch self {
    case .nothing: .notLoaded
    case .onDisk: .onDisk
    case .opened: .manifest
    case .decoded: .firstFrame
    case .buffered: .buffered
    }
  }
}
