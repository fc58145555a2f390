internal import ReelCore

/// The time of consecutive samples in whole ticks of a stream's time base, without drift: the duration of a
/// number of samples is rarely a whole number of ticks, and the remainder is kept.
struct AudioClock {
  /// The tick that the next sample begins in; nil before one is known.
  private(set) var ticks: Int64?

  private let timeBase: Rational
  /// The remainder of `ticks`: `remainder / divisor` ticks, less than one.
  private var remainder: Int64 = 0
  private var divisor: Int64 = 1

  /// `timeBase` is seconds per tick; one that is not positive leaves every time but those that are set unknown.
  init(timeBase: Rational) { self.timeBase = timeBase }

  /// The next sample begins at `ticks` exactly.
  mutating func set(_ ticks: Int64) {
    self.ticks = ticks
    remainder = 0
  }

  /// Counts samples that have gone by.
  mutating func advance(sampleCount: Int, sampleRate: Int) {
    guard let ticks else { return }
    guard timeBase.isPositive, sampleRate > 0, sampleRate <= Int(Int32.max) else {
      self.ticks = nil
      return
    }
    let divisor = Int64(sampleRate) * Int64(timeBase.numerator)
    if divisor != self.divisor {
      remainder = Int64(Int128(remainder) * Int128(divisor) / Int128(self.divisor))
      self.divisor = divisor
    }
    let (whole, rest) = (Int128(sampleCount) * Int128(timeBase.denominator) + Int128(remainder))
      .quotientAndRemainder(dividingBy: Int128(divisor))
    remainder = Int64(rest)
    self.ticks = Int64(clamping: Int128(ticks) + whole)
  }

  mutating func reset() {
    ticks = nil
    remainder = 0
  }
}
