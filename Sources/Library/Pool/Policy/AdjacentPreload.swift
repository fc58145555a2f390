public import ReelPlayback

/// Preloads the previous and the next item: the first frame and 3 s of media each.
public struct AdjacentPreload: PreloadPolicy, Hashable {
  /// True keeps the decoder of the next item in the direction of travel open. Defaults to false.
  ///
  /// At 720x1280 an open decoder takes about 10 MB. It shortens the time to the second frame by about 25 ms, which is
  /// gained anyway if the end of the drag is reported (``SwipePhase/dragEnded``).
  public var isNextDecoderWarm: Bool

  /// The policy `adjacent`.
  public init(isNextDecoderWarm: Bool = false) {
    self.isNextDecoderWarm = isNextDecoderWarm
  }

  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    guard abs(distance) == 1 else { return .none }
    return PreloadTarget(stage: .buffered, isDecoderWarm: isNextDecoderWarm && context.isNext(distance))
  }

  public var description: String { "adjacent" }
}
