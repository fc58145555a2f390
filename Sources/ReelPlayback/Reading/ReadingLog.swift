internal import ReelCore
internal import ReelManifest

/// Receives reports from readers. Called on any thread and in tasks; must not block.
protocol ReadingLog: Sendable {
  /// The next segments are of this rung.
  func noteRung(_ rung: Rung)
  func noteTransfer(_ transfer: SegmentTransfer, rung: String)
  /// This many more requests and bytes for a media file.
  func noteFile(requestCount: Int, byteCount: Int64)
  /// Something could not be loaded. What is tried next is not decided yet.
  func noteFailure(_ error: ReelError, rung: String)
  /// A part of a media file is damaged and was left out.
  func noteDamage(_ error: ReelError)
  /// A segment is skipped.
  func notePassedOver(_ error: ReelError, start: MediaTime, duration: MediaTime)
  /// The reader is waiting for the next segment of a live track that some periods lack, so the wait may be long.
  func noteAbsence(_ segments: LiveSegments)
  /// The manifest marks a segment as missing.
  func noteGap(start: MediaTime, duration: MediaTime)
  /// A span of segments begins with one of this duration.
  func noteSegment(duration: MediaTime)
}

extension ReadingLog {
  func noteDamage(_ error: ReelError) {}
  func noteSegment(duration: MediaTime) {}
}
