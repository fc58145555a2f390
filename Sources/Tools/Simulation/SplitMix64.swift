internal import ReelCore

/// Pseudo-random numbers by Vigna's SplitMix64: 64 bits of state, the same numbers on every machine.
///
/// For walks and tests, not for secrets.
package struct SplitMix64: RandomNumberGenerator, Sendable, Hashable {
  private var state: UInt64

  /// A generator that gives the same numbers for the same seed.
  package init(seed: UInt64) {
    state = seed
  }

  /// The next 64 random bits.
  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// A number from 0 up to, not including, 1, of 53 bits.
  package mutating func nextUnit() -> Double { Double(next() >> 11) * 0x1p-53 }

  /// A number of the exponential distribution with mean 1, by inversion: from 0 to 37.
  package mutating func nextExponential() -> Double {
    // 1 - u is above 0, and exact.
    -PortableMath.logarithm(1 - nextUnit())
  }
}

/// A logarithm by operations that IEEE 754 rounds in one way only, so that results are the same on every machine. The
/// mathematics libraries of two systems differ in the last digit.
enum PortableMath {
  /// The natural logarithm of a finite number above 0, within some 10⁻¹⁵.
  static func logarithm(_ value: Double) -> Double {
    // value = m * 2^e with m around 1, and ln m = 2 artanh((m - 1) / (m + 1)), where |x| <= 0.172.
    var (mantissa, exponent) = (value.significand, Double(value.exponent))
    if mantissa > 1.414_213_562_373_095 {
      mantissa /= 2
      exponent += 1
    }
    let x = (mantissa - 1) / (mantissa + 1)
    let square = x * x
    var (sum, power) = (0.0, x)
    for divisor in stride(from: 1.0, through: 23, by: 2) {
      sum += power / divisor
      power *= square
    }
    return 2 * sum + exponent * 0.693_147_180_559_945_3
  }
}
