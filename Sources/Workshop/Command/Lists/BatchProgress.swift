import ReelCore

/// The counts of a run over a list, from any thread.
final class BatchProgress: Sendable {
  struct Counts: Sendable {
    /// The number of sources written in this run.
    var written = 0
    var failedPermanently = 0
    var failedTemporarily = 0
    /// The number of sources written by an earlier run.
    var skippedWritten = 0
    var skippedFailed = 0
    /// The number of entries that repeat an earlier one of the list.
    var repeated = 0
    var causes: [String: Cause] = [:]

    var failed: Int { failedPermanently + failedTemporarily }
    var skipped: Int { skippedWritten + skippedFailed + repeated }
    var done: Int { written + failed + skipped }
  }

  struct Cause: Sendable, Equatable {
    var count = 0
    var temporaryCount = 0
  }

  private struct State {
    var counts = Counts()
    /// The number of sources of the list that belong to other shards.
    var elsewhere = 0
    var total: Int?
    var running: [Int: (source: String, start: ContinuousClock.Instant)] = [:]
  }

  private let state = Locked(State())

  var counts: Counts { state.withLock { $0.counts } }

  /// Sets the number of sources in the list, if known.
  func setTotal(_ total: Int?) { state.withLock { $0.total = total } }

  func begin(_ index: Int, _ source: String) {
    let now = ContinuousClock.now
    state.withLock { $0.running[index] = (source, now) }
  }

  func end(_ index: Int) { state.withLock { _ = $0.running.removeValue(forKey: index) } }

  func addElsewhere() { state.withLock { $0.elsewhere += 1 } }

  func add(_ change: @Sendable (inout Counts) -> Void) { state.withLock { change(&$0.counts) } }

  func addFailure(_ error: ReelError) {
    let cause = error.cause
    let mayPass = error.mayPass
    state.withLock { state in
      state.counts.causes[cause, default: Cause()].count += 1
      if mayPass {
        state.counts.failedTemporarily += 1
        state.counts.causes[cause, default: Cause()].temporaryCount += 1
      } else {
        state.counts.failedPermanently += 1
      }
    }
  }

  /// `3 of 10 sources done`; `3 sources done` of a shard, and of a list whose length is unknown.
  var doneText: String {
    let state = state.withLock { $0 }
    guard let total = state.total, state.elsewhere == 0 else {
      return "\(state.counts.done.counted("source")) done"
    }
    return "\(state.counts.done) of \(total.counted("source")) done"
  }

  /// `1204 of 5000 done, 12 failed, 45.2/s, 84 s left, slowest 12 s: http://…`.
  func text(after time: Duration) -> String {
    let state = state.withLock { $0 }
    let counts = state.counts
    let seconds = time / .seconds(1)
    let worked = counts.written + counts.failed
    let seen = counts.done + state.elsewhere
    var text = "\(counts.done) done"
    if let total = state.total {
      // With shards, the number of this shard's sources is extrapolated from the part of the list read so
      // far.
      let own = state.elsewhere == 0 ? total : seen == 0 ? 0 : counts.done * total / seen
      text = "\(counts.done) of \(state.elsewhere == 0 ? "" : "about ")\(own) done"
    }
    text += ", \(counts.failed) failed, \((Double(worked) / max(seconds, 0.001)).formatted(places: 1))/s"
    if let total = state.total, worked > 0, seen > counts.skipped + state.elsewhere {
      let share = Double(max(0, total - seen)) / Double(seen)
      let left = share * Double(counts.done - counts.skipped) * seconds / Double(worked)
      text += ", \(Self.readable(left)) left"
    }
    let now = ContinuousClock.now
    if let slowest = state.running.values.min(by: { $0.start < $1.start }) {
      text += ", slowest \(Self.readable((now - slowest.start) / .seconds(1))): \(slowest.source.printable)"
    }
    return text
  }

  /// `90 s`, `12 min`, `3 h 20 min`.
  private static func readable(_ seconds: Double) -> String {
    let whole = Int(min(seconds.rounded(), 1e9))
    if whole < 120 { return "\(whole) s" }
    return whole < 7200 ? "\(whole / 60) min" : "\(whole / 3600) h \(whole % 3600 / 60) min"
  }
}

extension BatchProgress.Counts {
  /// Returns `188 written, 12 failed, 3 skipped`, and a line for each cause of failures.
  ///
  /// - Parameter success: The status of sources without an error.
  func lines(_ success: ResultLine.Status) -> [String] {
    var lines = ["\(written) \(success.rawValue), \(failed) failed, \(skipped) skipped"]
    let sorted = causes.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }
    for (cause, value) in sorted {
      let retry =
        value.temporaryCount == 0
        ? ""
        : value.temporaryCount == value.count
          ? ", may succeed on a retry"
          : ", of which \(value.temporaryCount) may succeed on a retry"
      lines.append("  failed: \(value.count) \(cause.spelledOut)\(retry)")
    }
    if skippedWritten > 0 { lines.append("  skipped: \(skippedWritten) \(success.rawValue) earlier") }
    if skippedFailed > 0 { lines.append("  skipped: \(skippedFailed) failed permanently earlier") }
    if repeated > 0 { lines.append("  skipped: \(repeated) listed more than once") }
    return lines
  }

  /// The exit code of a run that was not interrupted. A possible successful retry takes precedence.
  var exitCode: Int32 {
    if failedTemporarily > 0 { return ExitStatus.mayPass }
    return failedPermanently + skippedFailed > 0 ? ExitStatus.failedSource : 0
  }
}

extension String {
  /// The kind of an error in words: `no such file` for `noSuchFile`.
  var spelledOut: String { replacing(#/[A-Z]/#) { " \($0.output.lowercased())" } }
}

extension ReelError {
  /// The name of the cause in a summary: the kind, and the HTTP status if there is one.
  var cause: String { status.map { "\(kind.rawValue) \($0)" } ?? kind.rawValue }
}
