import ReelCore
import ReelLab

/// Results as JUnit XML: suites of test cases.
///
/// JUnit has no schema of its own; this text is valid by that of Jenkins' xUnit plugin, `junit-10.xsd`. The
/// schema of Ant also requires a time stamp and a host, which would differ from run to run.
struct JUnitXML {
  /// A test case.
  struct Case {
    let name: String
    /// The reason why it fails; nil if it passes.
    var failure: (message: String, type: String)?
    /// The reason why it did not run; nil if it did.
    var skipped: String?
    /// How long it took.
    var duration = Duration.zero

    init(_ name: String, failure: (message: String, type: String)? = nil) {
      self.name = name
      self.failure = failure
    }

    init(_ outcome: AssertionOutcome) {
      self.init(outcome.assertion, failure: outcome.isMet ? nil : (outcome.description, "assertion"))
    }
  }

  struct Suite {
    let name: String
    let cases: [Case]
    /// The duration of the run.
    let duration: Duration
    /// Lines that belong to the suite as a whole, and explain its failures.
    var errorOutput: [String] = []
  }

  /// The command, such as `feed`.
  let command: String
  let suites: [Suite]

  var text: String {
    var lines = ["<?xml version=\"1.0\" encoding=\"UTF-8\"?>"]
    lines.append("<testsuites name=\"reel \(command)\" \(Self.attributes(suites, isRoot: true))>")
    for suite in suites {
      let label = Markup.escape(Redaction.clean(suite.name))
      let errorOutput = suite.errorOutput.map { Markup.escape(Redaction.clean($0)) }
      lines.append("  <testsuite name=\"\(label)\" \(Self.attributes([suite], isRoot: false))>")
      for item in suite.cases {
        let name = Markup.escape(Redaction.clean(item.name))
        let head =
          "    <testcase classname=\"reel.\(command).\(label)\" name=\"\(name)\" time=\"\(Self.seconds(item.duration))\""
        guard let failure = item.failure else {
          if let skipped = item.skipped {
            let message = Markup.escape(Redaction.clean(skipped))
            lines.append(head + "><skipped message=\"\(message)\"/></testcase>")
          } else {
            lines.append(head + "/>")
          }
          continue
        }
        let message = Markup.escape(Redaction.clean(failure.message))
        lines.append(head + ">")
        let detail = ([message] + errorOutput).joined(separator: "\n")
        lines.append("      <failure message=\"\(message)\" type=\"\(failure.type)\">\(detail)</failure>")
        lines.append("    </testcase>")
      }
      if !errorOutput.isEmpty {
        lines.append("    <system-err>\(errorOutput.joined(separator: "\n"))</system-err>")
      }
      lines.append("  </testsuite>")
    }
    return (lines + ["</testsuites>", ""]).joined(separator: "\n")
  }

  /// Returns the counts and the time of suites. The root has no count of what was skipped (Jenkins' junit-10.xsd).
  private static func attributes(_ suites: [Suite], isRoot: Bool) -> String {
    let cases = suites.flatMap(\.cases)
    let time = suites.reduce(.zero) { $0 + $1.duration }
    let skipped = cases.count { $0.skipped != nil && $0.failure == nil }
    return "tests=\"\(cases.count)\" failures=\"\(cases.count { $0.failure != nil })\" errors=\"0\""
      + (skipped > 0 && !isRoot ? " skipped=\"\(skipped)\"" : "")
      + " time=\"\(seconds(time))\""
  }

  private static func seconds(_ duration: Duration) -> String {
    (duration / .seconds(1)).formatted(places: 3)
  }
}

extension JUnitXML {
  /// Returns the outcomes of assertions of walks: a suite for each pool, a test case for each assertion. The
  /// items that failed are the suite's error output.
  static func text(_ reports: [WalkReport]) -> String {
    let suites = reports.map { report in
      Suite(
        name: report.poolName, cases: report.assertions.map(Case.init), duration: report.duration,
        errorOutput: report.failureLines)
    }
    return JUnitXML(command: "feed", suites: suites).text
  }
}

/// The results of a lab as comma-separated values (RFC 4180): a header line, then one line per walk.
enum LabCSV {
  private static let figures = WalkFigures.all(in: .lab).map(\.name)
  static let columns =
    ["feed", "link", "link_group", "viewer", "device", "slots", "policy", "seed"] + figures + ["error"]

  static func text(_ results: [LabResult]) -> String {
    var text = columns.joined(separator: ",") + "\r\n"
    for result in results {
      let run = result.run
      let names = [
        run.feed, run.link, run.linkGroup, run.viewer, run.device, "\(run.slotCount)", run.policy,
        "\(run.seed)",
      ]
      let figures = figures.map { figure in
        result.figures[figure].map { $0 == $0.rounded() ? "\(Int64($0))" : "\($0)" } ?? ""
      }
      text += (names + figures + [result.error ?? ""]).map { WalkCSV.field(Redaction.clean($0)) }
        .joined(separator: ",")
      text += "\r\n"
    }
    return text
  }
}

extension LabRun {
  /// A text that distinguishes the run, for messages.
  var summary: String {
    "\(feed), \(link), \(viewer), \(device), \(slotCount) \(policy), seed \(seed)"
  }
}
