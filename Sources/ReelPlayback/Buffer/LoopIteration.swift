internal import ReelCore

/// One time through an item: the first, or a later one of a loop.
struct LoopIteration: Sendable, Hashable {
  /// From 0.
  var iteration = 0
  /// Where it begins on the player's timeline, which goes on from iteration to iteration.
  var shift = MediaTime.zero
  /// A later one for each time that a reader begins an iteration, or goes to a place in one.
  var generation = 0
}
