/// A ratio of two integers, for frame rates such as 30000/1001 and aspect ratios such as 9:8.
public struct Rational: Sendable, Hashable {
  /// The numerator.
  public let numerator: Int32
  /// The denominator. May be 0, for an unknown ratio.
  public let denominator: Int32

  /// Creates a ratio without reducing or checking it.
  public init(_ numerator: Int32, _ denominator: Int32) {
    self.numerator = numerator
    self.denominator = denominator
  }

  /// The ratio as a floating-point number; 0 if the denominator is 0.
  public var value: Double { denominator == 0 ? 0 : Double(numerator) / Double(denominator) }

  /// The same ratio with the smallest numbers.
  package var reduced: Rational {
    var (divisor, rest) = (numerator.magnitude, denominator.magnitude)
    while rest != 0 { (divisor, rest) = (rest, divisor % rest) }
    guard divisor > 1, divisor <= UInt32(Int32.max) else { return self }
    return Rational(numerator / Int32(divisor), denominator / Int32(divisor))
  }

  /// True if numerator and denominator are both positive.
  public var isPositive: Bool { numerator > 0 && denominator > 0 }
}

extension Rational: CustomStringConvertible {
  /// Numerator and denominator, such as `30000/1001`.
  public var description: String { "\(numerator)/\(denominator)" }
}
