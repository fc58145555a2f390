internal import ReelCore
internal import ReelPlayback
internal import ReelPool

/// The state of a `ChunkWalk`, from event to event.
struct ChunkSimulation {
  private(set) var report: WalkReport

  /// What the viewer does.
  private enum Action {
    case drag(to: Int, SwipeKind, isPassing: Bool)
    case settle(on: Int, SwipeKind)
    case end
  }

  /// The look at the current item.
  private struct Look {
    /// Nil before its swipe has settled.
    var record: SwipeRecord?
    var firstShownAt: Duration?
    var secondShownAt: Duration?
    var stalledAt: Duration?
    var fetchedAtSettling: Int64 = 0
    var rungs: [ShownRung] = []
  }

  private let feed: Feed
  private let ladders: [ChunkLadder?]
  private let errors: [String?]
  private let configuration: PoolConfiguration
  private let policy: any PreloadPolicy
  private let slotCount: Int
  private let link: LinkSpec
  private let actions: [(time: Duration, action: Action)]
  /// The media ahead of an item that is played without bounds.
  private let preferredBuffer = PlayerItem.Preferences().forwardBufferDuration

  private var now = Duration.zero
  private var bottleneck: LinkBottleneck
  private var random: SplitMix64
  private var meter = ThroughputMeter()
  private var costs = StageCosts()
  private var history = ViewingHistory()
  private var request: ChunkRequest?
  /// By item.
  private var loads: [ChunkLoad?]
  /// The items that have a slot.
  private var held: [Int] = []
  private var current = 0
  private var direction = 1
  private var isSettled = false
  private var settledAt = Duration.zero
  private var look = Look()
  /// When the policy is to be asked though nothing has come.
  private var reviewAt: Duration?
  private var failedIndices: Set<Int> = []

  init(_ walk: ChunkWalk) {
    feed = walk.feed
    ladders = walk.feed.items.indices.map { walk.chunks[$0].flatMap(ChunkLadder.init) }
    errors = walk.feed.items.indices.map { index in
      guard walk.chunks.items.indices.contains(index) else { return "the item was not measured" }
      switch walk.chunks.items[index] {
      case .success(let chunks): return ChunkLadder(chunks) == nil ? "the item has no media" : nil
      case .failure(let error): return error.description
      }
    }
    configuration = walk.configuration
    policy = walk.configuration.policy
    slotCount = max(walk.configuration.slotCount, 1)
    link = walk.link
    actions = Self.actions(of: walk.plan)
    bottleneck = LinkBottleneck(walk.link)
    random = SplitMix64(seed: walk.link.seed)
    loads = Array(repeating: nil, count: walk.feed.items.count)
    report = WalkReport(label: walk.label, settings: walk.settings)
  }

  mutating func run() {
    guard !loads.isEmpty else { return }
    var next = 0
    while next < actions.count {
      let action = actions[next]
      let arrival = request?.arrival
      let other = [arrival, request == nil ? reviewAt : nil].compactMap(\.self).min()
      if let other, other <= action.time {
        play(until: other)
        if arrival == other { arrive() }
        plan()
      } else {
        play(until: action.time)
        next += 1
        perform(action.action)
      }
    }
  }

  // MARK: - The viewer

  private static func actions(of plan: WalkPlan) -> [(time: Duration, action: Action)] {
    var time = Duration.zero
    var actions: [(time: Duration, action: Action)] = [(time, .settle(on: plan.start, .start))]
    for step in plan.steps {
      time += step.dwell
      for (number, index) in step.path.enumerated() {
        if number > 0 { time += WalkPlan.burstInterval }
        let isPassing = index != step.target || number + 1 < step.path.count
        actions.append((time, .drag(to: index, step.kind, isPassing: isPassing)))
      }
      time += WalkPlan.settleTime
      actions.append((time, .settle(on: step.target, step.kind)))
    }
    return actions + [(time + plan.closingDwell, .end)]
  }

  private mutating func perform(_ action: Action) {
    switch action {
    case .drag(let index, let kind, let isPassing):
      drag(to: index, kind, isPassing: isPassing)
      plan()
    case .settle(let index, let kind):
      settle(on: index, kind)
      plan()
    case .end: end()
    }
  }

  private mutating func drag(to index: Int, _ kind: SwipeKind, isPassing: Bool) {
    leave()
    if index != current {
      // An item that has ended is ready to start over.
      if loads[current]?.isAtEnd == true { loads[current]?.restart() }
      direction = index > current ? 1 : -1
      history.record(
        ViewingHistory.Swipe(
          watchedDuration: isSettled ? now - settledAt : .zero, isForward: direction > 0))
    }
    current = index
    isSettled = false
    look = Look()
    showFirstFrame()
    guard isPassing else { return }
    var record = record(of: index, kind)
    record.isPassing = true
    report.swipes.append(record)
  }

  private mutating func settle(on index: Int, _ kind: SwipeKind) {
    current = index
    isSettled = true
    settledAt = now
    var record = record(of: index, kind)
    record.error = errors[index]
    record.loadedByteCount = loads[index]?.fetchedByteCount ?? 0
    look.fetchedAtSettling = record.loadedByteCount
    look.record = record
    showFirstFrame()
    showSecondFrame()
  }

  private func record(of index: Int, _ kind: SwipeKind) -> SwipeRecord {
    SwipeRecord(
      number: report.swipes.count, time: now, kind: kind, itemIndex: index,
      itemID: feed.items[index].id.description, stage: loads[index]?.stage ?? .none)
  }

  /// Ends the look at the current item.
  private mutating func leave() {
    guard var record = look.record.take() else { return }
    record.watched = now - settledAt
    record.timeToFirstFrame = look.firstShownAt.map { max(.zero, $0 - settledAt) }
    record.timeToSecondFrame = look.secondShownAt.map { max(.zero, $0 - settledAt) }
    endStall(&record)
    record.rungs = look.rungs
    if let load = loads[record.itemIndex] {
      record.byteCount = max(0, load.fetchedByteCount - look.fetchedAtSettling)
      if let rung = load.rungs.max() {
        record.rung = load.ladder.id(of: rung)
        record.rungBitRate = load.ladder.bitRate(of: rung)
      }
    }
    let wait = record.timeToFirstFrame ?? (record.error == nil ? record.watched : .zero)
    if wait > .zero {
      record.waitParts = waitParts(of: record.itemIndex, until: settledAt + wait)
      record.cause = SwipeRecord.cause(of: record.waitParts)
    }
    if let error = record.error { record.noteFailure(error) }
    report.swipes.append(record)
  }

  /// What the wait for the first chunk of the current item was spent on, by the names of `WaitRecorder`.
  private func waitParts(of index: Int, until end: Duration) -> [StageTime] {
    let running = request.flatMap { $0.item == index && $0.chunk == 0 ? $0 : nil }
    let first = loads[index]?.firstRequest ?? running
    let bounds = [first?.began, first?.answered].map { min(max($0 ?? end, settledAt), end) } + [end]
    var parts: [StageTime] = []
    var begin = settledAt
    for (name, bound) in zip(["preparing", "segment answer", "segment transfer"], bounds) {
      // Differences of rounded times add up without a remainder.
      let length =
        (bound - settledAt).wholeMicroseconds - (begin - settledAt).wholeMicroseconds
      if length > 0 { parts.append(StageTime(stage: name, duration: .microseconds(length))) }
      begin = bound
    }
    return parts
  }

  private mutating func end() {
    leave()
    for index in held { release(index) }
    held = []
    if let request {
      // It is not cancelled.
      report.fetchedByteCount += request.byteCount
      report.unshownByteCount += request.byteCount
    }
    report.duration = now
  }

  // MARK: - Playback

  private mutating func play(until time: Duration) {
    defer { now = time }
    guard isSettled, look.secondShownAt != nil, var load = loads[current], time > now else { return }
    let ladder = load.ladder
    let played = load.play(for: time - now) { rung, duration in
      let (id, bitRate) = (ladder.id(of: rung), ladder.bitRate(of: rung))
      if let last = look.rungs.last, last.rung == id, last.bitRate == bitRate {
        look.rungs[look.rungs.count - 1].duration += duration
      } else {
        look.rungs.append(ShownRung(rung: id, bitRate: bitRate, duration: duration))
      }
    }
    if played < time - now, !load.isAtEnd, look.stalledAt == nil { look.stalledAt = now + played }
    loads[current] = load
  }

  private mutating func showFirstFrame() {
    guard look.firstShownAt == nil, loads[current]?.hasFrame == true else { return }
    look.firstShownAt = now
    loads[current]?.wasShown = true
  }

  private mutating func showSecondFrame() {
    guard isSettled, look.secondShownAt == nil, loads[current]?.canPlay == true else { return }
    look.secondShownAt = now
  }

  private mutating func endStall(_ record: inout SwipeRecord) {
    guard let began = look.stalledAt.take() else { return }
    record.stallCount += 1
    record.stallDuration += now - began
    record.longestStall = max(record.longestStall, now - began)
  }

  // MARK: - Loading

  /// The chunk that was asked for is there.
  private mutating func arrive() {
    guard let request = request.take() else { return }
    report.fetchedByteCount += request.byteCount
    var receiver = ThroughputMeter.Receiver()
    meter.begin(&receiver, at: request.answered)
    meter.end(&receiver, byteCount: Int(clamping: request.byteCount), at: request.arrival)
    meter.addRoundTrips(1, in: request.answered - request.began)
    guard var load = loads[request.item], load.rungs.count == request.chunk else {
      // Its item has lost its slot.
      report.unshownByteCount += request.byteCount
      return
    }
    load.rungs.append(request.rung)
    load.fetchedByteCount += request.byteCount
    load.adaptation?.noteTransfer(
      TransferSample(
        byteCount: request.byteCount, duration: request.arrival - request.began,
        latency: request.answered - request.began, endedAt: now))
    if load.rungs.count == 1 {
      load.firstRequest = request
      load.stage = .firstFrame
      record(.firstFrame, of: load)
    }
    if load.isLoadedToEnd, load.stage < .buffered {
      load.stage = .buffered
      record(.buffered, of: load)
    }
    loads[request.item] = load
    guard request.item == current else { return }
    showFirstFrame()
    showSecondFrame()
    if var record = look.record {
      endStall(&record)
      look.record = record
    }
  }

  private mutating func record(_ stage: PreloadStage, of load: ChunkLoad) {
    costs.record(
      StageCost(
        memoryByteCount: Int(clamping: load.aheadByteCount),
        networkByteCount: Int(clamping: load.fetchedByteCount), duration: now - load.began),
      of: stage)
  }

  private mutating func release(_ index: Int) {
    guard let load = loads[index] else { return }
    report.unshownByteCount += load.unshownByteCount
    loads[index] = nil
  }

  /// Asks the policy, gives out the slots, and asks for the next chunk if the link is free.
  private mutating func plan() {
    let situation = situation
    let plan = policy.plan(in: situation)
    let window = PoolWindow(plan, in: situation)
    assign(window)
    reviewAt = plan.reviewInterval.map { now + max($0, PreloadPlan.minimumReviewInterval) }
    var chosen: (index: Int, target: PreloadTarget)?
    for entry in window.entries {
      guard let load = loads[entry.index] else { continue }
      let target = entry.distance == 0 ? Self.currentTarget(plan.current, preferredBuffer) : entry.target
      if wants(load, target) {
        if chosen == nil { chosen = (entry.index, target) }
      } else if load.stage == .firstFrame, target.stage == .buffered {
        loads[entry.index]?.stage = .buffered
        record(.buffered, of: load)
      }
    }
    guard request == nil else { return }
    if let chosen {
      ask(for: chosen.index, chosen.target)
    } else {
      scheduleRefill(Self.currentTarget(plan.current, preferredBuffer).bufferDuration)
    }
  }

  /// The bounds of the current item as a target.
  private static func currentTarget(_ bounds: LoadingBounds, _ preferred: Duration) -> PreloadTarget {
    PreloadTarget(
      stage: .buffered, bufferDuration: bounds.forwardBufferDuration ?? preferred,
      peakBitRate: bounds.peakBitRate, startPeakBitRate: bounds.startPeakBitRate)
  }

  private var situation: PoolSituation {
    var situation = PoolSituation(
      direction: direction, slotCount: slotCount, itemCount: ladders.count, currentIndex: current)
    situation.watchedDuration = isSettled ? now - settledAt : .zero
    situation.history = history
    situation.costs = costs
    situation.currentByteCount = costs.memoryByteCount(of: .buffered) ?? 0
    situation.throughput = meter.estimate
    let reach = slotCount - 1
    let near = max(current - reach, 0)...min(current + reach, ladders.count - 1)
    situation.items = near.map { item(at: $0) }
    return situation
  }

  private func item(at index: Int) -> PoolSituation.Item {
    let feedItem = feed.items[index]
    var item = PoolSituation.Item(index: index, distance: index - current)
    item.feedItem = feedItem
    item.retention = feedItem.retention?.shares
    item.hasFailed = failedIndices.contains(index)
    guard let ladder = ladders[index] else {
      item.duration = feedItem.duration
      return item
    }
    item.duration = feedItem.duration ?? ladder.duration
    item.rungs = ladder.itemRungs
    if !ladder.itemRungs.isEmpty { item.segmentDuration = ladder.ends[0] }
    guard let load = loads[index] else { return item }
    item.stage = load.stage
    item.position = load.position
    item.bufferedDuration = load.ahead
    item.fetchedByteCount = load.fetchedByteCount
    item.rung = load.shownRung.flatMap { ladder.id(of: $0) }
    item.isLoadedToEnd = load.isLoadedToEnd
    return item
  }

  /// Items that the window does not have lose what they have loaded; its others get a slot.
  private mutating func assign(_ window: PoolWindow) {
    let kept = held.filter { index in
      guard let entry = window.entries.first(where: { $0.index == index }) else { return false }
      // A lower target gives the memory back.
      return entry.distance == 0 || entry.target.stage >= .firstFrame || loads[index]?.hasFrame != true
    }
    for index in held where !kept.contains(index) { release(index) }
    held = kept
    for entry in window.entries where !held.contains(entry.index) {
      held.append(entry.index)
      if let ladder = ladders[entry.index] {
        loads[entry.index] = ChunkLoad(ladder, began: now)
      } else if failedIndices.insert(entry.index).inserted {
        report.failedItems.append(
          WalkReport.FailedItem(
            index: entry.index, id: feed.items[entry.index].id.description, error: errors[entry.index] ?? ""))
      }
    }
  }

  private func wants(_ load: ChunkLoad, _ target: PreloadTarget) -> Bool {
    guard !load.isLoadedToEnd else { return false }
    switch target.stage {
    case .none, .manifest, .initialization: return false
    case .firstFrame: return !load.hasFrame
    case .buffered:
      if !load.hasFrame { return true }
      if let limit = target.byteLimit, load.aheadByteCount >= Int64(limit) { return false }
      return load.ahead < target.bufferDuration
    }
  }

  /// Asks for the next chunk of an item.
  private mutating func ask(for index: Int, _ target: PreloadTarget) {
    guard var load = loads[index] else { return }
    let chunk = load.rungs.count
    let rung = chooseRung(&load, index, target)
    loads[index] = load
    let byteCount = load.ladder.byteCount(of: chunk, rung: rung)
    let answered = now + link.roundTripTime + nextJitter()
    request = ChunkRequest(
      item: index, chunk: chunk, rung: rung, byteCount: byteCount, began: now, answered: answered,
      arrival: bottleneck.put(Int(clamping: byteCount), at: answered))
  }

  /// Chooses as `RungController` does.
  private func chooseRung(_ load: inout ChunkLoad, _ index: Int, _ target: PreloadTarget) -> Int {
    let player = configuration.player
    var adaptation = load.adaptation ?? makeAdaptation()
    var cap = [player.adaptsBitRate ? nil : player.loading.bandwidthCap, target.peakBitRate]
    var rung = load.rung
    if rung == nil {
      let start =
        target.startPeakBitRate
        ?? configuration.firstRung.peakBitRate(
          isAwaited: index == current, throughput: meter.estimate, start: player.thresholds.start)
      load.hasStartedUnderCap = start != nil
      cap.append(start)
    } else if load.hasStartedUnderCap {
      load.hasStartedUnderCap = false
      rung = nil
    }
    let isPlayed = index == current && isSettled
    let state = AdaptationState(
      current: rung, buffered: load.ahead, bufferTarget: isPlayed ? target.bufferDuration : preferredBuffer,
      segmentDuration: load.hasFrame ? load.ladder.duration(of: load.rungs.count - 1) : nil,
      isRebuffering: isPlayed && look.stalledAt != nil, now: now,
      bandwidthCap: cap.compactMap(\.self).min())
    let chosen = adaptation.choose(among: load.ladder.candidates, state).index
    load.adaptation = adaptation
    load.rung = chosen
    return chosen
  }

  private func makeAdaptation() -> any RungAdaptation {
    guard configuration.player.adaptsBitRate else { return FixedRung() }
    let shared = configuration.sharesThroughput ? meter.estimate?.mean : nil
    return AdaptiveRungs(
      options: AdaptiveRungs.Options(
        initialEstimate: (shared ?? configuration.player.initialBandwidth).map { Int($0) }))
  }

  private mutating func nextJitter() -> Duration {
    guard link.jitter > .zero else { return .zero }
    let nanoseconds = UInt64(clamping: link.jitter.wholeMicroseconds) * 1000
    return .nanoseconds(Int64(random.next().multipliedFullWidth(by: nanoseconds + 1).high))
  }

  /// The current item wants more when it has played so much that less than `bound` is left.
  private mutating func scheduleRefill(_ bound: Duration) {
    guard isSettled, let load = loads[current], load.canPlay, !load.isLoadedToEnd else { return }
    // A policy that is asked again anyway says by a bound at what is loaded that it wants no more.
    guard load.ahead > bound || reviewAt == nil else { return }
    let time = now + max(load.ahead - bound, .zero) + .milliseconds(1)
    reviewAt = min(reviewAt ?? time, time)
  }
}
