internal import ReelCore

/// The transfer of one segment's body, by the player's clock.
package struct SegmentTransfer: Sendable {
  package let index: Int
  /// The times at which the request was sent, and the head of the response arrived.
  package let began: Duration
  package let answered: Duration
  /// The number of requests until the response arrived, including redirects and retries.
  package let requestCount: Int
  package private(set) var ended: Duration
  package private(set) var byteCount: Int64 = 0
  /// The number of bytes that had arrived when the reader first held the transfer back, and the time of that.
  package private(set) var freeByteCount: Int64 = 0
  package private(set) var freeEnd: Duration
  package var isHeldBack = false

  package init(index: Int, began: Duration, answered: Duration, requestCount: Int = 1) {
    self.index = index
    self.requestCount = requestCount
    self.began = began
    self.answered = answered
    ended = answered
    freeEnd = answered
  }

  /// - Parameter now: The time at which these bytes arrived.
  package mutating func add(_ count: Int, at now: Duration) {
    byteCount += Int64(count)
    ended = now
    guard !isHeldBack else { return }
    freeByteCount = byteCount
    freeEnd = ended
  }

  /// Returns the part that measures the network: everything until the reader held the transfer back.
  package func sample(at now: Duration) -> TransferSample {
    TransferSample(
      byteCount: freeByteCount, duration: freeEnd - began, latency: answered - began, endedAt: now)
  }
}
