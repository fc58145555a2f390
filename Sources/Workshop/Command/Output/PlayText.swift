import Foundation
import ReelCore
import ReelFFmpeg
import ReelLab
import ReelPlayback
import ReelPool

/// The reports of `reel play` as text.
enum PlayText {
  /// Returns the line for an event: the position and a description; nil if another line reports it.
  static func line(for record: PlayRecord, usesColor: Bool) -> String? {
    guard let (text, color) = words(for: record) else { return nil }
    let shown = usesColor ? color.map { "\u{1b}[\($0)m\(text)\u{1b}[0m" } ?? text : text
    return "\(seconds(record.position)) s  \(shown)"
  }

  /// Returns the words for an event, without its position.
  static func words(of record: PlayRecord) -> String {
    if let words = words(for: record)?.text {
      return record.event == "failed" || record.event == "output_failed"
        ? "\(words): \(record.error?.message ?? "")" : words
    }
    return words(record.reason ?? record.event)
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

  /// Returns the lines of the summary.
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
    if let peak = record.memoryBytes { memory += ", \(size(peak)) in all" }
    add("memory", memory)
    return lines.joined(separator: "\n")
  }

  // MARK: - Private

  private enum Color {
    static let good = 32
    static let warning = 33
    static let bad = 31
  }

  /// Returns the text for an event and its SGR colour (ECMA-48).
  private static func words(for record: PlayRecord) -> (text: String, color: Int?)? {
    let after = record.afterMs.map(milliseconds) ?? ""
    let why = record.error?.message ?? ""
    let places = "\(seconds(record.from ?? 0)) s to \(seconds(record.to ?? 0)) s"
    switch record.event {
    case "status":
      switch (record.status, record.reason) {
      // The stall itself is reported separately.
      case (_, "to_minimize_stalls"): return nil
      case ("waiting_to_play", let reason): return ("waiting (\(words(reason ?? "")))", nil)
      case (let status, _): return (status ?? "", Color.good)
      }
    case "ready": return (ready(record), nil)
    case "first_frame": return ("first frame after \(after)", nil)
    case "seek_done": return ("seek done after \(after)", nil)
    case "stalled": return ("stalled", Color.warning)
    case "resumed": return ("resumed after \(after)", nil)
    case "rung_switched":
      let cause = record.cause.map { " (\(words(ofCause: $0)))" } ?? ""
      return (
        "rung \(record.fromRung?.printable ?? "none") -> \(record.toRung?.printable ?? "none")\(cause)", nil
      )
    case "retry":
      return ("retry \(record.attempt ?? 0) of \(record.of ?? 0) in \(after): \(why)", Color.warning)
    case "segment_missed": return ("segment missed, \(places): \(why)", Color.warning)
    case "gap_skipped": return ("gap skipped, \(places)", Color.warning)
    case "jumped_to_live": return ("jumped towards live, \(places)", Color.warning)
    case "looped": return ("looped, gap \(milliseconds(record.gapMs ?? 0))", nil)
    case "played_to_end": return ("played to the end", Color.good)
    // The error itself is reported separately.
    case "failed", "output_failed": return ("failed", Color.bad)
    default: return (words(record.event), nil)
    }
  }

  private static func words(_ key: String) -> String { key.replacing("_", with: " ") }

  /// Returns why another rung was chosen, from the name of a `RungSwitchCause`.
  private static func words(ofCause name: String) -> String {
    switch name {
    case "failure": "the rung before failed"
    case "retry": "tried again after a failure"
    case "limit": "limited bit rate or height"
    case "startup": "the limit of the first segment has ended"
    case "period": "another period"
    default: words(name)
    }
  }

  /// The number of failures and of skipped parts that are listed.
  private static let listLimit = 10

  static func words(of range: Range<MediaTime>) -> String {
    "from \(seconds(range.lowerBound.seconds)) s to \(seconds(range.upperBound.seconds)) s"
  }

  /// Returns the consequence of a failure.
  static func outcome(of failure: PlayRecordSummary.Failure) -> String {
    switch failure.outcome {
    case "other_rung": "another rung was read"
    case "other_location": "another location was read"
    case "missing": failure.kind == "audio" ? "audio left out" : "left out"
    case "tolerated": "nothing lost"
    case "failed": "not retried"
    case let outcome: failure.kind == "audio" ? "audio \(outcome)" : outcome
    }
  }

  private static func words(of failure: PlayRecordSummary.Failure) -> String {
    "\(failure.error.message) (\(outcome(of: failure)))"
  }

  /// Returns the lines for skipped media. Dropped frames are combined in one line.
  private static func skipped(_ record: PlayRecordSummary) -> [String] {
    let parts = record.skippedParts.filter { $0.reason != MediaLoss.Reason.dropped.rawValue }
    var lines = parts.prefix(listLimit).map { part in
      "\(seconds(part.from)) s to \(seconds(part.to)) s, \(part.reason)"
        + (part.error.map { ": \($0.message)" } ?? "")
    }
    if parts.count > listLimit { lines.append("and \(parts.count - listLimit) more parts") }
    let dropped = record.skippedReasons.dropped
    if dropped > 0 { lines.append("\(dropped.formatted(places: 3)) s of dropped frames") }
    return lines
  }

  private static func ready(_ record: PlayRecord) -> String {
    var parts = (record.tracks ?? []).map { track in
      var words = [track.codec.printable]
      if let width = track.width, let height = track.height { words.append("\(width)x\(height)") }
      if let rate = track.frameRate { words.append("\(rate.formatted(places: 3)) fps") }
      if let rate = track.sampleRate { words.append("\(rate) Hz") }
      if let language = track.language, language != "und" { words.append(language.printable) }
      return words.joined(separator: " ")
    }
    if let duration = record.duration { parts.append("\(duration.formatted(places: 3)) s") }
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
      "\(stage.rawValue) \(stages[stage].duration.milliseconds.formatted(places: 1))"
    }
    return "\(milliseconds(total)): \(parts.joined(separator: ", "))"
  }

  /// Returns the non-zero parts of the wall-clock time.
  private static func wall(_ wall: PlayRecordSummary.Wall) -> String {
    [
      ("preparing", wall.preparingMs), ("start-up", wall.startupMs), ("buffering", wall.bufferingMs),
      ("playing", wall.playingMs), ("frozen", wall.frozenMs), ("stalled", wall.stalledMs),
      ("seeking", wall.seekingMs),
      ("paused", wall.pausedMs),
    ].filter { $0.1 >= 0.05 }.map { "\($0) \(milliseconds($1))" }.joined(separator: ", ")
  }

  private static func stalls(_ record: PlayRecordSummary) -> String {
    var text = record.stalls.count == 0 ? "none" : "\(record.stalls.count), \(milliseconds(record.stalledMs))"
    if let ratio = record.rebuffering, ratio > 0 {
      text += ", rebuffering \((ratio * 100).formatted(places: 1)) %"
    }
    return text
  }

  private static func rung(_ rung: PlayRecordSummary.Rung, isLocal: Bool) -> String {
    var parts = [rung.rung?.printable ?? "the file"]
    if let width = rung.width, let height = rung.height { parts.append("\(width)x\(height)") }
    if let rate = rung.indicatedBitRate { parts.append(WalkValue.text(bitsPerSecond: Double(rate))) }
    if let rate = rung.observedBitRate { parts.append("came at \(WalkValue.text(bitsPerSecond: rate))") }
    parts.append(
      isLocal ? "\(size(rung.bytes)) read" : "\(size(rung.bytes)) in \(rung.requests.counted("request"))")
    parts.append(
      "\(rung.framesShown) shown, \(rung.framesDropped) dropped, \(rung.stalls.counted("stall"))")
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
