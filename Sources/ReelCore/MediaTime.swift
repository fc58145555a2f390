/// A point or a length on a media timeline: `value` ticks of `1 / timescale` seconds.
///
/// Sums and comparisons are exact for any two timescales: they go through 128-bit products, never through
/// floating point, so that a timeline of many hours does not drift.
public struct MediaTime: Sendable, Hashable {
  /// Ticks.
  public let value: Int64
  /// Ticks per second; always positive.
  public let timescale: Int32

  /// Zero seconds.
  public static let zero = MediaTime(value: 0, timescale: 1)

  /// A time of `value` ticks of `1 / timescale` seconds. A timescale that is not positive is taken as 1.
  public init(value: Int64, timescale: Int32) {
    self.value = value
    self.timescale = max(timescale, 1)
  }

  /// The time nearest to `seconds` in ticks of `1 / timescale`; times beyond what 64 bits hold are clamped, and
  /// what is not a number is zero.
  public init(seconds: Double, timescale: Int32 = 1_000_000) {
    let ticks = (seconds * Double(max(timescale, 1))).rounded()
    if ticks.isNaN {
      self.init(value: 0, timescale: timescale)
    } else {
      self.init(value: Int64(clamping: ticks), timescale: timescale)
    }
  }

  /// This time in seconds, as near as a `Double` comes.
  public var seconds: Double { Double(value) / Double(timescale) }

  /// This time in ticks of `1 / timescale`, rounded down; clamped to 64 bits.
  public func ticks(timescale other: Int32) -> Int64 {
    let product = Int128(value) * Int128(other)
    let quotient = product.floorDivided(by: Int128(timescale))
    return Int64(clamping: quotient)
  }

  /// `count` times this length, exactly; clamped to 64 bits.
  public static func * (time: MediaTime, count: Int64) -> MediaTime {
    MediaTime(value: Int64(clamping: Int128(time.value) * Int128(count)), timescale: time.timescale)
  }

  public static func + (left: MediaTime, right: MediaTime) -> MediaTime {
    combine(left, right) { $0 + $1 }
  }

  public static func - (left: MediaTime, right: MediaTime) -> MediaTime {
    combine(left, right) { $0 - $1 }
  }

  /// Times that name the same instant are equal whatever their timescales.
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
      // The common timescale does not fit: keep the finer of the two, rounded down to its tick.
      let finer = max(left.timescale, right.timescale)
      let ticks = (value * Int128(finer)).floorDivided(by: Int128(common))
      return MediaTime(value: Int64(clamping: ticks), timescale: finer)
    }
    return MediaTime(value: Int64(clamping: value), timescale: Int32(common))
  }
}

extension MediaTime: Comparable {
  public static func < (left: MediaTime, right: MediaTime) -> Bool {
    Int128(left.value) * Int128(right.timescale) < Int128(right.value) * Int128(left.timescale)
  }
}

extension MediaTime: CustomStringConvertible {
  /// In seconds, to the microsecond: `0.066 s`.
  public var description: String { "\(seconds.formatted(places: 6)) s" }
}

extension MediaTime: CustomDebugStringConvertible {
  /// Exactly, in ticks: `5944/90000`.
  public var debugDescription: String { "\(value)/\(timescale)" }
}

extension Int128 {
  /// The quotient rounded towards minus infinity; `divisor` is positive.
  fileprivate func floorDivided(by divisor: Int128) -> Int128 {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? quotient - 1 : quotient
  }
}

extension Int64 {
  /// The nearest 64-bit integer to a finite or infinite `ticks`.
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
