/// A time that a viewer waits. It prints as `0.055 ms` or `1.204 s`.
public struct WaitTime: Sendable, Hashable {
  /// The wait, or the part of it so far.
  public let value: Duration
  /// False while the viewer is still waiting; `value` is then the wait so far.
  public let isOver: Bool

  /// A wait of this duration.
  public init(_ value: Duration, isOver: Bool = true) {
    self.value = value
    self.isOver = isOver
  }
}

extension WaitTime: CustomStringConvertible {
  /// `0.055 ms`; `0.012 ms so far` while the wait is not over.
  public var description: String { DurationText.readable(value) + (isOver ? "" : " so far") }
}
