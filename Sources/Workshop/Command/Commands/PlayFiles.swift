import Foundation
import ReelCore

/// The files that `reel play` writes about the sources. They are begun before playback: what can't be made is known then.
struct PlayFiles {
  let page: ResultFile?
  let junit: ResultFile?

  /// Throws `ReelError.cannotCreateOutput`.
  init(page: String?, junit: String?) throws(ReelError) {
    func file(_ path: String?) throws(ReelError) -> ResultFile? {
      try path.map { path throws(ReelError) in try ResultFile(path) }
    }
    self.page = try file(page)
    self.junit = try file(junit)
  }

  /// Writes them; returns the errors of those that failed.
  func write(
    _ recordings: [PlayRecorder.Recording], _ verdicts: [PlayJob.Verdict], isStrict: Bool
  ) -> [ReelError] {
    var failures: [ReelError] = []
    func attempt(_ body: () throws(ReelError) -> Void) {
      do throws(ReelError) { try body() } catch { failures.append(error) }
    }
    attempt { () throws(ReelError) in
      let run = RunDescription(arguments: Array(CommandLine.arguments.dropFirst()))
      try page?.write(PlayPage(sources: recordings, run: run).html)
    }
    attempt { () throws(ReelError) in
      try junit?.write(JUnitXML(command: "play", suites: verdicts.map { Self.suite($0, isStrict) }).text)
    }
    return failures
  }

  /// A case for the source, and one for each of its assertions.
  private static func suite(_ verdict: PlayJob.Verdict, _ isStrict: Bool) -> JUnitXML.Suite {
    let summary = verdict.summary
    var source = JUnitXML.Case(isStrict ? "plays without loss" : "plays")
    if let error = verdict.failure {
      source.failure = ("\(error)", error.kind.rawValue)
    } else if isStrict, let loss = verdict.loss {
      source.failure = ("\(loss)", loss.kind.rawValue)
    }
    return JUnitXML.Suite(
      name: summary.source, cases: [source] + (summary.assertions ?? []).map { JUnitXML.Case($0) },
      duration: .seconds(summary.wallMs / 1e3))
  }
}
