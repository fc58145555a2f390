internal import Foundation

/// The throughput of a pool's network connection, measured over the transfers of all slots.
///
/// The rate is measured only while a body is being received; the time in which requests wait for their answers is in
/// ``roundTripTime`` instead. ``PoolSituation/throughput`` states how the mean and the deviation are weighted.
package struct ThroughputEstimate: Sendable, Hashable {
  /// The mean rate, in bits per second. Above 0.
  package var mean: Double
  /// The standard deviation of the rate over windows of 250 ms, in bits per second.
  package var standardDeviation: Double
  /// The mean time from a request on an open connection to the first byte of its answer; `nil` before one was measured.
  package var roundTripTime: Duration?

  /// An estimate, for instance to test a policy with.
  package init(mean: Double, standardDeviation: Double = 0, roundTripTime: Duration? = nil) {
    self.mean = mean
    self.standardDeviation = standardDeviation
    self.roundTripTime = roundTripTime
  }

  /// Returns the rate at this number of standard deviations from the middle of a log-normal distribution with
  /// this mean and standard deviation, in bits per second.
  ///
  /// A log-normal distribution fits throughput better than a normal one: rates are positive, and most lie
  /// below the mean. The rate stays above the result for -1 five times out of six (84 %), and for -1.645 19
  /// times out of 20.
  package func rate(atDeviations deviations: Double) -> Double {
    guard mean > 0, standardDeviation > 0 else { return mean }
    let variation = standardDeviation / mean
    let spread = log1p(variation * variation)
    return mean * exp(deviations * spread.squareRoot() - spread / 2)
  }
}

/// Measures a `ThroughputEstimate`. A value without a clock: `now` never decreases.
///
/// - Time counts only while at least one transfer is being received. Concurrent transfers share it.
/// - Bytes that arrived while nobody read them do not measure the rate: a `Receiver` that was not read for
///   longer than `patience` counts again when it has had to wait for bytes.
/// - Each window of at least `window` of that time and `minimumByteCount` bytes is a sample, weighted by its time.
///   Mean and deviation follow the latest samples: a sample's weight halves with each `halfLife` of counted time after
///   it.
/// - The round-trip time is a moving average with the weight 1/8, like the smoothed round-trip time of RFC
///   6298 §2.
package struct ThroughputMeter: Sendable, Hashable {
  /// The receiving state of one transfer.
  package struct Receiver: Sendable, Hashable {
    fileprivate var endedAt: Duration?
    fileprivate var isCounted: Bool
    fileprivate var beganAt = Duration.zero

    /// - Parameter isCounted: False if bytes have arrived before anybody read them.
    package init(isCounted: Bool = true) { self.isCounted = isCounted }
  }

  package static let window = Duration.milliseconds(250)
  package static let minimumByteCount: Int64 = 16_000
  package static let halfLife = Duration.seconds(5)
  /// The maximum delay of a reader that takes bytes as they arrive.
  static let patience = Duration.milliseconds(20)
  /// The time within which bytes that have already arrived are returned.
  private static let instant = Duration.milliseconds(1)
  private static let roundTripWeight = 0.125

  private var receivingCount = 0
  private var since = Duration.zero
  private var pendingByteCount: Int64 = 0
  private var pendingSeconds = 0.0
  private var weight = 0.0
  private var sum = 0.0
  private var squareSum = 0.0
  private var roundTripSeconds: Double?

  package init() {}

  /// Nil before `minimumByteCount` bytes were measured.
  package var estimate: ThroughputEstimate? {
    let roundTripTime = roundTripSeconds.map { Duration.seconds($0) }
    guard weight > 0 else {
      guard pendingByteCount >= Self.minimumByteCount, pendingSeconds > 0 else { return nil }
      return ThroughputEstimate(
        mean: Double(pendingByteCount) * 8 / pendingSeconds, roundTripTime: roundTripTime)
    }
    let mean = sum / weight
    let variance = max(squareSum / weight - mean * mean, 0)
    return ThroughputEstimate(
      mean: mean, standardDeviation: variance.squareRoot(), roundTripTime: roundTripTime)
  }

  /// Records that the next bytes of a transfer are waited for.
  package mutating func begin(_ receiver: inout Receiver, at now: Duration) {
    if let endedAt = receiver.endedAt {
      let pause = now - endedAt
      if pause > Self.patience {
        receiver.isCounted = false
      } else if receiver.isCounted, receivingCount == 0, since <= endedAt {
        // They came in the meantime too.
        pendingSeconds += pause / .seconds(1)
      }
    }
    receiver.beganAt = now
    guard receiver.isCounted else { return }
    count(until: now)
    receivingCount += 1
  }

  /// Records that they have arrived, or that nothing more arrives.
  package mutating func end(_ receiver: inout Receiver, byteCount: Int, at now: Duration) {
    receiver.endedAt = now
    guard receiver.isCounted else {
      receiver.isCounted = now - receiver.beganAt >= Self.instant
      return
    }
    count(until: now)
    receivingCount -= 1
    pendingByteCount += Int64(byteCount)
    closeSample()
  }

  /// Records an answer that began this long after its request, which needed `count` round trips.
  package mutating func addRoundTrips(_ count: Int, in duration: Duration) {
    guard count > 0, duration > .zero else { return }
    let seconds = duration / .seconds(1) / Double(count)
    roundTripSeconds = roundTripSeconds.map { $0 + (seconds - $0) * Self.roundTripWeight } ?? seconds
  }

  // MARK: - Private

  private mutating func count(until now: Duration) {
    if receivingCount > 0, now > since { pendingSeconds += (now - since) / .seconds(1) }
    since = now
  }

  private mutating func closeSample() {
    guard pendingByteCount >= Self.minimumByteCount, pendingSeconds >= Self.window / .seconds(1) else {
      return
    }
    let rate = Double(pendingByteCount) * 8 / pendingSeconds
    let kept = exp2(-pendingSeconds / (Self.halfLife / .seconds(1)))
    weight = weight * kept + pendingSeconds
    sum = sum * kept + rate * pendingSeconds
    squareSum = squareSum * kept + rate * rate * pendingSeconds
    pendingByteCount = 0
    pendingSeconds = 0
  }
}
