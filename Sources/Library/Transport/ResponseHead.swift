import Foundation
import NIOCore
import NIOHTTP1
import ReelCore
import Synchronization

/// The parsed head of a successful response.
struct ResponseHead {
  var url: URL
  var status: Int
  var contentType: String?
  /// The position in the resource of the body's first byte.
  var bodyOffset: Int64
  /// The size of the body as delivered; nil if unknown. If the answer to a range does not state the size of
  /// the resource, the body may be longer.
  var bodyByteCount: Int64?
  /// The number of bytes in this response from `bodyOffset` on; nil if unknown. Fewer than the body has if the server
  /// sent only the beginning of the range (RFC 9110 §15.3.7).
  var sentByteCount: Int64?
  /// The number of bytes before `bodyOffset` in this response: a server may send more than the range.
  var leadingByteCount: Int64 = 0
  var resourceByteCount: Int64?
  /// The position after the last byte that is wanted; nil if unknown. The resource may end before it if its size is
  /// unknown.
  var wantedEnd: Int64?
  var supportsRanges: Bool
  /// True if the body was compressed for the transfer.
  var isCompressed: Bool
  /// The time at which the server made the response (RFC 9110 §6.6.1).
  var date: WallTime?
  /// The validator for `If-Range` (RFC 9110 §13.1.5): a strong entity tag or a date.
  var validator: String?

  /// - Throws: `TransferFailure` if the server sent a part other than the requested one.
  init(head: HTTPResponseHead, url: URL, range: ByteRange?) throws {
    self.url = url
    status = Int(head.status.code)
    contentType = head.headers.first(name: "Content-Type")
    date = head.headers.first(name: "Date").flatMap { WallTime(httpDate: $0) }
    let coding = head.headers.first(name: "Content-Encoding")?.lowercased()
    isCompressed = coding != nil && coding != "identity"
    let contentLength = head.headers.first(name: "Content-Length").flatMap { Int64($0) }
    bodyByteCount = isCompressed ? nil : contentLength
    sentByteCount = bodyByteCount
    wantedEnd = bodyByteCount
    let acceptsRanges = head.headers[canonicalForm: "Accept-Ranges"].contains { $0.lowercased() == "bytes" }
    let tag = head.headers.first(name: "ETag").flatMap { $0.hasPrefix("W/") ? nil : $0 }
    validator = tag ?? head.headers.first(name: "Last-Modified")

    guard status == 206 else {
      bodyOffset = 0
      resourceByteCount = bodyByteCount
      supportsRanges = range == nil && acceptsRanges && !isCompressed
      return
    }
    func malformed(_ reason: String) -> TransferFailure { .malformed(reason: reason, status: 206) }
    guard let range else {
      throw malformed("the server sent a partial response (206) to a request for the whole")
    }
    let text = head.headers.first(name: "Content-Range")
    guard let text, let stated = ContentRange(parsing: text), let bytes = stated.bytes else {
      throw malformed(
        "the server sent a partial response (206) without a valid Content-Range"
          + (text.map { " (\($0))" } ?? ""))
    }
    guard bytes.contains(range.offset) else {
      throw malformed("the server sent \(text) instead of \(range.httpHeaderValue)")
    }
    guard !isCompressed else {
      throw malformed("the server sent a range of a compressed body, which can't be decoded")
    }
    let count = bytes.upperBound - bytes.lowerBound + 1
    guard contentLength ?? count == count else {
      throw malformed(
        "the server states two sizes for one range: \(text), and \(contentLength ?? 0) bytes")
    }
    bodyOffset = range.offset
    leadingByteCount = bodyOffset - bytes.lowerBound
    let end = min(bytes.upperBound + 1, range.end ?? .max)
    sentByteCount = end - bodyOffset
    resourceByteCount = stated.resourceByteCount
    let known = resourceByteCount.map { min($0, range.end ?? .max) }
    bodyByteCount = max(end, known ?? 0) - bodyOffset
    wantedEnd = known ?? range.end
    supportsRanges = true
  }
}

/// Data of a connection about the response to one request, for the transfer that sent it, and whether the request may
/// be sent over this connection.
///
/// A transfer can't see the connection itself. AsyncHTTPClient 1.37 does not identify the connection of a request:
/// `HTTPClient.Task` and `HTTPClientResponseDelegate` have no `Channel`, and
/// `http1_1ConnectionDebugInitializer` gets a channel without a request. And a delegate gets bodies only
/// after decompression. Both sides see only the head of the request, which contains nothing but text.
/// Therefore, one of its fields has the receipt's number, and `ConnectionMonitor` removes that field before
/// the head is sent.
final class AnswerReceipt: Sendable {
  private static let field = "reel-receipt"
  private static let lastNumber = Atomic<Int>(0)
  /// Receipts whose requests have not reached a connection, by number.
  private static let pending = Locked<[Int: AnswerReceipt]>([:])

  private let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
  private let state = Locked<(connectionOpenedAt: ContinuousClock.Instant?, byteCount: Int)>((nil, 0))
  private let admit: (@Sendable (any Channel) throws(ReelError) -> Void)?

  /// - Parameter admit: Called with the connection before the request is sent. Throws an error for one that must not be
  ///   used.
  init(admit: (@Sendable (any Channel) throws(ReelError) -> Void)?) { self.admit = admit }

  /// When the connection was opened; nil until the request is sent, or if unknown.
  var connectionOpenedAt: ContinuousClock.Instant? { state.withLock { $0.connectionOpenedAt } }

  /// The number of body bytes so far, before decompression.
  var byteCount: Int { state.withLock { $0.byteCount } }

  /// Adds the receipt to its request. Call `withdraw` when the request has ended.
  func attach(to headers: inout HTTPHeaders) {
    headers.replaceOrAdd(name: Self.field, value: String(number))
    Self.pending.withLock { $0[number] = self }
  }

  /// Removes the receipt from a request that has reached a connection, which was opened at `time`.
  static func detach(from headers: inout HTTPHeaders, openedAt time: ContinuousClock.Instant?)
    -> AnswerReceipt?
  {
    guard let number = headers.first(name: field).flatMap({ Int($0) }) else { return nil }
    headers.remove(name: field)
    let receipt = pending.withLock { $0.removeValue(forKey: number) }
    receipt?.state.withLock { $0.connectionOpenedAt = time }
    return receipt
  }

  /// Returns a failure if the request must not be sent over a connection.
  func refusal(for connection: any Channel) -> Result<Void, any Error>? {
    do {
      try admit?(connection)
      return nil
    } catch {
      return .failure(TransferFailure.notAdmitted(error))
    }
  }

  /// Discards the receipt of a request that will not reach a connection any more.
  func withdraw() {
    _ = Self.pending.withLock { $0.removeValue(forKey: number) }
  }

  func add(_ count: Int) {
    state.withLock { $0.byteCount += count }
  }
}
