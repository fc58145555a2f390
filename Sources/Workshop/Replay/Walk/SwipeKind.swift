/// How an item became the current one.
package enum SwipeKind: String, Sendable, Hashable, CaseIterable, Codable {
  /// The walk began with it.
  case start
  /// A swipe to the next item.
  case next
  /// A swipe to the item before.
  case previous
  /// Straight to an item that is no neighbour.
  case jump
  /// One of several quick swipes in a row.
  case burst
}
