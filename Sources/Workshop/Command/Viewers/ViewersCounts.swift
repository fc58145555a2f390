import Foundation
import ReelCore
import ReelLab
import ReelPlayback
import ReelSources

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

  /// The mean bit rate of the rungs; nil if none with a stated bit rate was played.
  var meanRung: Double? {
    let all = rungs.values.reduce(.zero, +)
    return all > .zero ? rungs.reduce(0) { $0 + Double($1.key) * ($1.value / all) } : nil
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
  /// The distances from the live edge at the ends of views; nil if no source was live.
  var liveLatency: LatencySummary?
  var isInterrupted = false
  var assertions: [AssertionOutcome] = []

  var start: LatencySummary? { LatencySummary(counts.starts) }

  /// Bits received in a second of the run.
  var bitRate: Double? { duration > .zero ? Double(counts.bytes) * 8 / (duration / .seconds(1)) : nil }
}

/// Counts what viewers report, second by second.
final class ViewersTally: Sendable {
  /// What is known of a viewer who is there.
  private struct Presence {
    enum Phase {
      case starting, playing, waiting
    }

    var phase = Phase.starting
    var rung: Int?
    var latency: Duration?
  }

  private struct State {
    var counts = ViewersCounts()
    var presences: [Int: Presence] = [:]
    var present = ViewersPresent()
    /// The time up to which played and waited times are counted.
    var counted = Duration.zero
    var mostPresent = 0
    var latencies: [Duration] = []
  }

  private let state = Locked(State())

  func record(_ event: ViewerEvent) {
    state.withLock { state in
      Self.count(&state, to: event.time)
      var presence = state.presences[event.viewer]
      if let presence { Self.count(&state.present, presence, by: -1) }
      Self.record(event.kind, &state, &presence)
      if let presence { Self.count(&state.present, presence, by: 1) }
      state.presences[event.viewer] = presence
      state.mostPresent = max(state.mostPresent, state.present.count)
    }
  }

  /// Returns what was counted since the last call.
  func take(at time: Duration) -> (counts: ViewersCounts, present: ViewersPresent) {
    state.withLock { state in
      Self.count(&state, to: time)
      defer { state.counts = ViewersCounts() }
      var present = state.present
      present.latencies = state.presences.values.compactMap(\.latency)
      return (state.counts, present)
    }
  }

  /// The most viewers at once, and the distances from the live edge at the ends of views.
  var extremes: (mostPresent: Int, latencies: [Duration]) {
    state.withLock { ($0.mostPresent, $0.latencies) }
  }

  // MARK: - Private

  /// - Parameter presence: What is known of the viewer; nil between two views.
  private static func record(_ kind: ViewerEvent.Kind, _ state: inout State, _ presence: inout Presence?) {
    switch kind {
    case .began:
      presence = Presence()
      state.counts.views += 1
    case .request(let metrics): add(metrics, to: &state.counts)
    case .started(let startup): state.counts.starts.append(startup)
    case .playing: presence?.phase = .playing
    case .stalled:
      presence?.phase = .waiting
      state.counts.stalls += 1
    case .jumped: presence?.phase = .waiting
    case .rung(let rung): presence?.rung = rung.bitRate > 0 ? rung.bitRate : nil
    case .latency(let latency): presence?.latency = latency
    case .failure(let error, let host, let consequence):
      if case .repeated(let status) = consequence {
        state.counts.requests[self.status(status), default: 0] += 1
      }
      state.counts.errors[.init(cause: error.cause, host: host ?? ""), default: 0] += 1
    case .left(let sums):
      presence = nil
      if case .failed(let error) = sums.ending {
        let host = error.location.flatMap { URL(string: $0)?.host() } ?? ""
        state.counts.failed[.init(cause: error.cause, host: host), default: 0] += 1
      }
      if let latency = sums.latency { state.latencies.append(latency) }
    }
  }

  /// Attempts that failed before the last one are reported by themselves.
  private static func add(_ metrics: RequestMetrics, to counts: inout ViewersCounts) {
    let last = metrics.requestCount - metrics.redirectCount - metrics.failedAttemptCount
    let isCancelled = metrics.status == nil && metrics.outcome == .cancelled
    let kind = metrics.url.isFileURL ? "file" : isCancelled ? "cancelled" : status(metrics.status)
    if last > 0 { counts.requests[kind, default: 0] += last }
    if metrics.redirectCount > 0 { counts.requests["3xx", default: 0] += metrics.redirectCount }
    counts.bytes += metrics.byteCount
  }

  private static func status(_ status: Int?) -> String { status.map(String.init) ?? "none" }

  /// Counts the time that viewers have played and waited.
  private static func count(_ state: inout State, to time: Duration) {
    let passed = time - state.counted
    guard passed > .zero else { return }
    state.counted = time
    state.counts.played += passed * state.present.playing
    state.counts.waited += passed * state.present.waiting
    for (rung, count) in state.present.rungs { state.counts.rungs[rung, default: .zero] += passed * count }
  }

  private static func count(_ present: inout ViewersPresent, _ presence: Presence, by change: Int) {
    switch presence.phase {
    case .starting: present.starting += change
    case .playing: present.playing += change
    case .waiting: present.waiting += change
    }
    guard let rung = presence.rung, presence.phase != .starting else { return }
    present.rungs[rung, default: 0] += change
    if present.rungs[rung] == 0 { present.rungs[rung] = nil }
  }
}
