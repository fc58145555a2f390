import Foundation
import ReelCheck
import ReelCore
import ReelPool

/// The start of a source on one link as HTML: its requests and its decoding, now and with all findings fixed, and what
/// each repair saves in turn.
struct StartChart {
  let start: StartResult

  /// The number of requests of a course; the rest are counted.
  private static let requestLimit = 24

  var html: String {
    let longest = max(start.now.milliseconds, start.mended?.milliseconds ?? 0)
    var html = "<div class=\"courses\">" + course("Now", start.now, longest)
    if let mended = start.mended, start.saving >= 1 {
      html += course("With all findings fixed", mended, longest)
    }
    return html + "</div>" + legend + inTurn
  }

  private var legend: String {
    let own = start.now.working > 0 ? [(classes: "k3", name: "the player itself")] : []
    return ReportPage.legend(
      [("k1", "connect and wait for the answer"), ("k0", "receive"), ("k2", "decode")] + own)
  }

  // MARK: - Private

  private func course(_ title: String, _ course: StartResult.Course, _ longest: Double) -> String {
    var rows: [String] = []
    let hosts = Set(course.requests.map { Self.host($0.url) })
    for request in course.requests.prefix(Self.requestLimit) {
      let name = Self.name(request, hasHosts: hosts.count > 1)
      let size = ByteSize(byteCount: Int(clamping: request.byteCount)).description
      let wait = request.firstByte - request.began
      rows.append(
        row(
          name, size,
          [
            ("k1", wait, "\(CheckWords.time(wait)) until the first byte"),
            ("k0", request.end - request.firstByte, "\(size) until \(CheckWords.time(request.end))"),
          ], "\(request.purpose.rawValue) \(Redaction.clean(request.url))", from: request.began, longest))
    }
    if course.requests.count > Self.requestLimit {
      let rest = (course.requests.count - Self.requestLimit).counted("more request")
      rows.append("<div><span class=\"what\">\(rest)</span></div>")
    }
    if course.decoding > 0 {
      let title = "decoding: \(CheckWords.time(course.decoding))"
      rows.append(
        row(
          "decode", CheckWords.time(course.decoding),
          [("k2", course.decoding, title)], title, from: course.milliseconds - course.decoding, longest))
    }
    let parts = course.parts.map { "\($0) \(CheckWords.time($1))" }.joined(separator: ", ")
    return "<h3>\(Markup.escape(title)): first frame after \(CheckWords.time(course.milliseconds))</h3>"
      + "<p class=\"note\">\(Markup.escape(parts))</p><div class=\"falls\">\(rows.joined())</div>"
  }

  private func row(
    _ name: String, _ value: String, _ parts: [(classes: String, value: Double, title: String)],
    _ title: String, from start: Double = 0, _ longest: Double
  ) -> String {
    "<div><span class=\"what\" title=\"\(Markup.escape(title))\">\(Markup.escape(name))</span>"
      + Charts.bar(parts.map { ($0.classes, max($0.value, 0), $0.title) }, from: start, longest: longest)
      + "<span class=\"n\">\(Markup.escape(value))</span></div>"
  }

  private var inTurn: String {
    guard !start.steps.isEmpty else { return "" }
    let longest = start.now.milliseconds
    var rows = [
      row(
        "now", CheckWords.time(start.now.milliseconds),
        start.now.parts.map { (Self.colors[$0] ?? "", $1, "\($0) \(CheckWords.time($1))") },
        "now", longest)
    ]
    var before = start.now.milliseconds
    for step in start.steps {
      let saved = CheckWords.time(before - step.milliseconds)
      let title = "\(step.finding) fixed: \(CheckWords.time(step.milliseconds)), \(saved) less"
      rows.append(
        row(
          (step.finding == start.steps.first?.finding ? "without " : "and ") + step.finding,
          CheckWords.time(step.milliseconds), [("good", step.milliseconds, title)], title, longest))
      before = step.milliseconds
    }
    let title = "the least that is possible on \(start.link): \(start.floorWords), and one frame to decode"
    rows.append(
      row(
        "floor", CheckWords.time(start.floorMilliseconds), [("mute o4", start.floorMilliseconds, title)],
        title, longest))
    return "<h3>Fixed in turn, the largest saving first</h3><div class=\"falls\">\(rows.joined())</div>"
      + "<p class=\"note\">\(Markup.escape(title.titled)).</p>"
  }

  private static let colors = [
    "connect": "k1", "answer": "k1 o4", "bytes": "k0", "decode": "k2", "player": "k3",
  ]

  private static func host(_ url: String) -> String {
    guard let scheme = url.range(of: "://") else { return "" }
    return String(url[scheme.upperBound...].prefix { $0 != "/" })
  }

  /// The last part of the path, with its host if there are several.
  private static func name(_ request: StartResult.Request, hasHosts: Bool) -> String {
    let path = Redaction.clean(request.url).prefix { $0 != "?" && $0 != "#" }
    let last = path.split(separator: "/").last.map(String.init) ?? request.purpose.rawValue
    let name = request.purpose == .key ? "key \(last)" : last
    return hasHosts ? "\(name) (\(host(Redaction.clean(request.url))))" : name
  }
}
