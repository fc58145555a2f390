/// A run of bytes of a resource: `length` bytes from `offset`, or everything from `offset` where `length` is nil.
public struct ByteRange: Sendable, Hashable {
  /// The first byte, counted from 0.
  public let offset: Int64
  /// How many bytes, or nil for all that follow.
  public let length: Int64?

  public init(offset: Int64, length: Int64?) {
    self.offset = offset
    self.length = length
  }

  /// The byte after the last one, where the range has an end; nil also where it lies beyond 64 bits.
  public var end: Int64? {
    guard let length else { return nil }
    let (end, overflow) = offset.addingReportingOverflow(length)
    return overflow ? nil : end
  }

  /// The value of a `Range` request header (RFC 9110 §14.1.2), `bytes=0-99`.
  public var httpHeaderValue: String {
    guard let end else { return "bytes=\(offset)-" }
    return "bytes=\(offset)-\(end - 1)"
  }
}
