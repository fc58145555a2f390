import ReelCore
import ReelPlayback
import ReelPool
import ReelReplay

extension AssertionOutcome {
  /// The outcome with its verdict in colour.
  func text(in layout: TextLayout) -> String {
    let verdict = layout.styled(isMet ? "met" : "not met", isMet ? .good : .bad)
    return "\(assertion): \(verdict), \(finding)"
  }
}

extension WalkReport {
  /// The report for people: a line of what was done, the waits as a table, hits, stalls, bytes, memory, failures; with
  /// `includingSwipes` a table of all swipes before them.
  func text(includingSwipes: Bool = false) -> String {
    let totals = totals
    var lines = [headline(totals)]
    if includingSwipes, !swipes.isEmpty { lines += swipeTable.lines }
    lines += Self.waits(totals).lines
    lines += slowest(totals)
    var facts = TextTable([.left, .left], indentation: 2)
    for (name, fact) in rows(of: totals) {
      facts.add([name, fact], styles: name == "failed" && !failedItems.isEmpty ? [0: .bad] : [:])
    }
    lines += facts.lines
    lines += failureLines.map { "  \($0)" }
    return lines.joined(separator: "\n")
  }

  /// A line for each item that failed.
  var failureLines: [String] {
    failedItems.map { "failed: item \($0.index), \($0.error.printable)" }
  }

  // MARK: - Private

  private func headline(_ totals: WalkTotals) -> String {
    let swipes = totals.swipeCount.counted("swipe")
    var parts = [
      "\(swipes) over \(settings.itemCount.counted("item")) in \(DurationText.readable(duration))",
      settings.slotCount.counted("slot"), settings.policy,
    ]
    if let link = settings.link { parts.append(link) }
    parts.append(settings.dwell)
    if let shares = settings.shares, shares != .usual { parts.append(shares.description) }
    if settings.firstRung != .adapted { parts.append("first rung \(settings.firstRung.rawValue)") }
    parts.append("seed \(settings.seed)")
    if let device = settings.device { parts.append("device \(device)") }
    if isInterrupted { parts.append("interrupted") }
    if settings.isVirtual {
      let cost = settings.decodeCost.map { ", \(DurationText.readable($0)) per frame" } ?? ""
      parts.append("simulated time\(cost)")
    }
    return "\(label.isEmpty ? settings.feed : label): \(parts.joined(separator: ", "))".printable
  }

  private static func waits(_ totals: WalkTotals) -> TextTable {
    var table = TextTable([.left, .left], indentation: 2)
    table.add(["", "", "swipes", "p50", "p95", "p99", "max", "> 100 ms", "> 1 s"])
    for (name, waits) in [("first frame", totals.firstFrame), ("second frame", totals.secondFrame)] {
      let groups = [("all", waits.all), ("hits", waits.hits), ("misses", waits.misses)]
      for (index, (group, summary)) in groups.enumerated() {
        let times = summary.map { summary in
          [summary.p50, summary.p95, summary.p99, summary.max].map(DurationText.readable)
            + [summary.shareOver100ms, summary.shareOver1s].map { WalkValue.share($0).description }
        }
        table.add(
          [index == 0 ? name : "", group, String(summary?.count ?? 0)]
            + (times ?? Array(repeating: "-", count: 6)),
          styles: group == "hits" ? [1: .good] : group == "misses" ? [1: .bad] : [:])
      }
    }
    return table
  }

  private func slowest(_ totals: WalkTotals) -> [String] {
    [
      ("slowest first frame", totals.firstFrame.slowest),
      ("slowest second frame", totals.secondFrame.slowest),
    ]
    .compactMap { name, slowest in
      guard let slowest, slowest.duration >= .milliseconds(1) else { return nil }
      let found = swipes.first { $0.number == slowest.swipe && !$0.isPassing }.map(\.found) ?? "nothing"
      let cause = slowest.cause.map { ": found \(found), waited for \($0)" } ?? ""
      let place =
        "swipe \(slowest.swipe) to item \(slowest.itemIndex)\(slowest.isAbandoned ? ", left" : "")"
      return "  \(name): \(DurationText.readable(slowest.duration)), \(place)\(cause)".printable
    }
  }

  private func rows(of totals: WalkTotals) -> [(name: String, fact: String)] {
    func share(_ share: Double?) -> String { share.map { " (\(WalkValue.share($0)))" } ?? "" }
    func size(_ byteCount: Int64) -> String { WalkValue.size(byteCount).description }
    let stages = PreloadStage.allCases.dropFirst().compactMap { stage in
      totals.hitRatio(stage).map { "\(stage.reportName) \(WalkValue.share($0))" }
    }
    let stalls =
      "\(totals.stallCount), \(DurationText.readable(totals.stallDuration)) in all, "
      + "the longest \(DurationText.readable(totals.longestStall))"
      + (totals.rebufferingRatio.map { ", \(WalkValue.share($0)) of the time watched" } ?? "")
    var facts: [(name: String, fact: String)] = [
      ("reached", stages.isEmpty ? "no swipe was counted" : stages.joined(separator: ", ")),
      ("stalls", totals.stallCount == 0 ? "none" : stalls),
      (
        "bytes",
        "\(size(totals.fetchedByteCount)) fetched, \(size(totals.unshownByteCount)) never shown"
          + share(totals.unshownByteShare)
      ),
      (
        "frames",
        "\(totals.decodedFrameCount) decoded, \(totals.unshownFrameCount) never shown"
          + share(totals.unshownFrameShare)
      ),
    ]
    if let mean = totals.meanBitRate {
      let switches = totals.rungSwitchCount.counted("switch", "switches")
      facts.append(("rungs", "\(WalkValue.bitRate(mean)) on average, \(switches)"))
    }
    if totals.abandonedSwipeCount > 0 {
      facts.append(("abandoned", "\(totals.abandonedSwipeCount) left before their first frame"))
    }
    if !slotHighWaterByteCounts.isEmpty {
      var memory = "at most \(Self.list(slotHighWaterByteCounts)) by slot"
      if let pool = totals.poolHighWaterByteCount { memory += ", \(size(Int64(pool))) in all" }
      facts.append(("memory", memory))
    }
    facts.append(
      (
        "failed",
        failedItems.isEmpty ? "none" : "\(failedItems.count) of \(settings.itemCount.counted("item"))"
      ))
    return facts
  }

  /// More slots than this are told of by three figures.
  private static let listedSlotLimit = 8

  /// Each, in their order; of many the most, the median by nearest rank, and the least.
  private static func list(_ byteCounts: [Int]) -> String {
    func size(_ byteCount: Int) -> String { WalkValue.size(Int64(byteCount)).description }
    let sorted = byteCounts.sorted()
    guard sorted.count > listedSlotLimit, let least = sorted.first, let most = sorted.last else {
      return byteCounts.map(size).joined(separator: ", ")
    }
    return "\(size(most)) (median \(size(sorted[(sorted.count - 1) / 2])), least \(size(least)))"
  }

  private var swipeTable: TextTable {
    var table = TextTable(
      [.right, .right, .left, .right, .left, .right, .right, .right, .right, .left], indentation: 2)
    table.add([
      "swipe", "at", "kind", "item", "stage", "first frame", "second frame", "stalled", "fetched", "cause",
    ])
    for swipe in swipes {
      table.add(
        [
          String(swipe.number), DurationText.readable(swipe.time),
          swipe.isPassing ? "passing" : swipe.kind.rawValue, String(swipe.itemIndex), swipe.stage.reportName,
          swipe.timeToFirstFrame.map(DurationText.readable) ?? "-",
          swipe.timeToSecondFrame.map(DurationText.readable) ?? "-",
          swipe.stallCount == 0 ? "-" : DurationText.readable(swipe.stallDuration),
          WalkValue.size(swipe.byteCount).description, swipe.error ?? swipe.cause ?? "",
        ], styles: swipe.isCounted ? [4: swipe.isHit ? .good : .bad] : [:])
    }
    return table
  }
}
