package import ReelCore

/// A length of time as a decimal number, exact to 18 digits after the point, so that the sum of many is exact
/// too.
package struct ExactSeconds: Sendable, Hashable {
  /// Whole nanoseconds; never negative.
  package var nanoseconds: Int64
  /// The rest, in units of 10⁻¹⁸ s; below 10⁹.
  var remainder: Int64
  /// The digits after the point, without trailing zeros; 9 for more.
  var digits: Int

  static let zero = ExactSeconds(nanoseconds: 0, remainder: 0, digits: 0)

  init(nanoseconds: Int64, remainder: Int64, digits: Int) {
    self.nanoseconds = nanoseconds
    self.remainder = remainder
    self.digits = digits
  }

  /// The number that this text is; nil for any other text, and for one that is negative or beyond 292 years.
  init?(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    guard let (value, end) = Self.parse(bytes, in: 0..<bytes.count), end == bytes.count else { return nil }
    self = value
  }

  /// Returns the number at the beginning of `range`, and its end. Nil if there is none, or if it is negative
  /// or beyond 292 years.
  package static func parse(_ bytes: [UInt8], in range: Range<Int>) -> (value: ExactSeconds, end: Int)? {
    var index = range.lowerBound
    let end = range.upperBound
    if index < end, bytes[index] == UInt8(ascii: "+") { index += 1 }
    let firstDigit = index
    var whole: Int64 = 0
    while index < end, bytes[index].isDigit {
      guard whole < 10_000_000_000 else { return nil }
      whole = whole * 10 + Int64(bytes[index] - UInt8(ascii: "0"))
      index += 1
    }
    var hasDigits = index > firstDigit
    var (nanos, rest, significant, place) = (Int64(0), Int64(0), 0, 0)
    if index < end, bytes[index] == UInt8(ascii: ".") {
      index += 1
      while index < end, bytes[index].isDigit {
        let digit = Int64(bytes[index] - UInt8(ascii: "0"))
        if place < 9 { nanos = nanos * 10 + digit } else if place < 18 { rest = rest * 10 + digit }
        place += 1
        if digit != 0 { significant = min(place, 9) }
        hasDigits = true
        index += 1
      }
    }
    guard hasDigits else { return nil }
    for _ in min(place, 9)..<9 { nanos *= 10 }
    if place > 9 { for _ in min(place, 18)..<18 { rest *= 10 } }
    let (scaled, tooLarge) = whole.multipliedReportingOverflow(by: 1_000_000_000)
    let (total, overflow) = scaled.addingReportingOverflow(nanos)
    guard !tooLarge, !overflow else { return nil }
    return (ExactSeconds(nanoseconds: total, remainder: rest, digits: significant), index)
  }

  /// Adds `other`. False if the sum is beyond 292 years.
  mutating func add(_ other: ExactSeconds) -> Bool {
    remainder += other.remainder
    var carry: Int64 = 0
    if remainder >= 1_000_000_000 {
      remainder -= 1_000_000_000
      carry = 1
    }
    digits = max(digits, other.digits)
    let (sum, overflow) = nanoseconds.addingReportingOverflow(other.nanoseconds)
    let (total, carried) = sum.addingReportingOverflow(carry)
    nanoseconds = total
    return !overflow && !carried
  }

  /// `factor` times this; nil beyond 292 years. `factor` is below 10⁹.
  func multiplied(by factor: Int64) -> ExactSeconds? {
    let product = Int128(nanoseconds) * Int128(factor) + Int128(remainder) * Int128(factor) / 1_000_000_000
    guard let whole = Int64(exactly: product) else { return nil }
    return ExactSeconds(
      nanoseconds: whole, remainder: Int64(Int128(remainder) * Int128(factor) % 1_000_000_000), digits: digits
    )
  }

  /// This time on the coarsest decimal timescale that holds its digits.
  package var time: MediaTime { DecimalTimescale(digits: digits).time(nanoseconds: nanoseconds) }
}

/// A timescale of 1, 10³, 10⁶ or 10⁹: the coarsest that can represent a number of digits, so that sums with
/// other timescales stay exact.
struct DecimalTimescale: Sendable {
  let timescale: Int32
  private let nanosecondsPerTick: Int64

  init(digits: Int) {
    switch digits {
    case ...0: (timescale, nanosecondsPerTick) = (1, 1_000_000_000)
    case ...3: (timescale, nanosecondsPerTick) = (1_000, 1_000_000)
    case ...6: (timescale, nanosecondsPerTick) = (1_000_000, 1_000)
    default: (timescale, nanosecondsPerTick) = (1_000_000_000, 1)
    }
  }

  package func time(nanoseconds: Int64) -> MediaTime {
    MediaTime(value: nanoseconds / nanosecondsPerTick, timescale: timescale)
  }
}

extension MediaTime {
  /// Creates a time of `ticks` in a timescale that may exceed 32 bits: then they become nanoseconds, rounded
  /// down.
  init(ticks: Int64, timescale: Int64) {
    if let fitting = Int32(exactly: timescale) {
      self.init(value: ticks, timescale: fitting)
    } else {
      let product = Int128(ticks) * 1_000_000_000
      self.init(value: Int64(clamping: product / Int128(max(timescale, 1))), timescale: 1_000_000_000)
    }
  }
}
