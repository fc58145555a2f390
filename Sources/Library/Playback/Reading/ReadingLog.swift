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
