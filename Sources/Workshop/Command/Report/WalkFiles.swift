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
