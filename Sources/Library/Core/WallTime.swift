public import Foundation

/// An instant of civil time in UTC, from 1677 to 2262, to the nanosecond.
package struct WallTime: Sendable, Hashable {
  /// Nanoseconds since 1 January 1970, not counting leap seconds (POSIX).
  package let nanosecondsSince1970: Int64

  /// Creates an instant from nanoseconds since 1 January 1970.
  package init(nanosecondsSince1970: Int64) {
    self.nanosecondsSince1970 = nanosecondsSince1970
  }

  /// Creates the instant of `date`, rounded to the microsecond, about the precision of a `Date`.
  package init(_ date: Date) {
    let microseconds = MediaTime(seconds: date.timeIntervalSince1970, timescale: 1_000_000)
    self.init(nanosecondsSince1970: microseconds.ticks(timescale: 1_000_000_000))
  }

  /// The current time by the system's clock.
  package static var now: WallTime { WallTime(Date()) }

  /// Returns the instant `length` after `time`, clamped to the range of the type.
  package static func + (time: WallTime, length: MediaTime) -> WallTime {
    let ticks = length.ticks(timescale: 1_000_000_000)
    let (sum, overflow) = time.nanosecondsSince1970.addingReportingOverflow(ticks)
    return WallTime(nanosecondsSince1970: overflow ? (ticks < 0 ? .min : .max) : sum)
  }

  /// Returns the instant `length` before `time`, clamped to the range of the type.
  package static func - (time: WallTime, length: MediaTime) -> WallTime {
    time + (MediaTime.zero - length)
  }

  /// Returns the time from `earlier` to `later` in nanoseconds; negative if `later` comes first.
  package static func - (later: WallTime, earlier: WallTime) -> MediaTime {
    let (difference, overflow) = later.nanosecondsSince1970.subtractingReportingOverflow(
      earlier.nanosecondsSince1970)
    let clamped = overflow ? (later > earlier ? Int64.max : .min) : difference
    return MediaTime(value: clamped, timescale: 1_000_000_000)
  }
}

extension WallTime: Comparable {
  /// Returns true if `left` comes before `right`.
  package static func < (left: WallTime, right: WallTime) -> Bool {
    left.nanosecondsSince1970 < right.nanosecondsSince1970
  }
}

// MARK: - Text

extension WallTime: CustomStringConvertible {
  /// The ISO 8601 form in UTC with as many decimals as needed, such as `2026-01-31T12:00:00.5Z`.
  package var description: String {
    let fields = fields
    let date = fields.date
    var text = "\(date.year.padded(4))-\(date.month.padded(2))-\(date.day.padded(2))T\(fields.timeOfDay)"
    if fields.nanoseconds > 0 {
      var digits = fields.nanoseconds.padded(9)
      while digits.last == "0" { digits.removeLast() }
      text += ".\(digits)"
    }
    return text + "Z"
  }

  /// The value of a `Date` field, to the second: an IMF-fixdate such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110
  /// §5.6.7).
  package var httpDate: String {
    let fields = fields
    let date = fields.date
    let month = Self.months[Int(date.month) - 1]
    return "\(fields.weekday), \(date.day.padded(2)) \(month) \(date.year.padded(4)) \(fields.timeOfDay) GMT"
  }

  /// Parses an ISO 8601 date and time, as DASH (`xs:dateTime`) and HLS (RFC 8216 §4.3.2.6) write them.
  ///
  /// Also accepts a space instead of the `T`, a date without a time, a time without seconds, and the offsets `+01`,
  /// `+0100` and `+01:00`. A time without an offset is UTC. Digits beyond the nanosecond are dropped. Returns nil if
  /// the text is malformed or the instant is out of range.
  package init?(iso8601 text: some StringProtocol) {
    var scanner = DateScanner(text)
    guard let year = scanner.number(4), scanner.take("-"), let month = scanner.number(2), scanner.take("-"),
      let day = scanner.number(2), let date = CivilDate(year: year, month: month, day: day)
    else { return nil }
    var (seconds, nanoseconds) = (Int64(0), Int64(0))
    if !scanner.isAtEnd {
      guard scanner.take("T") || scanner.take("t") || scanner.take(" ") else { return nil }
      guard let time = scanner.timeOfDay(), let offset = scanner.offset(), scanner.isAtEnd else { return nil }
      seconds = time.seconds - offset
      nanoseconds = time.nanoseconds
    }
    self.init(days: date.daysSince1970, seconds: seconds, nanoseconds: nanoseconds)
  }

  /// Parses the value of a `Date` field: an IMF-fixdate such as `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
  /// Returns nil for any other text, and if the instant is out of range.
  package init?(httpDate text: some StringProtocol) {
    guard let seconds = Self.secondsSince1970(httpDate: text) else { return nil }
    self.init(days: 0, seconds: seconds, nanoseconds: 0)
  }

  /// Returns the seconds since 1970 of an IMF-fixdate, also for instants that a `WallTime` can't hold, or nil for any
  /// other text.
  package static func secondsSince1970(httpDate text: some StringProtocol) -> Int64? {
    guard let comma = text.firstIndex(of: ",") else { return nil }
    var scanner = DateScanner(text[text.index(after: comma)...])
    guard scanner.take(" "), let day = scanner.number(2), scanner.take(" "), let name = scanner.letters(3),
      let month = months.firstIndex(of: name), scanner.take(" "), let year = scanner.number(4),
      scanner.take(" "), let time = scanner.timeOfDay(), scanner.take(" "), scanner.letters(3) == "GMT",
      scanner.isAtEnd, let date = CivilDate(year: year, month: Int64(month) + 1, day: day)
    else { return nil }
    return date.daysSince1970 * 86_400 + time.seconds
  }

  private init?(days: Int64, seconds: Int64, nanoseconds: Int64) {
    let total = Int128(days * 86_400 + seconds) * 1_000_000_000 + Int128(nanoseconds)
    guard let value = Int64(exactly: total) else { return nil }
    self.init(nanosecondsSince1970: value)
  }

  /// The parts of the written date and time.
  private var fields: (date: CivilDate, weekday: String, timeOfDay: String, nanoseconds: Int64) {
    let (second, nanoseconds) = nanosecondsSince1970.flooredQuotient(by: 1_000_000_000)
    let (day, secondOfDay) = second.flooredQuotient(by: 86_400)
    let time = [secondOfDay / 3600, secondOfDay / 60 % 60, secondOfDay % 60].map { $0.padded(2) }
    // 1 January 1970 was a Thursday.
    let weekday = Self.weekdays[Int(day.flooredQuotient(by: 7).1)]
    return (CivilDate(daysSince1970: day), weekday, time.joined(separator: ":"), nanoseconds)
  }

  private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]
}

// MARK: - Private

/// A day of the Gregorian calendar. The conversions count years from March, so the leap day is the last day of a year.
private struct CivilDate {
  var year: Int64
  var month: Int64
  var day: Int64

  init?(year: Int64, month: Int64, day: Int64) {
    guard (1...12).contains(month), day >= 1 else { return nil }
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let length: Int64 = month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    guard day <= length else { return nil }
    (self.year, self.month, self.day) = (year, month, day)
  }

  init(daysSince1970 days: Int64) {
    let (era, dayOfEra) = (days + 719_468).flooredQuotient(by: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * shifted + 2) / 5 + 1
    month = shifted < 10 ? shifted + 3 : shifted - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  var daysSince1970: Int64 {
    let (era, yearOfEra) = (month <= 2 ? year - 1 : year).flooredQuotient(by: 400)
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }
}

/// Reads the fields of a date from left to right.
private struct DateScanner {
  private var rest: ArraySlice<UInt8>

  init(_ text: some StringProtocol) { rest = Array(text.utf8)[...] }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: character) else { return false }
    rest.removeFirst()
    return true
  }

  /// Reads a number of exactly `count` digits.
  mutating func number(_ count: Int) -> Int64? {
    let field = rest.prefix(count)
    guard field.count == count, field.allSatisfy(\.isDigit) else { return nil }
    rest.removeFirst(count)
    return field.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
  }

  mutating func letters(_ count: Int) -> String? {
    let field = rest.prefix(count)
    guard field.count == count else { return nil }
    rest.removeFirst(count)
    return String(decoding: field, as: UTF8.self)
  }

  /// `hh:mm[:ss[.fff]]`; 24:00 is the end of the day, and a leap second the second before it.
  mutating func timeOfDay() -> (seconds: Int64, nanoseconds: Int64)? {
    guard let hour = number(2), hour <= 24, take(":"), let minute = number(2), minute < 60 else { return nil }
    var (second, nanoseconds) = (Int64(0), Int64(0))
    if take(":") {
      guard let whole = number(2), whole <= 60 else { return nil }
      second = min(whole, 59)
      if take(".") || take(",") {
        var place: Int64 = 100_000_000
        guard let first = number(1) else { return nil }
        nanoseconds = first * place
        while let digit = number(1) {
          place /= 10
          nanoseconds += digit * place
        }
      }
    }
    return (hour * 3600 + minute * 60 + second, nanoseconds)
  }

  /// `Z`, `+hh`, `+hhmm`, `+hh:mm`, or nothing: seconds east of Greenwich.
  mutating func offset() -> Int64? {
    if isAtEnd || take("Z") || take("z") { return 0 }
    let isWest: Bool
    if take("+") { isWest = false } else if take("-") { isWest = true } else { return nil }
    guard let hours = number(2), hours <= 24 else { return nil }
    var minutes: Int64 = 0
    if !isAtEnd {
      _ = take(":")
      guard let field = number(2), field < 60 else { return nil }
      minutes = field
    }
    let seconds = hours * 3600 + minutes * 60
    return isWest ? -seconds : seconds
  }
}

extension Int64 {
  /// Returns the number in decimal, filled up with zeros to `width` digits.
  fileprivate func padded(_ width: Int) -> String {
    let digits = String(self)
    return String(repeating: "0", count: Swift.max(0, width - digits.count)) + digits
  }

  /// Returns the quotient, rounded towards minus infinity, and the remainder; `divisor` is positive.
  fileprivate func flooredQuotient(by divisor: Int64) -> (Int64, Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}

/// A source of wall-clock time that can also sleep. Code that follows live presentations takes one, so that
/// tests need not wait.
package protocol WallClock: Sendable {
  var now: WallTime { get }

  /// Returns after `duration` of this clock's time. Throws `CancellationError`.
  func sleep(for duration: Duration) async throws
}

/// This machine's clock.
package struct SystemWallClock: WallClock {
  package init() {}

  package var now: WallTime { .now }

  package func sleep(for duration: Duration) async throws { try await Task.sleep(for: duration) }
}
