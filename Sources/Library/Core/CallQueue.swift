/// A clock's scheduled calls, ordered by deadline and then by the order of scheduling.
///
/// A pure value: the clock guards it with a lock. It must release handlers outside the lock, because releasing
/// them may cancel other calls.
package struct CallQueue: Sendable {
  package typealias Handler = @Sendable () -> Void

  /// Names a call, and gives its place in the order.
  package struct Key: Sendable, Hashable, Comparable {
    package let deadline: Duration
    private let number: UInt64

    fileprivate init(deadline: Duration, number: UInt64) {
      self.deadline = deadline
      self.number = number
    }

    package static func < (left: Key, right: Key) -> Bool {
      (left.deadline, left.number) < (right.deadline, right.number)
    }
  }

  /// The next one last, so that taking it moves none.
  private var entries: [(key: Key, handler: Handler)] = []
  private var nextNumber: UInt64 = 0

  package init() {}

  package var count: Int { entries.count }

  /// The next call; nil if there is none.
  package var next: Key? { entries.last?.key }

  package mutating func insert(at deadline: Duration, _ handler: @escaping Handler) -> Key {
    let key = Key(deadline: deadline, number: nextNumber)
    nextNumber += 1
    entries.insert((key, handler), at: index(of: key))
    return key
  }

  /// Removes the next call, and returns its handler.
  package mutating func takeNext() -> Handler? { entries.popLast()?.handler }

  /// Removes a call, and returns its handler; nil if it was removed before.
  package mutating func remove(_ key: Key) -> Handler? {
    let index = index(of: key)
    guard index < entries.count, entries[index].key == key else { return nil }
    return entries.remove(at: index).handler
  }

  // MARK: - Private

  /// The index of a call, or the index to insert it at.
  private func index(of key: Key) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = (low + high) / 2
      if key < entries[middle].key { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
