public import ReelCore

/// One way in which an `Origin` treats a request badly.
///
/// Byte counts are of the body of the one answer, from its first byte, not of the resource.
public enum Fault: Sendable, Hashable {
  /// Answers with this status and no body of the resource.
  case status(Int, headers: [HeaderField] = [])
  /// Waits before the head, beside what the link takes.
  case delay(Duration)
  /// Takes the request and never answers; the connection stays open.
  case silence
  /// Stops sending after so many bytes; the connection stays open.
  case stall(after: Int64)
  /// Closes the connection after so many bytes of a body whose whole length was stated.
  case close(after: Int64)
  /// As `close`, with a reset (RST). What the client has not read by then may be lost to it.
  case reset(after: Int64)
  /// Cuts the resource itself: it is only so many bytes long, and the head says so.
  case truncate(to: Int64)
  /// States a `Content-Length` that is wrong by so much. Where it is too large the connection is closed after
  /// the body, where it is too small the rest of the body follows all the same.
  case contentLength(by: Int64)
  /// Redirects (302) to a URL or a path.
  case redirect(to: String)
  /// Redirects to the very same path.
  case redirectLoop
  /// Redirects so many times, each time to another query, before the resource is given.
  case redirectChain(Int)
  /// Inverts bits in `length` bytes of the resource from `offset` on.
  case corrupt(offset: Int64, length: Int64)
  /// Inverts bits in a share of the bytes, from 0 to 1, always in the same ones.
  case corruptShare(Double)
  /// Sends everything where a part is asked for.
  case ignoreRange
  /// Sends the body with `Content-Encoding: gzip`, asked for or not. Nothing gets smaller by it: the bytes
  /// are stored.
  case gzip
}
