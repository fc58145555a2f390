public import ReelCore
internal import ReelPlayback

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
