internal import Foundation

/// A point or a length on a media timeline: `value` ticks of `1 / timescale` seconds.
///
/// Arithmetic uses 128-bit integers, never floating point, so long timelines do not drift. Comparisons are always
/// exact. Sums and differences are exact if the common timescale fits into 32 bits; otherwise they are rounded down to
/// a tick of the finer timescale. Results beyond 64 bits are clamped.
public struct MediaTime: Sendable, Hashable {
  /// The number of ticks.
  public let value: Int64
  /// The number of ticks per second; always positive.
  public let timescale: Int32

  /// Zero seconds.
  public static let zero = MediaTime(value: 0, timescale: 1)

  /// Creates a time of `value` ticks of `1 / timescale` seconds. A timescale below 1 is replaced by 1.
  public init(value: Int64, timescale: Int32) {
    self.value = value
    self.timescale = max(timescale, 1)
  }

  /// Creates the time nearest to `seconds`, in ticks of `1 / timescale` seconds.
  ///
  /// Values beyond 64 bits are clamped; NaN becomes zero.
  public init(seconds: Double, timescale: Int32 = 1_000_000) {
    let ticks = (seconds * Double(max(timescale, 1))).rounded()
    if ticks.isNaN {
      self.init(value: 0, timescale: timescale)
    } else {
      self.init(value: Int64(clamping: ticks), timescale: timescale)
    }
  }

  /// Returns the time nearest to `seconds`, in microseconds.
  public static func seconds(_ seconds: Double) -> MediaTime { MediaTime(seconds: seconds) }

  /// The time in seconds, rounded to the nearest `Double`.
  public var seconds: Double { Double(value) / Double(timescale) }

  /// Creates the time nearest to a duration, in microseconds. Clamped to 64 bits.
  public init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    let half: Int64 = attoseconds < 0 ? -500_000_000_000 : 500_000_000_000
    let ticks = Int128(seconds) * 1_000_000 + Int128((attoseconds + half) / 1_000_000_000_000)
    self.init(value: Int64(clamping: ticks), timescale: 1_000_000)
  }

  /// The time as a duration, rounded down to the nanosecond.
  public var duration: Duration {
    let nanoseconds = (Int128(value) * 1_000_000_000).floorDivided(by: Int128(timescale))
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return Duration(
      secondsComponent: Int64(clamping: seconds), attosecondsComponent: Int64(rest) * 1_000_000_000)
  }

  /// Returns the time in ticks of `1 / timescale` seconds, rounded down and clamped to 64 bits.
  package func ticks(timescale other: Int32) -> Int64 {
    let product = Int128(value) * Int128(other)
    let quotient = product.floorDivided(by: Int128(timescale))
    return Int64(clamping: quotient)
  }

  /// Half of it, rounded down to the microsecond.
  package var half: MediaTime { MediaTime(value: ticks(timescale: 1_000_000) / 2, timescale: 1_000_000) }

  /// Returns `count` times a length. Exact, unless clamped to 64 bits.
  package static func * (time: MediaTime, count: Int64) -> MediaTime {
    MediaTime(value: Int64(clamping: Int128(time.value) * Int128(count)), timescale: time.timescale)
  }

  /// Returns the sum, in the least common timescale if that fits into 32 bits.
  public static func + (left: MediaTime, right: MediaTime) -> MediaTime {
    combine(left, right) { $0 + $1 }
  }

  /// Returns the difference, in the least common timescale if that fits into 32 bits.
  public static func - (left: MediaTime, right: MediaTime) -> MediaTime {
    combine(left, right) { $0 - $1 }
  }

  /// Returns true if both times denote the same instant, even in different timescales.
  public static func == (left: MediaTime, right: MediaTime) -> Bool {
    Int128(left.value) * Int128(right.timescale) == Int128(right.value) * Int128(left.timescale)
  }

  public func hash(into hasher: inout Hasher) {
    let divisor = Int64(greatestCommonDivisor(UInt64(value.magnitude), UInt64(timescale)))
    hasher.combine(divisor == 0 ? 0 : value / divisor)
    hasher.combine(divisor == 0 ? 1 : Int64(timescale) / divisor)
  }

  // MARK: - Private

  private static func combine(
    _ left: MediaTime, _ right: MediaTime, _ operation: (Int128, Int128) -> Int128
  ) -> MediaTime {
    if left.timescale == right.timescale {
      let value = operation(Int128(left.value), Int128(right.value))
      return MediaTime(value: Int64(clamping: value), timescale: left.timescale)
    }
    let divisor = Int64(greatestCommonDivisor(UInt64(left.timescale), UInt64(right.timescale)))
    let common = Int64(left.timescale) / divisor * Int64(right.timescale)
    let leftValue = Int128(left.value) * Int128(common / Int64(left.timescale))
    let rightValue = Int128(right.value) * Int128(common / Int64(right.timescale))
    let value = operation(leftValue, rightValue)
    guard common <= Int64(Int32.max) else {
      // The common timescale is too large: round down to a tick of the finer timescale.
      let finer = max(left.timescale, right.timescale)
      let ticks = (value * Int128(finer)).floorDivided(by: Int128(common))
      return MediaTime(value: Int64(clamping: ticks), timescale: finer)
    }
    return MediaTime(value: Int64(clamping: value), timescale: Int32(common))
  }
}

extension MediaTime: Comparable {
  /// Returns true if `left` is earlier or shorter. The comparison is exact.
  public static func < (left: MediaTime, right: MediaTime) -> Bool {
    Int128(left.value) * Int128(right.timescale) < Int128(right.value) * Int128(left.timescale)
  }
}

extension MediaTime: CustomStringConvertible {
  /// The time in seconds, to the microsecond, such as `0.066 s`.
  public var description: String { "\(seconds.formatted(places: 6)) s" }
}

extension MediaTime: CustomDebugStringConvertible {
  /// The exact value in ticks, such as `5944/90000`.
  public var debugDescription: String { "\(value)/\(timescale)" }
}

extension Int128 {
  /// Returns the quotient, rounded towards minus infinity. `divisor` must be positive.
  fileprivate func floorDivided(by divisor: Int128) -> Int128 {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}

extension Int64 {
  /// Creates the 64-bit integer nearest to `ticks`, which may be infinite but not NaN.
  fileprivate init(clamping ticks: Double) {
    if ticks >= 0x1p63 {
      self = .max
    } else if ticks <= -0x1p63 {
      self = .min
    } else {
      self = Int64(ticks)
    }
  }
}

private func greatestCommonDivisor(_ first: UInt64, _ second: UInt64) -> UInt64 {
  var (larger, smaller) = (first, second)
  while smaller != 0 { (larger, smaller) = (smaller, larger % smaller) }
  return larger
}

/// A ratio of two integers, for frame rates such as 30000/1001 and aspect ratios such as 9:8.
public struct Rational: Sendable, Hashable {
  package let numerator: Int32
  /// The denominator. May be 0, for an unknown ratio.
  package let denominator: Int32

  /// Creates a ratio without reducing or checking it.
  package init(_ numerator: Int32, _ denominator: Int32) {
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
  package var isPositive: Bool { numerator > 0 && denominator > 0 }
}

extension Rational: CustomStringConvertible {
  /// Numerator and denominator, such as `30000/1001`.
  public var description: String { "\(numerator)/\(denominator)" }
}

extension Double {
  /// Returns at most `places` decimals, without trailing zeros.
  package func formatted(places: Int) -> String {
    var text = String(format: "%.\(places)f", self)
    guard text.contains(".") else { return text }
    while text.hasSuffix("0") { text.removeLast() }
    if text.hasSuffix(".") { text.removeLast() }
    return text
  }
}

extension BinaryInteger {
  /// Returns the number with its noun: `1 segment`, `2 segments`.
  ///
  /// - Parameters:
  ///   - one: The noun for one item, or a phrase that begins with it.
  ///   - several: The same for any other number; nil for `one` with an s.
  package func counted(_ one: String, _ several: String? = nil) -> String {
    "\(self) \(self == 1 ? one : several ?? one + "s")"
  }
}

extension Duration {
  /// Rounded to the nearest one.
  package var wholeMicroseconds: Int64 {
    let (seconds, attoseconds) = components
    return seconds * 1_000_000 + (attoseconds + (attoseconds < 0 ? -500_000_000_000 : 500_000_000_000))
      / 1_000_000_000_000
  }

  /// In milliseconds, to the microsecond.
  package var milliseconds: Double { Double(wholeMicroseconds) / 1e3 }
}

extension Range<Int> {
  /// Returns the first number that meets a condition; the upper bound if none does. All numbers after one that
  /// meets it must meet it too.
  package func bisect(_ meets: (Int) -> Bool) -> Int {
    var (low, high) = (lowerBound, upperBound)
    while low < high {
      let middle = low + (high - low) / 2
      if meets(middle) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension [Double] {
  /// The middle value, or the mean of the two in the middle; nil without values.
  package var median: Double? {
    let sorted = sorted()
    return isEmpty ? nil : (sorted[(count - 1) / 2] + sorted[count / 2]) / 2
  }
}
