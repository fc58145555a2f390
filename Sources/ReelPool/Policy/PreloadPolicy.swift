public import ReelPlayback

/// Decides how far each neighbour of the current item is loaded ahead.
///
/// A policy is a value without state: the same question gets the same answer. It is asked for the neighbours in the
/// order of their rank (`PoolWindow`), the nearest first. Where it answers `none`, it is not asked for any item
/// further off on that side: what is loaded is one stretch of the feed.
///
/// Its description is the form that `PreloadPolicies.parse(_:)` reads.
public protocol PreloadPolicy: Sendable, CustomStringConvertible {
  /// - Parameters:
  ///   - distance: From the current item, in items; negative for those before it, never 0.
  ///   - context: The neighbour's rank, and what is known of costs and network.
  func target(at distance: Int, in context: PreloadContext) -> PreloadTarget
}
