import Foundation
import ReelCore

/// How much earlier than its end a segment is available: `@availabilityTimeOffset`, a number of seconds or
/// `INF` (ISO/IEC 23009-1 §5.3.9.5.3).
package struct AvailabilityTimeOffset: Sendable, Hashable {
  /// Nil for an infinite one.
  private(set) var time: MediaTime?

  static let zero = AvailabilityTimeOffset(time: .zero)

  private init(time: MediaTime?) { self.time = time }

  /// Nil for what is no number.
  package init?(_ text: String) {
    let isNegative = text.hasPrefix("-")
    let bytes = Array(text.utf8.dropFirst(isNegative ? 1 : 0))
    if let (value, end) = ExactSeconds.parse(bytes, in: 0..<bytes.count), end == bytes.count {
      time = isNegative ? .zero - value.time : value.time
    } else if text == "INF" || text == "+INF" {
      time = nil
    } else if let value = Double(text), value.isFinite {
      time = MediaTime(seconds: value, timescale: 1_000_000)
    } else {
      return nil
    }
  }

  /// The offsets of all levels add up.
  static func + (left: AvailabilityTimeOffset, right: AvailabilityTimeOffset) -> AvailabilityTimeOffset {
    guard let first = left.time, let second = right.time else { return AvailabilityTimeOffset(time: nil) }
    return AvailabilityTimeOffset(time: first + second)
  }
}
