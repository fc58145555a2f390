import Foundation
import ReelCore

/// The value of a `Retry-After` field (RFC 9110 §10.2.3): a number of seconds or a date.
enum RetryAfter {
  /// How long to wait from `now`; nil for an invalid text.
  static func duration(_ text: String?, now: Date = Date()) -> Duration? {
    guard let text = text?.trimmingCharacters(in: .whitespaces), !text.isEmpty else { return nil }
    if text.allSatisfy({ $0.isASCII && $0.isNumber }) {
      return Int64(text).map { .seconds(min($0, 1 << 31)) } ?? .seconds(1 << 31)
    }
    guard let seconds = WallTime.secondsSince1970(httpDate: text) else { return nil }
    let delay = Date(timeIntervalSince1970: Double(seconds)).timeIntervalSince(now)
    return .milliseconds(Int64((max(0, delay) * 1000).rounded(.up)))
  }
}
