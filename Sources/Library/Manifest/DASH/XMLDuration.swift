package import ReelCore

/// An `xs:duration` (W3C XML Schema Part 2 §3.2.6), such as `PT0H11M58.998S` or `P1DT2H`, exact to its digits.
///
/// A year is taken as 365 days and a month as 30. A plain number is read as seconds, which some writers put there.
package struct XMLDuration: Sendable {
  package let time: MediaTime
  /// False for a plain number.
  package let isWellFormed: Bool

  /// Nil for what is no duration, is negative, or is beyond 292 years.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard bytes.first == UInt8(ascii: "P") else {
      guard let (value, end) = ExactSeconds.parse(bytes, in: 0..<bytes.count), end == bytes.count else {
        return nil
      }
      time = value.time
      isWellFormed = false
      return
    }
    var (index, inTime, sum, fields) = (1, false, ExactSeconds.zero, 0)
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "T"), !inTime {
        inTime = true
        index += 1
        continue
      }
      guard let (value, end) = ExactSeconds.parse(bytes, in: index..<bytes.count), end < bytes.count,
        let unit = Self.seconds(bytes[end], inTime: inTime), let length = value.multiplied(by: unit),
        sum.add(length)
      else { return nil }
      fields += 1
      index = end + 1
    }
    guard fields > 0 else { return nil }
    time = sum.time
    isWellFormed = true
  }

  // MARK: - Private

  private static func seconds(_ unit: UInt8, inTime: Bool) -> Int64? {
    switch (unit, inTime) {
    case (UInt8(ascii: "Y"), false): 365 * 86_400
    case (UInt8(ascii: "M"), false): 30 * 86_400
    case (UInt8(ascii: "W"), false): 7 * 86_400
    case (UInt8(ascii: "D"), false): 86_400
    case (UInt8(ascii: "H"), true): 3_600
    case (UInt8(ascii: "M"), true): 60
    case (UInt8(ascii: "S"), true): 1
    default: nil
    }
  }
}
