import Foundation
import ReelCore

extension Array where Element == UInt8 {
  /// Returns true if `index` is followed by `text`.
  package func has(_ text: StaticString, at index: Int) -> Bool {
    guard index >= 0, count - index >= text.utf8CodeUnitCount else { return false }
    return withUnsafeBufferPointer { bytes in
      bytes.baseAddress.map { memcmp($0 + index, text.utf8Start, text.utf8CodeUnitCount) == 0 } ?? false
    }
  }

  /// Returns true if `range` holds `text` and nothing else.
  package func isText(_ text: StaticString, in range: Range<Int>) -> Bool {
    range.count == text.utf8CodeUnitCount && has(text, at: range.lowerBound)
  }

  package func firstIndex(of byte: UInt8, in range: Range<Int>) -> Int? {
    guard !range.isEmpty, range.upperBound <= count else { return nil }
    return withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress,
        let found = memchr(base + range.lowerBound, Int32(byte), range.count)
      else { return nil }
      return UnsafeRawPointer(found) - UnsafeRawPointer(base)
    }
  }

  /// `range` without the white space at its ends.
  package func trimmed(_ range: Range<Int>) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, self[start].isSpace { start += 1 }
    while end > start, self[end - 1].isSpace { end -= 1 }
    return start..<end
  }

  /// Returns true if `range` is certainly a date that `WallTime` reads, in the most common form:
  /// `2026-01-31T12:00:00`, a fraction, and `Z` or an offset. This check avoids creating a string.
  package func isPlainDate(in range: Range<Int>) -> Bool {
    let base = range.lowerBound
    func number(_ offset: Int) -> Int? {
      let (tens, ones) = (self[base + offset] &- 0x30, self[base + offset + 1] &- 0x30)
      return tens < 10 && ones < 10 ? Int(tens) * 10 + Int(ones) : nil
    }
    func has(_ character: Unicode.Scalar, at offset: Int) -> Bool {
      self[base + offset] == UInt8(ascii: character)
    }
    guard range.count >= 20, let century = number(0), (17...21).contains(century), number(2) != nil,
      has("-", at: 4), let month = number(5), (1...12).contains(month), has("-", at: 7),
      let day = number(8), (1...28).contains(day), has("T", at: 10), let hour = number(11), hour < 24,
      has(":", at: 13), let minute = number(14), minute < 60, has(":", at: 16), let second = number(17),
      second < 60
    else { return false }
    var index = base + 19
    if self[index] == UInt8(ascii: ".") {
      index += 1
      guard index < range.upperBound, self[index].isDigit else { return false }
      while index < range.upperBound, self[index].isDigit { index += 1 }
    }
    guard index < range.upperBound else { return false }
    if self[index] == UInt8(ascii: "Z") { return index + 1 == range.upperBound }
    guard self[index] == UInt8(ascii: "+") || self[index] == UInt8(ascii: "-") else { return false }
    let hasColon = range.upperBound - index == 6 && self[index + 3] == UInt8(ascii: ":")
    guard hasColon || range.upperBound - index == 5, let east = number(index + 1 - base), east < 24,
      let minutes = number(range.upperBound - 2 - base)
    else { return false }
    return minutes < 60
  }

  /// Returns the text in `range`; bytes that are not UTF-8 become U+FFFD.
  package func text(in range: Range<Int>) -> String { String(decoding: self[range], as: UTF8.self) }

  /// Returns the decimal integer that makes up all of `range`; nil for any other text, or a number beyond 64
  /// bits.
  package func integer(in range: Range<Int>) -> Int64? {
    var index = range.lowerBound
    guard index < range.upperBound else { return nil }
    let isNegative = self[index] == UInt8(ascii: "-")
    if isNegative || self[index] == UInt8(ascii: "+") { index += 1 }
    guard index < range.upperBound else { return nil }
    var value: Int64 = 0
    while index < range.upperBound {
      let digit = self[index] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      let (product, tooLarge) = value.multipliedReportingOverflow(by: 10)
      let (sum, overflow) = product.subtractingReportingOverflow(Int64(digit))
      guard !tooLarge, !overflow else { return nil }
      value = sum
      index += 1
    }
    // The sum stays negative, because the smallest integer has no positive counterpart.
    if isNegative { return value }
    return value == .min ? nil : -value
  }
}

extension String {
  /// The text itself, or its first 80 characters, for messages. Passwords of URLs are left out before the text is cut,
  /// because their beginning alone could not be recognised.
  package var excerpt: String {
    let text = withoutUserInformation
    return text.count <= 80 ? text : text.prefix(80) + "…"
  }

  /// The whole number that this text is, apart from white space around it.
  package var integer: Int64? {
    let bytes = Array(utf8)
    return bytes.integer(in: bytes.trimmed(0..<bytes.count))
  }

  /// The text as a whole number: `2000000`, `2000000.0` or `2e6`.
  package var wholeNumber: Int64? {
    if let integer { return integer }
    let parts = trimmed.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    if parts.count == 2, parts[1].utf8.allSatisfy({ $0 == UInt8(ascii: "0") }) {
      return String(parts[0]).integer
    }
    // Beyond 53 bits, a fraction would be lost.
    guard utf8.allSatisfy({ $0.isDigit || "+-.eE \t\r\n".utf8.contains($0) }), let value = Double(trimmed),
      abs(value) < 9_007_199_254_740_992
    else { return nil }
    return Int64(exactly: value)
  }
}
