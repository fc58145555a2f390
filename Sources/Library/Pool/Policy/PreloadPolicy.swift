public import ReelPlayback

/// Decides what a pool loads besides the current item, how far, and in which order.
///
/// Implement ``target(at:in:)`` for a policy that decides on each neighbour by itself, or ``plan(in:)`` for one that also
/// decides on the order, on rungs, and on the current item's forward buffer.
///
/// A policy is a value without state: it gives equal answers for equal arguments. The description of a built-in policy is
/// its form on the command line of `reel feed --preload`, such as `ahead:2`.
public protocol PreloadPolicy: Sendable, CustomStringConvertible {
  /// How far to load one neighbour.
  ///
  /// The default implementation of ``plan(in:)`` asks for each neighbour in the order of rank: the nearest first, and at
  /// equal distance first the one in the direction of travel. After the answer `none` it does not ask for items further
  /// away on that side, so the loaded items are contiguous.
  ///
  /// - Parameters:
  ///   - distance: The neighbour's distance from the current item, in items: negative for items before it, never 0.
  ///   - context: The neighbour's rank, and the measured costs and bandwidth.
  func target(at distance: Int, in context: PreloadContext) -> PreloadTarget

  /// What to load, and in which order.
  ///
  /// The pool asks after each swipe and each change of the feed, when an item has reached another stage or has loaded
  /// what the plan wants of it, and after ``PreloadPlan/reviewInterval``. The call must not block.
  func plan(in situation: PoolSituation) -> PreloadPlan
}
