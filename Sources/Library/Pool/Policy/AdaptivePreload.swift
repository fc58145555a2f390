internal import Foundation
package import ReelPlayback

/// Loads just enough of the next items for the second frame after a swipe to be on time, with the fewest
/// bytes.
///
/// From the measured throughput and its deviation, the viewer's swipes so far and the state of each item, the policy
/// chooses how far the current item loads ahead, which neighbours load, how far, in which order and from which rung.
/// The page "The policy `adaptive`" of the guides derives the rules. In short:
///
/// - **Risk.** The rate of the link follows a heavy-tailed distribution around the measured one. An item
///   whose bit rate is above the rate loses media as long as a bad moment lasts, 5 s on average. Both give
///   the probability that an item with a given amount of media ahead runs dry.
/// - **Rung.** The highest one that the link sustains nine times out of ten, in addition to the start of the
///   next item.
/// - **Depth.** A second of media is loaded ahead if the stall that it may prevent outweighs the probability
///   that nobody watches it. One second of stalling counts as much as 30 s of media that are loaded for
///   nothing.
/// - **Order.** The current item comes first until it can play for as long as loading the start of the next item takes.
///   Then come the start of the next item, the depth of the current one, and the neighbours by rank.
/// - **Neighbours.** The next item; then the previous item or the one after the next, whichever is more
///   likely to save a wait; then further items ahead.
/// - **Disk.** With a cache, the first 2 s of the nearest item ahead that has no slot are kept in it, and those of the items
///   after it, up to 8 items ahead, that are likely enough to be reached, by the rule of the depth.
///
/// Nothing more is loaded once every item has its depth.
public struct AdaptivePreload: PreloadPlanning, Hashable {
  /// The policy `adaptive`.
  public init() {}

  public var description: String { "adaptive" }

  package func plan(in situation: PoolSituation) -> PreloadPlan {
    guard situation.itemCount > 0 else { return PreloadPlan() }
    guard let throughput = situation.throughput, throughput.mean > 0 else {
      return Self.firstPlan(in: situation)
    }
    return Outlook(situation, LinkForecast(throughput)).plan()
  }

  // MARK: - Private

  /// The amount of media with which playback starts.
  fileprivate static let start = BufferingThresholds().start
  /// The minimum depth of the current item, 2 s. Loading continues below three quarters of it, with as much
  /// media left as playback needs to resume after a stall.
  fileprivate static let leastDepth = BufferingThresholds().resume / BufferingThresholds().refillShare

  /// Returns the first plan, before any measurement: the current item without bounds, then the start of each
  /// neighbour.
  private static func firstPlan(in situation: PoolSituation) -> PreloadPlan {
    let neighbours = situation.neighbourDistances(isBackSecond: true)
    return PreloadPlan(
      neighbours: neighbours.map {
        PreloadPlan.Neighbour(distance: $0, target: PreloadTarget(stage: .buffered, bufferDuration: start))
      })
  }
}

/// The expectations of the policy about the link, the viewer and the items.
private struct Outlook {
  /// The seconds of media loaded for nothing that weigh as much as a second of stalling.
  private static let stallWeight = 30.0
  /// The longest depth, in seconds.
  private static let maximumDepth = 30.0
  /// The step in which depths are tried, in seconds.
  private static let depthStep = 0.25
  /// The maximum validity of a plan while something is still to be loaded.
  private static let reviewInterval = Duration.milliseconds(250)
  /// The amount of data, in bits, that arrives after a reader pauses within a segment: the receive window of
  /// a connection.
  private static let receiveWindow = Double(256 << 10) * 8

  let situation: PoolSituation
  let link: LinkForecast
  /// The time for which items are watched on average, in seconds.
  let watch: Double
  /// The mean remaining watch time of the current item, in seconds.
  let rest: Double
  /// The probability that the next swipe keeps the direction.
  let forwardShare: Double

  init(_ situation: PoolSituation, _ link: LinkForecast) {
    self.situation = situation
    self.link = link
    let current = WatchForecast(situation.current, situation.history)
    watch = current.meanRest(after: 0)
    rest = current.meanRest(after: situation.watchedDuration.inSeconds)
    let swipes = situation.history.swipes
    let forwardCount = swipes.count { $0.isForward == (situation.direction > 0) }
    // Laplace's rule of succession.
    forwardShare = Double(forwardCount + 1) / Double(swipes.count + 2)
  }

  // MARK: Plan

  func plan() -> PreloadPlan {
    let (current, start) = (situation.current, AdaptivePreload.start)
    let neighbours = situation.neighbourDistances(isBackSecond: isBackLikelier).map(situation.item(at:))
    let peak = peakBitRate
    var bounds = LoadingBounds(forwardBufferDuration: depth(of: current, at: peak), peakBitRate: peak)
    let next = neighbours.first.flatMap { holds($0, start) ? nil : $0 }
    if let next, let depth = bounds.forwardBufferDuration {
      // Enough media to keep playing while the next item's start is loaded.
      let needed = startDuration(of: next, at: peak) + link.roundTrip * 2
      bounds.forwardBufferDuration = max(min(depth, needed), start)
    }
    if current.stage < .firstFrame { bounds.startPeakBitRate = awaitedPeakBitRate }
    var plan = PreloadPlan(current: bounds)
    var isComplete = current.isLoadedToEnd || current.hasFailed
    plan.neighbours = neighbours.map { item in
      let depth = next != nil ? start : depth(of: item, at: peak)
      if !holds(item, depth) { isComplete = false }
      return PreloadPlan.Neighbour(
        distance: item.distance,
        target: PreloadTarget(stage: .buffered, bufferDuration: depth, peakBitRate: peak))
    }
    plan.reviewInterval = isComplete ? nil : Self.reviewInterval
    if situation.hasStore { plan.neighbours += heads(beyond: neighbours, at: peak) }
    return plan
  }

  /// Returns the items ahead without a slot whose starts are kept on disk: the nearest one, and those of which the wait that
  /// is saved, if they are reached, outweighs the media that is loaded for nothing, if they are not.
  private func heads(
    beyond neighbours: [PoolSituation.Item], at peakBitRate: Int
  ) -> [PreloadPlan.Neighbour] {
    let target = PreloadTarget(
      stage: .onDisk, bufferDuration: AdaptivePreload.leastDepth, peakBitRate: peakBitRate)
    let ahead = (1...PreloadPlan.headLimit).map { $0 * situation.direction }.filter { distance in
      situation.hasItem(at: distance) && !neighbours.contains { $0.distance == distance }
    }
    return ahead.filter { distance in
      guard distance != ahead[0] else { return true }
      let reached = pow(forwardShare, Double(abs(distance)))
      let wait = startDuration(of: situation.item(at: distance), at: peakBitRate).inSeconds
      return reached * wait * Self.stallWeight > (1 - reached) * AdaptivePreload.leastDepth.inSeconds
    }.map { PreloadPlan.Neighbour(distance: $0, target: target) }
  }

  /// True if a swipe back is more likely than a swipe forward that is followed by another one before the
  /// start of the item after the next one would have been loaded.
  private var isBackLikelier: Bool {
    let further = 2 * situation.direction
    guard situation.hasItem(at: further) else { return true }
    let item = situation.item(at: further)
    let loading = startDuration(of: item, at: peakBitRate).inSeconds
    let isLeftEarly = watch > 0 ? 1 - exp(-loading / watch) : 1
    return 1 - forwardShare >= forwardShare * isLeftEarly
  }

  // MARK: Rates and depths

  /// The highest bit rate that the link sustains nine times out of ten, minus the rate for the start of the
  /// next item.
  private var peakBitRate: Int {
    let share = watch > 0 ? watch / (watch + AdaptivePreload.start.inSeconds) : 0
    return max(Int(clamping: link.safeRate * share), 1)
  }

  /// The highest bit rate at which the media with which playback starts arrives within 100 ms, about the wait
  /// that a viewer begins to notice.
  private var awaitedPeakBitRate: Int {
    max(Int(clamping: link.likelyRate * (Duration.milliseconds(100) / AdaptivePreload.start)), 1)
  }

  /// Returns the media that an item should have ahead.
  private func depth(of item: PoolSituation.Item, at peakBitRate: Int) -> Duration {
    let forecast = WatchForecast(item, situation.history)
    let bitRate = bitRate(of: item, peakBitRate)
    // The probabilities that the viewer reaches the item, and that a bad moment lasts until then.
    var (reached, lasts, watched) = (1.0, 1.0, situation.watchedDuration.inSeconds)
    var least = AdaptivePreload.leastDepth
    if item.distance != 0 {
      let count = Double(abs(item.distance))
      let isForward = (item.distance > 0) == (situation.direction > 0)
      reached = pow(isForward ? forwardShare : 1 - forwardShare, count)
      lasts = link.persistence(for: rest) * pow(link.persistence(for: watch), count - 1)
      watched = 0
      // As much again as playback starts with, until more arrives.
      least = AdaptivePreload.start * 2
    }
    var depth = 0.0
    while depth < Self.maximumDepth {
      let next = depth + Self.depthStep
      let isWatched = reached * forecast.probability(of: next, after: watched)
      let isLate = lasts * link.risk(bitRate: bitRate, buffered: next)
      guard isWatched * isLate * Self.stallWeight > 1 - isWatched else { break }
      depth = next
    }
    // Requesting more takes a connection and a request.
    return max(.seconds(depth), least) + link.roundTrip * 2
  }

  /// Returns the time to load the start of an item, including the link time that its segment needs
  /// afterwards.
  private func startDuration(of item: PoolSituation.Item, at peakBitRate: Int) -> Duration {
    // Manifest, playlist or initialization segment, and segment.
    let requests = item.stage >= .manifest ? 1 : 3
    let (start, rate) = (AdaptivePreload.start.inSeconds, bitRate(of: item, peakBitRate))
    let known = Double(situation.costs[.firstFrame]?.networkByteCount ?? 0) * 8
    let segment = (item.segmentDuration ?? situation.current.segmentDuration)?.inSeconds ?? 0
    let further = min(max(segment - start, 0) * rate, Self.receiveWindow)
    return link.roundTrip * requests + .seconds((max(known, rate * start) + further) / link.likelyRate)
  }

  /// Returns the expected bit rate of an item in bits per second: that of the loaded rung, or the measured
  /// one.
  private func bitRate(of item: PoolSituation.Item, _ peakBitRate: Int) -> Double {
    let allowed = item.rungs.filter { $0.bitRate <= peakBitRate }
    if let rung = allowed.last ?? item.rungs.first, rung.bitRate > 0 { return Double(rung.bitRate) }
    let media = item.position + item.bufferedDuration
    if item.rungs.isEmpty, media >= AdaptivePreload.start {
      return Double(item.fetchedByteCount) * 8 / media.inSeconds
    }
    if let cost = situation.costs[.buffered] {
      let rate = Double(cost.networkByteCount) * 8 / StageCosts.bufferDuration.inSeconds
      return min(rate, Double(peakBitRate))
    }
    return Double(peakBitRate)
  }

  private func holds(_ item: PoolSituation.Item, _ depth: Duration) -> Bool {
    item.hasFailed || item.isLoadedToEnd || item.stage >= .firstFrame && item.bufferedDuration >= depth
  }
}

extension PoolSituation {
  /// Returns the distances of the items that may get a slot: the next one, then the previous one or the one
  /// after the next, then others ahead.
  fileprivate func neighbourDistances(isBackSecond: Bool) -> [Int] {
    let room = slotCount - 1
    guard room > 0 else { return [] }
    let forward = (1...room).map { $0 * direction }.filter(hasItem)
    let back = [-direction].filter(hasItem)
    let further = forward.dropFirst()
    let others = isBackSecond ? back + further : further.prefix(1) + back + further.dropFirst()
    return Array((forward.prefix(1) + others).prefix(room))
  }
}

/// The measured costs of each stage: a running average over the loaded items that follows the latest ones.
package struct StageCosts: Sendable, Hashable {
  /// The average of one stage, and the number of items that it covers.
  private struct Average: Hashable {
    var cost: StageCost
    var sampleCount: Int
  }

  /// The same for the memory of open decoders.
  private struct WarmDecoder: Hashable {
    var byteCount: Int
    var sampleCount: Int
  }

  /// The weight limit of the average: from this many items on, a new item counts as one of this many. 8.
  package static let window = 8

  /// The duration of media that the cost of the stage `buffered` includes.
  fileprivate static let bufferDuration = Duration.seconds(3)
  private var averages: [PreloadStage: Average] = [:]
  private var warmDecoder: WarmDecoder?

  package init() {}

  /// The average cost of a stage; `nil` until an item has reached it.
  package subscript(stage: PreloadStage) -> StageCost? { averages[stage]?.cost }

  /// The memory of an open decoder beyond that of the stage, in bytes; `nil` until one has been measured.
  package var warmDecoderByteCount: Int? { warmDecoder?.byteCount }

  /// True if nothing has been recorded yet.
  package var isEmpty: Bool { averages.isEmpty }

  /// Adds the cost of an item that has reached `stage`. The cost includes the earlier stages.
  package mutating func record(_ cost: StageCost, of stage: PreloadStage) {
    guard stage >= .manifest else { return }
    guard var average = averages[stage] else {
      averages[stage] = Average(cost: cost, sampleCount: 1)
      return
    }
    average.sampleCount = min(average.sampleCount + 1, Self.window)
    let (old, count) = (average.cost, average.sampleCount)
    average.cost = StageCost(
      memoryByteCount: Self.average(old.memoryByteCount, cost.memoryByteCount, count: count),
      networkByteCount: Self.average(old.networkByteCount, cost.networkByteCount, count: count),
      duration: old.duration + (cost.duration - old.duration) / count)
    averages[stage] = average
  }

  /// Adds the memory of a decoder that is kept open.
  package mutating func recordWarmDecoder(byteCount: Int) {
    guard let warmDecoder else {
      self.warmDecoder = WarmDecoder(byteCount: byteCount, sampleCount: 1)
      return
    }
    let count = min(warmDecoder.sampleCount + 1, Self.window)
    self.warmDecoder = WarmDecoder(
      byteCount: Self.average(warmDecoder.byteCount, byteCount, count: count), sampleCount: count)
  }

  /// Returns the expected memory of an item that has reached `target`, in bytes.
  ///
  /// A stage that has not been measured counts as the next later one that has. Media beyond the first frame counts in
  /// proportion to its duration, up to the target's byte limit.
  ///
  /// - Returns: `nil` if neither the stage nor a later one has been measured, or if the target keeps the decoder open
  ///   and no open decoder has been measured.
  package func memoryByteCount(of target: PreloadTarget) -> Int? {
    guard target.stage >= .manifest else { return 0 }
    guard var byteCount = knownMemory(of: target.stage) else { return nil }
    if target.stage == .buffered, let first = self[.firstFrame]?.memoryByteCount, first <= byteCount {
      var media = Double(byteCount - first) * max(target.bufferDuration / Self.bufferDuration, 0)
      if let limit = target.byteLimit { media = min(media, Double(max(limit, 0))) }
      byteCount = first.addingClamped(Int(clamping: media))
    }
    guard target.isDecoderWarm else { return byteCount }
    return warmDecoderByteCount.map { byteCount.addingClamped($0) }
  }

  // MARK: - Private

  private func knownMemory(of stage: PreloadStage) -> Int? {
    PreloadStage.allCases.first { $0 >= stage && averages[$0] != nil }
      .flatMap { averages[$0]?.cost.memoryByteCount }
  }

  private static func average(_ old: Int, _ new: Int, count: Int) -> Int { old + (new - old) / count }
}

extension Int {
  /// The sum; on overflow, the largest or smallest integer.
  package func addingClamped(_ other: Int) -> Int {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? (other > 0 ? .max : .min) : sum
  }

  /// The whole part of `value`, or the nearest representable integer; 0 for NaN.
  package init(clamping value: Double) {
    if value.isNaN {
      self = 0
    } else if value >= Double(Int.max) {
      self = .max
    } else {
      self = value <= Double(Int.min) ? .min : Int(value)
    }
  }
}

/// The cost of loading an item up to a stage, including all stages before it.
package struct StageCost: Sendable, Hashable {
  /// The memory held when the stage is reached, in bytes.
  package var memoryByteCount: Int
  /// The bytes fetched until then.
  package var networkByteCount: Int
  /// The time from the beginning of loading until then.
  package var duration: Duration

  package init(memoryByteCount: Int, networkByteCount: Int, duration: Duration) {
    self.memoryByteCount = memoryByteCount
    self.networkByteCount = networkByteCount
    self.duration = duration
  }
}

/// The distribution of a link's rate in the next seconds, estimated from measurements.
///
/// The logarithm of the rate follows Student's t-distribution with two degrees of freedom around the measured one. Its
/// scale is the measured deviation and, for changes that were not seen yet, a drift.
struct LinkForecast: Sendable {
  /// The drift: the typical change of the logarithm of the rate over 5 s on recorded links.
  private static let drift = 0.3
  /// The mean duration of a rate, in seconds: the time in which a sample of the meter loses half of its
  /// weight.
  private static let meanDuration = ThroughputMeter.halfLife.inSeconds

  let roundTrip: Duration
  /// The rate that the link sustains four times out of five, in bits per second.
  let likelyRate: Double
  /// The rate that the link sustains nine times out of ten, in bits per second.
  let safeRate: Double
  /// Rates, each with its probability, in rising order.
  private let rates: [(rate: Double, share: Double)]

  /// - Parameter throughput: An estimate with a mean above 0.
  init(_ throughput: ThroughputEstimate) {
    let mean = throughput.mean
    roundTrip = throughput.roundTripTime ?? .zero
    let variation = throughput.standardDeviation / mean
    let variance = log1p(variation * variation) + Self.drift * Self.drift
    let spread = variance.squareRoot()
    func rate(at probability: Double) -> Double {
      let quantile = (2 * probability - 1) / (2 * probability * (1 - probability)).squareRoot()
      return mean * exp(quantile * spread - variance / 2)
    }
    likelyRate = rate(at: 0.2)
    safeRate = rate(at: 0.1)
    // The steps are finer towards low rates, which matter most.
    let lower = (0...24).reversed().map { 0.5 * pow(0.75, Double($0)) }
    let upper = (1...8).map { 0.5 + 0.0625 * Double($0) }
    let bounds = [0] + lower + upper
    rates = zip(bounds, bounds.dropFirst()).map { (rate(at: ($0 + $1) / 2), $1 - $0) }
  }

  /// Returns the probability that an item runs dry.
  ///
  /// At a rate C below the item's bit rate r, it loses 1 - C/r seconds of media each second. The durations of
  /// bad moments are exponentially distributed.
  ///
  /// - Parameter buffered: The media ahead, in seconds.
  func risk(bitRate: Double, buffered: Double) -> Double {
    var sum = 0.0
    for (rate, share) in rates {
      guard rate < bitRate else { break }
      sum += share * exp(-buffered / (Self.meanDuration * (1 - rate / bitRate)))
    }
    return sum
  }

  /// Returns the probability that a bad moment lasts until the viewer swipes, which happens at a constant
  /// rate after `seconds` on average.
  func persistence(for seconds: Double) -> Double { Self.meanDuration / (Self.meanDuration + seconds) }
}
