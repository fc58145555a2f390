public import ReelPlayback

/// Nothing but the current item.
public struct NoPreload: PreloadPolicy, Hashable {
  public init() {}

  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget { .none }

  public var description: String { "none" }
}
