import ReelCore
import ReelPlayback
import ReelPool
import ReelLab

extension AssertionOutcome {
  /// Returns the outcome with its verdict in colour.
  func text(in layout: TextLayout) -> String {
    let verdict = layout.styled(isMet ? "met" : "not met", isMet ? .good : .bad)
    return "\(assertion): \(verdict), \(finding)"
  }
}

extension Table {
  /// A table of assertions with their verdicts and findings.
  init(assertions: [AssertionOutcome]) {
    let rows = assertions.map { [$0.assertion, $0.isMet ? "yes" : "no", $0.finding] }
    self.init(["assertion", "met", "value"], rows, numbers: 2..<3)
  }
}

extension WalkReport {
  /// Returns the text of the report: a line with the settings, the waits as a table, hits, stalls, bytes,
  /// memory, failures; with `includingSwipes`, a table of all swipes before them.
  func text(includingSwipes: Bool = false) -> String {
    let totals = totals
    var lines = [headline(totals)]
    if includingSwipes, !swipes.isEmpty { lines += swipeTable.lines }
    lines += Self.waits(totals).lines
    lines += slowest(totals)
    var facts = Table([.left, .left], indentation: 2)
    for (name, fact) in rows(of: totals) {
      facts.add([name, fact], styles: name == "failed" && !failedItems.isEmpty ? [0: .bad] : [:])
    }
    lines += facts.lines
    lines += failureLines.map { "  \($0)" }
    if let visits, let plan = settings.visits {
      lines += Table.visits([("", visits)], indentation: 2).lines
      lines.append("  \(plan.verdict([visits]))")
    }
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
      "\(swipes) over \(settings.itemCount.counted("item")) in \(DurationText.readable(duration))"
    ]
    if poolName == label { parts += [settings.slotCount.counted("slot"), settings.policy] }
    if let link = settings.linkWords { parts.append(link) }
    parts.append(settings.waitWords)
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
    return
      "\(settings.ownerWords)\(label.isEmpty ? settings.feed : poolName): \(parts.joined(separator: ", "))"
      .printable
  }

  private static func waits(_ totals: WalkTotals) -> Table {
    var table = Table([.left, .left], indentation: 2)
    table.add(["", "", "swipes", "p50", "p95", "p99", "max", "> 100 ms", "> 1 s"])
    for (title, frame) in [("first frame", "first_frame"), ("second frame", "second_frame")] {
      for (group, infix) in [("all", ""), ("hits", ".hit"), ("misses", ".miss")] {
        table.add(
          [group == "all" ? title : "", group]
            + ["count", "p50", "p95", "p99", "max", "over_100ms", "over_1s"].map { name in
              totals.text("\(frame)\(infix).\(name)")
            },
          styles: group == "hits" ? [1: .good] : group == "misses" ? [1: .bad] : [:])
      }
    }
    return table
  }

  private func slowest(_ totals: WalkTotals) -> [String] {
    var described: Int?
    return [
      ("slowest first frame", totals.firstFrame.slowest),
      ("slowest second frame", totals.secondFrame.slowest),
    ]
    .compactMap { name, slowest in
      guard let slowest, slowest.duration >= .milliseconds(1) else { return nil }
      let line = "  \(name): \(DurationText.readable(slowest.duration)), "
      if slowest.swipe == described { return line + "the same swipe" }
      described = slowest.swipe
      let loaded = swipes.first { $0.number == slowest.swipe && !$0.isPassing }.map(\.found) ?? "nothing"
      let cause = slowest.cause.map { ": loaded before: \(loaded); waited for \($0)" } ?? ""
      let place =
        "swipe \(slowest.swipe) to item \(slowest.itemIndex)\(slowest.isAbandoned ? ", left" : "")"
      return "\(line)\(place)\(cause)".printable
    }
  }

  private func rows(of totals: WalkTotals) -> [(name: String, fact: String)] {
    func text(_ name: String, _ kind: WalkValue.Kind? = nil) -> String { totals.text(name, as: kind) }
    func share(_ name: String) -> String { WalkFigures[name].text(in: totals).map { " (\($0))" } ?? "" }
    let stages = PreloadStage.ofPlayers.map(\.reportName).compactMap { stage in
      WalkFigures["reached.\(stage)"].text(in: totals).map { "\(stage) \($0)" }
    }
    let stalls =
      "\(text("stalls.count")), \(text("stalls.total")) in all, the longest \(text("stalls.max"))"
      + (WalkFigures["rebuffering"].text(in: totals).map { ", \($0) of the time watched" } ?? "")
    let bytes = "\(text("bytes.fetched")) fetched, \(text("bytes.wasted", .size)) never shown"
    let frames = "\(text("frames.decoded")) decoded, \(text("frames.wasted", .count)) never shown"
    var facts: [(name: String, fact: String)] = [
      ("reached", stages.isEmpty ? "no swipe was counted" : stages.joined(separator: ", ")),
      ("stalls", text("stalls.count") == "0" ? "none" : stalls), ("bytes", bytes + share("bytes.wasted")),
    ]
    if settings.player == nil { facts.append(("frames", frames + share("frames.wasted"))) }
    if let mean = WalkFigures["rung.mean"].text(in: totals) {
      let switches = swipes.reduce(0) { $0 + $1.rungSwitchCount }.counted("switch", "switches")
      facts.append(("rungs", "\(mean) on average, \(switches)"))
    }
    if text("abandoned") != "0" {
      facts.append(("abandoned", "\(text("abandoned")) left before their first frame"))
    }
    if !slotHighWaterByteCounts.isEmpty {
      let pool = WalkFigures["memory.pool"].text(in: totals).map { "peak \($0), " } ?? ""
      let kinds = settings.isVirtual ? ", packets and frames" : ""
      facts.append(("memory", "\(pool)by slot at most \(Self.list(slotHighWaterByteCounts))\(kinds)"))
    }
    let number = totals.swipeCount - totals.counted.count
    if number > 0 {
      facts.append(
        (
          "uncounted",
          "\(number) of \(totals.swipeCount.counted("swipe")), to items that failed or were skipped in a burst"
        ))
    }
    facts.append(
      (
        "failed",
        failedItems.isEmpty ? "none" : "\(text("failed")) of \(settings.itemCount.counted("item"))"
      ))
    return facts
  }

  /// The number of slots beyond which three figures replace the list.
  private static let listedSlotLimit = 8

  /// Returns each value, in order; of many, the maximum, the median by nearest rank, and the minimum.
  private static func list(_ byteCounts: [Int]) -> String {
    func size(_ byteCount: Int) -> String { WalkValue.size(Int64(byteCount)).description }
    let sorted = byteCounts.sorted()
    guard sorted.count > listedSlotLimit, let least = sorted.first, let most = sorted.last else {
      return byteCounts.map(size).joined(separator: ", ")
    }
    return "\(size(most)) (median \(size(sorted[(sorted.count - 1) / 2])), least \(size(least)))"
  }

  private var swipeTable: Table {
    var table = Table(
      [.right, .right, .left, .right, .left, .right, .right, .right, .right, .left], indentation: 2)
    table.add([
      "swipe", "at", "kind", "item", "stage", "first frame", "second frame", "stalled", "fetched", "cause",
    ])
    for swipe in swipes {
      table.add(
        [
          String(swipe.number), DurationText.readable(swipe.time),
          swipe.isPassing ? "passing" : swipe.kind.rawValue, String(swipe.itemIndex), swipe.stage.text,
          swipe.timeToFirstFrame.map(DurationText.readable) ?? "-",
          swipe.timeToSecondFrame.map(DurationText.readable) ?? "-",
          swipe.stallCount == 0 ? "-" : DurationText.readable(swipe.stallDuration),
          WalkValue.size(swipe.byteCount).description, swipe.error ?? swipe.cause ?? "",
        ], styles: swipe.isCounted ? [4: swipe.isHit ? .good : .bad] : [:])
    }
    return table
  }
}
