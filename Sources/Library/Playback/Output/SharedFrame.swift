/// A frame that a closure can capture.
package final class SharedFrame: Sendable {
  package let frame: TimedFrame

  package init(_ frame: consuming TimedFrame) { self.frame = frame }
}
