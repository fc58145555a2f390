internal import ReelCore

/// The transfer of one segment's body, by the player's clock.
struct SegmentTransfer: Sendable {
  let index: Int
  /// The times at which the request was sent, and the head of the response arrived.
  let began: Duration
  let answered: Duration
  /// The number of requests until the response arrived, including redirects and retries.
  let requestCount: Int
  private(set) var ended: Duration
  private(set) var byteCount: Int64 = 0
  /// The number of bytes that had arrived when the reader first held the transfer back, and the time of that.
  private(set) var freeByteCount: Int64 = 0
  private(set) var freeEnd: Duration
  var isHeldBack = false

  init(index: Int, began: Duration, answered: Duration, requestCount: Int = 1) {
    self.index = index
    self.requestCount = requestCount
    self.began = began
    self.answered = answered
    ended = answered
    freeEnd = answered
  }

  /// - Parameter now: The time at which these bytes arrived.
  mutating func add(_ count: Int, at now: Duration) {
    byteCount += Int64(count)
    ended = now
    guard !isHeldBack else { return }
    freeByteCount = byteCount
    freeEnd = ended
  }

  /// Returns the part that measures the network: everything until the reader held the transfer back.
  func sample(at now: Duration) -> TransferSample {
    TransferSample(
      byteCount: freeByteCount, duration: freeEnd - began, latency: answered - began, endedAt: now)
  }
}
