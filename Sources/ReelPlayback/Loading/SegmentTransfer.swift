internal import ReelCore

/// How the body of one segment came.
struct SegmentTransfer: Sendable {
  let index: Int
  /// When it was asked for, and when the head of the answer came.
  let began: ContinuousClock.Instant
  let answered: ContinuousClock.Instant
  private(set) var ended: ContinuousClock.Instant
  private(set) var byteCount: Int64 = 0
  /// Bytes that had come before the reader held the transfer back for the first time, and when.
  private(set) var freeByteCount: Int64 = 0
  private(set) var freeEnd: ContinuousClock.Instant
  var isHeldBack = false
  /// All of it came.
  var isWhole = false

  init(index: Int, began: ContinuousClock.Instant, answered: ContinuousClock.Instant) {
    self.index = index
    self.began = began
    self.answered = answered
    ended = answered
    freeEnd = answered
  }

  mutating func add(_ count: Int) {
    byteCount += Int64(count)
    ended = .now
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
