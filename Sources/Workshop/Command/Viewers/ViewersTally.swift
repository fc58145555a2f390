import Foundation
import ReelCore
import ReelLab
import ReelPlayback
import ReelSources

/// Counts what viewers report, second by second and in the whole run.
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
    /// The run up to the last row.
    var summary: ViewersSummary
    var rows: [ViewersRow] = []
    /// What has happened since the last row.
    var counts = ViewersCounts()
    /// By number.
    var presences: [Int: Presence] = [:]
    var present = ViewersPresent()
    /// The time up to which played and waited times are counted.
    var counted = Duration.zero
  }

  /// With more rows, each two become one.
  private static let rowLimit = 1_200
  /// The rest of a run that is shorter belongs to the row before.
  private static let leastLength = Duration.milliseconds(500)

  private let end: Duration
  private let state: Locked<State>

  /// - Parameter end: The time at which all viewers leave. Those who are there until then are in the last row.
  init(_ summary: ViewersSummary, end: Duration) {
    self.end = end
    state = Locked(State(summary: summary))
  }

  /// The whole run so far.
  var summary: ViewersSummary { state.withLock { $0.summary } }

  /// The rows for a page.
  var rows: [ViewersRow] {
    var rows = state.withLock { $0.rows }
    if rows.count > 1, let last = rows.last, last.length < Self.leastLength {
      rows.removeLast()
      rows[rows.count - 1] = rows[rows.count - 1].joined(with: last)
    }
    return rows
  }

  func record(_ event: ViewerEvent) {
    state.withLock { state in
      count(&state, to: event.time)
      var presence = state.presences[event.viewer]
      if let presence { Self.count(&state.present, presence, by: -1) }
      record(event.kind, &state, &presence)
      if let presence { Self.count(&state.present, presence, by: 1) }
      state.presences[event.viewer] = presence
      state.summary.mostPresent = max(state.summary.mostPresent, state.present.count)
    }
  }

  /// Returns the row of the time since the last one.
  ///
  /// - Parameter machine: The load of that time; nil for the rest of the run, which is no whole second.
  func row(at time: Duration, machine: MachineLoad?) -> ViewersRow {
    state.withLock { state in
      count(&state, to: time)
      var row = ViewersRow(
        time: time, length: time - state.summary.duration, counts: state.counts, present: state.present,
        machine: machine ?? MachineLoad())
      row.present.latencies = state.presences.values.compactMap(\.latency)
      state.counts = ViewersCounts()
      state.summary.duration = time
      state.summary.counts.add(row.counts)
      if let machine { state.summary.machine.add(machine) }
      state.rows.append(row)
      if state.rows.count > Self.rowLimit {
        state.rows = stride(from: 0, to: state.rows.count, by: 2).map { index in
          let next = index + 1
          let row = state.rows[index]
          return next < state.rows.count ? row.joined(with: state.rows[next]) : row
        }
      }
      return row
    }
  }

  // MARK: - Private

  /// - Parameter presence: What is known of the viewer; nil between two views.
  private func record(_ kind: ViewerEvent.Kind, _ state: inout State, _ presence: inout Presence?) {
    switch kind {
    case .began:
      presence = Presence()
      state.counts.views += 1
    case .request(let metrics): Self.add(metrics, to: &state.counts)
    case .started(let startup): state.counts.starts.append(startup)
    case .playing: presence?.phase = .playing
    case .stalled:
      presence?.phase = .waiting
      state.counts.stalls += 1
    case .jumped: presence?.phase = .waiting
    case .rung(let rung): presence?.rung = rung.bitRate > 0 ? rung.bitRate : nil
    case .latency(let latency): presence?.latency = latency
    case .failure(let error, let consequence):
      if case .repeated(let status) = consequence {
        state.counts.requests[Self.status(status), default: 0] += 1
      }
      state.counts.errors[.init(error), default: 0] += 1
    case .left(let sums):
      if state.counted < end { presence = nil }
      if case .failed(let error) = sums.ending { state.counts.failed[.init(error), default: 0] += 1 }
      if let latency = sums.latency { state.summary.latencies.append(latency) }
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
  private func count(_ state: inout State, to time: Duration) {
    let time = min(time, end)
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

extension ViewersCounts.Fault {
  fileprivate init(_ error: ReelError) {
    self.init(cause: error.cause, host: error.location.flatMap { URL(string: $0)?.host() } ?? "")
  }
}
