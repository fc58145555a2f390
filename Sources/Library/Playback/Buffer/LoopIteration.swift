internal import ReelCore

/// One iteration of a looping item. The first is number 0.
struct LoopIteration: Sendable, Hashable {
  /// The number of the iteration, from 0.
  var iteration = 0
  /// The start of the iteration on the player's timeline, which continues from iteration to iteration.
  var shift = MediaTime.zero
}
