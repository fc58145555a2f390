import Foundation
import ReelCore
import ReelPlayback
import ReelPool
import ReelLab
import ReelSources

/// The playback of one or more sources as a page.
struct PlayPage {
  let sources: [PlayRecorder.Recording]
  let run: RunDescription

  var html: String {
    let names = sources.compactMap { $0.summary?.source }.map(Redaction.clean)
    let title = names.count == 1 ? "Playback of \(names[0])" : "Playback of \(sources.count) sources"
    var page = ReportPage(title: title, subtitle: names.count > 1 ? names.joined(separator: " · ") : "")
    for recording in sources {
      guard let summary = recording.summary else { continue }
      page.add(heading(summary))
      page.add("Start-up", startup(summary), note: startupNote(summary))
      let charts = [
        buffer(recording, summary), bitRate(recording, summary), lateness(recording, summary),
      ]
      page.add(
        "Playback over time", ReportPage.charts(charts),
        note:
          "The buffer is the media ahead of the frame on show; the bit rate is that of the rung, as its manifest "
          + "states it. Red: stalls.")
      page.add("Skipped", skipped(summary), note: skippedNote(summary))
      page.add("Failures", failures(summary))
      page.add("Assertions", Table(assertions: summary.assertions ?? []).html())
      page.add("Rungs", rungs(summary))
      page.add("Events", events(recording), note: eventNote(recording))
    }
    page.add("What was run", run.html())
    return page.html
  }

  // MARK: - Private

  private func heading(_ summary: PlayRecordSummary) -> String {
    let ended =
      summary.ended == .duration ? "duration reached" : summary.ended.rawValue.replacing("_", with: " ")
    let figures = PlaybackFigures.all.filter { $0.places.contains(.page) }.compactMap { figure in
      figure.text(in: summary).map { (name: figure.title, value: $0) }
    }
    let name = Markup.escape(Redaction.clean(summary.source))
    let head = sources.count > 1 ? "<h2 class=\"source\">\(name)</h2>" : ""
    let failures = [summary.error ?? summary.loss ?? summary.lastFailure].compactMap { $0?.message }
    return "<section>\(head)"
      + ReportPage.list(failures.map(Redaction.clean), summary.error == nil ? "alert" : "alert bad")
      + ReportPage.tiles([(name: "ended", value: ended)] + figures) + "</section>"
  }

  private static let stageColors: [StartupReport.Stage: String] = [
    .open: "k0 o3", .manifest: "k0 o5", .initialization: "k6 o5", .segment: "k2 o5", .demux: "k4 o5",
    .decode: "k1 o5",
  ]

  private func startup(_ summary: PlayRecordSummary) -> String {
    guard let startup = summary.startup else { return "" }
    let stages = StartupReport.Stage.loading.map { stage in
      (name: stage.rawValue, entry: startup[stage], classes: Self.stageColors[stage] ?? "mute")
    }
    let bar = Charts.bar(
      stages.map { name, entry, classes in
        (
          classes: classes, value: entry.duration.milliseconds,
          title: "\(name) \(DurationText.readable(entry.duration))"
        )
      }, longest: stages.reduce(0) { $0 + $1.entry.duration.milliseconds })
    return "<div class=\"bars\"><div>\(bar)</div></div>"
      + ReportPage.legend(stages.map { (classes: $0.classes, name: $0.name) })
      + Table(
        ["stage", "time", "requests", "bytes"],
        stages.map { name, entry, _ in
          [
            name, DurationText.readable(entry.duration), "\(entry.requestCount)",
            WalkValue.size(entry.byteCount).description,
          ]
        }
      ).html()
  }

  private func startupNote(_ summary: PlayRecordSummary) -> String? {
    guard let total = summary.startup?.total else { return nil }
    return "\(DurationText.readable(total)) to the decoded first frame. Stages may overlap."
  }

  /// Returns the stalls, in seconds since work on the source began.
  private func stalls(
    _ recording: PlayRecorder.Recording
  ) -> [(from: Double, to: Double, title: String)] {
    recording.events.compactMap { record in
      guard case .player(.resumed(_, let length)) = record.event else { return nil }
      let end = record.time / .seconds(1)
      return (
        from: end - length / .seconds(1), to: end, title: "stall of \(DurationText.readable(length))"
      )
    }
  }

  private func buffer(_ recording: PlayRecorder.Recording, _ summary: PlayRecordSummary) -> String {
    guard !recording.samples.isEmpty else { return "" }
    return Charts.course(
      "Buffer, in seconds", recording.samples.map { (time: $0.time, value: $0.buffered) },
      duration: summary.wallMs / 1e3, unit: " s", marks: stalls(recording))
  }

  private func bitRate(_ recording: PlayRecorder.Recording, _ summary: PlayRecordSummary) -> String {
    var points: [(time: Double, value: Double)] = []
    for sample in recording.samples {
      guard let rate = sample.rungBitRate else { continue }
      let value = Double(rate) / 1e6
      // A rung is a step, not a slope.
      if let last = points.last, last.value != value { points.append((sample.time, last.value)) }
      points.append((sample.time, value))
    }
    guard !points.isEmpty else { return "" }
    return Charts.course(
      "Rung, in Mbit/s", points, duration: summary.wallMs / 1e3, unit: "", marks: stalls(recording))
  }

  private func lateness(_ recording: PlayRecorder.Recording, _ summary: PlayRecordSummary) -> String {
    guard !recording.lateness.isEmpty else { return "" }
    let lateness = summary.lateness
    let words = "p50 \(Self.time(lateness?.p50Ms ?? 0)), p99 \(Self.time(lateness?.p99Ms ?? 0))"
    return Charts.delays(
      "How late frames were shown", [.init(name: "", values: recording.lateness, number: 2)], axis: words)
  }

  private func rungs(_ summary: PlayRecordSummary) -> String {
    func rate(_ value: Double?) -> String { value.map { "\(($0 / 1e6).formatted(places: 2)) Mbit/s" } ?? "–" }
    return Table(
      ["rung", "size", "bit rate", "loaded at", "bytes", "requests", "shown", "dropped", "stalls"],
      summary.rungs.map { rung in
        [
          rung.rung ?? "the file", rung.size.map { "\($0.width)×\($0.height)" } ?? "–",
          rate(rung.indicatedBitRate.map(Double.init)), rate(rung.observedBitRate),
          WalkValue.size(rung.byteCount).description, "\(rung.requestCount)", "\(rung.shownFrameCount)",
          "\(rung.droppedFrameCount)", "\(rung.stallCount)",
        ]
      }
    ).html()
  }

  private func skipped(_ summary: PlayRecordSummary) -> String {
    Table(
      ["from", "to", "length", "reason", "failure"],
      summary.skippedParts.map { part in
        let (from, to) = (part.range.lowerBound.seconds, part.range.upperBound.seconds)
        return [
          "\(from.formatted(places: 3)) s", "\(to.formatted(places: 3)) s", Self.time((to - from) * 1e3),
          part.reason.rawValue,
          part.error.map { TextLayout.truncated(Redaction.clean("\($0)"), to: 300) } ?? "–",
        ]
      }, numbers: 0..<3
    ).html()
  }

  private func skippedNote(_ summary: PlayRecordSummary) -> String? {
    let note = "Media that was not shown. With the media played, it adds up to the timeline."
    return summary.skippedPartsOmitted.map { "\(note) \($0) further parts are left out." } ?? note
  }

  private func failures(_ summary: PlayRecordSummary) -> String {
    Table(
      ["position", "rung", "failure", "outcome"],
      summary.failureList.map { failure in
        [
          failure.time.map { "\($0.seconds.formatted(places: 3)) s" } ?? "–", failure.rung ?? "–",
          TextLayout.truncated(Redaction.clean("\(failure.error)"), to: 300), PlayText.outcome(of: failure),
        ]
      }, numbers: 0..<1
    ).html()
  }

  private func events(_ recording: PlayRecorder.Recording) -> String {
    let rows: [[String]] = recording.events.compactMap { record in
      guard let words = PlayText.words(of: record) else { return nil }
      return [
        DurationText.readable(record.time), "\(record.position.seconds.formatted(places: 3)) s",
        TextLayout.truncated(Redaction.clean(words), to: 300),
      ]
    }
    return Table(["at", "position", "event"], rows, numbers: 0..<2).html()
  }

  private func eventNote(_ recording: PlayRecorder.Recording) -> String? {
    recording.omittedCount > 0
      ? "\(recording.omittedCount) events in the middle are left out; --json prints all of them." : nil
  }

  private static func time(_ milliseconds: Double) -> String {
    DurationText.readable(.microseconds(Int64((milliseconds * 1e3).rounded())))
  }
}
