internal import ReelCore
internal import ReelFFmpeg
internal import ReelPlayback
internal import ReelPool
internal import ReelReading
internal import ReelSources

/// Creates a report from the events of a pool during a walk through a feed.
final class WalkRecorder: FrameOutput {
  fileprivate struct Found {
    var stage = PreloadStage.notLoaded
    var byteCount: Int64 = 0
  }

  fileprivate struct Tally {
    var began = Duration.zero
    var swipes: [SwipeRecord] = []
    /// The current swipe; nil between leaving an item and settling on the next.
    var current: SwipeRecord?
    var currentID: FeedItem.ID?
    /// The time at which the current swipe settled.
    var settledAt = Duration.zero
    /// What there was of the item when the drag to it ended.
    var found = Found()
    var stalledAt: Duration?
    /// The item on the surface, and the number of its frames there since the swipe to it began.
    var surfaceID: FeedItem.ID?
    var firstShownAt: Duration?
    var secondShownAt: Duration?
    var frameCount = 0
    var rungs: [ShownRung] = []
    /// The time of the last frame on the item's timeline.
    var lastTime: MediaTime?
    var swipeID: FeedItem.ID?
    /// The items that were on the surface since they were loaded or rewound.
    var shownIDs: Set<FeedItem.ID> = []
    /// The bytes fetched and the frames shown of rewound items until then.
    var rewound: [FeedItem.ID: (byteCount: Int64, frameCount: Int)] = [:]
    var fetchedByteCount: Int64 = 0
    var unshownByteCount: Int64 = 0
    var decodedFrameCount = 0
    var unshownFrameCount = 0
    var slotHighWater: [Int] = []
    var poolHighWater = 0
    var failed: [WalkReport.FailedItem] = []
    /// The items that were last loaded without a first frame.
    var unopened: Set<FeedItem.ID> = []
    var drawn: Set<FeedItem.ID> = []
  }

  let isExternal = false
  private let feed: Feed
  private let pool: PlayerPool
  private let clock: any MonotonicClock
  private let trace: WalkTrace
  private let waits: WaitRecorder
  private let frames: (@Sendable (FeedItem, VideoFrame) -> Void)?
  private let state = Locked(Tally())

  init(
    _ feed: Feed, pool: PlayerPool, clock: any MonotonicClock, trace: WalkTrace, waits: WaitRecorder,
    frames: (@Sendable (FeedItem, VideoFrame) -> Void)?
  ) {
    self.feed = feed
    self.pool = pool
    self.clock = clock
    self.trace = trace
    self.waits = waits
    self.frames = frames
  }

  func begin() throws {
    let now = clock.now
    state.withLock { $0.began = now }
    trace.begin(at: now)
    pool.setObserver { [weak self] in self?.record($0) }
    pool.setAccountant(
      PoolAccountant(
        decoded: { [weak self] id, count in self?.trace.record(.decoded, id, at: self?.now, count: count) },
        departed: { [weak self] id, departure in self?.record(departure, of: id) },
        rewound: { [weak self] id, departure in self?.recordRewind(departure, of: id) }))
    try pool.setSurface(self)
  }

  // MARK: The walk

  /// Records the end of a drag that leads to an item.
  func drags(to index: Int, kind: SwipeKind, isPassing: Bool) {
    leave()
    let now = clock.now
    let id = feed.items[index].id
    trace.record(.swipe, id, at: now, detail: kind.rawValue)
    let found = found(of: id)
    state.withLock { state in
      state.beginSwipe(to: id, found)
      guard isPassing else { return }
      var record = SwipeRecord(
        number: state.swipes.count, time: now - state.began, kind: kind, itemIndex: index,
        itemID: id.description, stage: found.stage)
      record.isPassing = true
      state.swipes.append(record)
    }
  }

  /// Records that the swipe settles on an item now.
  func settles(_ index: Int, kind: SwipeKind) {
    let now = clock.now
    let id = feed.items[index].id
    let status = pool.slotReadiness.first { $0.item == id }?.status
    let foundNow = found(of: id)
    let stage = state.withLock { state in
      // The walk begins without a drag.
      if state.swipeID != id { state.beginSwipe(to: id, foundNow) }
      var record = SwipeRecord(
        number: state.swipes.count, time: now - state.began, kind: kind, itemIndex: index,
        itemID: id.description, stage: state.found.stage)
      record.loadedByteCount = state.found.byteCount
      // The item has failed before the swipe.
      if case .failed(let error)? = status { record.error = error.description }
      state.current = record
      state.currentID = id
      state.settledAt = now
      state.stalledAt = nil
      return record.stage
    }
    trace.record(.settled, id, at: now, stage: stage)
    waits.settle(on: id, at: trace.time(of: now))
    sampleMemory()
  }

  /// Records that the item is left.
  func leave() {
    guard let id = state.withLock({ $0.current == nil ? nil : $0.currentID }) else { return }
    let now = clock.now
    let fetched = pool.fetchedByteCount(of: id)
    let startup = pool.startup(of: id)
    let rung = pool.accessLog(of: id).max { ($0.indicatedBitRate ?? 0) < ($1.indicatedBitRate ?? 0) }
    let left = state.withLock { state -> SwipeRecord? in
      guard var record = state.current.take() else { return nil }
      record.watched = now - state.settledAt
      record.timeToFirstFrame = state.firstShownAt.map { max(.zero, $0 - state.settledAt) }
      record.timeToSecondFrame = state.secondShownAt.map { max(.zero, $0 - state.settledAt) }
      if let began = state.stalledAt { record.record(stall: now - began) }
      record.byteCount = max(0, fetched - record.loadedByteCount)
      record.rungs = state.rungs
      return record
    }
    guard var record = left else { return }
    if let startup {
      record.stageTimes = StartupReport.Stage.allCases.compactMap { stage in
        let duration = startup[stage].duration
        return duration > .zero ? StageTime(stage: stage.rawValue, duration: duration) : nil
      }
    }
    record.rung = rung?.rung
    record.rungBitRate = rung?.indicatedBitRate
    let wait = record.timeToFirstFrame ?? (record.error == nil ? record.watched : .zero)
    if wait > .zero {
      let decode = record.timeToFirstFrame == nil ? .zero : startup?[.decode].duration ?? .zero
      record.waitParts = waits.parts(of: wait, decode: decode)
      record.cause = SwipeRecord.cause(of: record.waitParts)
    }
    let swipe = record
    state.withLock { $0.swipes.append(swipe) }
    sampleMemory()
  }

  /// Records the memory of the slots.
  func sampleMemory() {
    let entries = pool.memory.entries.filter { $0.slot != nil }
    let bytes = entries.map(\.account.byteCount)
    trace.record(.memory, at: clock.now) { $0.slotByteCounts = bytes }
    state.withLock { state in
      if state.slotHighWater.count < bytes.count {
        state.slotHighWater += Array(repeating: 0, count: bytes.count - state.slotHighWater.count)
      }
      for (slot, count) in bytes.enumerated() {
        state.slotHighWater[slot] = max(state.slotHighWater[slot], count)
      }
      state.poolHighWater = max(state.poolHighWater, bytes.reduce(0, +))
    }
  }

  func report(label: String, settings: WalkSettings) -> WalkReport {
    let now = clock.now
    var report = WalkReport(label: label, settings: settings)
    state.withLock { state in
      report.swipes = state.swipes
      report.duration = now - state.began
      report.fetchedByteCount = state.fetchedByteCount
      report.unshownByteCount = state.unshownByteCount
      report.decodedFrameCount = state.decodedFrameCount
      report.unshownFrameCount = state.unshownFrameCount
      report.slotHighWaterByteCounts = state.slotHighWater
      report.poolHighWaterByteCount = state.poolHighWater
      report.recordFailures(state.failed)
    }
    return report
  }

  /// The indices of the items that were last loaded without a first frame, and did not fail.
  var unopenedIndices: [Int] {
    state.withLock { state in
      let failed = Set(state.failed.map(\.index))
      return state.unopened.compactMap { feed.index(of: $0) }.filter { !failed.contains($0) }.sorted()
    }
  }

  // MARK: FrameOutput

  func show(_ frame: VideoFrame) throws {
    // An item's poster is not a frame of its video.
    guard frame.stream.videoCodec != nil else { return }
    let now = clock.now
    let (rung, time, length) = (frame.rung, frame.time, frame.displayTime.duration)
    let (id, isFirst) = state.withLock { state -> (FeedItem.ID?, Bool) in
      guard let id = state.surfaceID, id == state.swipeID else { return (state.surfaceID, false) }
      state.frameCount += 1
      if state.frameCount == 1 { state.firstShownAt = now }
      if state.frameCount == 2 { state.secondShownAt = now }
      // The frame at which the item had stopped, before it starts over.
      if state.frameCount == 2, let last = state.lastTime, time < last { state.rungs = [] }
      state.lastTime = time
      state.recordRung(rung?.id, bitRate: rung?.bitRate, for: length)
      state.shownIDs.insert(id)
      return (id, state.drawn.insert(id).inserted)
    }
    guard let id else { return }
    trace.record(.shown, id, at: now, seconds: frame.time.seconds)
    if isFirst, let item = feed.items.first(where: { $0.id == id }) { frames?(item, frame) }
  }

  func finish() throws {}

  // MARK: - Private

  private var now: Duration { clock.now }

  private func found(of id: FeedItem.ID) -> Found {
    let stage = pool.slotReadiness.first { $0.item == id }?.stage
    return Found(
      stage: stage ?? (pool.isOnDisk(id) ? .onDisk : .notLoaded), byteCount: pool.fetchedByteCount(of: id))
  }

  private func record(_ event: PoolEvent) {
    let now = clock.now
    switch event {
    case .surfaceAttached(let id):
      state.withLock { $0.surfaceID = id }
      trace.record(.attached, id, at: now)
    case .surfaceDetached(let id):
      state.withLock { if $0.surfaceID == id { $0.surfaceID = nil } }
      trace.record(.detached, id, at: now)
    case .assigned(let id, let slot):
      state.withLock { state in
        state.shownIDs.remove(id)
        state.unopened.insert(id)
      }
      trace.record(.assigned, id, at: now, slot: slot)
    case .reached(let id, let slot, let stage, _):
      if stage >= .firstFrame { state.withLock { _ = $0.unopened.remove(id) } }
      trace.record(.reached, id, at: now, slot: slot, stage: stage)
      sampleMemory()
    case .evicted(let id, let slot, let stage):
      trace.record(.evicted, id, at: now, slot: slot, stage: stage)
    case .posterShown(let id): trace.record(.poster, id, at: now)
    case .player(let id, let event): record(event, of: id, at: now)
    case .shown, .pinned, .trimmed, .stored: break
    }
  }

  private func record(_ event: PlayerEvent, of id: FeedItem.ID, at now: Duration) {
    switch event {
    case .stalled:
      trace.record(.stalled, id, at: now)
      state.withLock { if $0.currentID == id, $0.current != nil { $0.stalledAt = now } }
    case .resumed:
      trace.record(.resumed, id, at: now)
      state.withLock { state in
        guard state.currentID == id, let began = state.stalledAt.take() else { return }
        state.current?.record(stall: now - began)
      }
    case .playedToEnd:
      trace.record(.ended, id, at: now)
      state.withLock { if $0.currentID == id, $0.frameCount == 1 { $0.current?.isStill = true } }
    case .failed(let error):
      trace.record(.failed, id, at: now, detail: error.description)
      state.withLock { state in
        if state.currentID == id { state.current?.error = error.description }
        guard let index = feed.index(of: id), !state.failed.contains(where: { $0.index == index }) else {
          return
        }
        state.failed.append(
          WalkReport.FailedItem(index: index, id: id.description, error: error.description))
      }
    default: break
    }
  }

  private func record(_ departure: PoolAccountant.Departure, of id: FeedItem.ID) {
    let statistics = departure.statistics
    state.withLock { state in
      let wasShown = state.shownIDs.remove(id) != nil
      let before = state.rewound.removeValue(forKey: id) ?? (0, 0)
      state.fetchedByteCount += departure.fetchedByteCount
      let left = Int64(statistics.unshownByteCount + statistics.inFlightByteCount)
      state.unshownByteCount +=
        wasShown ? min(left, departure.fetchedByteCount) : departure.fetchedByteCount - before.byteCount
      state.decodedFrameCount += statistics.decodedFrameCount
      let shown = wasShown ? statistics.shownFrameCount : before.frameCount
      state.unshownFrameCount += max(0, statistics.decodedFrameCount - shown)
    }
    trace.record(.departed, id, at: clock.now, count: Int(departure.fetchedByteCount))
  }

  /// From now on, fetched bytes belong to a preload.
  private func recordRewind(_ departure: PoolAccountant.Departure, of id: FeedItem.ID) {
    state.withLock { state in
      // An item that is rewound twice was shown in between.
      guard state.shownIDs.remove(id) != nil else { return }
      state.rewound[id] = (departure.fetchedByteCount, departure.statistics.shownFrameCount)
    }
    trace.record(.rewound, id, at: clock.now, count: Int(departure.fetchedByteCount))
  }
}

extension WalkRecorder.Tally {
  fileprivate mutating func beginSwipe(to id: FeedItem.ID, _ found: WalkRecorder.Found) {
    swipeID = id
    self.found = found
    firstShownAt = nil
    secondShownAt = nil
    frameCount = 0
    rungs = []
    lastTime = nil
  }

  fileprivate mutating func recordRung(_ rung: String?, bitRate: Int?, for duration: Duration) {
    if let last = rungs.last, last.rung == rung, last.bitRate == bitRate {
      rungs[rungs.count - 1].duration += duration
    } else {
      rungs.append(ShownRung(rung: rung, bitRate: bitRate, duration: duration))
    }
  }
}

extension MediaTime {
  /// The duration, to the nanosecond.
  fileprivate var duration: Duration { .nanoseconds(Int64((seconds * 1e9).rounded())) }
}

extension SwipeRecord {
  fileprivate mutating func record(stall duration: Duration) {
    stallCount += 1
    stallDuration += duration
    longestStall = max(longestStall, duration)
  }
}
