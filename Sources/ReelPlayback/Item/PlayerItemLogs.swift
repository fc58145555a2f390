public import ReelCore

/// What was played of one rung, from its choice until another was chosen.
public struct AccessLogEntry: Sendable, Hashable {
  /// The rung's id in its manifest; nil for a media file.
  public var rung: String?
  /// In bits per second, as the manifest states it.
  public var indicatedBitRate: Int?
  public var size: PixelSize?
  /// Of its segments, each when all of it has come; or of the file, as they come or, where it is a local one, are read:
  /// what is read once more counts once more.
  public var byteCount: Int64 = 0
  /// For its segments, or for the file and places in it; the opening of a local file is one.
  public var requestCount = 0
  /// How long the bytes of segments took to come, while nothing held them back; those of a file are not measured.
  public var transferDuration: Duration = .zero
  /// What came in that time.
  public var measuredByteCount: Int64 = 0
  public var stallCount = 0
  public var shownFrameCount = 0
  public var droppedFrameCount = 0
  /// From the beginning of loading to the first frame; for the first entry only.
  public var startupTime: Duration?

  public init(rung: String? = nil) { self.rung = rung }

  /// In bits per second; nil before anything was measured.
  public var observedBitRate: Double? {
    let seconds = transferDuration / .seconds(1)
    return seconds > 0 ? Double(measuredByteCount) * 8 / seconds : nil
  }
}

/// A failure that was met while an item was loaded, whether it could be mended or not.
public struct ErrorLogEntry: Sendable, Hashable {
  public var error: ReelError
  /// The rung that it was met at.
  public var rung: String?
  /// The player's position then.
  public var time: MediaTime?

  public init(error: ReelError, rung: String?, time: MediaTime?) {
    self.error = error
    self.rung = rung
    self.time = time
  }
}
