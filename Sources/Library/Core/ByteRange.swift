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

  /// The position after the last byte; nil if the range is open-ended or its end exceeds 64 bits.
  public var end: Int64? {
    guard let length else { return nil }
    let (end, overflow) = offset.addingReportingOverflow(length)
    return overflow ? nil : end
  }

  /// The value of a `Range` request header, such as `bytes=0-99` (RFC 9110 §14.1.2).
  public var httpHeaderValue: String {
    guard let end else { return "bytes=\(offset)-" }
    return "bytes=\(offset)-\(end - 1)"
  }
}
