internal import ReelCore

/// A frame that can stand in an array.
final class SharedPixels: Sendable {
  let frame: Frame
  private let small = Locked<SharedPixels??>(nil)

  init(_ frame: consuming Frame) { self.frame = frame }

  /// A copy that takes less memory, made once; nil where there is none.
  var compacted: SharedPixels? {
    if let known = small.withLock({ $0 }) { return known }
    var made: SharedPixels?
    if let copy = frame.compacted(for: nil) { made = SharedPixels(copy) }
    return small.withLock { [made] small in
      if let known = small { return known }
      small = .some(made)
      return made
    }
  }
}
