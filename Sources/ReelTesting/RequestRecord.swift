public import ReelCore

/// A request that an `Origin` was sent, and what became of it so far.
public struct RequestRecord: Sendable, Hashable {
  public var method: String
  /// The path, percent-decoded, without the query.
  public var path: String
  /// The target as it was sent, with its query.
  public var target: String
  public var headers: [HeaderField]
  /// Which connection it came over, counted from 1 in the order in which they were accepted.
  public var connection: Int
  /// When it came, from the start of the origin.
  public var arrival: Duration
  /// When the first byte of the answer was handed to the connection, from the start of the origin.
  public var firstByteSent: Duration?
  /// When the last one was, on the same clock; nil while there are more to come.
  public var lastByteSent: Duration?
  /// The status of the answer; nil where a fault keeps it back.
  public var status: Int?
  /// Bytes of head and body that were handed to the connection so far.
  public var bytesSent: Int64 = 0
  /// Bytes of the body among them.
  public var bodyBytesSent: Int64 = 0
  /// True when the answer has been sent to its end.
  public var isComplete: Bool { lastByteSent != nil }

  /// The value of the `Range` field.
  public var range: String? { header("Range") }

  /// The value of the first header field with this name, in any case of letters.
  public func header(_ name: String) -> String? {
    headers.first { $0.name.lowercased() == name.lowercased() }?.value
  }
}
