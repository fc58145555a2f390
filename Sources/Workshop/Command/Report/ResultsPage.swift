import Foundation
import ReelCore
import ReelPool
import ReelLab

/// The results of runs over lists as a page.
struct ResultsPage {
  let report: ResultsReport
  let files: [String]

  /// The maximum number of streams in a section, of hosts in the table, and of bytes of all stills.
  static let streamLimit = 24
  static let hostLimit = 50
  static let stillByteLimit = 6 << 20

  var html: String {
    var stills = Stills()
    var page = ReportPage(title: "Results of \(report.subject)", subtitle: subtitle)
    page.add(ReportPage.list(remarks, "alert"))
    page.add(ReportPage.tiles(figures))
    page.add("Findings", report.findingTable.html())
    page.add("Worst streams", faultiest, note: "By their errors, then by their warnings.")
    page.add("Failures by cause", report.causeTable.html())
    page.add("Failures by host", report.hostTable(limit: Self.hostLimit).html(), note: hostNote)
    page.add("Poor stills", stills.html(report.worst?.poorest ?? []), note: poorNote)
    page.add(
      "Slowest streams", stills.html(slowest),
      note: "By the time to the first decoded frame, without the wait for a turn.")
    let started = report.views == nil ? "written sources" : "views"
    page.add("Start-up", startup, note: "The share of \(started) by the time to their first frame.")
    page.add("Start-up by host", startupByHost)
    return page.html
  }

  // MARK: - Private

  private var subtitle: String {
    let shown = files.prefix(4).map { $0 == "-" ? "standard input" : $0.printable }
    let rest = files.count - shown.count
    return (shown + (rest > 0 ? [rest.counted("more file")] : [])).joined(separator: " · ")
  }

  private var remarks: [String] {
    var remarks = [report.views?.bottleneck?.titled].compactMap(\.self)
    if report.supersededCount > 0 {
      remarks.append("\(report.supersededCount.counted("line")) replaced by later ones of the same source")
    }
    if report.unreadableCount > 0 {
      remarks.append("\(report.unreadableCount.counted("line")) can't be read")
    }
    return remarks
  }

  private var figures: [(name: String, value: String)] {
    var figures: [(name: String, value: String)] = []
    if let checked = report.checked {
      figures += [
        ("with errors", "\(checked.errors)"), ("with warnings only", "\(checked.warnings)"),
        ("with notes only", "\(checked.notes)"), ("without findings", "\(checked.clean)"),
      ]
    }
    let views = report.views
    figures += [
      (report.checked != nil ? "checked" : views != nil ? "watched" : "written", "\(report.writtenCount)")
    ]
    if let views {
      figures.append(("failed", "\(report.permanentCount + report.temporaryCount)"))
      figures.append(("stalls", "\(views.stalls)"))
      if let share = views.rebuffering { figures.append(("rebuffering", "\(WalkValue.share(share))")) }
    } else {
      figures.append(("failed permanently", "\(report.permanentCount)"))
      figures.append(("may succeed on a retry", "\(report.temporaryCount)"))
    }
    if report.poorCount > 0 { figures.append(("poor stills", "\(report.poorCount)")) }
    if let startup = report.startup {
      figures += [
        ("start-up, p50", DurationText.readable(startup.p50)),
        ("start-up, p95", DurationText.readable(startup.p95)),
        ("start-up, p99", DurationText.readable(startup.p99)),
        ("start-up, longest", DurationText.readable(startup.max)),
      ]
    }
    if let queued = report.queued {
      figures.append(("queued before, p95", DurationText.readable(queued.p95)))
    }
    return figures
  }

  private var faultiest: String {
    let rows = (report.worst?.faultiest ?? []).map { stream in
      [
        TextLayout.truncated(Redaction.clean(stream.url), to: 120),
        TextLayout.truncated(stream.flaw ?? "", to: 200),
      ]
    }
    return Table(["source", "findings"], rows, numbers: 2..<2).html()
  }

  private var hostNote: String? {
    let count = report.failingHosts.count
    return count > Self.hostLimit
      ? "The \(Self.hostLimit) with the most failures of \(count); --json has more." : nil
  }

  private var slowest: [WorstStreams.Stream] { (report.worst?.slowest ?? []).filter { $0.startup > 0 } }

  private var poorNote: String {
    let count = report.poorCount
    let note = "No candidate was a good poster, frames are damaged, or segments were missed."
    return count > Self.streamLimit ? "\(note) The worst \(Self.streamLimit) of \(count)." : note
  }

  private var startup: String {
    let times = report.startupTimes
    guard !times.isEmpty else { return "" }
    return ReportPage.charts([
      Charts.delays(
        "Time to the first frame", [.init(name: "", values: times, number: 0)],
        axis: "time to the first frame")
    ])
  }

  private var startupByHost: String {
    let hosts = report.hosts.filter { $0.startup != nil }
      .sorted { ($1.startup?.p95 ?? .zero, $0.host) < ($0.startup?.p95 ?? .zero, $1.host) }
    guard hosts.count > 1 else { return "" }
    let rows = hosts.prefix(Self.hostLimit).map { host in
      func time(_ duration: Duration?) -> String { duration.map(DurationText.readable) ?? "–" }
      return [
        host.host, "\(host.startup?.count ?? 0)", time(host.startup?.p50), time(host.startup?.p95),
        time(host.startup?.max),
      ]
    }
    return Table(["host", report.views == nil ? "written" : "watched", "p50", "p95", "longest"], rows).html()
  }

  /// The stills of a page, up to a number of bytes.
  private struct Stills {
    private var pictures = ReportPage.Pictures(byteLimit: ResultsPage.stillByteLimit)

    /// Returns the streams with their stills, or as a table if the command has written none.
    mutating func html(_ streams: [WorstStreams.Stream]) -> String {
      guard streams.contains(where: { $0.path != nil }) else { return Self.table(streams) }
      return ReportPage.frames(streams.prefix(ResultsPage.streamLimit).map { figure($0) }, "frames stills")
    }

    private static func table(_ streams: [WorstStreams.Stream]) -> String {
      let rows = streams.prefix(ResultsPage.streamLimit).map { stream in
        [TextLayout.truncated(Redaction.clean(stream.url), to: 120), words(stream).joined(separator: "; ")]
      }
      return Table(["source", "first frame"], rows, numbers: 1..<2).html()
    }

    /// The time to the first frame, and what is wrong with the still.
    private static func words(_ stream: WorstStreams.Stream) -> [String] {
      let time = DurationText.readable(.microseconds(Int64(stream.startup * 1e3)))
      return (stream.startup > 0 ? [time] : []) + [stream.flaw].compactMap(\.self)
    }

    private mutating func figure(_ stream: WorstStreams.Stream) -> String {
      var picture = ReportPage.noImage("no still")
      if let path = stream.path {
        switch Thumbnail.image(path: path, folder: stream.folder) {
        case .bytes(let bytes, let type): picture = pictures.html(bytes, type: type)
        case .none(let reason): picture = ReportPage.noImage(reason)
        }
      }
      let words = Self.words(stream)
      let caption = Markup.escape(TextLayout.truncated(Redaction.clean(stream.url), to: 120))
      return ReportPage.frame(picture, caption, words.joined(separator: "; "))
    }
  }
}
