internal import ReelCore
internal import ReelManifest

/// The current conditions for the choice of a rung.
struct RungConditions: Sendable {
  var buffered: Duration = .zero
  var bufferTarget: Duration = .seconds(3)
  var rate = 1.0
  var isRebuffering = false
  var now: Duration = .zero
  var bandwidthCap: Int?
  /// The cap for the first segment alone.
  var startCap: Int?
  var maximumHeight: Int?
}

/// Chooses the rung of each segment of one track with an adaptation, among those without a recent failure.
final class RungController: Sendable {
  /// The location to request segments from first.
  let location: ServiceLocation

  fileprivate struct State {
    var adaptation: any RungAdaptation
    var penalties = RungPenalties()
    var current: String?
    /// The id of the rung for the next segment, if the previous span was ended because of it.
    var pending: String?
    var triedLocations = 1
    /// True if the first rung was chosen under a cap of its own: the next one is chosen as if it were the
    /// first.
    var hasStartedUnderCap = false
    /// The rungs that have failed and were not chosen since.
    var failed: Set<String> = []
    var lastSwitchCause: RungSwitchCause?
    /// The reason why `pending` was chosen.
    var pendingCause: RungSwitchCause?
  }

  private let state: Locked<State>
  private let conditions: @Sendable () -> RungConditions

  /// - Parameter location: If it does not roam, it advances when all rungs have failed.
  init(
    adaptation: any RungAdaptation, location: ServiceLocation = ServiceLocation(roams: false),
    conditions: @escaping @Sendable () -> RungConditions
  ) {
    state = Locked(State(adaptation: adaptation), rank: .transfer)
    self.location = location
    self.conditions = conditions
  }

  /// Chooses the highest rung that the configuration allows, or else the lowest, regardless of transfer
  /// measurements. For stills of a given size, chooses the cheapest one that is large enough.
  convenience init(
    _ configuration: LoadingConfiguration, clock: any MonotonicClock,
    location: ServiceLocation = ServiceLocation(roams: false)
  ) {
    let adaptation: any RungAdaptation =
      if let size = configuration.shownSize { SizedRung(size: size) } else { FixedRung() }
    self.init(adaptation: adaptation, location: location) {
      var conditions = RungConditions()
      conditions.now = clock.now
      conditions.bandwidthCap = configuration.bandwidthCap
      conditions.maximumHeight = configuration.maximumHeight
      return conditions
    }
  }

  /// Returns the rung of the next segment; nil if all have failed.
  func choose(among ladder: [Rung], segmentDuration: Duration?) -> Rung? {
    let conditions = conditions()
    return state.withLock { state in
      if let pending = state.pending {
        state.pending = nil
        if let rung = ladder.first(where: { $0.id == pending }),
          !state.penalties.isPenalized(pending, now: conditions.now)
        {
          state.change(to: rung, because: state.pendingCause)
          return rung
        }
      }
      let (rung, cause) = state.decide(ladder, conditions, segmentDuration)
      if let rung { state.change(to: rung, because: cause) }
      return rung
    }
  }

  /// Returns false if the next segment should come from a rung other than `rung`.
  func staysAt(_ rung: Rung, among ladder: [Rung], segmentDuration: Duration?) -> Bool {
    guard ladder.count > 1 else { return true }
    let conditions = conditions()
    return state.withLock { state in
      let (next, cause) = state.decide(ladder, conditions, segmentDuration)
      guard let next, next.id != rung.id else { return true }
      (state.pending, state.pendingCause) = (next.id, cause)
      return false
    }
  }

  /// Returns true if another rung than this one has not failed recently.
  func hasOther(than rung: Rung, among ladder: [Rung]) -> Bool {
    let now = conditions().now
    return state.withLock { state in
      ladder.contains { $0.id != rung.id && !state.penalties.isPenalized($0.id, now: now) }
    }
  }

  /// Avoids a rung for a while, because it has failed.
  func avoid(_ rung: Rung) {
    let now = conditions().now
    state.withLock { state in
      state.penalties.penalize(rung.id, now: now)
      state.failed.insert(rung.id)
      state.pending = nil
    }
  }

  /// Returns true if not all of `count` locations have been tried since media was read.
  func hasOtherLocation(of count: Int) -> Bool { state.withLock { $0.triedLocations < count } }

  /// Switches to the next of `count` locations, where all rungs are tried again.
  func goToNextLocation(of count: Int) {
    state.withLock { state in
      state.triedLocations += 1
      state.penalties = RungPenalties()
    }
    location.index = (location.index + 1) % count
  }

  /// Allows all rungs and locations again, because nothing else is left to try.
  func forgive() {
    state.withLock { state in
      state.triedLocations = 1
      state.penalties = RungPenalties()
      state.pending = nil
    }
  }

  /// Reports that media was read.
  func recordSuccess() { state.withLock { $0.triedLocations = 1 } }

  func record(_ transfer: SegmentTransfer) {
    let now = conditions().now
    state.withLock { $0.adaptation.recordTransfer(transfer.sample(at: now)) }
  }

  /// The reason why the current rung was chosen; nil if it is the first one.
  var lastSwitchCause: RungSwitchCause? { state.withLock { $0.lastSwitchCause } }

  /// The estimate in bits per second.
  var estimatedBandwidth: Double? { state.withLock { $0.adaptation.estimatedBandwidth } }
}

extension RungController.State {
  fileprivate mutating func change(to rung: Rung, because cause: RungSwitchCause?) {
    if let current, current != rung.id { lastSwitchCause = cause }
    current = rung.id
    failed.remove(rung.id)
  }

  /// Returns the rung to load next and, if it is another one, the reason.
  fileprivate mutating func decide(
    _ ladder: [Rung], _ conditions: RungConditions, _ segmentDuration: Duration?
  ) -> (rung: Rung?, cause: RungSwitchCause?) {
    let sorted = ladder.sorted { $0.ladderBitsPerSecond < $1.ladderBitsPerSecond }
    let candidates = sorted.enumerated().map { index, rung in
      var candidate = RungCandidate(
        index: index, id: rung.id, bitsPerSecond: rung.bitsPerSecond ?? 0,
        averageBitsPerSecond: rung.averageBitsPerSecond, size: rung.size)
      candidate.holdsKeyFramesOnly = rung.holdsKeyFramesOnly
      return candidate
    }
    let usable = penalties.usable(candidates, now: conditions.now)
    guard !usable.isEmpty else { return (nil, nil) }
    var current = self.current
    let hadStartedUnderCap = current != nil && hasStartedUnderCap
    var cap = conditions.bandwidthCap
    if current == nil {
      hasStartedUnderCap = conditions.startCap != nil
      cap = [cap, conditions.startCap].compactMap(\.self).min()
    } else if hasStartedUnderCap {
      hasStartedUnderCap = false
      current = nil
    }
    let state = AdaptationState(
      current: current.flatMap { id in candidates.firstIndex { $0.id == id } },
      buffered: conditions.buffered, bufferTarget: conditions.bufferTarget,
      segmentDuration: segmentDuration, rate: conditions.rate, isRebuffering: conditions.isRebuffering,
      now: conditions.now, bandwidthCap: cap, maximumHeight: conditions.maximumHeight)
    let chosen = adaptation.choose(among: usable, state)
    let cause =
      hadStartedUnderCap && !penalties.isPenalized(self.current ?? "", now: conditions.now)
      ? .startup : self.cause(of: chosen, among: candidates, state)
    return (sorted.first { $0.id == chosen.id }, cause)
  }

  private func cause(
    of next: RungCandidate, among candidates: [RungCandidate], _ state: AdaptationState
  ) -> RungSwitchCause? {
    guard let current, current != next.id else { return nil }
    if penalties.isPenalized(current, now: state.now) { return .failure }
    guard let old = candidates.first(where: { $0.id == current }) else { return .period }
    if !candidates.allowed(by: state).contains(where: { $0.id == current }) { return .limit }
    if failed.contains(next.id) { return .retry }
    return next.index > old.index ? .adaptationUp : .adaptationDown
  }
}

extension Rung {
  /// Returns the same rung, with the playlist requested from another location first.
  func beginning(at location: Int) -> Rung {
    guard case .playlist(let url) = media, !alternateURLs.isEmpty else { return self }
    let urls = [url] + alternateURLs
    let first = location % urls.count
    var copy = self
    copy.media = .playlist(urls[first])
    copy.alternateURLs = Array(urls[(first + 1)...] + urls[..<first])
    return copy
  }
}
