/// A ratio of two integers, for frame rates and aspect ratios: `30000/1001`, `9:8`.
public struct Rational: Sendable, Hashable {
  public let numerator: Int32
  public let denominator: Int32

  public init(_ numerator: Int32, _ denominator: Int32) {
    self.numerator = numerator
    self.denominator = denominator
  }

  /// The ratio as a number; 0 where the denominator is 0.
  public var value: Double { denominator == 0 ? 0 : Double(numerator) / Double(denominator) }

  /// True where numerator and denominator are both positive.
  public var isPositive: Bool { numerator > 0 && denominator > 0 }
}

extension Rational: CustomStringConvertible {
  public var description: String { "\(numerator)/\(denominator)" }
}
