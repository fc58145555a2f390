/// A range of bytes in a resource: `length` bytes from `offset`, or all bytes from `offset` if `length` is nil.
public struct ByteRange: Sendable, Hashable {
  /// The position of the first byte, counted from 0.
  public let offset: Int64
  /// The number of bytes, or nil for all bytes to the end of the resource.
  public let length: Int64?

  /// Creates a range. The values are not checked: a request needs a non-negative `offset` and a positive `length`.
  public init(offset: Int64, length: Int64?) {
    self.offset = offset
    self.length = length
  }

  package static let all = ByteRange(offset: 0, length: nil)

  /// The position after the last byte; nil if the range is open-ended or its end exceeds 64 bits.
  package var end: Int64? {
    guard let length else { return nil }
    let (end, overflow) = offset.addingReportingOverflow(length)
    return overflow ? nil : end
  }

  /// The value of a `Range` request header, such as `bytes=0-99` (RFC 9110 §14.1.2).
  package var httpHeaderValue: String {
    guard let end else { return "bytes=\(offset)-" }
    return "bytes=\(offset)-\(end - 1)"
  }
}

/// A `Range` field that names one part (RFC 9110 §14.1.2).
package enum RangeField: Hashable {
  /// From a byte on, to another or to the end.
  case from(Int64, through: Int64?)
  /// This many bytes at the end.
  case last(Int64)

  /// Nil for no part, for several, and for what is none: then the whole is sent (RFC 9110 §14.2).
  package init?(_ text: String?) {
    guard let text, text.lowercased().hasPrefix("bytes="), !text.contains(",") else { return nil }
    let ends = text.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
      .map { $0.filter { $0 != " " && $0 != "\t" } }
    guard ends.count == 2, ends.allSatisfy({ $0.utf8.allSatisfy(\.isDigit) }) else {
      return nil
    }
    switch (Int64(ends[0]), Int64(ends[1])) {
    case (nil, let count?) where ends[0].isEmpty: self = .last(count)
    case (let first?, nil) where ends[1].isEmpty: self = .from(first, through: nil)
    case (let first?, let last?) where last >= first: self = .from(first, through: last)
    default: return nil
    }
  }

  /// The bytes of a resource of `size`; nil if the range is outside of it (416).
  package func bytes(of size: Int64) -> Range<Int64>? {
    switch self {
    case .last(let count): count > 0 && size > 0 ? max(0, size - count)..<size : nil
    case .from(let first, let last): first < size ? first..<(min(last ?? .max, size - 1) + 1) : nil
    }
  }
}

/// The value of a `Content-Range` field (RFC 9110 §14.4): `bytes 0-99/1000`, `bytes 0-99/*`, `bytes */1000`.
package struct ContentRange: Equatable {
  /// The first and the last byte; nil in a 416 response.
  package private(set) var bytes: ClosedRange<Int64>?
  /// The size of the whole resource, if the server states it.
  package private(set) var resourceByteCount: Int64?

  /// Nil if the text is invalid.
  package init?(parsing text: String) {
    let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
    guard parts.count == 2, parts[0].lowercased() == "bytes" else { return nil }
    let halves = parts[1].split(separator: "/", omittingEmptySubsequences: false)
    guard halves.count == 2 else { return nil }
    if halves[1] != "*" {
      guard let size = Int64(halves[1]), size >= 0 else { return nil }
      resourceByteCount = size
    }
    if halves[0] != "*" {
      let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
      guard ends.count == 2, let first = ends[0], let last = ends[1], first <= last, last < .max else {
        return nil
      }
      bytes = first...last
    }
  }
}
