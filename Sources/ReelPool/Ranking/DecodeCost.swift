/// What decoding takes on a modelled clock: a stated time for each call into a decoder.
///
/// One call takes one access unit and gives at most one picture, so that this is the cost of a picture.
public struct DecodeCost: Sendable, Hashable {
  /// Of one call; not negative.
  public var picture: Duration

  /// - Parameter picture: One below zero is taken as zero. 4 ms.
  public init(picture: Duration = .milliseconds(4)) { self.picture = max(picture, .zero) }
}
