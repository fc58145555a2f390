public import ReelPlayback

/// Preloads nothing: only the current item is loaded.
public struct NoPreload: PreloadPolicy, Hashable {
  /// The policy `none`.
  public init() {}

  public func target(at distance: Int, in context: PreloadContext) -> PreloadTarget { .none }

  public var description: String { "none" }
}
