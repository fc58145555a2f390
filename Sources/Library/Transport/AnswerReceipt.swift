import NIOHTTP1
import Synchronization
internal import ReelCore

/// Data of a connection about the response to one request, for the transfer that sent it.
///
/// A transfer can't see this data itself. AsyncHTTPClient 1.37 does not name the connection of a request:
/// `HTTPClient.Task` and `HTTPClientResponseDelegate` have no `Channel`, and
/// `http1_1ConnectionDebugInitializer` gets a channel without a request. And a delegate gets bodies only after
/// decompression. Both sides see only the head of the request, which contains nothing but text. So a field of
/// it has the receipt's number, and `ConnectionMonitor` removes the field before the head is sent.
final class AnswerReceipt: Sendable {
  private static let field = "reel-receipt"
  private static let lastNumber = Atomic<Int>(0)
  /// Receipts whose requests have not reached a connection, by number.
  private static let pending = Locked<[Int: AnswerReceipt]>([:])

  private let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
  private let state = Locked<(connectionOpenedAt: ContinuousClock.Instant?, byteCount: Int)>((nil, 0))

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

  /// Removes the receipt of a request that will not reach a connection any more.
  func withdraw() {
    _ = Self.pending.withLock { $0.removeValue(forKey: number) }
  }

  func add(_ count: Int) {
    state.withLock { $0.byteCount += count }
  }
}
