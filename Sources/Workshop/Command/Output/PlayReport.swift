import ReelCore
import ReelPlayback
import ReelReplay

/// Prints the events of `reel play`: lines of JSON on standard output; or lines of text on standard error and
/// the summary on standard output; or nothing.
final class PlayReport: Sendable {
  enum Form: Sendable, Hashable {
    case json
    /// `toStandardError`: the summary too, because standard output has the frames.
    case text(toStandardError: Bool)
    case nothing
  }

  private let form: Form
  /// The status line; nil if there is none.
  private let progress: PlayProgress?
  /// Collects the records for a page; nil if no page is written.
  let recorder: PlayRecorder?

  init(_ form: Form, recorder: PlayRecorder? = nil) {
    self.form = form
    self.recorder = recorder
    if case .text = form { progress = PlayProgress() } else { progress = nil }
  }

  /// True if `showProgress(_:)` shows anything, or samples are collected.
  var wantsTicks: Bool { progress != nil || recorder != nil }

  /// Throws `ReelError.cannotWriteOutput`.
  func tell(_ record: PlayRecord) throws(ReelError) {
    recorder?.note(record)
    switch form {
    case .json: try Console.print(JSONLine.string(record))
    case .text:
      if let line = PlayText.line(for: record, usesColor: Terminal.errorLayout.usesColor) { note(line) }
    case .nothing: break
    }
  }

  /// Prints nothing unless the output is JSON. Throws `ReelError.cannotWriteOutput`.
  func tell(_ frame: PlayRecordFrame) throws(ReelError) {
    if form == .json { try Console.print(JSONLine.string(frame)) }
  }

  func showProgress(_ line: String) { progress?.show(line) }

  /// Prints the summary. Throws `ReelError.cannotWriteOutput`.
  func finish(_ summary: PlayRecordSummary) throws(ReelError) {
    recorder?.note(summary)
    progress?.clear()
    switch form {
    case .json: try Console.print(JSONLine.string(summary))
    case .text(toStandardError: true): Console.note(PlayText.summary(summary))
    case .text(toStandardError: false): try Console.printText(PlayText.summary(summary))
    case .nothing: break
    }
  }

  /// Prints the outcomes of assertions: those that hold after the summary, the others on standard error. JSON has them in
  /// the summary.
  ///
  /// - Parameter label: The source, if there are several. Throws `ReelError.cannotWriteOutput`.
  func tell(_ outcomes: [AssertionOutcome], of label: String?) throws(ReelError) {
    let label = label.map { "\($0.printable): " } ?? ""
    for outcome in outcomes where outcome.isMet {
      switch form {
      case .text(toStandardError: true): Console.note("\(label)\(outcome.text(in: Terminal.errorLayout))")
      case .text(toStandardError: false):
        try Console.printText("\(label)\(outcome.text(in: Terminal.layout))")
      case .json, .nothing: break
      }
    }
    for outcome in outcomes where !outcome.isMet {
      Console.fault("\(label)\(outcome.text(in: Terminal.errorLayout))")
    }
  }

  // MARK: - Private

  private func note(_ line: String) {
    if let progress { progress.note(line) } else { Console.note(line) }
  }
}
