import ReelCore
import ReelPlayback
import ReelReplay

/// The swipes of walks as comma-separated values (RFC 4180): a header line, then one line per swipe.
enum WalkCSV {
  static let columns = [
    "pool", "swipe", "time_ms", "kind", "passing", "item_index", "item_id", "title", "stage", "hit",
    "loaded_bytes",
    "watched_ms", "ttff_ms", "second_frame_ms", "still", "stalls", "stalled_ms", "longest_stall_ms",
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

  /// Quoted where the text has a comma, a quote or a line end (RFC 4180 §2).
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

/// The outcomes of assertions as JUnit XML: a suite for each pool, a test case for each assertion.
///
/// There is no schema of JUnit's own; this is valid by that of Jenkins' xUnit plugin, `junit-10.xsd`. The schema of Ant
/// also requires a time stamp and a host, which would differ from run to run. The time of a suite is that of its walk.
enum JUnitXML {
  static func text(_ reports: [WalkReport]) -> String {
    let all = reports.flatMap(\.assertions)
    var lines = ["<?xml version=\"1.0\" encoding=\"UTF-8\"?>"]
    lines.append("<testsuites name=\"reel feed\" \(counts(all)) time=\"\(seconds(reports))\">")
    for report in reports {
      let label = Markup.escape(Redaction.clean(report.label))
      lines.append(
        "  <testsuite name=\"\(label)\" \(counts(report.assertions)) time=\"\(seconds([report]))\">")
      for outcome in report.assertions {
        let name = Markup.escape(outcome.assertion)
        let head = "    <testcase classname=\"reel.feed.\(label)\" name=\"\(name)\" time=\"0\""
        guard !outcome.isMet else {
          lines.append(head + "/>")
          continue
        }
        let finding = Markup.escape(outcome.description)
        lines.append(head + ">")
        lines.append("      <failure message=\"\(finding)\" type=\"assertion\">\(finding)</failure>")
        lines.append("    </testcase>")
      }
      lines.append("  </testsuite>")
    }
    return (lines + ["</testsuites>", ""]).joined(separator: "\n")
  }

  private static func seconds(_ reports: [WalkReport]) -> String {
    (reports.reduce(.zero) { $0 + $1.duration } / .seconds(1)).formatted(places: 3)
  }

  private static func counts(_ outcomes: [WalkAssertion.Outcome]) -> String {
    "tests=\"\(outcomes.count)\" failures=\"\(outcomes.count { !$0.isMet })\" errors=\"0\""
  }
}
