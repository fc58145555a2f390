/// One deed of a person who walks a feed: looks at the current item for a while, then goes to another.
package struct WalkStep: Sendable, Hashable {
  /// How long the item before is looked at, from when it became the current one.
  package let dwell: Duration
  /// `next`, `previous`, `jump` or `burst`.
  package let kind: SwipeKind
  /// The items that the swipes lead to, one each: `WalkPlan.burstInterval` lies between two of them. Never empty; the
  /// first differs from the current item.
  package let path: [Int]
  /// Where the last swipe goes: 1 towards higher indices, -1 towards lower ones.
  package let direction: Int

  /// The item that is looked at then.
  package var target: Int { path[path.count - 1] }

  /// One swipe from an item to another.
  init(dwell: Duration, kind: SwipeKind, from: Int, to target: Int) {
    self.dwell = dwell
    self.kind = kind
    path = [target]
    direction = target < from ? -1 : 1
  }

  /// So many quick swipes in one direction, at least one.
  init(dwell: Duration, burstOf count: Int, from: Int, direction: Int) {
    self.dwell = dwell
    kind = .burst
    path = (1...max(count, 1)).map { from + $0 * direction }
    self.direction = direction
  }
}
