import ReelCore

extension WallTime {
  /// As a Date field has it, to the second: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7).
  var httpDate: String {
    let text = description
    let fields = text.split { "-T:.Z".contains($0) }.map(String.init)
    let isNegative = nanosecondsSince1970 % 86_400_000_000_000 < 0
    let day = nanosecondsSince1970 / 86_400_000_000_000 - (isNegative ? 1 : 0)
    // 1 January 1970 was a Thursday.
    let weekday = Int((day % 7 + 7) % 7)
    guard fields.count >= 6, let month = Int(fields[1]), (1...12).contains(month) else { return text }
    return "\(Self.weekdays[weekday]), \(fields[2]) \(Self.months[month - 1]) \(fields[0]) "
      + "\(fields[3]):\(fields[4]):\(fields[5]) GMT"
  }

  private static let weekdays = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]
}
