internal import Foundation

/// Estimates the bandwidth of a link from its transfers.
///
/// It keeps two moving averages of the throughput. The weight of a sample is its transfer time, and halves
/// after `fastHalfLife` or `slowHalfLife` of further transfer time. The estimate is the lesser average: it
/// falls as soon as the fast one does, and rises with the slow one. Time without transfers changes nothing.
/// The averages are corrected for their bias to zero, so the first sample counts in full.
///
/// Samples of fewer bytes than `minimumByteCount` are combined until they reach it: alone, they would measure
/// the cost of a request.
package struct BandwidthEstimator: Sendable, Hashable {
  /// In transfer time.
  package let fastHalfLife: Duration
  /// In transfer time.
  package let slowHalfLife: Duration
  package let minimumByteCount: Int64

  private var fast = Average()
  private var slow = Average()
  private var pendingByteCount: Int64 = 0
  private var pendingSeconds = 0.0

  package init(
    fastHalfLife: Duration = .seconds(2), slowHalfLife: Duration = .seconds(5),
    minimumByteCount: Int64 = 16_000
  ) {
    self.fastHalfLife = fastHalfLife
    self.slowHalfLife = slowHalfLife
    self.minimumByteCount = minimumByteCount
  }

  /// The estimate in bits per second; nil until `minimumByteCount` bytes were measured.
  package var estimate: Double? {
    guard let fast = fast.value(halfLife: fastHalfLife / .seconds(1)),
      let slow = slow.value(halfLife: slowHalfLife / .seconds(1))
    else { return nil }
    return min(fast, slow)
  }

  /// Adds a sample: `byteCount` bytes that arrived in `duration`. Negative values count as 0.
  package mutating func add(byteCount: Int64, duration: Duration) {
    let (sum, overflow) = pendingByteCount.addingReportingOverflow(max(byteCount, 0))
    pendingByteCount = overflow ? .max : sum
    pendingSeconds += max(duration / .seconds(1), 0)
    // Without time there is no rate, so the bytes are added to the next sample.
    guard pendingByteCount > 0, pendingByteCount >= minimumByteCount, pendingSeconds > 0 else { return }
    let rate = Double(pendingByteCount) * 8 / pendingSeconds
    fast.add(rate, weight: pendingSeconds, halfLife: fastHalfLife / .seconds(1))
    slow.add(rate, weight: pendingSeconds, halfLife: slowHalfLife / .seconds(1))
    pendingByteCount = 0
    pendingSeconds = 0
  }

  // MARK: - Private

  /// An exponentially weighted moving average.
  private struct Average: Sendable, Hashable {
    private var sum = 0.0
    private var weight = 0.0

    mutating func add(_ value: Double, weight added: Double, halfLife: Double) {
      let kept = Self.share(left: added, halfLife: halfLife)
      sum = value * (1 - kept) + sum * kept
      weight += added
    }

    func value(halfLife: Double) -> Double? {
      let known = 1 - Self.share(left: weight, halfLife: halfLife)
      return known > 0 ? sum / known : nil
    }

    /// Returns the share of a value that remains after `seconds`.
    private static func share(left seconds: Double, halfLife: Double) -> Double {
      halfLife > 0 ? exp2(-seconds / halfLife) : 0
    }
  }
}

/// A measurement of one transfer, or of a part of one.
///
/// Transfers that run in parallel measure only their share of the link, so the estimate is only good if each
/// sample had the link to itself.
package struct TransferSample: Sendable, Hashable {
  /// The number of transferred bytes.
  package var byteCount: Int64
  /// The time from the request to the last byte, without pauses made by the reader itself.
  package var duration: Duration
  /// The time from the request to the first byte, a part of `duration`; nil if it was not measured.
  package var latency: Duration?
  /// The end, by the player's clock.
  package var endedAt: Duration

  package init(byteCount: Int64, duration: Duration, latency: Duration? = nil, endedAt: Duration) {
    self.byteCount = byteCount
    self.duration = duration
    self.latency = latency
    self.endedAt = endedAt
  }
}
