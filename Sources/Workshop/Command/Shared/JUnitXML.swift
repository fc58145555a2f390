import ReelCore
import ReelLab

/// Results as JUnit XML: suites of test cases.
///
/// JUnit has no schema of its own; this text is valid by that of Jenkins' xUnit plugin, `junit-10.xsd`. The
/// schema of Ant also requires a time stamp and a host, which would differ from run to run.
struct JUnitXML {
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
