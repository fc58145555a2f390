public import ReelCore

/// A deliberate error of an `Origin` in answering a request.
///
/// Byte counts refer to the body of the answer, except for `truncate`, `corrupt` and `corruptShare`, which refer to the
/// resource.
public enum Fault: Sendable, Hashable {
  /// Answers with this status and header fields, and a line of text instead of the resource.
  case status(Int, headers: [HeaderField] = [])
  /// Waits before sending the head, in addition to the time on the link.
  case delay(Duration)
  /// Never answers. The connection stays open.
  case silence
  /// Stops sending after this number of bytes. The connection stays open.
  case stall(after: Int64)
  /// Closes the connection after this number of bytes, although the head states the full length.
  case close(after: Int64)
  /// Like `close`, but resets the connection (RST). The client may lose bytes that it has not read yet.
  case reset(after: Int64)
  /// Shortens the resource to this number of bytes. The head states the new size.
  case truncate(to: Int64)
  /// States a `Content-Length` that is wrong by this number of bytes. If it is too large, the connection is closed
  /// after the body. If it is too small, the whole body is sent nevertheless.
  case contentLength(by: Int64)
  /// Redirects (302) to a URL or a path.
  case redirect(to: String)
  /// Redirects (302) to the same path and query, without end.
  case redirectLoop
  /// Redirects (302) this number of times, each time to another query, before serving the resource.
  case redirectChain(Int)
  /// Inverts bits in `length` bytes of the resource from `offset`.
  case corrupt(offset: Int64, length: Int64)
  /// Inverts bits in a share of the bytes of the resource, from 0 to 1. The choice of bytes is deterministic.
  case corruptShare(Double)
  /// Ignores ranges and sends the whole resource.
  case ignoreRange
  /// Sends the body with `Content-Encoding: gzip`, even if the client does not accept it. The data is stored without
  /// compression and does not get smaller.
  case gzip
}
