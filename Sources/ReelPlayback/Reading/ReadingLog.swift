internal import ReelCore
internal import ReelManifest

/// Gets told what happens while segments are read. Called from threads and tasks of all kinds; must not block.
protocol ReadingLog: Sendable {
  /// The segments that come next are of this rung.
  func noteRung(_ rung: Rung)
  func noteTransfer(_ transfer: SegmentTransfer, rung: String)
  /// So much more has come of the file that is read whole, with so many more requests.
  func noteFile(requestCount: Int, byteCount: Int64)
  /// Something could not be had; what is tried next is not known yet.
  func noteFailure(_ error: ReelError, rung: String)
  /// A segment is left out.
  func notePassedOver(_ error: ReelError, start: MediaTime, duration: MediaTime)
  /// The reader is waiting for the next segment of a live track that some periods lack, so the wait may be long.
  func noteAbsence(_ segments: LiveSegments)
  /// The manifest says that a segment is not there.
  func noteGap(start: MediaTime, duration: MediaTime)
}
