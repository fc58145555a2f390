/// Pseudo-random numbers by Vigna's SplitMix64: 64 bits of state, the same numbers on every machine.
///
/// For walks and tests, not for secrets.
public struct SplitMix64: RandomNumberGenerator, Sendable, Hashable {
  private var state: UInt64

  /// A generator that gives the same numbers for the same seed.
  public init(seed: UInt64) {
    state = seed
  }

  /// The next 64 random bits.
  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// A number from 0 up to, not including, 1, of 53 bits.
  public mutating func nextUnit() -> Double { Double(next() >> 11) * 0x1p-53 }

  /// A number of the exponential distribution with mean 1, by inversion: from 0 to 37.
  public mutating func nextExponential() -> Double {
    // 1 - u is above 0, and exact.
    -PortableMath.logarithm(1 - nextUnit())
  }

  /// A number of the Weibull distribution with this shape, above 0, and scale 1, by inversion.
  public mutating func nextWeibull(shape: Double) -> Double {
    PortableMath.power(nextExponential(), 1 / shape)
  }
}
