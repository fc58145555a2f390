import Foundation
import ReelCore
import ReelLab
import ReelPlayback
import ReelPool
import ReelSources

/// The reports of `reel play` as text.
enum PlayText {
  /// Returns the line for an event: the position and a description; nil if another line reports it.
  static func line(for record: PlayRecord, in layout: TextLayout) -> String? {
    guard let (text, style) = words(for: record) else { return nil }
    return "\(seconds(record.position.seconds)) s  \(layout.styled(text, style))"
  }

  /// Returns the words for an event, without its position; nil if another event reports it.
  static func words(of record: PlayRecord) -> String? {
    guard let words = words(for: record)?.text else { return nil }
    switch record.event {
    case .player(.failed(let error)), .player(.outputFailed(let error)): return "\(words): \(error)"
    default: return words
    }
  }

  /// Returns the status line during playback.
  static func progress(item: PlayerItem, position: MediaTime, statistics: PlayerStatistics) -> String {
    var parts = [seconds(position.seconds)]
    if let duration = item.duration.value { parts[0] += "/\(seconds(duration.seconds))" }
    parts[0] += " s"
    parts.append("buffer \((statistics.bufferedDuration / .seconds(1)).formatted(places: 1)) s")
    if let ring = statistics.ring { parts.append("ring \(ring.frameCount)/\(ring.frameCapacity)") }
    if let rung = item.rung.value { parts.append("rung \(rung.printable)") }
    if let rate = item.accessLog.last?.indicatedBitRate {
      parts.append(WalkValue.text(bitsPerSecond: Double(rate)))
    }
    if let latency = item.liveLatency.value {
      parts.append("\((latency / .seconds(1)).formatted(places: 1)) s behind live")
    }
    parts.append("dropped \(statistics.droppedFrameCount)")
    if let memory = ProcessMemory.currentResidentByteCount { parts.append(size(memory)) }
    if let bandwidth = statistics.estimatedBandwidth {
      parts.append("link \(WalkValue.text(bitsPerSecond: bandwidth))")
    }
    return parts.joined(separator: "  ")
  }

  static func summary(_ record: PlayRecordSummary) -> String {
    var lines = ["\(record.source.printable): \(ending(record))"]
    func add(_ name: String, _ text: String) {
      lines.append("  \(name.padding(toLength: 12, withPad: " ", startingAt: 0)) \(text)")
    }
    var played = "\(record.played.formatted(places: 3)) s in \(milliseconds(record.wallMs))"
    if record.skipped > 0 { played += ", \(record.skipped.formatted(places: 3)) s skipped" }
    add("played", played)
    for line in skipped(record) { add("skipped", line) }
    add("time", wall(record.wall))
    if let text = startup(record) { add("start-up", text) }
    if let secondFrame = record.secondFrameMs { add("second frame", "after \(milliseconds(secondFrame))") }
    add(
      "frames",
      "\(record.frames.shown) shown, \(record.frames.dropped) dropped, \(record.frames.damaged) damaged")
    if let lateness = record.lateness {
      add("lateness", "p50 \(milliseconds(lateness.p50Ms)), p99 \(milliseconds(lateness.p99Ms))")
    }
    add("stalls", stalls(record))
    if let latency = record.liveLatencyMs { add("live", "\(milliseconds(latency)) behind the edge") }
    let isLocal = record.localRequests == record.requests
    for rung in record.rungs { add("rung", self.rung(rung, isLocal: isLocal)) }
    if record.localRequests > 0 { add("read", "\(size(record.localBytes)) of local files") }
    if !isLocal || record.requests == 0 {
      let (bytes, requests) = (record.bytes - record.localBytes, record.requests - record.localRequests)
      add("network", "\(size(bytes)) in \(requests.counted("request"))")
    }
    if !record.loopGapsMs.isEmpty {
      let gaps = record.loopGapsMs.sorted()
      add(
        "loops",
        "\(gaps.count), gaps p50 \(milliseconds(gaps[gaps.count / 2])), at most \(milliseconds(gaps.last ?? 0))"
      )
    }
    for failure in record.failureList.prefix(listLimit) { add("failure", words(of: failure)) }
    if record.failures > listLimit {
      add("failures", "\(record.failures), the last: \(record.lastFailure?.message ?? "")")
    }
    var memory = "\(size(record.bufferPeakBytes)) buffered, \(size(record.ringPeakBytes)) decoded"
    if let peak = record.memoryBytes { memory += "; the process \(size(peak))" }
    add("memory", memory)
    return lines.joined(separator: "\n")
  }

  // MARK: - Private

  private static func words(for record: PlayRecord) -> (text: String, style: TextLayout.Style?)? {
    switch record.event {
    // The stall itself is reported separately.
    case .status(.waitingToPlayAtSpecifiedRate(.toMinimizeStalls)): nil
    case .status(.waitingToPlayAtSpecifiedRate(let reason)):
      ("waiting (\(reason.rawValue.snakeCased.replacing("_", with: " ")))", nil)
    case .status(.playing): ("playing", .good)
    case .status(.paused): ("paused", .good)
    case .ready(let duration, _, let tracks): (ready(duration, tracks), nil)
    case .player(let event): words(for: event)
    }
  }

  private static func words(for event: PlayerEvent) -> (text: String, style: TextLayout.Style?) {
    switch event {
    case .firstFrame(_, let wait): return ("first frame after \(milliseconds(wait.milliseconds))", nil)
    case .seekDone(_, let wait): return ("seek done after \(milliseconds(wait.milliseconds))", nil)
    case .stalled: return ("stalled", .warning)
    case .resumed(_, let wait): return ("resumed after \(milliseconds(wait.milliseconds))", nil)
    case .rungSwitched(let old, let new, _, let cause):
      let cause = cause.map { " (\(words(of: $0)))" } ?? ""
      return ("rung \(old?.printable ?? "none") -> \(new.printable)\(cause)", nil)
    case .retry(let attempt, let count, let wait, let error):
      let time = milliseconds(wait.milliseconds)
      return ("retry \(attempt) of \(count) in \(time): \(error)", .warning)
    case .segmentMissed(let start, let length, let error):
      return ("segment missed, \(places(start, start + length)): \(error)", .warning)
    case .gapSkipped(let start, let end): return ("gap skipped, \(places(start, end))", .warning)
    case .jumpedToLive(let start, let end):
      return ("jumped towards the live edge, \(places(start, end))", .warning)
    case .looped(let gap): return ("looped, gap \(milliseconds(gap.milliseconds))", nil)
    case .playedToEnd: return ("played to the end", .good)
    // The error itself is reported separately.
    case .failed, .outputFailed: return ("failed", .bad)
    }
  }

  private static func places(_ start: MediaTime, _ end: MediaTime) -> String {
    "\(seconds(start.seconds)) s to \(seconds(end.seconds)) s"
  }

  /// Returns why another rung was chosen.
  private static func words(of cause: RungSwitchCause) -> String {
    switch cause {
    case .adaptationUp: "adaptation: faster link"
    case .adaptationDown: "adaptation: slower link"
    case .failure: "the previous rung failed"
    case .retry: "retried after a failure"
    case .limit: "limit of bit rate or height"
    case .startup: "the limit for the first segment has ended"
    case .period: "another period"
    }
  }

  /// The number of failures and of skipped parts that are listed.
  private static let listLimit = 10

  static func words(of range: Range<MediaTime>) -> String {
    "from \(places(range.lowerBound, range.upperBound))"
  }

  /// Returns the consequence of a failure.
  static func outcome(of failure: ErrorLogEntry) -> String {
    switch failure.outcome {
    case .retried: return "retried"
    case .otherRung: return "another rung was read"
    case .otherLocation: return "another location was read"
    case .tolerated: return "nothing lost"
    case .failed: return "not retried"
    case .lost(let loss):
      // The error itself says that media is missing or damaged.
      let words = [.missing, .damaged].contains(loss.reason) ? "left out" : loss.reason.rawValue
      return loss.kind == .audio ? "audio \(words)" : words
    }
  }

  private static func words(of failure: ErrorLogEntry) -> String {
    "\(failure.error) (\(outcome(of: failure)))"
  }

  /// Returns the lines for skipped media. Dropped frames are combined in one line.
  private static func skipped(_ record: PlayRecordSummary) -> [String] {
    let parts = record.skippedParts.filter { $0.reason != .dropped }
    var lines = parts.prefix(listLimit).map { part in
      "\(places(part.range.lowerBound, part.range.upperBound)), \(part.reason.rawValue)"
        + (part.error.map { ": \($0)" } ?? "")
    }
    if parts.count > listLimit { lines.append("and \(parts.count - listLimit) more parts") }
    let dropped = record.skippedReasons[.dropped]
    if dropped > 0 { lines.append("\(dropped.formatted(places: 3)) s of dropped frames") }
    return lines
  }

  private static func ready(_ duration: MediaTime?, _ tracks: [PlayerItem.Track]) -> String {
    var parts = tracks.map { track in
      var words = [track.codec.printable]
      if let size = track.size { words.append("\(size.width)x\(size.height)") }
      if let rate = track.frameRate { words.append("\(rate.value.formatted(places: 3)) fps") }
      if let rate = track.sampleRate { words.append("\(rate) Hz") }
      if let language = track.language, language != "und" { words.append(language.printable) }
      return words.joined(separator: " ")
    }
    if let duration { parts.append("\(duration.seconds.formatted(places: 3)) s") }
    return "ready: " + parts.joined(separator: ", ")
  }

  private static func ending(_ record: PlayRecordSummary) -> String {
    switch record.ended {
    case .playedToEnd: "played to the end"
    case .duration: "stopped after \(record.played.formatted(places: 3)) s (--duration)"
    case .interrupted: "interrupted"
    case .failed: "failed"
    }
  }

  private static func startup(_ record: PlayRecordSummary) -> String? {
    guard let total = record.firstFrameMs else { return nil }
    guard let stages = record.startup else { return milliseconds(total) }
    let parts = StartupReport.Stage.loading.map { stage in
      "\(stage.rawValue) \(stages[stage].duration.milliseconds.formatted(places: 1)) ms"
    }
    return "\(milliseconds(total)), in stages that overlap: \(parts.joined(separator: ", "))"
  }

  /// Returns the non-zero parts of the wall-clock time.
  private static func wall(_ wall: PlayRecordSummary.Wall) -> String {
    let phases = PlaybackTimes.Phase.allCases.map { phase in
      (phase == .startup ? "start-up" : phase.rawValue, wall.times[phase].milliseconds)
    }
    return ([("preparing", wall.preparing.milliseconds)] + phases).filter { $0.1 >= 0.05 }
      .map { "\($0) \(milliseconds($1))" }.joined(separator: ", ")
  }

  private static func stalls(_ record: PlayRecordSummary) -> String {
    var text = record.stalls.count == 0 ? "none" : "\(record.stalls.count), \(milliseconds(record.stalledMs))"
    if let ratio = record.rebuffering, ratio > 0 {
      text += "; stalls and seeks take \((ratio * 100).formatted(places: 1)) % of the time"
    }
    return text
  }

  private static func rung(_ rung: AccessLogEntry, isLocal: Bool) -> String {
    var parts = [rung.rung?.printable ?? "the file"]
    if let size = rung.size { parts.append("\(size.width)x\(size.height)") }
    if let rate = rung.indicatedBitRate { parts.append(WalkValue.text(bitsPerSecond: Double(rate))) }
    if let rate = rung.observedBitRate, rate.isFinite {
      parts.append("loaded at \(WalkValue.text(bitsPerSecond: rate))")
    }
    let read = size(rung.byteCount)
    parts.append(isLocal ? "\(read) read" : "\(read) in \(rung.requestCount.counted("request"))")
    parts.append(
      "\(rung.shownFrameCount) shown, \(rung.droppedFrameCount) dropped, \(rung.stallCount.counted("stall"))")
    return parts.joined(separator: "  ")
  }

  private static func seconds(_ value: Double) -> String { String(format: "%.3f", value) }

  /// Returns a duration in milliseconds, or in seconds from 1 s on.
  private static func milliseconds(_ value: Double) -> String {
    value < 1e3 ? "\(value.formatted(places: 1)) ms" : "\((value / 1e3).formatted(places: 3)) s"
  }

  private static func size(_ byteCount: some BinaryInteger) -> String {
    ByteSize(byteCount: Int(clamping: byteCount)).description
  }
}

extension StartupReport.Stage {
  /// The stages up to the decoded first frame: all but the conversion, which players do without.
  static let loading = allCases.filter { $0 != .convert }
}
