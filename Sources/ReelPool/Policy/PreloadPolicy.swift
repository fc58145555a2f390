public import ReelPlayback

/// Decides how far each neighbour of the current item is loaded ahead.
///
/// A policy is a value without state: it gives equal answers for equal arguments. The pool asks it for each neighbour
/// in the order of rank: the nearest first, and at equal distance first the one in the direction of travel. After the
/// answer `none` the pool does not ask for items further away on that side, so the loaded items are contiguous.
///
/// The description of a built-in policy is its form on the command line of `reel feed --preload`, such as `ahead:2`.
public protocol PreloadPolicy: Sendable, CustomStringConvertible {
  /// How far to load one neighbour.
  ///
  /// - Parameters:
  ///   - distance: The neighbour's distance from the current item, in items: negative for items before it, never 0.
  ///   - context: The neighbour's rank, and the measured costs and bandwidth.
  func target(at distance: Int, in context: PreloadContext) -> PreloadTarget
}
