/// How far a player loads an item before it is played.
///
/// A player with a target stops loading when it reaches the target. It then uses no thread, no running transfer, and no
/// decoder unless ``isDecoderWarm`` is true. Without a target it loads for playback.
public struct PreloadTarget: Sendable, Hashable {
  /// The stage to reach.
  public var stage: PreloadStage
  /// The compressed media to load ahead of the first frame, for the stage `.buffered`. 3 s by default.
  public var bufferDuration: Duration
  /// The bytes at which loading stops too, for the stage `.buffered`. If nil, only
  /// ``BufferingThresholds/maximumByteCount`` applies.
  public var byteLimit: Int?
  /// Whether to keep the decoder open after the first frame, with the second frame decoded. This needs memory for the
  /// decoder's reference frames, but the key frame need not be decoded again when playback starts.
  public var isDecoderWarm: Bool
  /// The highest bit rate of a rung to load, in bits per second. If all rungs are above it, the lowest one is loaded.
  /// If nil, the item's preferences and the player choose.
  ///
  /// A change applies from the next segment on.
  public var peakBitRate: Int?
  /// The highest bit rate of the rung of the first segment, in bits per second. The rung of the second segment is
  /// chosen without it. If nil, there is no such limit.
  public var startPeakBitRate: Int?

  /// Creates a target.
  public init(
    stage: PreloadStage, bufferDuration: Duration = .seconds(3), byteLimit: Int? = nil,
    isDecoderWarm: Bool = false, peakBitRate: Int? = nil, startPeakBitRate: Int? = nil
  ) {
    self.stage = stage
    self.bufferDuration = bufferDuration
    self.byteLimit = byteLimit
    self.isDecoderWarm = isDecoderWarm
    self.peakBitRate = peakBitRate
    self.startPeakBitRate = startPeakBitRate
  }

  /// Loads nothing.
  public static let none = PreloadTarget(stage: .none)
  /// Decodes the first frame, loads 3 s of compressed media, and closes the decoder.
  public static let buffered = PreloadTarget(stage: .buffered)

  /// Prepares for playback soon: like ``buffered``, but with an open decoder.
  public static let current = PreloadTarget(stage: .buffered, isDecoderWarm: true)

  /// The number of frames to decode.
  var frameLimit: Int {
    guard stage >= .firstFrame else { return 0 }
    return isDecoderWarm ? 2 : 1
  }
}
