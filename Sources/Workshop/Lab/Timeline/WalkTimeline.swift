package import ReelCore
package import ReelPlayback
package import ReelPool

/// The activity of the slots of a pool during a walk, for a chart. All times are measured since the walk
/// began.
package struct WalkTimeline: Sendable {
  /// A stage that an item reached.
  package struct Reached: Sendable, Hashable {
    package let stage: PreloadStage
    package let time: Duration
  }

  /// The time that an item has a slot.
  package struct Stay: Sendable, Hashable {
    package let slot: Int
    package let itemIndex: Int
    package let from: Duration
    package var to: Duration
    package var stages: [Reached] = []
    package var failedAt: Duration?
  }

  /// A request, from the moment at which it was made.
  package struct Request: Sendable, Hashable {
    package let number: Int
    /// `nil` for a request that belongs to no slot, such as that of a poster.
    package let slot: Int?
    package let itemIndex: Int?
    package let purpose: FetchPurpose
    package let url: String
    package let from: Duration
    /// The time at which the head of the answer arrived.
    package var answeredAt: Duration?
    package var to: Duration
    package var byteCount: Int64 = 0
    package var failure: String?
  }

  /// A time in which an item had to wait for media.
  package struct Stall: Sendable, Hashable {
    package let itemIndex: Int
    package let from: Duration
    package var to: Duration
  }

  /// The figures of each slot within a span of time.
  package struct Bin: Sendable, Hashable {
    /// The memory by slot at the moment of the span when the slots together held most; without a sample, that of the
    /// span before.
    package var memory: [Int] = []
    /// The number of bytes that were read, by slot.
    package var byteCounts: [Int] = []
    /// The number of frames that were decoded, by slot.
    package var frameCounts: [Int] = []

    package init() {}
  }

  package var duration: Duration = .zero
  package var slotCount = 0
  package var stays: [Stay] = []
  package var requests: [Request] = []
  package var stalls: [Stall] = []
  package var bins: [Bin] = []
  /// The length of the span of each bin.
  package var binWidth: Duration = .milliseconds(50)
  /// The number of stays, requests and stalls beyond the limits of ``TimelineRecorder``.
  package var omittedCount = 0

  package init() {}
}

/// Collects a ``WalkTimeline`` from the events of a walk.
///
/// Enough is kept for a page. Bins initially cover 50 ms. When there are more than the limit, neighbours are merged in
/// pairs, and bins cover twice as much.
package final class TimelineRecorder: Sendable {
  private static let (stayLimit, requestLimit, stallLimit, binLimit) = (4_000, 6_000, 2_000, 800)

  fileprivate struct State {
    var timeline = WalkTimeline()
    /// The indices of the open stays by slot, requests by number, and stalls by item.
    var stays: [Int: Int] = [:]
    var requests: [Int: Int] = [:]
    var stalls: [Int: Int] = [:]
    var slots: [FeedItem.ID: Int] = [:]
    /// The numbers of the open requests whose bytes were counted as they were read.
    var counted: Set<Int> = []
  }

  private let indices: [FeedItem.ID: Int]
  private let state = Locked(State())

  package init(_ feed: Feed) {
    indices = Dictionary(uniqueKeysWithValues: feed.items.enumerated().map { ($1.id, $0) })
  }

  package func record(_ event: WalkEvent) {
    let index = event.item.flatMap { indices[$0] }
    state.withLock { state in
      state.timeline.duration = max(state.timeline.duration, event.time)
      switch event.kind {
      case .assigned: assign(event, index, &state)
      case .evicted: state.leave(event.slot, event.item, at: event.time)
      case .reached:
        guard let stage = event.stage, let stay = state.stay(of: event.item) else { return }
        state.timeline.stays[stay].stages.append(.init(stage: stage, time: event.time))
      case .failed:
        if let stay = state.stay(of: event.item) { state.timeline.stays[stay].failedAt = event.time }
      case .stalled: stall(event, index, &state)
      case .resumed, .departed, .detached:
        guard let index, let stall = state.stalls.removeValue(forKey: index) else { return }
        state.timeline.stalls[stall].to = event.time
      case .request: begin(event, index, &state)
      case .response, .received: advance(event, &state)
      case .chunk:
        if let number = event.request { state.counted.insert(number) }
        guard let slot = event.item.flatMap({ state.slots[$0] }) else { return }
        add(Int(event.byteCount ?? 0), to: \.byteCounts, of: slot, at: event.time, &state)
      case .decoded:
        guard let slot = event.item.flatMap({ state.slots[$0] }) else { return }
        add(event.count ?? 0, to: \.frameCounts, of: slot, at: event.time, &state)
      case .memory: sample(event, &state)
      default: break
      }
    }
  }

  /// The timeline up to the last event, at which open entries end.
  package var timeline: WalkTimeline {
    state.withLock { state in
      var timeline = state.timeline
      for index in state.stays.values { timeline.stays[index].to = timeline.duration }
      for index in state.requests.values { timeline.requests[index].to = timeline.duration }
      for index in state.stalls.values { timeline.stalls[index].to = timeline.duration }
      var memory: [Int] = []
      for index in timeline.bins.indices {
        if timeline.bins[index].memory.isEmpty { timeline.bins[index].memory = memory }
        memory = timeline.bins[index].memory
      }
      return timeline
    }
  }

  // MARK: - Private

  private func assign(_ event: WalkEvent, _ index: Int?, _ state: inout State) {
    guard let index, let slot = event.slot, let item = event.item else { return }
    state.leave(slot, nil, at: event.time)
    state.slots[item] = slot
    state.timeline.slotCount = max(state.timeline.slotCount, slot + 1)
    guard state.timeline.stays.count < Self.stayLimit else {
      state.timeline.omittedCount += 1
      return
    }
    state.stays[slot] = state.timeline.stays.count
    state.timeline.stays.append(.init(slot: slot, itemIndex: index, from: event.time, to: event.time))
  }

  private func stall(_ event: WalkEvent, _ index: Int?, _ state: inout State) {
    guard let index, state.stalls[index] == nil else { return }
    guard state.timeline.stalls.count < Self.stallLimit else {
      state.timeline.omittedCount += 1
      return
    }
    state.stalls[index] = state.timeline.stalls.count
    state.timeline.stalls.append(.init(itemIndex: index, from: event.time, to: event.time))
  }

  private func begin(_ event: WalkEvent, _ index: Int?, _ state: inout State) {
    guard let number = event.request, let purpose = event.purpose else { return }
    guard state.timeline.requests.count < Self.requestLimit else {
      state.timeline.omittedCount += 1
      return
    }
    state.requests[number] = state.timeline.requests.count
    state.timeline.requests.append(
      .init(
        number: number, slot: event.item.flatMap { state.slots[$0] }, itemIndex: index, purpose: purpose,
        url: event.url ?? "", from: event.time, to: event.time))
  }

  private func advance(_ event: WalkEvent, _ state: inout State) {
    guard let number = event.request, let request = state.requests[number] else { return }
    state.timeline.requests[request].failure = event.detail
    if event.kind == .response, event.detail == nil {
      state.timeline.requests[request].answeredAt = event.time
    } else {
      state.timeline.requests[request].byteCount = event.byteCount ?? 0
      state.timeline.requests[request].to = event.time
      state.requests[number] = nil
      if state.counted.remove(number) == nil { spread(state.timeline.requests[request], &state) }
    }
  }

  /// Counts the bytes of a request of which only the sum is known evenly over its transfer.
  private func spread(_ request: WalkTimeline.Request, _ state: inout State) {
    guard let slot = request.slot, let start = request.answeredAt else { return }
    // From here on, bins have this width.
    _ = bin(at: request.to, &state)
    let width = state.timeline.binWidth.wholeMicroseconds
    let (count, length) = (Int(request.byteCount), request.to - start)
    var (time, added) = (start, 0)
    while added < count {
      let end = Duration.microseconds((max(0, time.wholeMicroseconds) / width + 1) * width)
      let sum = end < request.to ? Int(Double(count) * ((end - start) / length)) : count
      add(sum - added, to: \.byteCounts, of: slot, at: time, &state)
      (time, added) = (end, sum)
    }
  }

  private func sample(_ event: WalkEvent, _ state: inout State) {
    let bin = bin(at: event.time, &state)
    state.timeline.bins[bin].memory = state.timeline.bins[bin].memory.larger(event.slotByteCounts)
  }

  private func add(
    _ count: Int, to key: WritableKeyPath<WalkTimeline.Bin, [Int]>, of slot: Int, at time: Duration,
    _ state: inout State
  ) {
    let bin = bin(at: time, &state)
    state.timeline.bins[bin][keyPath: key].grow(to: slot + 1)
    state.timeline.bins[bin][keyPath: key][slot] += count
  }

  /// Returns the index of the bin for a time, which is created if needed.
  private func bin(at time: Duration, _ state: inout State) -> Int {
    let microseconds = max(0, time.wholeMicroseconds)
    while microseconds / state.timeline.binWidth.wholeMicroseconds >= Int64(Self.binLimit) {
      state.timeline.mergeBins()
    }
    let index = Int(microseconds / state.timeline.binWidth.wholeMicroseconds)
    while state.timeline.bins.count <= index { state.timeline.bins.append(.init()) }
    return index
  }
}

extension TimelineRecorder.State {
  /// Returns the index of the open stay of an item.
  fileprivate func stay(of item: FeedItem.ID?) -> Int? { item.flatMap { slots[$0] }.flatMap { stays[$0] } }

  fileprivate mutating func leave(_ slot: Int?, _ item: FeedItem.ID?, at time: Duration) {
    if let item { slots[item] = nil }
    guard let slot, let stay = stays.removeValue(forKey: slot) else { return }
    timeline.stays[stay].to = time
  }
}

extension WalkTimeline {
  fileprivate mutating func mergeBins() {
    binWidth *= 2
    bins = stride(from: 0, to: bins.count, by: 2).map { index in
      guard index + 1 < bins.count else { return bins[index] }
      let (left, right) = (bins[index], bins[index + 1])
      var bin = Bin()
      bin.memory = left.memory.larger(right.memory)
      bin.byteCounts = left.byteCounts.sums(with: right.byteCounts)
      bin.frameCounts = left.frameCounts.sums(with: right.frameCounts)
      return bin
    }
  }
}

extension [Int] {
  fileprivate mutating func grow(to count: Int) {
    if self.count < count { self += Array(repeating: 0, count: count - self.count) }
  }

  /// The one with the larger sum.
  fileprivate func larger(_ other: [Int]) -> [Int] {
    other.reduce(0, +) >= reduce(0, +) ? other : self
  }

  fileprivate func sums(with other: [Int]) -> [Int] {
    (0..<Swift.max(count, other.count)).map { index in
      (index < count ? self[index] : 0) + (index < other.count ? other[index] : 0)
    }
  }
}
