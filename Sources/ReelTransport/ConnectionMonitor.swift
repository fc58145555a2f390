import NIOCore
import NIOHTTP1
import Synchronization

/// Stands in each connection between the HTTP parser and the decompressor, and sees what AsyncHTTPClient does not
/// tell: the bytes of a body before decompression, and whether the connection was there before its request.
///
/// It also answers the requests of `HTTPConnections.openAhead` itself.
final class ConnectionMonitor: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias InboundOut = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  /// Marks a request that must not leave.
  static let aheadField = "reel-open-ahead"

  /// When the connection was opened; nil for a stream of an HTTP/2 connection.
  private let openedAt: ContinuousClock.Instant?
  private var isAnsweringItself = false
  private var receipt: AnswerReceipt?

  init(openedAt: ContinuousClock.Instant?) {
    self.openedAt = openedAt
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(var head) where head.status.code >= 200:
      let receipt = AnswerReceipt(connectionOpenedAt: openedAt)
      self.receipt = receipt
      head.headers.replaceOrAdd(name: AnswerReceipt.field, value: receipt.register())
      context.fireChannelRead(wrapInboundOut(.head(head)))
    case .body(let buffer):
      receipt?.add(buffer.readableBytes)
      context.fireChannelRead(data)
    case .end:
      receipt = nil
      context.fireChannelRead(data)
    case .head:
      context.fireChannelRead(data)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    receipt = nil
    context.fireChannelInactive()
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .head(let head) = unwrapOutboundIn(data) {
      isAnsweringItself = head.headers.contains(name: Self.aheadField)
    }
    guard isAnsweringItself else {
      context.write(data, promise: promise)
      return
    }
    promise?.succeed()
    if case .end = unwrapOutboundIn(data) {
      isAnsweringItself = false
      // Not from within the write: the handler that writes is not ready for an answer before it returns.
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      context.eventLoop.execute {
        let head = HTTPResponseHead(version: .http1_1, status: .noContent)
        bound.value.fireChannelRead(Self.wrapInboundOut(.head(head)))
        bound.value.fireChannelRead(Self.wrapInboundOut(.end(nil)))
        bound.value.fireChannelReadComplete()
      }
    }
  }
}

/// What a connection has noted of one answer: handed from the connection to the transfer by a header field that
/// holds its number.
final class AnswerReceipt: Sendable {
  /// The header field, put over one that a server sends.
  static let field = "reel-receipt"

  /// When the connection was opened; nil where that is not known.
  let connectionOpenedAt: ContinuousClock.Instant?
  private let bytes = Atomic<Int>(0)

  private static let book = Mutex<(next: UInt64, open: [UInt64: Weak])>((0, [:]))

  init(connectionOpenedAt: ContinuousClock.Instant?) {
    self.connectionOpenedAt = connectionOpenedAt
  }

  /// Body bytes before decompression, so far.
  var byteCount: Int { bytes.load(ordering: .relaxed) }

  func add(_ count: Int) {
    bytes.wrappingAdd(count, ordering: .relaxed)
  }

  /// Enters the receipt in the book, under the number that is returned, until it is claimed.
  func register() -> String {
    Self.book.withLock { book in
      book.next += 1
      // Answers that nobody claims, as their requests were cancelled, leave an empty entry behind.
      if book.next % 256 == 0 { book.open = book.open.filter { $0.value.receipt != nil } }
      book.open[book.next] = Weak(receipt: self)
      return String(book.next)
    }
  }

  /// Takes the receipt with this number out of the book.
  static func claim(_ number: String?) -> AnswerReceipt? {
    guard let number = number.flatMap({ UInt64($0) }) else { return nil }
    return book.withLock { $0.open.removeValue(forKey: number)?.receipt }
  }

  private struct Weak {
    weak var receipt: AnswerReceipt?
  }
}
