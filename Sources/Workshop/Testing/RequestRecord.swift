public import ReelCore

/// A request that an `Origin` received, and the progress of its answer. Times are measured from the creation of the
/// origin.
public struct RequestRecord: Sendable, Hashable {
  /// The method, such as `GET`.
  public var method: String
  /// The percent-decoded path without the query, or `target` if it can't be decoded.
  public var path: String
  /// The request target as received, with its query.
  public var target: String
  /// The header fields, in order.
  public var headers: [HeaderField]
  /// The number of the connection, counted from 1 in order of acceptance.
  public var connection: Int
  /// The time at which the request arrived.
  public var arrival: Duration
  /// The time at which the first byte of the answer was written to the connection; nil if none was.
  public var firstByteSent: Duration?
  /// The time at which the last byte was written; nil until then, and always after a `silence`, `stall` or
  /// `reset` fault.
  public var lastByteSent: Duration?
  /// The status of the answer; nil if a `silence` fault withholds it.
  public var status: Int?
  /// The number of bytes of head and body written so far.
  public var bytesSent: Int64 = 0
  /// The number of bytes of the body written so far.
  public var bodyBytesSent: Int64 = 0
  /// True if the last byte of the answer has been written, even if a `close` fault shortened it.
  public var isComplete: Bool { lastByteSent != nil }

  /// The value of the `Range` field; nil without one.
  public var range: String? { header("Range") }

  /// Returns the value of the first header field with a name, without regard to case; nil if there is none.
  public func header(_ name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }
}
