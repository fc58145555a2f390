/// The time that decoding takes in a simulation.
///
/// Each call into a decoder takes one access unit and gives at most one frame, so the cost of a call is that of a
/// frame.
public struct DecodeCost: Sendable, Hashable {
  /// The time of one call into a decoder, not negative.
  public var frame: Duration

  /// A cost per frame.
  ///
  /// - Parameter frame: The time for one frame. A negative time counts as zero. Defaults to 4 ms.
  public init(frame: Duration = .milliseconds(4)) { self.frame = max(frame, .zero) }
}
