public import ReelPlayback

/// What a swipe finds.
public struct Handover: ~Copyable, Sendable {
  /// The item's picture, with a reference of its own; nil where it is not there yet (a miss).
  public var picture: TimedPicture?
  /// The stage that the item's loading had reached.
  public let stage: PreloadStage
  /// From the call to its end: the picture is in hand, and on the surface.
  public let duration: Duration

  public init(picture: consuming TimedPicture?, stage: PreloadStage, duration: Duration) {
    self.picture = picture
    self.stage = stage
    self.duration = duration
  }

  /// True where the first picture was there.
  public var isHit: Bool { stage >= .firstFrame }
}
