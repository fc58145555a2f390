import Foundation
import ReelCore
import ReelPool
import ReelLab
internal import ReelPlayback

struct WalkPage {
  struct Item: Sendable {
    let title: String
    /// The first frame as a PNG; nil if there is none.
    var picture: [UInt8]?
  }

  let report: WalkReport
  let timeline: WalkTimeline
  let items: [Item]
  let linkRate: ((Duration) -> Double)?
  let run: RunDescription
  var warnings: [String] = []

  /// The maximum number of swipes in the table, of items with a picture or a place for one, and of bytes of
  /// all pictures.
  static let rowLimit = 500
  static let pictureLimit = 60
  static let pictureByteLimit = 2 << 20
  private static let explainedLimit = 15

  var html: String {
    let totals = report.totals
    var page = ReportPage(
      title:
        "Walk through \(Redaction.clean(report.settings.feed)): \(report.settings.ownerWords)\(report.poolName)",
      subtitle: subtitle)
    page.add(Self.alerts(warnings))
    page.add(
      ReportPage.tiles(
        WalkFigures.all(in: .page).compactMap { figure in
          let text = figure.text(in: totals) ?? (isModelled ? nil : "–")
          return text.map { (name: figure.title, value: $0) }
        }))
    page.add("Assertions", Self.assertions([report]))
    page.add("Timeline", chart, note: timelineNote)
    page.add("First frames", pictures, note: pictureNote)
    page.add(
      "Delays", delays,
      note:
        "The share of swipes whose frame was on show after each delay. The start of the first item is not a swipe "
        + "and is not counted.")
    page.add(
      "Longest waits", explanations(totals), note: "For the first frame; the parts add up.")
    page.add("Swipes", table, note: tableNote)
    page.add(
      "Failed items",
      ReportPage.list(
        report.failedItems.map { Redaction.clean("Item \($0.index), \(name($0.index)): \($0.error)") }))
    page.add(
      "What was run",
      run.html(
        [("pool", "\(report.settings.slotCount.counted("slot")), \(report.settings.policy)")]
          + report.settings.facts))
    return page.html
  }

  // MARK: Shared pieces

  static func alerts(_ warnings: [String]) -> String {
    ReportPage.list(warnings.map(Redaction.clean), "alert")
  }

  /// Returns the outcomes of all reports; empty if nothing was asserted.
  static func assertions(_ reports: [WalkReport]) -> String {
    let rows = reports.flatMap { report in
      report.assertions.map { outcome in
        [report.poolName, outcome.assertion, outcome.isMet ? "met" : "not met", outcome.finding]
      }
    }
    return Table(["pool", "assertion", "", "found"], rows, numbers: 3..<4).html()
  }

  /// Returns the delays that count, in milliseconds. An abandoned wait counts with its duration.
  static func firstFrames(_ report: WalkReport) -> [Double] {
    report.swipes.compactMap { $0.countedFirstFrame?.milliseconds }
  }

  static func secondFrames(_ report: WalkReport) -> [Double] {
    report.swipes.compactMap { $0.countedSecondFrame?.milliseconds }
  }

  // MARK: - Private

  private var subtitle: String {
    let settings = report.settings
    var parts = [
      "\(report.totals.swipeCount.counted("swipe")) over \(settings.itemCount.counted("item")) in \(DurationText.readable(report.duration))",
      settings.slotCount.counted("slot"), settings.policy,
    ]
    parts += settings.conditions(isInterrupted: report.isInterrupted)
    return Redaction.clean(parts.joined(separator: " · "))
  }

  /// True for a modelled player, which decodes nothing and has no memory.
  private var isModelled: Bool { report.settings.player != nil }

  private func name(_ index: Int) -> String { items.indices.contains(index) ? items[index].title : "" }

  private var chart: String {
    TimelineChart(
      timeline: timeline, swipes: report.swipes, names: items.map(\.title), linkRate: linkRate
    ).html
  }

  private var timelineNote: String {
    let span = DurationText.readable(timeline.binWidth)
    var note = "Numbers are indices of items in the feed. "
    note +=
      isModelled
      ? "Bytes are in spans of \(span); those of a request are spread evenly over its transfer."
      : "Memory, bytes and frames are in spans of \(span). Bytes are counted when they are read, so bytes "
        + "that waited in a connection can exceed the link's rate."
    let hidden = timeline.omittedCount + max(0, report.swipes.count - TimelineChart.swipeLimit)
    if hidden > 0 { note += " \(hidden) later events are left out." }
    return note
  }

  private var pictures: String {
    if isModelled { return "" }
    let failed = Set(report.failedItems.map(\.index))
    var pictures = ReportPage.Pictures(byteLimit: Self.pictureByteLimit)
    var tiles: [String] = []
    for index in shownItems {
      let swipe = report.swipes.first { $0.itemIndex == index && !$0.isPassing }
      var picture = ReportPage.noImage("no frame was shown")
      if failed.contains(index) { picture = ReportPage.noImage("failed", isFailure: true) }
      if let bytes = items.indices.contains(index) ? items[index].picture : nil {
        picture = pictures.html(bytes, type: "png", "First frame of item \(index)")
      }
      let delay: String
      if let first = swipe?.timeToFirstFrame {
        delay = swipe?.outcome(after: first) ?? ""
      } else if failed.contains(index) {
        delay = report.failedItems.first { $0.index == index }.map { Redaction.clean($0.error) } ?? "failed"
      } else {
        delay = "left before its first frame"
      }
      tiles.append(
        ReportPage.frame(
          picture, "<b>\(index)</b> \(Markup.escape(TextLayout.truncated(name(index), to: 80)))",
          TextLayout.truncated(delay, to: 160)))
    }
    return ReportPage.frames(tiles)
  }

  /// The items that were looked at, by index.
  private var shownItems: ArraySlice<Int> {
    Set(report.swipes.filter { !$0.isPassing }.map(\.itemIndex)).sorted().prefix(Self.pictureLimit)
  }

  private var pictureNote: String {
    "The delay is that of the first swipe to the item. At most \(Self.pictureLimit) items are listed."
  }

  private var delays: String {
    let first = Self.firstFrames(report)
    guard !first.isEmpty else { return "" }
    return ReportPage.charts([
      Charts.delays("First frame", [.init(name: "", values: first, number: 0)]),
      Charts.delays("Second frame", [.init(name: "", values: Self.secondFrames(report), number: 1)]),
    ])
  }

  private func explanations(_ totals: WalkTotals) -> String {
    let waits = report.swipes.filter { !$0.waitParts.isEmpty && $0.waitParts.total >= .milliseconds(1) }
      .sorted { ($1.waitParts.total, $0.number) < ($0.waitParts.total, $1.number) }.prefix(
        Self.explainedLimit)
    guard let longest = waits.first?.waitParts.total else { return "" }
    let bars = waits.map { swipe in
      let parts = swipe.waitParts.map { part in
        (classes: Self.color(of: part.stage), value: part.duration.milliseconds, title: part.description)
      }
      let end = swipe.timeToFirstFrame == nil ? ", left without a frame" : ""
      let head =
        "\(swipe.kind == .start ? "Start" : "Swipe \(swipe.number)") to item \(swipe.itemIndex), \(DurationText.readable(swipe.waitParts.total))\(end): "
        + "found \(swipe.found); \(swipe.waitParts.map(\.description).joined(separator: ", "))"
      return "<div>\(Markup.escape(head))\(Charts.bar(parts, longest: longest.milliseconds))</div>"
    }
    return "<div class=\"bars\">\(bars.joined(separator: "\n"))</div>"
      + ReportPage.legend([
        (classes: "k0 o3", name: "until the response"), (classes: "k0 o5", name: "transfer of media"),
        (classes: "k6 o5", name: "other transfers"), (classes: "k1 o5", name: "decode"),
        (classes: "k2 o5", name: "show"), (classes: "mute o4", name: "preparing"),
      ])
  }

  private static func color(of part: String) -> String {
    if part.hasSuffix(" answer") { return "k0 o3" }
    if part == "segment transfer" || part == "source transfer" { return "k0 o5" }
    if part.hasSuffix(" transfer") { return "k6 o5" }
    return ["decode": "k1 o5", "show": "k2 o5"][part] ?? "mute o4"
  }

  private var table: String {
    let head = [
      "swipe", "at", "kind", "item", "title", "found", "first frame", "second frame", "stalled", "fetched",
      "wait",
    ]
    return Table(head, report.swipes.prefix(Self.rowLimit).map(row), numbers: 6..<10).html()
  }

  private func row(_ swipe: SwipeRecord) -> [String] {
    func time(_ duration: Duration?) -> String { duration.map(DurationText.readable) ?? "–" }
    let kind = swipe.isPassing ? "passing" : swipe.kind.rawValue
    let stalls = swipe.stallCount == 0 ? "–" : "\(swipe.stallCount), \(time(swipe.stallDuration))"
    let reason = Redaction.clean(swipe.error ?? swipe.cause ?? "")
    return [
      "\(swipe.number)", time(swipe.time), kind, "\(swipe.itemIndex)",
      TextLayout.truncated(name(swipe.itemIndex), to: 40), swipe.isPassing ? "" : swipe.found,
      time(swipe.timeToFirstFrame), time(swipe.timeToSecondFrame), stalls,
      WalkValue.size(swipe.byteCount).description, TextLayout.truncated(reason, to: 200),
    ]
  }

  private var tableNote: String? {
    report.swipes.count > Self.rowLimit
      ? "The first \(Self.rowLimit) of \(report.swipes.count) swipes; --csv writes all of them." : nil
  }
}

extension SwipeRecord {
  /// Returns how long the first frame took, and whether it was ready. The start of a walk is neither a hit
  /// nor a miss.
  func outcome(after delay: Duration) -> String {
    let time = DurationText.readable(delay)
    return kind == .start ? "start, \(time)" : "\(time), \(isHit ? "hit" : "miss")"
  }

  /// The loaded data when the drag ended.
  var found: String {
    stage == .notLoaded && loadedByteCount == 0
      ? "nothing" : "\(stage.text), \(WalkValue.size(loadedByteCount))"
  }
}

extension [StageTime] {
  var total: Duration { reduce(.zero) { $0 + $1.duration } }
}

/// The swipes of walks as comma-separated values (RFC 4180): a header line, then one line per swipe.
enum WalkCSV {
  static let columns = [
    "pool", "swipe", "time_ms", "kind", "passing", "item_index", "item_id", "title", "stage", "hit",
    "loaded_bytes",
    "watched_ms", "first_frame_ms", "second_frame_ms", "still", "stalls", "stalled_ms", "longest_stall_ms",
    "fetched_bytes",
    "rung", "rung_bits_per_second", "wait", "error",
  ]

  /// - Parameter names: The titles of the feed's items.
  static func text(_ reports: [WalkReport], names: [String]) -> String {
    var lines = [columns.joined(separator: ",")]
    for report in reports {
      for swipe in report.swipes {
        lines.append(row(swipe, of: report, names: names).map(field).joined(separator: ","))
      }
    }
    return lines.map { $0 + "\r\n" }.joined()
  }

  /// Returns the text, quoted if it has a comma, a quote or a line end (RFC 4180 §2).
  static func field(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: { [",", "\"", "\r", "\n"].contains($0) }) else { return text }
    return "\"\(text.replacing("\"", with: "\"\""))\""
  }

  private static func row(_ swipe: SwipeRecord, of report: WalkReport, names: [String]) -> [String] {
    func time(_ duration: Duration?) -> String { duration.map { $0.milliseconds.formatted(places: 3) } ?? "" }
    let wait = swipe.waitParts.map { "\($0.stage)=\(time($0.duration))" }.joined(separator: ";")
    return [
      report.label, "\(swipe.number)", time(swipe.time), swipe.kind.rawValue, "\(swipe.isPassing)",
      "\(swipe.itemIndex)", Redaction.clean(swipe.itemID),
      names.indices.contains(swipe.itemIndex) ? names[swipe.itemIndex] : "", swipe.stage.reportName,
      "\(swipe.isHit)", "\(swipe.loadedByteCount)", time(swipe.watched), time(swipe.timeToFirstFrame),
      time(swipe.timeToSecondFrame), "\(swipe.isStill)", "\(swipe.stallCount)", time(swipe.stallDuration),
      time(swipe.longestStall), "\(swipe.byteCount)", swipe.rung ?? "",
      swipe.rungBitRate.map { "\($0)" } ?? "", wait, swipe.error.map(Redaction.clean) ?? "",
    ]
  }
}
