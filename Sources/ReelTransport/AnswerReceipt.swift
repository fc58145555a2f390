import NIOHTTP1
import Synchronization
internal import ReelCore

/// What a connection notes of the answer to one request, for the transfer that sent it.
///
/// A transfer sees neither by itself. AsyncHTTPClient 1.37 has no call that names the connection of a request:
/// `HTTPClient.Task` and `HTTPClientResponseDelegate` have no `Channel`, and `http1_1ConnectionDebugInitializer` gets a
/// channel without a request. And a delegate gets bodies after decompression only. The head of the request is all that
/// both sides see, and it holds nothing but text. So a field of it has the receipt's number, which `ConnectionMonitor`
/// takes out before the head leaves.
final class AnswerReceipt: Sendable {
  private static let field = "reel-receipt"
  private static let lastNumber = Atomic<Int>(0)
  /// Those whose requests have not reached a connection, by number.
  private static let pending = Locked<[Int: AnswerReceipt]>([:])

  private let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
  private let state = Locked<(connectionOpenedAt: ContinuousClock.Instant?, byteCount: Int)>((nil, 0))

  /// When the connection was opened; nil before the request has left, and where it is not known.
  var connectionOpenedAt: ContinuousClock.Instant? { state.withLock { $0.connectionOpenedAt } }

  /// Body bytes before decompression, so far.
  var byteCount: Int { state.withLock { $0.byteCount } }

  /// Adds the receipt to the request that it is for. To be followed by `withdraw` when that has ended.
  func attach(to headers: inout HTTPHeaders) {
    headers.replaceOrAdd(name: Self.field, value: String(number))
    Self.pending.withLock { $0[number] = self }
  }

  /// Takes the receipt out of a request that has reached a connection, which was opened at `time`.
  static func detach(from headers: inout HTTPHeaders, openedAt time: ContinuousClock.Instant?)
    -> AnswerReceipt?
  {
    guard let number = headers.first(name: field).flatMap({ Int($0) }) else { return nil }
    headers.remove(name: field)
    let receipt = pending.withLock { $0.removeValue(forKey: number) }
    receipt?.state.withLock { $0.connectionOpenedAt = time }
    return receipt
  }

  /// The request will not reach a connection any more.
  func withdraw() {
    _ = Self.pending.withLock { $0.removeValue(forKey: number) }
  }

  func add(_ count: Int) {
    state.withLock { $0.byteCount += count }
  }
}
