internal import ReelCore
internal import ReelManifest

/// Receives reports from readers. Called on any thread and in tasks; must not block.
protocol ReadingLog: Sendable {
  /// The next segments are of this rung.
  func recordRung(_ rung: Rung)
  func recordTransfer(_ transfer: SegmentTransfer, rung: String)
  /// This many more requests and bytes for a media file.
  func recordFile(requestCount: Int, byteCount: Int64)
  /// Something could not be loaded.
  ///
  /// - Parameter outcome: What is tried next. Nil if the error is thrown, and its receiver decides.
  func recordFailure(_ error: ReelError, rung: String, outcome: ErrorLogEntry.Outcome?)
  /// A part of a media file or of a segment is damaged and was left out.
  ///
  /// - Parameter range: What is affected, on the item's timeline; nil if it is not known.
  func recordDamage(_ error: ReelError, rung: String, in range: Range<MediaTime>?)
  /// The timestamps show that media is absent.
  func recordHole(_ error: ReelError, rung: String, _ loss: MediaLoss)
  /// A segment is skipped. Its start is on the item's timeline.
  func recordPassedOver(_ error: ReelError, start: MediaTime, duration: MediaTime)
  /// The reader is waiting for the next segment of a live track that some periods lack, so the wait may be long.
  func recordAbsence(_ segments: LiveSegments)
  /// The manifest marks a segment as missing.
  func recordGap(start: MediaTime, duration: MediaTime)
  /// A span of segments begins with one of this duration.
  func recordSegment(duration: MediaTime)
}

extension ReadingLog {
  func recordHole(_ error: ReelError, rung: String, _ loss: MediaLoss) {}
  func recordSegment(duration: MediaTime) {}
}
