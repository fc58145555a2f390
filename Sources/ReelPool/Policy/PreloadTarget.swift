public import ReelPlayback

/// How far the item of one slot is to be loaded ahead, and what is kept of it.
public struct PreloadTarget: Sendable, Hashable {
  /// The stage to reach, with those before it. `none`: the item gets no slot.
  public var stage: PreloadStage
  /// How much media is held at the stage `buffered`. 3 s.
  public var bufferDuration: Duration
  /// The compressed media that is held at most, in bytes, whatever its duration; nil for no limit of its own.
  public var byteLimit: Int?
  /// The decoder stays open behind the first picture, so that the second needs no key frame decoded again.
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

  /// Nothing is loaded.
  public static let none = PreloadTarget(stage: .none)

  /// What the current item gets, whatever the policy is: 3 s of media and an open decoder.
  public static let current = PreloadTarget(stage: .buffered, isDecoderWarm: true)
}
