internal import ReelCore

/// How the body of one segment came, by the player's clock.
struct SegmentTransfer: Sendable {
  let index: Int
  /// When it was asked for, and when the head of the answer came.
  let began: Duration
  let answered: Duration
  /// The number of requests until the response came, including redirects and retries.
  let requestCount: Int
  private(set) var ended: Duration
  private(set) var byteCount: Int64 = 0
  /// Bytes that had come before the reader held the transfer back for the first time, and when.
  private(set) var freeByteCount: Int64 = 0
  private(set) var freeEnd: Duration
  var isHeldBack = false
  /// All of it came.
  var isWhole = false

  init(index: Int, began: Duration, answered: Duration, requestCount: Int = 1) {
    self.index = index
    self.requestCount = requestCount
    self.began = began
    self.answered = answered
    ended = answered
    freeEnd = answered
  }

  /// - Parameter now: when these bytes have come.
  mutating func add(_ count: Int, at now: Duration) {
    byteCount += Int64(count)
    ended = now
    guard !isHeldBack else { return }
    freeByteCount = byteCount
    freeEnd = ended
  }

  /// What of it tells of the network: all that came before the reader held it back.
  func sample(at now: Duration) -> TransferSample {
    TransferSample(
      byteCount: freeByteCount, duration: freeEnd - began, latency: answered - began, endedAt: now)
  }
}
