internal import DequeModule
internal import ReelCore

/// A link model on a clock: delivers parcels to their transfers when they have crossed the link.
final class LinkScheduler: Sendable {
  fileprivate struct State {
    var model: LinkModel
    /// The transfers with their numbers, in the order in which they began.
    var transfers: [(number: Int, transfer: LinkedTransfer)] = []
    /// Set to the time at which more parcels may have crossed the link.
    var alarm = Alarm()
    /// True while a thread delivers parcels: one at a time, so that a transfer's parcels stay in order.
    var isAdvancing = false
    /// True if more parcels may have crossed the link since.
    var mustAdvance = false
    /// The requests that wait until their connection is open, by its number.
    var waiting: [Int: Waiting] = [:]
  }

  fileprivate struct Waiting {
    let departure: LinkModel.Departure
    let continuation: CheckedContinuation<LinkModel.Departure, any Error>
  }

  let clock: any MonotonicClock
  private let tick: Duration
  private let state: Locked<State>

  /// - Parameter tick: Parcels that arrive within this time are delivered together.
  init(_ model: LinkModel, clock: any MonotonicClock, tick: Duration) {
    self.clock = clock
    self.tick = tick
    state = Locked(State(model: model))
  }

  var transferCount: Int { state.withLock { $0.transfers.count } }

  func withModel<Result: Sendable>(_ body: (inout LinkModel) -> Result) -> Result {
    state.withLock { body(&$0.model) }
  }

  /// Returns the departure once its connection is open, at or before the time at which the request leaves.
  /// Throws `CancellationError`.
  func settled(_ departure: LinkModel.Departure) async throws -> LinkModel.Departure {
    guard departure.isPending else { return departure }
    advance()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let outcome = state.withLock { state -> Result<LinkModel.Departure, any Error>? in
          if let settled = state.model.settled(departure) { return .success(settled) }
          // A later cancellation finds the continuation.
          if Task.isCancelled { return .failure(CancellationError()) }
          state.waiting[departure.connection] = Waiting(departure: departure, continuation: continuation)
          return nil
        }
        if let outcome { continuation.resume(with: outcome) }
      }
    } onCancel: {
      let waiting = state.withLock { $0.waiting.removeValue(forKey: departure.connection) }
      waiting?.continuation.resume(throwing: CancellationError())
    }
  }

  /// Begins a transfer on a connection; returns its number.
  func begin(_ transfer: LinkedTransfer, readyAt: Duration, on connection: Int) -> Int {
    state.withLock { state in
      let number = state.model.begin(readyAt: readyAt, on: connection)
      state.transfers.append((number, transfer))
      return number
    }
  }

  /// Adds bytes of a transfer that can be sent.
  func put(_ count: Int, of number: Int) {
    state.withLock { $0.model.put(count, of: number, at: clock.now) }
    advance()
  }

  /// Records that no more bytes of a transfer will come. True if all have crossed the link.
  func complete(_ number: Int) -> Bool { state.withLock { $0.model.complete(number) } }

  func read(_ count: Int, of number: Int) {
    state.withLock { $0.model.read(count, of: number, at: clock.now) }
    advance()
  }

  func waitingCount(of number: Int) -> Int { state.withLock { $0.model.waitingCount(of: number) } }

  /// Removes a transfer from the link; its connection is kept if the transfer is complete.
  func remove(_ number: Int, connection: Int, keeps: Bool) {
    let removed = state.withLock { state -> LinkedTransfer? in
      guard let index = state.transfers.firstIndex(where: { $0.number == number }) else { return nil }
      state.model.remove(number)
      if keeps { state.model.free(connection, at: clock.now) } else { state.model.close(connection) }
      return state.transfers.remove(at: index).transfer
    }
    guard removed != nil else { return }
    advance()
  }

  /// Delivers the parcels that have crossed the link by now, and schedules the next delivery.
  func advance() {
    let begins = state.withLock { state in
      state.mustAdvance = true
      defer { state.isAdvancing = true }
      return !state.isAdvancing
    }
    guard begins else { return }
    while takesTurn() {
      let now = clock.now
      while let (delivery, transfer) = next(by: now) { transfer.receive(delivery) }
      resumeOpened()
      reschedule(at: now)
    }
  }

  // MARK: - Private

  /// Returns false if nothing has changed since the last turn: another thread may advance then.
  private func takesTurn() -> Bool {
    state.withLock { state in
      guard state.mustAdvance else {
        state.isAdvancing = false
        return false
      }
      state.mustAdvance = false
      return true
    }
  }

  private func reschedule(at now: Duration) {
    let change = state.withLock { state in
      // A call that comes too early does no harm.
      state.alarm.setUnlessEarlier(at: state.model.nextTime.map { max($0, now + tick) })
    }
    guard let change else { return }
    state.carryOut(change, of: \.alarm, on: clock) { [weak self] in self?.timerFired($0) }
  }

  /// Resumes the requests whose connections have opened.
  private func resumeOpened() {
    let resumed = state.withLock { state in
      state.model.takeOpened().compactMap { number in
        state.waiting.removeValue(forKey: number).map { waiting in
          (waiting.continuation, state.model.settled(waiting.departure) ?? waiting.departure)
        }
      }
    }
    for (continuation, departure) in resumed { continuation.resume(returning: departure) }
  }

  private func next(by now: Duration) -> (LinkModel.Delivery, LinkedTransfer)? {
    state.withLock { state in
      while let delivery = state.model.nextDelivery(by: now) {
        if let found = state.transfers.first(where: { $0.number == delivery.transfer }) {
          return (delivery, found.transfer)
        }
      }
      return nil
    }
  }

  private func timerFired(_ number: Int) {
    _ = state.withLock { $0.alarm.ring(number) }
    advance()
  }
}

/// The congestion window of a connection at its sender. A pure value, in segments of `LinkBottleneck`'s
/// parcel.
///
/// - **Initial window.** 10 segments (RFC 6928).
/// - **Slow start.** The window grows by a segment for each acknowledged one (RFC 5681 §3.1), one round trip
///   after it crossed the link.
/// - **The end of slow start.** When the first eight segments of a round trip had to wait for the link, the window has
///   filled the path: their smallest round-trip time exceeds the smallest ever seen by an eighth of it, at least 4 ms
///   and at most 16 ms (the detection of delay by HyStart, RFC 9406 §4.2).
/// - **Congestion avoidance.** From then on the window grows by a segment in each round trip (RFC 5681 §3.1).
/// - **Restart.** After a pause longer than the retransmission timeout (RFC 6298, with Linux's least variance
///   of 200 ms), the window is halved for each timeout that has passed, but not below the initial one, and
///   slow start leads up to three quarters of the old window: RFC 5681 §4.1 as Linux does it with
///   `tcp_slow_start_after_idle`.
/// - The window does not grow while the connection has too little to send to use it (RFC 7661).
///
/// Limits: the queue before the link is unlimited, so nothing is lost and the window never shrinks under
/// load. Acknowledgements are neither delayed nor lost, and the receiver's window is that of `LinkModel`
/// alone. If a recorded rate rises after slow start, the window follows by a segment per round trip, as in
/// Reno; CUBIC and BBR are faster. BBR does not restart after a pause.
package struct LinkWindow: Sendable {
  /// RFC 6928.
  package static let initialSegmentCount = 10
  /// The bytes of IP and TCP headers (with timestamps) per segment: 1500 bytes with `LinkBottleneck`'s parcel.
  package static let headerByteCount = 52
  /// Linux's `TCP_RTO_MIN`.
  package static let leastVariance = Duration.milliseconds(200)
  /// RFC 9406: `N_RTT_SAMPLE`.
  private static let roundSampleCount = 8

  private struct Acknowledgement {
    let time: Duration
    /// The number of segments.
    let count: Int
    let roundTripTime: Duration
  }

  /// The total number of segments that could be sent from a time on.
  private struct Release {
    let total: Int
    let time: Duration
  }

  /// The window.
  package private(set) var segmentCount = Self.initialSegmentCount
  /// The number of segments that are sent and not acknowledged.
  package private(set) var outstandingCount = 0
  /// The acknowledgements of the outstanding segments; their times never decrease.
  private var acknowledgements: Deque<Acknowledgement> = []
  /// The releases in order. The first one applies to the segment that is sent next, if it is within its
  /// total.
  private var releases: Deque<Release> = [Release(total: Self.initialSegmentCount, time: .zero)]
  /// The window at which slow start ends.
  private var threshold = Int.max
  private var lastSent: Duration?
  /// The number of segments that were acknowledged since the window last grew, in congestion avoidance.
  private var acknowledgedCount = 0
  private var sentTotal = 0
  private var acknowledgedTotal = 0
  /// The number of segments that were sent when this round trip began.
  private var roundBegin = 0
  /// The smallest round-trip time of the first segments of this round trip, and their number.
  private var roundLeast = Duration.zero
  private var roundCount = 0
  /// The maximum number of outstanding segments in this round trip and in the previous one.
  private var peaks = (current: 0, previous: 0)
  private var least: Duration?
  private var smoothed: Duration?
  private var variance = Duration.zero

  package init() {}

  package var isInSlowStart: Bool { segmentCount < threshold }

  /// The number of segments that may be sent and acknowledged together: in slow start one, if that could hold back others.
  /// From then on the window fills the path, so that only the link holds anything back.
  func segmentCount(inParcelOf byteCount: Int) -> Int {
    let count = (byteCount + LinkBottleneck.parcelByteCount - 1) / LinkBottleneck.parcelByteCount
    return isInSlowStart ? min(max(count, 1), max((segmentCount - outstandingCount) / 4, 1)) : max(count, 1)
  }

  /// The time at which the next segment can be sent; nil for at once.
  package var opensAt: Duration? {
    // The segments of a parcel are acknowledged with its last one.
    let limit = isInSlowStart ? segmentCount : segmentCount + (acknowledgements.last?.count ?? 1) - 1
    return outstandingCount < limit ? nil : acknowledgements.first?.time
  }

  /// Processes the acknowledgements that have arrived by `time`.
  ///
  /// - Parameter waitingSince: The time since which bytes have waited to be sent; nil for none.
  package mutating func acknowledge(by time: Duration, waitingSince: Duration?) {
    while let first = acknowledgements.first, first.time <= time {
      acknowledgements.removeFirst()
      acknowledgedTotal += first.count
      outstandingCount -= first.count
      if acknowledgedTotal > roundBegin {
        roundBegin = sentTotal
        roundCount = 0
        peaks = (outstandingCount, peaks.current)
      }
      measure(first.roundTripTime, of: first.count)
      // The sender has more than the window allows, or has used at least half of it: all of it, after slow
      // start.
      let hasMore = waitingSince.map { $0 <= first.time } ?? false
      let peak = max(peaks.current, peaks.previous)
      if isInSlowStart {
        if hasMore || segmentCount < 2 * peak { segmentCount += first.count }
      } else if hasMore || segmentCount <= peak {
        acknowledgedCount += first.count
        if acknowledgedCount >= segmentCount {
          acknowledgedCount = 0
          segmentCount += 1
        }
      }
      releases.append(Release(total: acknowledgedTotal + segmentCount, time: first.time))
    }
  }

  /// Records segments that are put on the link at `time`, and acknowledged together.
  ///
  /// - Parameters:
  ///   - count: The number of segments.
  ///   - waitingSince: The time since which it has waited to be sent.
  ///   - acknowledgedAt: The time at which its acknowledgement arrives, but not before that of the previous
  ///     segment.
  package mutating func send(
    _ count: Int = 1, at time: Duration, waitingSince: Duration, acknowledgedAt: Duration
  ) {
    if let lastSent, acknowledgements.isEmpty { restart(after: time - lastSent, at: time) }
    lastSent = time
    sentTotal += count
    outstandingCount += count
    while releases.count > 1, let first = releases.first, first.total < sentTotal { releases.removeFirst() }
    let released = min(max(releases.first?.time ?? time, waitingSince), time)
    let acknowledged = max(acknowledgedAt, acknowledgements.last?.time ?? acknowledgedAt)
    acknowledgements.append(
      Acknowledgement(time: acknowledged, count: count, roundTripTime: acknowledged - released))
    peaks.current = max(peaks.current, outstandingCount)
  }

  // MARK: - Private

  private mutating func measure(_ sample: Duration, of count: Int) {
    let least = min(self.least ?? sample, sample)
    self.least = least
    if let smoothed {
      let error = sample < smoothed ? smoothed - sample : sample - smoothed
      // Durations divide slowly.
      variance = Duration(attoseconds: (variance.attoseconds * 3 + error.attoseconds) / 4)
      self.smoothed = Duration(attoseconds: (smoothed.attoseconds * 7 + sample.attoseconds) / 8)
    } else {
      smoothed = sample
      variance = sample / 2
    }
    guard isInSlowStart, roundCount < Self.roundSampleCount else { return }
    roundLeast = roundCount == 0 ? sample : min(roundLeast, sample)
    roundCount += count
    let excess = min(max(least / 8, .milliseconds(4)), .milliseconds(16))
    if roundCount >= Self.roundSampleCount, roundLeast > least + excess { threshold = segmentCount }
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

/// Bytes in order of arrival, which can be taken in other portions than they arrived in.
struct ByteQueue: Sendable {
  private var chunks: Deque<ArraySlice<UInt8>> = []
  private(set) var count = 0

  mutating func append(_ bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    chunks.append(bytes[...])
    count += bytes.count
  }

  /// Returns the first bytes, at most `limit`.
  mutating func take(_ limit: Int) -> [UInt8] {
    var taken: [UInt8] = []
    taken.reserveCapacity(min(limit, count))
    while taken.count < limit, let first = chunks.popFirst() {
      let wanted = first.prefix(limit - taken.count)
      taken.append(contentsOf: wanted)
      let rest = first.dropFirst(wanted.count)
      if !rest.isEmpty { chunks.prepend(rest) }
    }
    count -= taken.count
    return taken
  }
}
