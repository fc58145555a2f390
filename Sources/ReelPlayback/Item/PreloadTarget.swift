/// How far an item is loaded before it is played.
///
/// A player with a target loads as far as that and rests: no thread, no decoder (unless it is to be warm), no transfer
/// that goes on. Without one it loads for playing.
public struct PreloadTarget: Sendable, Hashable {
  public var stage: PreloadStage
  /// Of `.buffered`: so much compressed media ahead of the frame. 3 s.
  public var bufferDuration: Duration
  /// Of `.buffered`: loading stops at so many bytes too.
  public var byteLimit: Int?
  /// Keeps the decoder open behind the first frame, and the second frame decoded: it costs the decoder's reference
  /// frames, and saves the decoding of the key frame when the item is played.
  public var isDecoderWarm: Bool

  public init(
    stage: PreloadStage, bufferDuration: Duration = .seconds(3), byteLimit: Int? = nil,
    isDecoderWarm: Bool = false
  ) {
    self.stage = stage
    self.bufferDuration = bufferDuration
    self.byteLimit = byteLimit
    self.isDecoderWarm = isDecoderWarm
  }

  /// Nothing.
  public static let none = PreloadTarget(stage: .none)
  /// The first frame and 3 s of compressed media, the decoder closed.
  public static let buffered = PreloadTarget(stage: .buffered)

  /// What an item gets that is about to be played: 3 s of media, and an open decoder.
  public static let current = PreloadTarget(stage: .buffered, isDecoderWarm: true)

  /// Frames that are decoded ahead.
  var frameLimit: Int {
    guard stage >= .firstFrame else { return 0 }
    return isDecoderWarm ? 2 : 1
  }
}
