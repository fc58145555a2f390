public import ReelPlayback

/// The item before the current one and the one after it, with their first picture and 3 s of media.
public struct AdjacentPreload: PreloadPolicy, Hashable {
  /// The decoder of the next item in the direction of travel stays open.
  public var isNextDecoderWarm: Bool

  public init(isNextDecoderWarm: Bool = true) {
    self.isNextDecoderWarm = isNextDecoderWarm
  }

  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget {
    guard abs(distance) == 1 else { return .none }
    return PreloadTarget(stage: .buffered, isDecoderWarm: isNextDecoderWarm && context.isNext(distance))
  }

  public var description: String { "adjacent" }
}
