import Foundation
import ReelCore
import ReelPool
import ReelLab
internal import ReelPlayback

/// The timeline of a walk as SVG: a row for the items, one for the waits, one for each slot, the link, and the memory.
struct TimelineChart {
  let timeline: WalkTimeline
  let swipes: [SwipeRecord]
  /// The names of items, for tooltips.
  let names: [String]
  /// The rate of the link in bits per second, by the time since the walk began; nil for a real link.
  let linkRate: ((Duration) -> Double)?

  /// The maximum number of swipes in the chart.
  static let swipeLimit = 2_000

  private static let slotHeight = 38.0
  private static let decodingHeight = 20.0
  private static let top = 22.0
  /// The width available for a chart on a page.
  private static let pageWidth = 1_020.0
  private let width: Double
  private let span: Double

  init(
    timeline: WalkTimeline, swipes: [SwipeRecord], names: [String], linkRate: ((Duration) -> Double)?
  ) {
    self.timeline = timeline
    self.swipes = Array(swipes.prefix(Self.swipeLimit))
    self.names = names
    self.linkRate = linkRate
    span = max(timeline.duration / .seconds(1), 0.001)
    // Wide enough to distinguish short stages. A chart of the page's width is scaled to narrower windows of a
    // desktop; a wider one scrolls.
    width = min(max(Self.pageWidth, span * 5.5), 6_000)
  }

  /// The names of the rows at the left, and the rows, which scroll sideways.
  var html: String {
    let rows = rows
    let height = (rows.last.map { $0.y + $0.height } ?? 0) + 22
    var names = SVG(width: 92, height: height)
    for row in rows {
      for (number, line) in row.name.split(separator: "\n").enumerated() {
        names.text(0, row.y + 13 + Double(number) * 14, String(line), number == 0 ? "t" : "m s")
      }
    }
    var chart = SVG(width: width, height: height)
    for time in Charts.ticks(span, count: Int(width / 110)) {
      chart.line(x(time), Self.top - 4, x(time), height - 18, "grid")
      let name = Charts.seconds(time)
      let isAtEdge = x(time) + 2 + Double(name.count) * 6 > width
      for y in [12, height - 6] {
        chart.text(x(time) + (isAtEdge ? -2 : 2), y, name, "m s", anchor: isAtEdge ? .end : .start)
      }
    }
    for row in rows { row.draw(&chart, row.y, row.height) }
    let style = "width:\(Markup.number(width))px"
    let classes = width > Self.pageWidth ? "tl" : "tl fits"
    return
      "<div class=\"\(classes)\" style=\"--w:\(Markup.number(width))\"><div class=\"names\">\(names.element(label: "Rows of the timeline"))</div>"
      + "<div class=\"lane\" tabindex=\"0\">\(chart.element(label: "Timeline of the walk", style: style))</div></div>"
      + legend
  }

  // MARK: - Private

  private struct Row {
    let name: String
    let y: Double
    let height: Double
    let draw: (inout SVG, Double, Double) -> Void
  }

  private var rows: [Row] {
    var rows: [Row] = []
    var y = Self.top
    func add(_ name: String, _ height: Double, _ draw: @escaping (inout SVG, Double, Double) -> Void) {
      rows.append(Row(name: name, y: y, height: height, draw: draw))
      y += height + 10
    }
    add("Item", 22) { svg, y, height in items(&svg, y, height) }
    add("Wait", 26) { svg, y, height in waits(&svg, y, height) }
    for slot in 0..<min(timeline.slotCount, 32) {
      let name = "Slot \(slot)\nrequests" + (hasFrames ? "\ndecoding" : "")
      add(name, Self.slotHeight + (hasFrames ? Self.decodingHeight : 0)) { svg, y, _ in
        self.slot(slot, &svg, y)
      }
    }
    let rates = rates
    var peak = rates.map { max($0.used, $0.link ?? 0) }.max() ?? 0
    // Bytes that waited in a connection are read at once; such peaks are cut off.
    if let link = rates.compactMap(\.link).max() { peak = min(peak, link * 2) }
    if peak > 0 {
      add("Rates\n0 to\n\(Self.rate(peak))", 52) { svg, y, height in link(rates, peak, &svg, y, height) }
    }
    let most = mostMemory
    if most > 0 {
      add("Memory,\npeak\n\(WalkValue.size(Int64(most)))", 64) { svg, y, height in
        memory(most, &svg, y, height)
      }
    }
    return rows
  }

  /// False for a modelled player, which decodes nothing.
  private var hasFrames: Bool { timeline.bins.contains { $0.frameCounts.contains { $0 > 0 } } }
  /// The peak memory of all slots; 0 if it was not measured.
  private var mostMemory: Int { timeline.bins.map { $0.memory.reduce(0, +) }.max() ?? 0 }

  private func x(_ seconds: Double) -> Double { width * min(max(seconds / span, 0), 1) }
  private func x(_ time: Duration) -> Double { x(time / .seconds(1)) }

  private func name(_ index: Int) -> String {
    "item \(index)" + (names.indices.contains(index) ? ", \(names[index])" : "")
  }

  private func items(_ svg: inout SVG, _ y: Double, _ height: Double) {
    for swipe in swipes where !swipe.isPassing {
      let (left, right) = (x(swipe.time), x(swipe.time + swipe.watched))
      let first = swipe.timeToFirstFrame.map(DurationText.readable) ?? "none"
      let state = swipe.error.map { "failed: \($0)" } ?? "first frame after \(first)"
      let classes = swipe.error == nil ? "k\(swipe.itemIndex % 8)" : "bad"
      svg.rect(
        left, y, max(right - left - 1, 1), height, classes,
        title: Redaction.clean("swipe \(swipe.number) to \(name(swipe.itemIndex)): \(state)"))
      if right - left > 14 {
        svg.text((left + right) / 2, y + height / 2 + 4, "\(swipe.itemIndex)", "w", anchor: .middle)
      }
    }
    for stall in timeline.stalls {
      let text = "stall of \(name(stall.itemIndex)): \(DurationText.readable(stall.to - stall.from))"
      svg.rect(x(stall.from), y + height - 5, max(x(stall.to) - x(stall.from), 1.5), 5, "bad", title: text)
    }
  }

  private func waits(_ svg: inout SVG, _ y: Double, _ height: Double) {
    var free = 0.0
    for swipe in swipes {
      let left = x(swipe.time)
      svg.line(left, y, left, y + height, swipe.isPassing ? "grid" : "axis")
      guard !swipe.isPassing else { continue }
      let wait = swipe.timeToFirstFrame ?? (swipe.error == nil ? swipe.watched : nil)
      guard let wait else {
        if left >= free { svg.text(left + 3, y + 12, "failed", "s") }
        free = max(free, left + 44)
        continue
      }
      if wait > .zero {
        let title = "swipe \(swipe.number): \(swipe.cause ?? DurationText.readable(wait))"
        svg.rect(left, y + height - 8, max(x(swipe.time + wait) - left, 1), 8, "warn", title: title)
      }
      let text = swipe.timeToFirstFrame == nil ? "left" : Self.short(wait)
      if left >= free {
        svg.text(left + 3, y + 12, text, wait >= .milliseconds(100) ? "s" : "m s")
        free = left + 8 + Double(text.count) * 6
      }
    }
  }

  private func slot(_ slot: Int, _ svg: inout SVG, _ y: Double) {
    for stay in timeline.stays where stay.slot == slot {
      let color = "k\(stay.itemIndex % 8)"
      let (left, right) = (x(stay.from), x(stay.to))
      svg.rect(left, y, max(right - left - 1, 0.5), 18, "\(color) o1", title: name(stay.itemIndex))
      for (number, reached) in stay.stages.enumerated() {
        let end = number + 1 < stay.stages.count ? x(stay.stages[number + 1].time) : right - 1
        let after = DurationText.readable(reached.time - stay.from)
        svg.rect(
          x(reached.time), y, max(end - x(reached.time), 0.5), 18,
          "\(color) o\(reached.stage.rawValue)",
          title: "\(name(stay.itemIndex)): \(reached.stage.reportName) after \(after)")
      }
      if let failed = stay.failedAt {
        svg.rect(
          x(failed), y, max(right - x(failed) - 1, 2), 18, "bad", title: "\(name(stay.itemIndex)) failed")
      }
      if right - left > 16 { svg.text(left + 3, y + 13, "\(stay.itemIndex)") }
    }
    var lanes = [Double](repeating: -1, count: 3)
    for request in timeline.requests where request.slot == slot {
      let (left, right) = (x(request.from), x(request.to))
      let lane = lanes.firstIndex { $0 <= left } ?? 2
      lanes[lane] = max(right, left + 0.5)
      let top = y + 21 + Double(lane) * 5
      let middle = x(request.answeredAt ?? request.to)
      let size = WalkValue.size(request.byteCount)
      let failure = request.failure.map { ", \($0)" } ?? ""
      let title = Redaction.clean(
        "\(request.purpose.rawValue), \(size)\(failure): \(TextLayout.truncated(request.url, to: 200))")
      svg.rect(left, top, max(middle - left, 0.5), 4, "mute o2", title: title)
      guard right > middle else { continue }
      let color =
        request.failure == nil || request.failure == "cancelled" ? "k\((request.itemIndex ?? 0) % 8)" : "bad"
      svg.rect(middle, top, max(right - middle, 0.5), 4, color, title: title)
    }
    let frames = timeline.bins.map { $0.frameCounts.count > slot ? $0.frameCounts[slot] : 0 }
    let most = Double(timeline.bins.lazy.flatMap(\.frameCounts).max() ?? 0)
    guard most > 0 else { return }
    for (number, count) in frames.enumerated() where count > 0 {
      let height = max(Double(count) / most * 17, 1)
      svg.rect(
        x(start(of: number)), y + 56 - height,
        max(x(start(of: number + 1)) - x(start(of: number)) - 0.2, 0.4), height, "mute o4")
    }
  }

  private func start(of bin: Int) -> Double { Double(bin) * (timeline.binWidth / .seconds(1)) }

  private var rates: [(from: Double, to: Double, used: Double, link: Double?)] {
    let width = timeline.binWidth / .seconds(1)
    // Bytes are read in bursts, so the rate is averaged over spans of at least a 200th of the walk.
    let group = max(1, Int((max(span / 200, 0.25) / width).rounded()))
    return stride(from: 0, to: timeline.bins.count, by: group).map { first in
      let bins = timeline.bins[first..<min(first + group, timeline.bins.count)]
      let bytes = bins.reduce(0) { $0 + $1.byteCounts.reduce(0, +) }
      let (from, to) = (start(of: first), start(of: first + bins.count))
      return (from, to, Double(bytes) * 8 / (to - from), linkRate?(.microseconds(Int64(from * 1e6))))
    }
  }

  private func link(
    _ rates: [(from: Double, to: Double, used: Double, link: Double?)], _ peak: Double, _ svg: inout SVG,
    _ y: Double, _ height: Double
  ) {
    func level(_ rate: Double) -> Double { y + height - min(rate / peak, 1) * (height - 2) }
    for rate in rates where rate.used > 0 {
      svg.rect(
        x(rate.from), level(rate.used), x(rate.to) - x(rate.from), y + height - level(rate.used), "k6 o4",
        title: "\(Charts.seconds(rate.from)): \(Self.rate(rate.used)) read")
    }
    var line: [(x: Double, y: Double)] = []
    for rate in rates {
      guard let link = rate.link else { continue }
      line += [(x(rate.from), level(link)), (x(rate.to), level(link))]
    }
    svg.path(line, "ln")
    svg.line(0, y + height, width, y + height, "axis")
  }

  private func memory(_ most: Int, _ svg: inout SVG, _ y: Double, _ height: Double) {
    var floor = [Double](repeating: 0, count: timeline.bins.count)
    for slot in 0..<timeline.slotCount {
      let ceiling = timeline.bins.enumerated().map { number, bin in
        floor[number] + Double(bin.memory.count > slot ? bin.memory[slot] : 0)
      }
      func points(_ levels: [Double]) -> [(x: Double, y: Double)] {
        levels.enumerated().flatMap { number, level in
          let top = y + height - level / Double(most) * height
          return [(x(start(of: number)), top), (x(start(of: number + 1)), top)]
        }
      }
      svg.path(points(ceiling) + points(floor).reversed(), "k\(slot % 8) o4", isClosed: true)
      floor = ceiling
    }
    svg.line(0, y + height, width, y + height, "axis")
  }

  private var legend: String {
    let reached = Set(timeline.stays.flatMap(\.stages).map(\.stage))
    var entries: [(classes: String, name: String)] = [("k0 o1", "has a slot")]
    entries += PreloadStage.ofPlayers.filter(reached.contains).map {
      ("k0 o\($0.rawValue)", $0.text)
    }
    entries.append(("mute o2", "request, no answer yet"))
    if hasFrames { entries.append(("mute o4", "frames decoded")) }
    entries += [
      ("warn", "wait for the first frame"), ("bad", "stall or failure"), ("k6 o4", "rate of the bytes read"),
    ]
    if linkRate != nil { entries.append(("fg", "rate of the link")) }
    for slot in 0..<(mostMemory > 0 ? min(timeline.slotCount, 8) : 0) {
      entries.append(("k\(slot % 8) o4", "memory of slot \(slot)"))
    }
    return ReportPage.legend(entries)
  }

  /// Formats a duration with at most four digits.
  private static func short(_ duration: Duration) -> String {
    let milliseconds = duration.milliseconds
    if milliseconds < 1 { return "0" }
    return milliseconds < 1_000
      ? "\(Int(milliseconds.rounded())) ms" : "\((milliseconds / 1_000).formatted(places: 1)) s"
  }

  private static func rate(_ bitsPerSecond: Double) -> String {
    WalkValue.text(bitsPerSecond: bitsPerSecond, places: 1)
  }
}
