import ReelCore
import ReelLab

/// The results of a lab as comma-separated values (RFC 4180): a header line, then one line per walk.
enum LabCSV {
  private static let figures = WalkFigures.all(in: .lab).map(\.name)
  static let columns =
    ["feed", "link", "link_group", "dwell", "device", "slots", "policy", "seed"] + figures + ["error"]

  /// - Parameter runs: All walks of the lab. Those without a result have the error `interrupted`.
  static func text(_ results: [LabResult], of runs: LabRuns) -> String {
    var text = columns.joined(separator: ",") + "\r\n"
    let done = results.count < runs.count ? Set(results.map(\.run)) : nil
    let missing = done.map { done in runs.lazy.filter { !done.contains($0) } }
    let interrupted = missing?.map { LabResult(run: $0, figures: [:], error: "interrupted") } ?? []
    for result in results + interrupted {
      let run = result.run
      let names = [
        run.feed, run.link, run.linkGroup, run.dwell, run.device, "\(run.slotCount)", run.policy,
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
    "\(feed), \(link), \(dwell), \(device), \(slotCount) \(policy), seed \(seed)"
  }
}
