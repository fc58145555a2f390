public import ReelPlayback

/// The item before the current one and the one after it, with their first frame and 3 s of media.
public struct AdjacentPreload: PreloadPolicy, Hashable {
  /// The decoder of the next item in the direction of travel stays open. False: at 720x1280 that costs 10 MB, and saves 25 ms
  /// of the time to the second frame, which the end of the drag gives anyway.
  public var isNextDecoderWarm: Bool

  public init(isNextDecoderWarm: Bool = false) {
    self.isNextDecoderWarm = isNextDecoderWarm
  }

  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    guard abs(distance) == 1 else { return .none }
    return PreloadTarget(stage: .buffered, isDecoderWarm: isNextDecoderWarm && context.isNext(distance))
  }

  public var description: String { "adjacent" }
}
