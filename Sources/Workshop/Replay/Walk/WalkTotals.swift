public import ReelCore
public import ReelPlayback

/// The figures of a whole walk.
///
/// Waits and hits cover the swipes that count (``SwipeRecord/isCounted``): not the start of the walk, items passed by
/// in a burst, and items that failed before their first frame. A wait that the viewer gave up counts with its duration
/// until then. Stalls, watched time and rungs cover all items.
public struct WalkTotals: Sendable, Hashable {
  /// The number of swipes that count.
  public let countedSwipeCount: Int
  /// The number of all swipes, including those within bursts.
  public let swipeCount: Int
  /// The number of swipes that count whose item was left before its first frame.
  public let abandonedSwipeCount: Int
  /// The waits from the settle to the first frame.
  public let firstFrame: LatencyTable
  /// The waits from the settle to the second frame.
  public let secondFrame: LatencyTable
  /// For each stage, the number of swipes that count which found it or a later one reached.
  public let reachedCounts: [PreloadStage: Int]
  /// The number of stalls.
  public let stallCount: Int
  /// The total duration of the stalls.
  public let stallDuration: Duration
  /// The duration of the longest stall.
  public let longestStall: Duration
  /// The time for which items were looked at, from their first frames until they were left, with the stalls.
  public let watchedDuration: Duration
  /// The mean of the stated bit rates of the shown frames, weighted by their media time, in bits per second; `nil` if no
  /// frame of a rung with a stated bit rate was shown.
  public let meanBitRate: Double?
  /// The number of times that another rung of the same item was shown while the item was looked at.
  public let rungSwitchCount: Int
  /// The bytes fetched for all items.
  public let fetchedByteCount: Int64
  /// The fetched bytes that were never shown.
  public let unshownByteCount: Int64
  /// The frames decoded for all items.
  public let decodedFrameCount: Int
  /// The decoded frames that were never shown.
  public let unshownFrameCount: Int
  /// The peak memory of the slot that held the most, in bytes; `nil` if it was not measured.
  public let slotHighWaterByteCount: Int?
  /// The peak memory of all slots together, in bytes; `nil` if it was not measured.
  public let poolHighWaterByteCount: Int?
  /// The number of items that failed.
  public let failedItemCount: Int

  /// Computes the figures of a report.
  public init(_ report: WalkReport) {
    let counted = report.swipes.filter(\.isCounted)
    countedSwipeCount = counted.count
    swipeCount = report.swipes.filter { $0.kind != .start }.count
    abandonedSwipeCount = counted.filter { $0.timeToFirstFrame == nil }.count
    firstFrame = LatencyTable(counted, measured: \.timeToFirstFrame, counted: \.countedFirstFrame)
    secondFrame = LatencyTable(counted, measured: \.timeToSecondFrame, counted: \.countedSecondFrame)
    reachedCounts = Dictionary(
      uniqueKeysWithValues: PreloadStage.allCases.map { stage in
        (stage, counted.filter { $0.stage >= stage }.count)
      })
    stallCount = report.swipes.reduce(0) { $0 + $1.stallCount }
    stallDuration = report.swipes.reduce(.zero) { $0 + $1.stallDuration }
    longestStall = report.swipes.map(\.longestStall).max() ?? .zero
    watchedDuration = report.swipes.reduce(.zero) { sum, swipe in
      sum + (swipe.timeToFirstFrame.map { max(.zero, swipe.watched - $0) } ?? .zero)
    }
    let rated = report.swipes.flatMap(\.rungs).compactMap { rung in
      rung.bitRate.map { (bitRate: $0, duration: rung.duration) }
    }
    let seconds = rated.reduce(Duration.zero) { $0 + $1.duration } / .seconds(1)
    let bits = rated.reduce(0) { $0 + Double($1.bitRate) * ($1.duration / .seconds(1)) }
    meanBitRate = seconds > 0 ? bits / seconds : nil
    rungSwitchCount = report.swipes.reduce(0) { $0 + $1.rungSwitchCount }
    fetchedByteCount = report.fetchedByteCount
    unshownByteCount = report.unshownByteCount
    decodedFrameCount = report.decodedFrameCount
    unshownFrameCount = report.unshownFrameCount
    slotHighWaterByteCount = report.slotHighWaterByteCounts.max()
    poolHighWaterByteCount = report.poolHighWaterByteCount
    failedItemCount = report.failedItems.count
  }

  /// The share of counted swipes that found the stage reached, from 0 to 1; `nil` if no swipe was counted.
  public func hitRatio(_ stage: PreloadStage = .firstFrame) -> Double? {
    Self.share(reachedCounts[stage] ?? 0, of: countedSwipeCount)
  }

  /// The time of all stalls as a share of ``watchedDuration``; `nil` if nothing was watched.
  public var rebufferingRatio: Double? {
    watchedDuration > .zero ? stallDuration / watchedDuration : nil
  }

  /// The share of the fetched bytes that were never shown, from 0 to 1; `nil` if nothing was fetched.
  public var unshownByteShare: Double? { Self.share(unshownByteCount, of: fetchedByteCount) }

  /// The share of the decoded frames that were never shown, from 0 to 1; `nil` if none was decoded.
  public var unshownFrameShare: Double? { Self.share(unshownFrameCount, of: decodedFrameCount) }

  // MARK: - Private

  private static func share(_ part: some BinaryInteger, of whole: some BinaryInteger) -> Double? {
    whole > 0 ? Double(part) / Double(whole) : nil
  }
}

extension WalkTotals: Encodable {
  private enum CodingKeys: String, CodingKey {
    case swipeCount = "swipes"
    case countedSwipeCount = "counted_swipes"
    case abandonedSwipeCount = "abandoned_swipes"
    case firstFrame = "ttff"
    case secondFrame
    case hitRatio = "hit_ratio"
    case hitRatios = "hit_ratio_by_stage"
    case stallCount = "stalls"
    case stallDuration = "stalled_ms"
    case longestStall = "longest_stall_ms"
    case watchedDuration = "watched_ms"
    case rebufferingRatio = "rebuffering_ratio"
    case meanBitRate = "mean_bit_rate"
    case rungSwitchCount = "rung_switches"
    case fetchedByteCount = "fetched_bytes"
    case unshownByteCount = "unshown_bytes"
    case decodedFrameCount = "decoded_frames"
    case unshownFrameCount = "unshown_frames"
    case slotHighWaterByteCount = "slot_peak_bytes"
    case poolHighWaterByteCount = "pool_peak_bytes"
    case failedItemCount = "failed_items"
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    try values.encode(swipeCount, forKey: .swipeCount)
    try values.encode(countedSwipeCount, forKey: .countedSwipeCount)
    try values.encode(abandonedSwipeCount, forKey: .abandonedSwipeCount)
    try values.encode(firstFrame, forKey: .firstFrame)
    try values.encode(secondFrame, forKey: .secondFrame)
    try values.encodeIfPresent(hitRatio(), forKey: .hitRatio)
    let ratios = PreloadStage.allCases.dropFirst().compactMap { stage in
      hitRatio(stage).map { (stage.reportName, $0) }
    }
    try values.encode(Dictionary(uniqueKeysWithValues: ratios), forKey: .hitRatios)
    try values.encode(stallCount, forKey: .stallCount)
    try values.encode(milliseconds: stallDuration, forKey: .stallDuration)
    try values.encode(milliseconds: longestStall, forKey: .longestStall)
    try values.encode(milliseconds: watchedDuration, forKey: .watchedDuration)
    try values.encodeIfPresent(rebufferingRatio, forKey: .rebufferingRatio)
    try values.encodeIfPresent(meanBitRate, forKey: .meanBitRate)
    try values.encode(rungSwitchCount, forKey: .rungSwitchCount)
    try values.encode(fetchedByteCount, forKey: .fetchedByteCount)
    try values.encode(unshownByteCount, forKey: .unshownByteCount)
    try values.encode(decodedFrameCount, forKey: .decodedFrameCount)
    try values.encode(unshownFrameCount, forKey: .unshownFrameCount)
    try values.encodeIfPresent(slotHighWaterByteCount, forKey: .slotHighWaterByteCount)
    try values.encodeIfPresent(poolHighWaterByteCount, forKey: .poolHighWaterByteCount)
    try values.encode(failedItemCount, forKey: .failedItemCount)
  }
}

/// A named figure of a walk.
public typealias WalkMetric = Figure<WalkTotals>

extension Figure where Run == WalkTotals {
  /// All metrics, in the order of the help text.
  public static var all: [WalkMetric] { WalkMetrics.all }

  /// Where the metrics are listed.
  static var listing: String { "reel feed --help lists the metrics" }

  /// The metric with this name, in any letter case.
  ///
  /// - Throws: `ReelError` of kind `usage`, with a similar name if one exists, if there is none.
  public static func named(_ name: String) throws(ReelError) -> WalkMetric {
    try named(name, among: all, advice: listing)
  }
}

/// The figures of walks.
private enum WalkMetrics {
  static let all: [WalkMetric] =
    latencies("ttff", "from the settle to the first frame") { $0.firstFrame }
    + latencies("second_frame", "from the settle to the second frame") { $0.secondFrame } + hits + costs

  private static func latencies(
    _ prefix: String, _ meaning: String, _ table: @escaping @Sendable (WalkTotals) -> LatencyTable
  ) -> [WalkMetric] {
    typealias Group = @Sendable (LatencyTable) -> LatencySummary?
    typealias Place = @Sendable (LatencySummary) -> Duration
    let groups: [(name: String, meaning: String, absence: String, find: Group)] = [
      ("", "", "no swipe was counted", { $0.all }), (".hit", " of hits", "no swipe was a hit", { $0.hits }),
      (".miss", " of misses", "no swipe was a miss", { $0.misses }),
    ]
    let places: [(name: String, meaning: String, find: Place)] = [
      ("p50", "50th percentile", { $0.p50 }), ("p95", "95th percentile", { $0.p95 }),
      ("p99", "99th percentile", { $0.p99 }), ("max", "the longest", { $0.max }),
    ]
    let shares = [
      WalkMetric(
        "\(prefix).over100ms", "waits \(meaning) of more than 100 ms", [.share, .count],
        absence: "no swipe was counted"
      ) { totals, kind in
        table(totals).all.map { kind == .count ? .count($0.over100msCount) : .share($0.shareOver100ms) }
      },
      WalkMetric(
        "\(prefix).over1s", "waits \(meaning) of more than 1 s", [.share, .count],
        absence: "no swipe was counted"
      ) { totals, kind in
        table(totals).all.map { kind == .count ? .count($0.over1sCount) : .share($0.shareOver1s) }
      },
    ]
    return groups.flatMap { group in
      places.map { place in
        let (summary, duration) = (group.find, place.find)
        return WalkMetric(
          "\(prefix)\(group.name).\(place.name)", "time \(meaning)\(group.meaning), \(place.meaning)",
          [.time],
          absence: group.absence
        ) { totals, _ in
          summary(table(totals)).map { .time(duration($0)) }
        }
      }
    } + shares
  }

  private static let hits: [WalkMetric] =
    [
      WalkMetric(
        "hit.ratio", "swipes whose first frame was ready", [.share], absence: "no swipe was counted"
      ) { totals, _ in totals.hitRatio().map { .share($0) } }
    ]
    + PreloadStage.allCases.dropFirst().map { stage in
      WalkMetric(
        "hit.ratio.\(stage.reportName)", "swipes whose item had reached stage \(stage.reportName)", [.share],
        absence: "no swipe was counted"
      ) { totals, _ in totals.hitRatio(stage).map { .share($0) } }
    }

  private static let costs: [WalkMetric] = [
    WalkMetric("stall.count", "number of stalls", [.count]) { totals, _ in .count(totals.stallCount) },
    WalkMetric("stall.total", "total time of all stalls", [.time]) { totals, _ in
      .time(totals.stallDuration)
    },
    WalkMetric("stall.max", "longest stall", [.time]) { totals, _ in .time(totals.longestStall) },
    WalkMetric(
      "rebuffer.ratio", "stalled share of the time watched from first frames on", [.share],
      absence: "nothing was watched"
    ) { totals, _ in totals.rebufferingRatio.map { .share($0) } },
    WalkMetric(
      "rung.mean", "mean declared bit rate of the frames shown, weighted by time", [.bitRate],
      absence: "no rung with a stated bit rate was shown"
    ) { totals, _ in totals.meanBitRate.map { .bitRate($0) } },
    WalkMetric("rung.switches", "changes of rung within items", [.count]) { totals, _ in
      .count(totals.rungSwitchCount)
    },
    WalkMetric("bytes.fetched", "bytes fetched for all items", [.size]) { totals, _ in
      .size(totals.fetchedByteCount)
    },
    WalkMetric(
      "bytes.wasted", "bytes fetched but never shown", [.share, .size], absence: "nothing was fetched"
    ) {
      totals, kind in
      kind == .size ? .size(totals.unshownByteCount) : totals.unshownByteShare.map { .share($0) }
    },
    WalkMetric("frames.decoded", "frames decoded for all items", [.count]) { totals, _ in
      .count(totals.decodedFrameCount)
    },
    WalkMetric(
      "frames.wasted", "frames decoded but never shown", [.share, .count], absence: "no frame was decoded"
    ) { totals, kind in
      kind == .count ? .count(totals.unshownFrameCount) : totals.unshownFrameShare.map { .share($0) }
    },
    WalkMetric("slot.memory", "peak memory of any slot", [.size], absence: "memory was not measured") {
      totals, _ in totals.slotHighWaterByteCount.map { .size(Int64($0)) }
    },
    WalkMetric(
      "pool.memory", "peak memory of all slots together", [.size], absence: "memory was not measured"
    ) {
      totals, _ in totals.poolHighWaterByteCount.map { .size(Int64($0)) }
    },
    WalkMetric(
      "failed", "items that could not be played, whether or not the viewer waited for the error", [.count]
    ) { totals, _ in
      .count(totals.failedItemCount)
    },
    WalkMetric("abandoned", "swipes left before their first frame, to items that did not fail", [.count]) {
      totals, _ in
      .count(totals.abandonedSwipeCount)
    },
  ]
}
