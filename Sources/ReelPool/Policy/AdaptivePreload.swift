internal import Foundation
internal import ReelPlayback

/// Loads just enough of the next items that the second frame after a swipe is on time, for the fewest bytes.
///
/// From the measured throughput and its deviation, the viewer's swipes so far and the state of each item, the policy
/// chooses how far the current item loads ahead, which neighbours load, how far, in which order and from which rung.
/// `Docs/AdaptivePreload.md` derives the rules. In short:
///
/// - **Safe rate.** Rungs are chosen by the rate that the link stays above five times of six, less the share that the
///   starts of the next items take: C × W ÷ (W + d), with the expected watching time W and the depth d of a preload.
/// - **Depth.** An item with a bit rate r needs as much media ahead as it takes to ask for more (two round trips), plus
///   what it would lose while the link is at the rate that it stays above 19 times of 20, for as long as the viewer is
///   expected to stay: H × (1 − C₅ ÷ r). A preload needs at least the media with which playback starts.
/// - **Order.** The current item comes first until it can play for as long as loading the next item's start takes. Then
///   come the neighbours. Then the current item gets its whole depth.
/// - **Neighbours.** The next item; then the previous item or the one after the next, whichever is more likely to save a
///   wait; then further items ahead. An item that was shown before keeps what it has, and loads at most a start.
///
/// Nothing more is loaded once every item has its depth.
public struct AdaptivePreload: PreloadPolicy, Hashable {
  /// The policy `adaptive`.
  public init() {}

  public var description: String { "adaptive" }

  public func plan(in situation: PoolSituation) -> PreloadPlan {
    guard situation.itemCount > 0 else { return PreloadPlan() }
    guard let throughput = situation.throughput, throughput.mean > 0 else {
      return Self.firstPlan(in: situation)
    }
    return Outlook(situation, throughput).plan()
  }

  // MARK: - Private

  /// The media with which playback starts.
  fileprivate static let start = BufferingThresholds().start
  /// The most media of a preload: the forward buffer of an item without bounds.
  fileprivate static let maximumDepth = PlayerItem.Preferences().forwardBufferDuration

  /// Before anything was measured: the current item, then a start of the next one.
  private static func firstPlan(in situation: PoolSituation) -> PreloadPlan {
    guard situation.slotCount > 1, situation.itemCount > 1 else { return PreloadPlan() }
    return PreloadPlan(neighbours: [
      PreloadPlan.Neighbour(
        distance: situation.direction, target: PreloadTarget(stage: .buffered, bufferDuration: start))
    ])
  }
}

/// What the policy expects of the link, the viewer and the items.
private struct Outlook {
  let situation: PoolSituation
  /// The rate that the link stays above five times of six, in bits per second.
  let likelyRate: Double
  /// The rate that the link stays above 19 times of 20, in bits per second.
  let safeRate: Double
  let roundTrip: Duration
  /// How long the viewer is expected to watch an item.
  let watch: Duration
  /// How much longer the viewer is expected to watch the current item.
  let rest: Duration

  init(_ situation: PoolSituation, _ throughput: ThroughputEstimate) {
    self.situation = situation
    likelyRate = throughput.rate(atDeviations: -1)
    safeRate = throughput.rate(atDeviations: -1.645)
    roundTrip = throughput.roundTripTime ?? .zero
    let current = situation.current
    watch = situation.history.meanWatchedDuration(prior: Self.priorWatch(of: current))
    rest = Self.expectedRest(of: current, watched: situation.watchedDuration) ?? watch
  }

  // MARK: Plan

  func plan() -> PreloadPlan {
    let neighbours = neighbourDistances.map { distance -> (item: PoolSituation.Item, depth: Duration) in
      let item = situation.item(at: distance)
      guard distance == situation.direction else { return (item, AdaptivePreload.start) }
      return (item, min(depth(of: item, for: watch), AdaptivePreload.maximumDepth))
    }
    let waiting = neighbours.first { !holds($0.item, AdaptivePreload.start) }
    var bounds = LoadingBounds(
      forwardBufferDuration: depth(of: situation.current, for: rest), peakBitRate: peakBitRate)
    if let waiting, let depth = bounds.forwardBufferDuration {
      // Enough to play on while the neighbour's start is loaded.
      let needed = startDuration(of: waiting.item) + resumption
      bounds.forwardBufferDuration = max(min(depth, needed), AdaptivePreload.start)
    }
    if situation.current.stage < .firstFrame { bounds.startPeakBitRate = startPeakBitRate }
    var plan = PreloadPlan(current: bounds)
    plan.neighbours = neighbours.map { item, depth in
      PreloadPlan.Neighbour(
        distance: item.distance,
        target: PreloadTarget(stage: .buffered, bufferDuration: depth, peakBitRate: peakBitRate))
    }
    let isComplete = neighbours.allSatisfy { holds($0.item, $0.depth) }
    plan.reviewInterval = isComplete ? nil : Self.reviewInterval
    return plan
  }

  // MARK: Neighbours

  /// The distances of the items to load, by rank.
  private var neighbourDistances: [Int] {
    let room = situation.slotCount - 1
    let forward = (1...max(room, 1)).map { $0 * situation.direction }.filter(isInside)
    let back = [-situation.direction].filter(isInside)
    guard let next = forward.first else { return Array(back.prefix(room)) }
    let further = Array(forward.dropFirst())
    return Array(
      ([next] + (isBackLikelier(than: further.first) ? back + further : merged(further, back))).prefix(room))
  }

  /// Items ahead, with the previous item second.
  private func merged(_ ahead: [Int], _ back: [Int]) -> [Int] { ahead.prefix(1) + back + ahead.dropFirst() }

  private func isInside(_ distance: Int) -> Bool {
    (0..<situation.itemCount).contains(situation.currentIndex + distance)
  }

  /// True if the next swipe is more likely to go back than to go on and be followed by another before the start of the
  /// item after the next one would have been loaded.
  private func isBackLikelier(than further: Int?) -> Bool {
    guard let further else { return true }
    let forwardCount = situation.history.swipes.count { $0.isForward == (situation.direction > 0) }
    // Laplace's rule of succession.
    let onward = Double(forwardCount + 1) / Double(situation.history.swipes.count + 2)
    let (loading, watching) = (
      startDuration(of: situation.item(at: further)) / .seconds(1), watch / .seconds(1)
    )
    let isLeftEarly = watching > 0 ? 1 - exp(-loading / watching) : 1
    return 1 - onward >= onward * isLeftEarly
  }

  // MARK: Rates and depths

  /// The highest bit rate that leaves room on the link for the starts of the next items.
  private var peakBitRate: Int {
    let share = watch > .zero ? watch / (watch + AdaptivePreload.start) : 0
    return max(Int(clamping: likelyRate * share), 1)
  }

  /// The highest bit rate of which the media with which playback starts comes within 100 ms, about the wait that a viewer
  /// begins to notice.
  private var startPeakBitRate: Int {
    max(Int(clamping: likelyRate * (Duration.milliseconds(100) / AdaptivePreload.start)), 1)
  }

  /// The time to get more media after a pause: a new connection and a request.
  private var resumption: Duration { roundTrip * 2 }

  /// The media that an item should have ahead, if the viewer watches it for `horizon` more.
  private func depth(of item: PoolSituation.Item, for horizon: Duration) -> Duration {
    let rate = bitRate(of: item)
    let loss = rate > 0 ? max(1 - safeRate / rate, 0) : 0
    let depth = resumption + .seconds(loss * (horizon / .seconds(1)))
    return max(depth, AdaptivePreload.start)
  }

  /// The time that loading the start of an item takes.
  private func startDuration(of item: PoolSituation.Item) -> Duration {
    // Manifest, playlist or initialization segment, and segment.
    let requests = item.stage >= .manifest ? 1 : 3
    let known = situation.costs[.firstFrame]?.networkByteCount ?? 0
    let bits = max(Double(known) * 8, bitRate(of: item) * (AdaptivePreload.start / .seconds(1)))
    return roundTrip * requests + .seconds(bits / likelyRate)
  }

  /// The expected bit rate of an item in bits per second: of the rung that is loaded, or as measured.
  private func bitRate(of item: PoolSituation.Item) -> Double {
    let allowed = item.rungs.filter { $0.bitRate <= peakBitRate }
    if let rung = allowed.last ?? item.rungs.first, rung.bitRate > 0 { return Double(rung.bitRate) }
    let media = item.position + item.bufferedDuration
    if item.rungs.isEmpty, media >= AdaptivePreload.start {
      return Double(item.fetchedByteCount) * 8 / (media / .seconds(1))
    }
    if let cost = situation.costs[.buffered], situation.costs.bufferDuration > .zero {
      return min(
        Double(cost.networkByteCount) * 8 / (situation.costs.bufferDuration / .seconds(1)),
        Double(peakBitRate))
    }
    return Double(peakBitRate)
  }

  private func holds(_ item: PoolSituation.Item, _ depth: Duration) -> Bool {
    item.hasFailed || item.isLoadedToEnd || item.stage >= .firstFrame && item.bufferedDuration >= depth
  }

  // MARK: The viewer

  /// The time for which an item is expected to be watched before anything is known of the viewer: as the item's retention
  /// says, or half of its duration, as if every moment to leave it were as likely.
  private static func priorWatch(of item: PoolSituation.Item) -> Duration {
    expectedRest(of: item, watched: .zero) ?? item.duration.map { $0 / 2 } ?? AdaptivePreload.maximumDepth
  }

  /// How much longer an item is expected to be watched by its retention; nil if that is not known.
  private static func expectedRest(of item: PoolSituation.Item, watched: Duration) -> Duration? {
    guard let retention = item.retention, !retention.isEmpty else { return nil }
    let begin = min(Int(clamping: watched / .seconds(1)), retention.count - 1)
    guard retention[begin] > 0 else { return .zero }
    let sum = retention[begin...].reduce(0, +) / retention[begin]
    return .seconds(max(sum - 0.5, 0))
  }

  /// The longest time for which a plan holds while something is still to be loaded.
  private static let reviewInterval = Duration.milliseconds(250)
}
