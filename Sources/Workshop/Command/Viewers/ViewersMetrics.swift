import Foundation
import HTTPTypes
import Logging
import ReelCore
import ReelTesting

/// The figures of a run so far as OpenMetrics text, as a monitoring system reads it each few seconds.
struct ViewersMetrics: Sendable {
  var present: ViewersPresent
  var total: ViewersCounts
  var machine: MachineLoad

  static let contentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

  /// The upper bounds of the buckets of start-up times, in seconds.
  private static let bounds = [0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32]

  /// The text (OpenMetrics 1.0, "Text format").
  var text: String {
    var lines: [String] = []
    func add(
      _ name: String, _ type: String, _ meaning: String, _ values: [(labels: String, value: Double)]
    ) {
      guard !values.isEmpty else { return }
      lines += ["# TYPE reel_\(name) \(type)", "# HELP reel_\(name) \(meaning)"]
      let suffix = type == "counter" ? "_total" : ""
      lines += values.map { "reel_\(name)\(suffix)\($0.labels) \(Self.number($0.value))" }
    }
    func faults(_ counts: [ViewersCounts.Fault: Int]) -> [(labels: String, value: Double)] {
      ViewersCounts.sorted(counts).map { fault, count in
        (labels: Self.labels([("cause", fault.cause), ("host", fault.host)]), value: Double(count))
      }
    }
    add(
      "viewers", "gauge", "Viewers by what they do.",
      [("starting", present.starting), ("playing", present.playing), ("waiting", present.waiting)].map {
        (labels: Self.labels([("state", $0)]), value: Double($1))
      })
    add(
      "rung_viewers", "gauge", "Viewers by the bit rate of the rung that they load.",
      present.rungs.sorted { $0.key < $1.key }.map {
        (labels: Self.labels([("bit_rate", "\($0)")]), value: Double($1))
      })
    add("views", "counter", "Views begun.", [("", Double(total.views))])
    add("failed_views", "counter", "Views that ended with an error.", faults(total.failed))
    lines += startLines
    add("stalls", "counter", "Stalls.", [("", Double(total.stalls))])
    add("played_seconds", "counter", "Time played by all viewers.", [("", total.played / .seconds(1))])
    add("waited_seconds", "counter", "Time of stalls and jumps.", [("", total.waited / .seconds(1))])
    add("received_bytes", "counter", "Bytes received.", [("", Double(total.bytes))])
    add(
      "requests", "counter", "Requests by the status of the answer.",
      total.requests.sorted { $0.key < $1.key }.map {
        (labels: Self.labels([("status", $0)]), value: Double($1))
      })
    add("errors", "counter", "What could not be loaded at first.", faults(total.errors))
    let shares = [("cores", machine.cores), ("link", machine.link)].compactMap { name, share in
      share.map { (labels: Self.labels([("part", name)]), value: $0) }
    }
    add("machine_used_ratio", "gauge", "Share of this machine that is used.", shares)
    return (lines + ["# EOF", ""]).joined(separator: "\n")
  }

  // MARK: - Private

  private var startLines: [String] {
    let seconds = total.starts.map { $0 / .seconds(1) }
    var lines = [
      "# TYPE reel_start_seconds histogram", "# HELP reel_start_seconds Time to the first frame.",
    ]
    for bound in Self.bounds {
      let labels = Self.labels([("le", Self.number(bound, isLimit: true))])
      lines.append("reel_start_seconds_bucket\(labels) \(seconds.count { $0 <= bound })")
    }
    lines.append("reel_start_seconds_bucket\(Self.labels([("le", "+Inf")])) \(seconds.count)")
    lines.append("reel_start_seconds_count \(seconds.count)")
    lines.append("reel_start_seconds_sum \(Self.number(seconds.reduce(0, +)))")
    return lines
  }

  private static func labels(_ labels: [(name: String, value: String)]) -> String {
    let pairs = labels.map { name, value in
      let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").printable
      return "\(name)=\"\(escaped)\""
    }
    return "{\(pairs.joined(separator: ","))}"
  }

  /// - Parameter isLimit: True to keep `.0`, as bounds of buckets have it.
  private static func number(_ value: Double, isLimit: Bool = false) -> String {
    let text = value.description
    return text.hasSuffix(".0") && !isLimit ? String(text.dropLast(2)) : text
  }
}

/// Where the metrics of a run go: a page on this machine, or a file.
enum MetricsPlace: Equatable {
  case server(host: String, port: Int)
  case file(String)

  /// Parses `9100`, `0.0.0.0:9100` or the path of a file.
  init(parsing text: String) throws(ReelError) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    let host = parts.dropLast().joined(separator: ":")
    guard let last = parts.last, !last.isEmpty, last.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      !text.contains("/")
    else {
      guard !["", "-"].contains(text) else {
        throw ReelError(.usage, "--metrics takes a port, a host and a port, or a file")
      }
      self = .file(text)
      return
    }
    guard let port = Int(last), (0...65535).contains(port) else {
      throw ReelError(
        .usage, "--metrics: \(last) is not a port", advice: "for a file of that name, write ./\(last)")
    }
    self = .server(host: host.isEmpty ? "127.0.0.1" : host, port: port)
  }
}

extension MetricsPlace {
  /// Begins to offer metrics. Throws `ReelError` if the port is taken.
  func open(logger: Logger) async throws -> MetricsOutput {
    switch self {
    case .file(let path): return .file(path)
    case .server(let host, let port):
      let page = MetricsPage()
      let origin = try await Origin.start(
        Origin.Configuration(resources: [page], host: host, port: port), logger: logger)
      Console.remark("metrics at \(origin.url("metrics").absoluteString)")
      return .server(page, origin)
    }
  }
}

/// The metrics of a run as others read them.
enum MetricsOutput {
  /// A file that is replaced each second.
  case file(String)
  case server(MetricsPage, Origin)

  /// - Parameters:
  ///   - row: The last second.
  ///   - total: The whole run so far.
  /// - Throws: `ReelError` if the file can't be written.
  func publish(_ row: ViewersRow, total: ViewersCounts) throws(ReelError) {
    let text = ViewersMetrics(present: row.present, total: total, machine: row.machine).text
    switch self {
    case .file(let path): try ResultFile(path).complete(with: text)
    case .server(let page, _): page.text.withLock { $0 = text }
    }
  }

  func close() async { if case .server(_, let origin) = self { await origin.stop() } }
}

final class MetricsPage: DynamicResource {
  let text = Locked("# EOF\n")

  func response(at path: String) -> Origin.Response? {
    guard path == "/metrics" else { return nil }
    return Origin.Response(
      text.withLock { $0 }, contentType: ViewersMetrics.contentType, headers: [.cacheControl: "no-store"])
  }
}
