/// How long a viewer waits. It prints as people write it: `0.055 ms`, `1.204 s`.
public struct WaitTime: Sendable, Hashable {
  public let value: Duration
  /// False while the viewer still waits: `value` is the wait so far.
  public let isOver: Bool

  public init(_ value: Duration, isOver: Bool = true) {
    self.value = value
    self.isOver = isOver
  }
}

extension WaitTime: CustomStringConvertible {
  /// `0.055 ms`; `0.012 ms so far` while the wait is not over.
  public var description: String { DurationText.readable(value) + (isOver ? "" : " so far") }
}
