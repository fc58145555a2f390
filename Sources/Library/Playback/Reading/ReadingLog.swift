internal import ReelCore
internal import ReelManifest

/// Receives reports from readers. Called on any thread and in tasks; must not block.
protocol ReadingLog: Sendable {
  /// Records that the next segments belong to this rung.
  func recordRung(_ rung: Rung)
  func recordTransfer(_ transfer: SegmentTransfer, rung: String)
  /// Records additional requests and bytes of a media file.
  func recordFile(requestCount: Int, byteCount: Int64)
  /// Records that something could not be loaded.
  ///
  /// - Parameter outcome: The next attempt. Nil if the error is thrown, and its receiver decides.
  func recordFailure(_ error: ReelError, rung: String, outcome: ErrorLogEntry.Outcome?)
  /// Records that a part of a media file or of a segment is damaged and was left out.
  ///
  /// - Parameter range: The affected part of the item's timeline; nil if it is not known.
  func recordDamage(_ error: ReelError, rung: String, in range: Range<MediaTime>?)
  /// Records that media is missing according to the timestamps.
  func recordHole(_ error: ReelError, rung: String, _ loss: MediaLoss)
  /// Records that a segment is skipped. Its start is on the item's timeline.
  func recordPassedOver(_ error: ReelError, start: MediaTime, duration: MediaTime)
  /// Records that the reader waits for the next segment of a live track that some periods lack, so the wait
  /// may be long.
  func recordAbsence(_ segments: LiveSegments)
  /// Records that the manifest marks a segment as missing.
  func recordGap(start: MediaTime, duration: MediaTime)
  /// Records that a span of segments begins with one of this duration.
  func recordSegment(duration: MediaTime)
}

extension ReadingLog {
  func recordHole(_ error: ReelError, rung: String, _ loss: MediaLoss) {}
  func recordSegment(duration: MediaTime) {}
}

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
