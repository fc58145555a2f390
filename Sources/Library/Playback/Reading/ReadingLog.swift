internal import ReelCore
internal import ReelManifest

/// Receives reports from readers. Called on any thread and in tasks; must not block.
protocol ReadingLog: Sendable {
  /// The next segments are of this rung.
  func noteRung(_ rung: Rung)
  func noteTransfer(_ transfer: SegmentTransfer, rung: String)
  /// This many more requests and bytes for a media file.
  func noteFile(requestCount: Int, byteCount: Int64)
  /// Something could not be loaded.
  ///
  /// - Parameter outcome: What is tried next. Nil if the error is thrown, and its receiver decides.
  func noteFailure(_ error: ReelError, rung: String, outcome: ErrorLogEntry.Outcome?)
  /// A part of a media file or of a segment is damaged and was left out.
  ///
  /// - Parameter range: What is affected, on the item's timeline; nil if it is not known.
  func noteDamage(_ error: ReelError, rung: String, in range: Range<MediaTime>?)
  /// The timestamps show that media is absent.
  func noteHole(_ error: ReelError, rung: String, _ loss: MediaLoss)
  /// A segment is skipped. Its start is on the item's timeline.
  func notePassedOver(_ error: ReelError, start: MediaTime, duration: MediaTime)
  /// The reader is waiting for the next segment of a live track that some periods lack, so the wait may be long.
  func noteAbsence(_ segments: LiveSegments)
  /// The manifest marks a segment as missing.
  func noteGap(start: MediaTime, duration: MediaTime)
  /// A span of segments begins with one of this duration.
  func noteSegment(duration: MediaTime)
}

extension ReadingLog {
  func noteHole(_ error: ReelError, rung: String, _ loss: MediaLoss) {}
  func noteSegment(duration: MediaTime) {}
}
