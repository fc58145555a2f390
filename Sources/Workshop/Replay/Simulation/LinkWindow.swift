internal import DequeModule

/// The congestion window of a connection, as its sender has it. A pure value, in segments of `LinkBottleneck`'s parcel.
///
/// - **Initial window.** 10 segments (RFC 6928).
/// - **Slow start.** The window grows by a segment for each one that is acknowledged (RFC 5681 §3.1), one round trip
///   after it came across.
/// - **The end of slow start.** When the first eight segments of a round trip had to wait for the link, the window has
///   filled the path: their smallest round-trip time exceeds the smallest ever seen by an eighth of it, at least 4 ms
///   and at most 16 ms (the detection of delay by HyStart, RFC 9406 §4.2).
/// - **Congestion avoidance.** From then on the window grows by a segment in each round trip (RFC 5681 §3.1).
/// - **Restart.** After a pause longer than the retransmission timeout (RFC 6298, with Linux's least variance of
///   200 ms), the window is halved for each timeout that has passed, but not below the initial one, and slow start leads
///   up to three quarters of the old window: RFC 5681 §4.1 as Linux does it with `tcp_slow_start_after_idle`.
/// - The window does not grow while the connection has too little to send to use it (RFC 7661).
///
/// Limits: the queue before the link is endless, so nothing is lost and the window never shrinks under load.
/// Acknowledgements are neither delayed nor lost, and the receiver's window is that of `LinkModel` alone. Where a
/// recorded rate rises after slow start, the window follows by a segment in a round trip, as Reno does; CUBIC and BBR are
/// sooner there. BBR does not restart after a pause.
package struct LinkWindow: Sendable {
  /// RFC 6928.
  package static let initialSegmentCount = 10
  /// What the headers of IP and TCP (with timestamps) add to a segment: 1500 bytes with `LinkBottleneck`'s parcel.
  package static let headerByteCount = 52
  /// Linux's `TCP_RTO_MIN`.
  package static let leastVariance = Duration.milliseconds(200)
  /// RFC 9406: `N_RTT_SAMPLE`.
  private static let roundSampleCount = 8

  private struct Acknowledgement {
    let time: Duration
    let roundTripTime: Duration
  }

  /// So many segments in all could be sent from a time on.
  private struct Release {
    let total: Int
    let time: Duration
  }

  /// The window.
  package private(set) var segmentCount = Self.initialSegmentCount
  /// Segments that are sent and not acknowledged.
  package var outstandingCount: Int { acknowledgements.count }
  /// Those of the outstanding segments; their times never decrease.
  private var acknowledgements: Deque<Acknowledgement> = []
  /// In order. The first one holds for the segment that is sent next, if it is among its total.
  private var releases: Deque<Release> = [Release(total: Self.initialSegmentCount, time: .zero)]
  /// Slow start ends at this window.
  private var threshold = Int.max
  private var lastSent: Duration?
  /// Segments that were acknowledged since the window last grew, in congestion avoidance.
  private var acknowledgedCount = 0
  private var sentTotal = 0
  private var acknowledgedTotal = 0
  /// Segments that were sent when this round trip began.
  private var roundBegin = 0
  /// The smallest round-trip time of the first segments of this round trip, and of how many.
  private var roundLeast = Duration.zero
  private var roundCount = 0
  /// The most segments that were outstanding in this round trip and in the one before.
  private var peaks = (current: 0, previous: 0)
  private var least: Duration?
  private var smoothed: Duration?
  private var variance = Duration.zero

  package init() {}

  /// True in slow start.
  package var isInSlowStart: Bool { segmentCount < threshold }

  /// When the next segment can be sent: nil for at once.
  package var opensAt: Duration? { outstandingCount < segmentCount ? nil : acknowledgements.first?.time }

  /// Takes in the acknowledgements that have come by `time`.
  ///
  /// - Parameter waitingSince: Since when bytes have waited to be sent; nil for none.
  package mutating func acknowledge(by time: Duration, waitingSince: Duration?) {
    while let first = acknowledgements.first, first.time <= time {
      acknowledgements.removeFirst()
      acknowledgedTotal += 1
      if acknowledgedTotal > roundBegin {
        roundBegin = sentTotal
        roundCount = 0
        peaks = (outstandingCount, peaks.current)
      }
      measure(first.roundTripTime)
      // The sender has more than the window lets out, or has used at least half of it: all of it, behind slow start.
      let hasMore = waitingSince.map { $0 <= first.time } ?? false
      let peak = max(peaks.current, peaks.previous)
      if isInSlowStart {
        if hasMore || segmentCount < 2 * peak { segmentCount += 1 }
      } else if hasMore || segmentCount <= peak {
        acknowledgedCount += 1
        if acknowledgedCount >= segmentCount {
          acknowledgedCount = 0
          segmentCount += 1
        }
      }
      releases.append(Release(total: acknowledgedTotal + segmentCount, time: first.time))
    }
  }

  /// A segment goes onto the link at `time`.
  ///
  /// - Parameters:
  ///   - waitingSince: Since when it has waited to be sent.
  ///   - acknowledgedAt: When its acknowledgement comes, but not before that of the segment ahead of it.
  package mutating func send(at time: Duration, waitingSince: Duration, acknowledgedAt: Duration) {
    if let lastSent, acknowledgements.isEmpty { restart(after: time - lastSent, at: time) }
    lastSent = time
    sentTotal += 1
    while releases.count > 1, let first = releases.first, first.total < sentTotal { releases.removeFirst() }
    let released = min(max(releases.first?.time ?? time, waitingSince), time)
    let acknowledged = max(acknowledgedAt, acknowledgements.last?.time ?? acknowledgedAt)
    acknowledgements.append(Acknowledgement(time: acknowledged, roundTripTime: acknowledged - released))
    peaks.current = max(peaks.current, outstandingCount)
  }

  // MARK: - Private

  private mutating func measure(_ sample: Duration) {
    let least = min(self.least ?? sample, sample)
    self.least = least
    if let smoothed {
      let error = sample < smoothed ? smoothed - sample : sample - smoothed
      variance = (variance * 3 + error) / 4
      self.smoothed = (smoothed * 7 + sample) / 8
    } else {
      smoothed = sample
      variance = sample / 2
    }
    guard isInSlowStart, roundCount < Self.roundSampleCount else { return }
    roundLeast = roundCount == 0 ? sample : min(roundLeast, sample)
    roundCount += 1
    let excess = min(max(least / 8, .milliseconds(4)), .milliseconds(16))
    if roundCount == Self.roundSampleCount, roundLeast > least + excess { threshold = segmentCount }
  }

  private mutating func restart(after pause: Duration, at time: Duration) {
    let timeout = (smoothed ?? .zero) + max(variance * 4, Self.leastVariance)
    guard pause > timeout else { return }
    if threshold != .max { threshold = max(threshold, segmentCount / 2 + segmentCount / 4) }
    var rest = pause - timeout
    while rest > .zero, segmentCount > Self.initialSegmentCount {
      segmentCount = max(segmentCount / 2, Self.initialSegmentCount)
      rest -= timeout
    }
    acknowledgedCount = 0
    peaks = (0, 0)
    releases = [Release(total: acknowledgedTotal + segmentCount, time: time)]
  }
}
