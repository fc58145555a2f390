import Foundation
import ReelCheck
import ReelCore
import ReelLab
import ReelManifest
import ReelSimulation

/// An expectation on a checked source (`--expect`).
typealias CheckExpectation = FigureAssertion<CheckResult>

/// The figures of a checked source. A figure is declared here, and what shows figures takes it from `all`.
enum CheckFigures {
  typealias CheckFigure = Figure<CheckResult>

  /// - Parameter links: The names of the links.
  static func all(links: [String]) -> [CheckFigure] { starts(links) + counts + media }

  /// Parses an expectation such as `start.lte<800ms`. Throws `ReelError` of kind `usage`.
  static func expectation(_ text: String, links: [String]) throws(ReelError) -> CheckExpectation {
    try CheckExpectation(
      parsing: text, among: all(links: links),
      advice: "the links are \(links.joined(separator: ", ")) (--link); reel check --help lists the figures")
  }

  /// The text beside an expectation that is not met: the floor of the start, its requests and bytes.
  static func explanation(of expectation: CheckExpectation, in result: CheckResult) -> String {
    let start = result.starts.first { expectation.metric.hasSuffix("." + $0.link.lowercased()) }
    guard let start else {
      let isOfLink = ["start", "possible", "floor", "stall"].contains {
        expectation.metric.hasPrefix($0 + ".")
      }
      return isOfLink ? result.startRefusal.map { "; \($0)" } ?? "" : ""
    }
    if expectation.metric.hasPrefix("stall.") { return "; \(CheckWords.playback(start.playback))" }
    return "; the floor is \(CheckWords.time(start.floorMilliseconds)): \(start.floorWords)"
  }

  // MARK: - Private

  private static func starts(_ links: [String]) -> [CheckFigure] {
    links.flatMap { link -> [CheckFigure] in
      // Names of figures are found in any letter case.
      let name = link.lowercased()
      @Sendable func start(_ result: CheckResult) -> StartResult? {
        result.starts.first { $0.link.lowercased() == name }
      }
      return [
        time(
          "start.\(name)", "from the request to the first frame on \(link)",
          absence: "there was no first frame"
        ) {
          start($0)?.now.milliseconds
        },
        time("possible.\(name)", "the same with all findings fixed", absence: "there was no first frame") {
          start($0)?.possibleMilliseconds
        },
        time("floor.\(name)", "the least that is possible on \(link)", absence: "there was no first frame") {
          start($0)?.floorMilliseconds
        },
        time(
          "stall.\(name)", "the time that the player stalls on \(link); Reel's stays with its first rung",
          absence: "it was not played"
        ) { check in
          guard case .played(let rung, _) = start(check)?.playback, !rung.course.isCut else { return nil }
          // Holes of the media stall players on any link.
          let holes = check.findings.flatMap(\.costs).filter { $0.kind == .stall && $0.link == nil }
          return max(rung.stalledMilliseconds, holes.map(\.milliseconds).max() ?? 0)
        },
      ]
    }
  }

  private static let counts = [
    count("errors", "errors that are not waived") { $0.findings.count(.error) },
    count("warnings", "warnings that are not waived") { $0.findings.count(.warning) },
    count("rungs", "rungs and renditions that were opened") { $0.coverage.rungCount },
  ]

  private static let media = [
    CheckFigure(
      "height.max", "height", "lines of the highest rung", .count, absence: "no picture was decoded"
    ) { check in
      check.facts.rungs.flatMap(\.content).compactMap { $0.frames.first?.presentationSize.height }
        .max()
        .map { .count($0) }
    },
    time("ttfb.p95", "from a request to its first byte, 95th percentile", absence: "no server was asked") {
      check in
      LatencySummary(check.facts.requests.compactMap(\.metrics?.timeToFirstByte))?.p95.milliseconds
    },
    time("gop.max", "longest distance of key frames in the sample", absence: "no two key frames were read") {
      longestGOP($0.facts).map { $0 * 1000 }
    },
    time("segment.max", "longest segment as listed", absence: "there are no segments") { check in
      check.facts.rungs.compactMap { rung in rung.segments.lazy.map(\.duration.seconds).max() }.max()
        .map { $0 * 1000 }
    },
  ]

  /// The longest distance in seconds between neighbouring key frames of segments that follow each other.
  private static func longestGOP(_ facts: StreamFacts) -> Double? {
    var longest: Double?
    for rung in facts.rungs {
      var last: (index: Int, time: Double)?
      for (index, segment) in rung.samples.sorted(by: { $0.key < $1.key }) {
        guard let video = segment.video, !segment.isPartial else {
          last = nil
          continue
        }
        for key in video.samples where key.isKey {
          if let last, index - last.index <= 1, key.start > last.time {
            longest = max(longest ?? 0, key.start - last.time)
          }
          last = (index, key.start)
        }
      }
    }
    return longest
  }

  private static func time(
    _ name: String, _ meaning: String, absence: String,
    _ milliseconds: @escaping @Sendable (CheckResult) -> Double?
  ) -> CheckFigure {
    CheckFigure(name, name, meaning, .time, absence: absence) { check in
      milliseconds(check).map { .time(.nanoseconds(Int64(($0 * 1e6).rounded()))) }
    }
  }

  private static func count(
    _ name: String, _ meaning: String, _ value: @escaping @Sendable (CheckResult) -> Int
  ) -> CheckFigure {
    CheckFigure(name, name, meaning, .count) { .count(value($0)) }
  }
}
