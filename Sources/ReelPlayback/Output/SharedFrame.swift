/// A frame that a closure can borrow.
final class SharedFrame: Sendable {
  let frame: TimedFrame

  init(_ frame: consuming TimedFrame) { self.frame = frame }
}
