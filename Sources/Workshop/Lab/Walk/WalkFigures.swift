internal import ReelPlayback

package typealias WalkFigure = Figure<WalkTotals>

/// The figures of walks. A figure is declared here, and what shows figures takes it from ``all``.
package enum WalkFigures {
  /// All figures, in the order of help texts and tables.
  package static let all: [WalkFigure] =
    delays(
      "first_frame", "first frame",
      [
        "p50": [.page, .comparison, .links, .lab], "p95": [.page, .comparison, .lab],
        "p99": [.comparison, .lab], "max": [.comparison], "hit.p99": [.comparison], "miss.p95": [.comparison],
      ]
    ) { $0.firstFrame }
    + delays(
      "second_frame", "second frame",
      [
        "p50": [.page, .comparison, .links, .lab, .means],
        "p95": [.page, .comparison, .links, .lab, .means, .differences],
        "p99": [.comparison, .lab, .means], "max": [.comparison], "mean": [.lab],
        "over_100ms": [.comparison, .lab, .means], "over_1s": [.comparison, .lab],
      ]
    ) { $0.secondFrame }
    + waits + hits + costs

  package static func all(in place: FigurePlace) -> [WalkFigure] { all.filter { $0.places.contains(place) } }

  /// The figure with this name.
  ///
  /// - Precondition: There is one.
  package static subscript(_ name: String) -> WalkFigure {
    guard let figure = all.first(where: { $0.name == name }) else {
      preconditionFailure("there is no figure \(name)")
    }
    return figure
  }

  // MARK: - Private

  /// The delays of a frame: of all swipes, of hits and of misses.
  ///
  /// - Parameter places: By the rest of the name.
  private static func delays(
    _ prefix: String, _ frame: String, _ places: [String: Set<FigurePlace>],
    _ table: @escaping @Sendable (WalkTotals) -> LatencyTable
  ) -> [WalkFigure] {
    typealias Group = @Sendable (LatencyTable) -> LatencySummary?
    typealias Place = @Sendable (LatencySummary) -> Duration
    typealias Count = @Sendable (LatencySummary) -> Int
    let groups: [(name: String, words: String, absence: String, find: Group)] = [
      ("", "", "no swipe was counted", { $0.all }), ("hit.", " of hits", "no swipe was a hit", { $0.hits }),
      ("miss.", " of misses", "no swipe was a miss", { $0.misses }),
    ]
    let times: [(name: String, title: String, meaning: String, find: Place)] = [
      ("p50", "p50", "50th percentile", { $0.p50 }), ("p95", "p95", "95th percentile", { $0.p95 }),
      ("p99", "p99", "99th percentile", { $0.p99 }), ("max", "longest", "the longest", { $0.max }),
      ("mean", "mean", "the mean", { $0.mean }),
    ]
    let limits: [(name: String, text: String, heading: String?, find: Count)] = [
      ("over_100ms", "100 ms", ">100 ms", { $0.over100msCount }), ("over_1s", "1 s", nil, { $0.over1sCount }),
    ]
    var figures: [WalkFigure] = []
    for group in groups {
      let summary: @Sendable (WalkTotals) -> LatencySummary? = { group.find(table($0)) }
      let delay = "\(frame)\(group.words)"
      for time in times {
        let name = group.name + time.name
        figures.append(
          WalkFigure(
            "\(prefix).\(name)", "\(delay), \(time.title)",
            "time from the settle to the \(delay), \(time.meaning)", .time, places[name] ?? [],
            heading: time.name, absence: group.absence
          ) { summary($0).map { .time(time.find($0)) } })
      }
      for limit in limits {
        let name = group.name + limit.name
        figures.append(
          WalkFigure(
            "\(prefix).\(name)", "\(delay) over \(limit.text)",
            "waits from the settle to the \(delay) of more than \(limit.text)", [.share, .count],
            places[name] ?? [], heading: limit.heading, absence: group.absence
          ) { totals, kind in
            summary(totals).flatMap { .part(Int64(limit.find($0)), of: Int64($0.count), as: kind) }
          })
      }
      figures.append(
        WalkFigure(
          "\(prefix).\(group.name)count", "\(delay), swipes",
          "number of waits from the settle to the \(delay)",
          .count
        ) { .count(summary($0)?.count ?? 0) })
    }
    return figures
  }

  /// The parts of the wait after a swipe, by mean. All but the last add up to the mean wait for the first frame.
  private static let waits: [WalkFigure] = [
    ("manifest", "manifests", "manifests, playlists and keys"),
    ("initialization", "initialization segments", "initialization segments"),
    ("answer", "responses", "the beginning of segments: round trips, and connections that had to be opened"),
    ("transfer", "transfers", "the bytes of segments"), ("decode", "decoding", "decoding"),
    ("preparing", "preparing", "other downloads, parsing and demuxing"),
    ("second_frame", "the second frame", "the second frame, from the first one on"),
  ].map { name, title, meaning in
    WalkFigure(
      "wait.\(name)", "wait for \(title)", "mean wait of a swipe for \(meaning)", .time, [.lab],
      absence: "no swipe was counted"
    ) { totals in
      totals.counted.isEmpty ? nil : .time((totals.waits[name] ?? .zero) / totals.counted.count)
    }
  }

  private static let hits: [WalkFigure] =
    [
      WalkFigure("swipes", "swipes", "number of swipes", .count, [.lab]) { .count($0.swipeCount) },
      WalkFigure("counted_swipes", "counted swipes", "number of swipes whose waits count", .count) {
        .count($0.counted.count)
      },
      WalkFigure(
        "hit.ratio", "hits", "swipes whose first frame was ready", .share, [.page, .comparison, .links],
        absence: "no swipe was counted"
      ) { $0.hitRatio().map(WalkValue.share) },
    ]
    + PreloadStage.ofPlayers.map { stage in
      WalkFigure(
        "reached.\(stage.reportName)", "hits with the stage \(stage.reportName)",
        "swipes whose item had reached stage \(stage.reportName)", .share,
        stage == .buffered ? [.comparison] : [], absence: "no swipe was counted"
      ) { $0.hitRatio(stage).map(WalkValue.share) }
    }

  private static let costs: [WalkFigure] = [
    WalkFigure("stalls.count", "stalls", "number of stalls", .count, [.page, .comparison, .links, .lab]) {
      .count($0.report.swipes.reduce(0) { $0 + $1.stallCount })
    },
    WalkFigure(
      "stalls.total", "stalled in all", "total time of all stalls", .time, [.page, .comparison, .links]
    ) { .time($0.stallDuration) },
    WalkFigure("stalls.max", "longest stall", "longest stall", .time, [.comparison]) {
      .time($0.report.swipes.map(\.longestStall).max() ?? .zero)
    },
    WalkFigure("watched", "watched", "time watched, from first frames on", .time) {
      .time($0.watchedDuration)
    },
    WalkFigure(
      "rebuffering", "rebuffering", "stalled share of the time watched from first frames on", .share,
      [.comparison, .lab, .means, .differences], heading: "rebuf.", absence: "nothing was watched"
    ) { totals in
      let watched = totals.watchedDuration
      return watched > .zero ? .share(totals.stallDuration / watched) : nil
    },
    WalkFigure(
      "rung.mean", "mean bit rate", "mean declared bit rate of the frames shown, weighted by time", .bitRate,
      [.comparison, .lab, .means], heading: "rung",
      absence: "no rung with a stated bit rate was shown"
    ) { $0.meanBitRate.map(WalkValue.bitRate) },
    WalkFigure(
      "rung.switches", "rung switches", "changes of rung within items", .count, [.comparison, .lab]
    ) { .count($0.report.swipes.reduce(0) { $0 + $1.rungSwitchCount }) },
    WalkFigure(
      "bytes.fetched", "bytes fetched", "bytes fetched for all items", .size,
      [.page, .comparison, .links, .lab, .means, .differences], heading: "fetched"
    ) { .size($0.report.fetchedByteCount) },
    WalkFigure(
      "bytes.wasted", "wasted bytes", "bytes fetched but never shown", [.share, .size],
      [.page, .comparison, .links, .lab, .means], heading: "wasted",
      absence: "nothing was fetched"
    ) { .part($0.report.unshownByteCount, of: $0.report.fetchedByteCount, as: $1) },
    WalkFigure(
      "frames.decoded", "decoded frames", "frames decoded for all items", .count, [.lab],
      absence: "a modelled player decodes no frames"
    ) { $0.report.settings.player == nil ? .count($0.report.decodedFrameCount) : nil },
    WalkFigure(
      "frames.wasted", "wasted frames", "frames decoded but never shown", [.share, .count], [.comparison],
      absence: "no frame was decoded"
    ) { totals, kind in
      let report = totals.report
      return report.settings.player == nil
        ? .part(Int64(report.unshownFrameCount), of: Int64(report.decodedFrameCount), as: kind) : nil
    },
    WalkFigure(
      "memory.slot", "peak memory of a slot", "peak memory of any slot", .size, [.comparison],
      absence: "memory was not measured"
    ) { $0.report.slotHighWaterByteCounts.max().map { .size(Int64($0)) } },
    WalkFigure(
      "memory.pool", "peak memory", "peak memory of all slots together", .size,
      [.page, .comparison, .lab, .means], heading: "memory",
      absence: "memory was not measured"
    ) { $0.report.poolHighWaterByteCount.map { .size(Int64($0)) } },
    WalkFigure(
      "failed", "failed items",
      "items that could not be played, whether or not the viewer waited for the error",
      .count, [.page, .comparison, .links, .lab]
    ) { .count($0.report.failedItems.count) },
    WalkFigure(
      "abandoned", "abandoned swipes", "swipes left before their first frame, to items that did not fail",
      .count, [.page, .comparison, .links, .lab]
    ) { .count($0.counted.count { $0.timeToFirstFrame == nil }) },
  ]
}

extension WalkTotals: Encodable {
  /// Writes ``WalkFigures/all``, and the swipes that waited longest as `first_frame.slowest` and `second_frame.slowest`.
  package func encode(to encoder: any Encoder) throws {
    try Figure.encode(WalkFigures.all, of: self, to: encoder)
    var object = encoder.container(keyedBy: JSONFields.Name.self)
    for (name, table) in [("first_frame", firstFrame), ("second_frame", secondFrame)] {
      var delays = object.nestedContainer(keyedBy: JSONFields.Name.self, forKey: JSONFields.Name(name))
      try delays.encodeIfPresent(table.slowest, forKey: JSONFields.Name("slowest"))
    }
  }
}
