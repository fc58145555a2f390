/// Follows the throughput of the link, limited by the buffer level.
///
/// E is the estimated bandwidth (`BandwidthEstimator`; before the first measurement,
/// `Options.initialEstimate`). A rung's demand D is its peak bit rate, or its average if the peak is unknown,
/// times the playback rate if that is above 1.
///
/// While a request waits for its first byte, the link is idle. E does not include that latency, but at most
/// half of a transfer is excluded, because the rest may have arrived at once from a buffer. For the same
/// reason, a segment can't use all of its time for loading: in the rules, E is reduced by the ratio of the
/// mean latency to a segment's duration, at most by half.
///
/// A rung is *comfortable* if D ≤ `upShare` × E, and *bearable* if D ≤ `downShare` × E. Between the two, the
/// estimate may vary without a switch. Only rungs that the caps allow are considered. In order:
///
/// 1. Start: the highest comfortable rung. If nothing is known about the link, the highest one that does not
///    exceed `Options.startCap` or the bandwidth cap, whichever is lower.
/// 2. The current rung is no candidate any more (failed, capped): the highest bearable one below it; if there
///    is none below, the lowest of all.
/// 3. Nothing is known about the link: the current rung, but the lowest one while rebuffering.
/// 4. Urgent, while rebuffering or with less than `urgentShare` of the target buffered: if the rung is not
///    comfortable, the highest comfortable one below it, at once.
/// 5. Down: if the rung is not bearable, the highest bearable one below it; but the rung stays as long as at
///    least `comfortShare` of the target and `comfortSegments` segments are buffered.
/// 6. Up: the highest comfortable rung above, if at least a segment or `upBufferShare` of the target is
///    buffered, whichever is less, and `segmentsBetweenSwitches` segments were loaded since the last switch.
///
/// If no rung is comfortable or bearable, the lowest one is used. Steps may skip rungs. If the duration of a
/// segment is unknown, rules 5 and 6 use the target alone.
package struct AdaptiveRungs: RungAdaptation {
  /// The thresholds of the rules.
  package struct Options: Sendable, Hashable {
    /// The estimate in bits per second before the first measurement, from an earlier item or configured; nil
    /// if unknown.
    package var initialEstimate: Int?
    /// The highest bit rate to start with if there is no estimate, in bits per second. 3 Mbit/s.
    package var startCap = 3_000_000
    /// The half-life of the fast average, in transfer time. 2 s.
    package var fastHalfLife = Duration.seconds(2)
    /// The half-life of the slow average, in transfer time. 5 s.
    package var slowHalfLife = Duration.seconds(5)
    /// The minimum size of a sample in bytes; smaller ones are combined. 16 kB.
    package var minimumSampleByteCount: Int64 = 16_000
    /// A switch up requires that the rung takes at most this share of the estimate. 0.7.
    package var upShare = 0.7
    /// A rung that takes more than this share of the estimate is left. 0.85.
    package var downShare = 0.85
    /// The share of the target that must be buffered for a switch up, unless a segment is less. 0.5.
    package var upBufferShare = 0.5
    /// With this share of the target buffered, a rung that is too high may stay. 0.75.
    package var comfortShare = 0.75
    /// The number of segments that must also be buffered for that. 2.
    package var comfortSegments = 2
    /// Below this share of the target, the situation is urgent. 0.25.
    package var urgentShare = 0.25
    /// The number of segments to load between a switch and the next switch up. 2.
    package var segmentsBetweenSwitches = 2

    package init(initialEstimate: Int? = nil) {
      self.initialEstimate = initialEstimate
    }
  }

  package let options: Options

  private var estimator: BandwidthEstimator
  /// In seconds; nil before the first measurement.
  private var meanLatency: Double?
  /// The number of segments chosen since the last switch, including the one switched to; nil before any switch.
  private var segmentsSinceSwitch: Int?

  package init(options: Options = Options()) {
    self.options = options
    estimator = BandwidthEstimator(
      fastHalfLife: options.fastHalfLife, slowHalfLife: options.slowHalfLife,
      minimumByteCount: options.minimumSampleByteCount)
  }

  package var estimatedBandwidth: Double? { estimator.estimate ?? options.initialEstimate.map(Double.init) }

  package mutating func recordTransfer(_ sample: TransferSample) {
    let latency = max(sample.latency ?? .zero, .zero)
    estimator.add(byteCount: sample.byteCount, duration: sample.duration - min(latency, sample.duration / 2))
    guard sample.latency != nil else { return }
    let seconds = latency / .seconds(1)
    meanLatency = meanLatency.map { $0 + (seconds - $0) * Self.latencyWeight } ?? seconds
  }

  package mutating func choose(among candidates: [RungCandidate], _ state: AdaptationState) -> RungCandidate {
    precondition(!candidates.isEmpty, "no candidates")
    let allowed = candidates.allowed(by: state)
    let chosen = decide(among: allowed, state) ?? allowed.lowest ?? candidates[0]
    if let current = state.current, current != chosen.index {
      segmentsSinceSwitch = 1
    } else {
      segmentsSinceSwitch = segmentsSinceSwitch.map { $0 + 1 }
    }
    return chosen
  }

  // MARK: - Private

  /// The weight of a new latency in the mean.
  private static let latencyWeight = 0.25

  /// Returns nil for the lowest rung.
  private func decide(among allowed: [RungCandidate], _ state: AdaptationState) -> RungCandidate? {
    guard let current = state.current else { return start(among: allowed, state) }
    let lower = allowed.filter { $0.index < current }
    guard let rung = allowed.first(where: { $0.index == current }) else {
      return highest(of: lower, share: options.downShare, state) ?? lower.lowest
    }
    guard estimatedBandwidth != nil else { return state.isRebuffering ? nil : rung }
    let isUrgent = state.isRebuffering || state.buffered < state.bufferTarget * options.urgentShare
    let limit = isUrgent ? options.upShare : options.downShare
    if !fits(rung, share: limit, state) {
      return isUrgent || !isComfortable(state) ? highest(of: lower, share: limit, state) : rung
    }
    guard mayRise(state) else { return rung }
    let higher = allowed.filter { $0.index > current }
    return highest(of: higher, share: options.upShare, state) ?? rung
  }

  private func start(among allowed: [RungCandidate], _ state: AdaptationState) -> RungCandidate? {
    guard estimatedBandwidth == nil else { return highest(of: allowed, share: options.upShare, state) }
    return allowed.filter { $0.demand <= options.startCap }.highest
  }

  private func highest(of rungs: [RungCandidate], share: Double, _ state: AdaptationState) -> RungCandidate? {
    rungs.filter { fits($0, share: share, state) }.highest
  }

  private func fits(_ rung: RungCandidate, share: Double, _ state: AdaptationState) -> Bool {
    guard let estimate = estimatedBandwidth else { return true }
    let rate = max(state.rate, 1)
    var idle = 0.0
    if let meanLatency, let segment = state.segmentDuration, segment > .zero {
      idle = min(meanLatency * rate / (segment / .seconds(1)), 0.5)
    }
    return Double(rung.demand) * rate <= estimate * (1 - idle) * share
  }

  private func isComfortable(_ state: AdaptationState) -> Bool {
    state.buffered >= state.bufferTarget * options.comfortShare
      && state.buffered >= (state.segmentDuration ?? .zero) * options.comfortSegments
  }

  private func mayRise(_ state: AdaptationState) -> Bool {
    if let segmentsSinceSwitch, segmentsSinceSwitch < options.segmentsBetweenSwitches { return false }
    var needed = state.bufferTarget * options.upBufferShare
    if let segment = state.segmentDuration { needed = min(needed, segment) }
    return !state.isRebuffering && state.buffered >= needed
  }
}

/// The state from which an adaptation decides at a segment boundary.
package struct AdaptationState: Sendable, Hashable {
  /// The `RungCandidate.index` of the current rung; nil at the start.
  package var current: Int?
  /// The media that is loaded but not yet shown, in media time.
  package var buffered: Duration
  /// The amount of media that the player tries to buffer, in media time.
  package var bufferTarget: Duration
  /// The duration of the segments; nil if unknown.
  package var segmentDuration: Duration?
  /// The playback rate, 1 for normal.
  package var rate: Double
  /// True during a stall.
  package var isRebuffering: Bool
  /// The time by the player's clock.
  package var now: Duration
  /// The highest bit rate in bits per second; nil for no limit.
  package var peakBitRate: Int?
  /// The highest frame height in lines; nil for no limit.
  package var maximumHeight: Int?
  /// The highest frame width in pixels; nil for no limit.
  package var maximumWidth: Int?

  package init(
    current: Int?, buffered: Duration, bufferTarget: Duration, segmentDuration: Duration? = nil,
    rate: Double = 1,
    isRebuffering: Bool = false, now: Duration, peakBitRate: Int? = nil, maximumHeight: Int? = nil,
    maximumWidth: Int? = nil
  ) {
    self.current = current
    self.buffered = buffered
    self.bufferTarget = bufferTarget
    self.segmentDuration = segmentDuration
    self.rate = rate
    self.isRebuffering = isRebuffering
    self.now = now
    self.peakBitRate = peakBitRate
    self.maximumHeight = maximumHeight
    self.maximumWidth = maximumWidth
  }
}

/// Keys that have failed and are avoided for a while: rungs by id, locations by URL.
///
/// The first failure of a key costs `baseDuration`, each further one twice as long as the previous one, up to
/// `maximumDuration`. A failure during a penalty changes nothing, because it belongs to work begun earlier. If
/// a key has no failure for `maximumDuration` after its penalty, the next one counts as the first again.
///
/// A value without a clock: `now` is the time by the player's clock, and never falls.
package struct Penalties<Key: Hashable & Sendable>: Sendable {
  package let baseDuration: Duration
  package let maximumDuration: Duration

  private var entries: [Key: Entry] = [:]

  package init(baseDuration: Duration = .seconds(60), maximumDuration: Duration = .seconds(480)) {
    self.baseDuration = baseDuration
    self.maximumDuration = maximumDuration
  }

  /// Avoids `key` from `now` on.
  ///
  /// - Returns: The end of the penalty.
  @discardableResult
  package mutating func penalize(_ key: Key, now: Duration) -> Duration {
    // Removes entries that no longer have an effect, so that old keys do not accumulate.
    entries = entries.filter { now < $0.value.end + maximumDuration }
    if let entry = entries[key], now < entry.end { return entry.end }
    let length = entries[key].map { min($0.length * 2, maximumDuration) } ?? baseDuration
    entries[key] = Entry(length: length, end: now + length)
    return now + length
  }

  package func isPenalized(_ key: Key, now: Duration) -> Bool {
    entries[key].map { now < $0.end } ?? false
  }

  // MARK: - Private

  private struct Entry: Sendable {
    var length: Duration
    var end: Duration
  }
}

/// The penalties of a ladder's rungs, by `RungCandidate.id`.
package typealias RungPenalties = Penalties<String>

extension Penalties<String> {
  /// Returns the candidates without a penalty, in the same order. If there are none, the caller switches to
  /// the next location or waits until `nextEnd(now:)`.
  package func usable(_ candidates: [RungCandidate], now: Duration) -> [RungCandidate] {
    candidates.filter { !isPenalized($0.id, now: now) }
  }
}
