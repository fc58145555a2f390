/// What decoding takes on a modelled clock: a stated time for each call into a decoder.
///
/// One call takes one access unit and gives at most one frame, so that this is the cost of a frame.
public struct DecodeCost: Sendable, Hashable {
  /// Of one call; not negative.
  public var frame: Duration

  /// - Parameter frame: One below zero is taken as zero. 4 ms.
  public init(frame: Duration = .milliseconds(4)) { self.frame = max(frame, .zero) }
}
