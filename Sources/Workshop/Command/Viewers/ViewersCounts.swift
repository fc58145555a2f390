import ReelCore
import ReelLab

/// What happened in a part of a run of `reel viewers`: in a second, or in all of it.
struct ViewersCounts: Sendable {
  /// A cause of failures, and the host that was asked; empty for a local file.
  struct Fault: Sendable, Hashable {
    var cause: String
    var host: String
  }

  /// The views that began: a view is the playback of one source by one viewer.
  var views = 0
  /// The views that ended with an error.
  var failed: [Fault: Int] = [:]
  /// The times from the beginning of a view to its first frame.
  var starts: [Duration] = []
  var stalls = 0
  /// The time that all viewers together have played.
  var played = Duration.zero
  /// The time that they have waited after a first frame, in stalls and jumps.
  var waited = Duration.zero
  /// The time for which rungs were played, by their bit rates.
  var rungs: [Int: Duration] = [:]
  var bytes: Int64 = 0
  /// The requests by the status of their answers; `none` without an answer, `cancelled` if the viewer did not wait for
  /// it, `file` for local ones.
  var requests: [String: Int] = [:]
  /// What could not be loaded at first, whatever followed.
  var errors: [Fault: Int] = [:]

  var failedCount: Int { failed.values.reduce(0, +) }
  var requestCount: Int { requests.values.reduce(0, +) }
  var errorCount: Int { errors.values.reduce(0, +) }

  /// The share of waits in the time from the first frame on; nil if nothing was played.
  var rebuffering: Double? {
    let all = played + waited
    return all > .zero ? waited / all : nil
  }

  /// The rungs, the lowest first, each with its share of the time.
  var rungShares: [(bitRate: Int, played: Duration, share: Double)] {
    let all = rungs.values.reduce(.zero, +)
    return rungs.sorted { $0.key < $1.key }.map { ($0.key, $0.value, $0.value / all) }
  }

  /// The mean bit rate of the rungs; nil if none with a stated bit rate was played.
  var meanRung: Double? {
    rungs.isEmpty ? nil : rungShares.reduce(0) { $0 + Double($1.bitRate) * $1.share }
  }

  mutating func add(_ other: ViewersCounts) {
    views += other.views
    starts += other.starts
    stalls += other.stalls
    played += other.played
    waited += other.waited
    bytes += other.bytes
    failed.merge(other.failed, uniquingKeysWith: +)
    rungs.merge(other.rungs, uniquingKeysWith: +)
    requests.merge(other.requests, uniquingKeysWith: +)
    errors.merge(other.errors, uniquingKeysWith: +)
  }
}

/// The viewers of a moment.
struct ViewersPresent: Sendable {
  /// Those that do not play yet.
  var starting = 0
  var playing = 0
  /// Those in a stall or a jump.
  var waiting = 0
  /// The viewers by the bit rate of the rung that they load.
  var rungs: [Int: Int] = [:]
  /// The distances of viewers from the live edge, as far as sources are live.
  var latencies: [Duration] = []

  var count: Int { starting + playing + waiting }
}

/// A second of a run, or some seconds together.
struct ViewersRow: Sendable {
  /// The end, since the beginning of the run.
  var time: Duration
  var length: Duration
  var counts: ViewersCounts
  var present: ViewersPresent
  var machine: MachineLoad

  /// The row of both times together. The viewers are those at its end.
  func joined(with next: ViewersRow) -> ViewersRow {
    var row = next
    row.length += length
    row.counts = counts
    row.counts.add(next.counts)
    row.machine = machine.highest(next.machine)
    return row
  }

  /// Bits received in a second.
  var bitRate: Double { perSecond(Double(counts.bytes) * 8) }

  /// How often something happened in a second.
  func perSecond(_ count: Double) -> Double { length > .zero ? count / (length / .seconds(1)) : 0 }
}

/// A whole run.
struct ViewersSummary: Sendable {
  /// The viewers of this process: all, or those of its shard.
  let viewers: Int
  let sources: Int
  var duration = Duration.zero
  var counts = ViewersCounts()
  /// The most viewers at once.
  var mostPresent = 0
  var machine = MachineUse()
  /// The distances from the live edge at the ends of views, as far as sources were live.
  var latencies: [Duration] = []
  var isInterrupted = false
  var assertions: [AssertionOutcome] = []

  var start: LatencySummary? { LatencySummary(counts.starts) }
  var liveLatency: LatencySummary? { LatencySummary(latencies) }

  /// Bits received in a second of the run.
  var bitRate: Double? { duration > .zero ? Double(counts.bytes) * 8 / (duration / .seconds(1)) : nil }
}
