public import ReelCore

/// The data loaded and the frames shown of one rung, from its choice until another rung was chosen.
///
/// Transfers of separate audio streams are not counted.
public struct AccessLogEntry: Sendable, Hashable {
  /// The rung's id in its manifest; nil for a media file.
  public var rung: String?
  /// The rung's bit rate as the manifest states it, in bits per second.
  public var indicatedBitRate: Int?
  /// The rung's size as the manifest states it, in pixels.
  public var size: PixelSize?
  /// The bytes of the rung's segments, each counted when its transfer ends, or the bytes read from a media file.
  /// Bytes that are read again count again.
  public var byteCount: Int64 = 0
  /// The requests for segments or for a media file and positions in it, with redirects and retries. Opening a local
  /// file counts as one.
  public var requestCount = 0
  /// The time that segments took to arrive, from their requests until the full buffer paused their transfers. Transfers
  /// of a media file are not measured.
  package var transferDuration: Duration = .zero
  /// The bytes that arrived during ``transferDuration``.
  package var measuredByteCount: Int64 = 0
  /// The number of stalls.
  public var stallCount = 0
  /// The number of frames shown.
  public var shownFrameCount = 0
  /// The number of frames dropped because they were late.
  public var droppedFrameCount = 0
  /// The time from the beginning of loading to the first frame shown. Nil in all entries but the first.
  package var startupTime: Duration?

  /// Creates an entry that counts nothing yet.
  ///
  /// - Parameter rung: The rung's id in its manifest; nil for a media file.
  package init(rung: String? = nil) { self.rung = rung }

  /// The measured throughput, in bits per second. Nil before anything was measured.
  public var observedBitRate: Double? {
    let seconds = transferDuration / .seconds(1)
    return seconds > 0 ? Double(measuredByteCount) * 8 / seconds : nil
  }
}
