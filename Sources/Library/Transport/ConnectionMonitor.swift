import NIOCore
import NIOHTTP1

/// A handler in each connection, between the HTTP parser and the decompressor. It sees what AsyncHTTPClient
/// does not report: the bytes of a body before decompression, and whether the connection existed before its
/// request.
///
/// If a server closes a connection in the middle of a body with a stated length, the body ends here: the bytes
/// before are delivered, and the reader knows that some are missing. AsyncHTTPClient would fail the request and
/// drop an arbitrary number of the last bytes. It still does so after a reset (RST).
///
/// It also answers the requests of `HTTPConnections.openAhead` itself.
final class ConnectionMonitor: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias InboundOut = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  /// Marks a request that must not be sent.
  static let aheadField = "reel-open-ahead"

  /// When the connection was opened; nil for a stream of an HTTP/2 connection.
  private let openedAt: ContinuousClock.Instant?
  private var isAnsweringItself = false
  private var receipt: AnswerReceipt?
  /// True in the middle of a body that is complete only if it has its stated length (RFC 9112 §8).
  private var isInCountedBody = false

  init(openedAt: ContinuousClock.Instant?) {
    self.openedAt = openedAt
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head) where head.status.code >= 200:
      isInCountedBody = openedAt != nil && head.statesBodyLength
    case .body(let buffer):
      receipt?.add(buffer.readableBytes)
    case .end:
      receipt = nil
      isInCountedBody = false
    case .head:
      break
    }
    context.fireChannelRead(data)
  }

  func channelInactive(context: ChannelHandlerContext) {
    endCountedBody(context)
    receipt = nil
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? HTTPParserError, error == .invalidEOFState, endCountedBody(context) { return }
    context.fireErrorCaught(error)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    var data = data
    if case .head(var head) = unwrapOutboundIn(data) {
      isAnsweringItself = head.headers.contains(name: Self.aheadField)
      receipt = AnswerReceipt.detach(from: &head.headers, openedAt: openedAt)
      data = wrapOutboundOut(.head(head))
    }
    guard isAnsweringItself else {
      context.write(data, promise: promise)
      return
    }
    promise?.succeed()
    if case .end = unwrapOutboundIn(data) {
      isAnsweringItself = false
      // Not from within the write: the handler that writes accepts a response only after the write has
      // returned.
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      context.eventLoop.execute {
        let head = HTTPResponseHead(version: .http1_1, status: .noContent)
        bound.value.fireChannelRead(Self.wrapInboundOut(.head(head)))
        bound.value.fireChannelRead(Self.wrapInboundOut(.end(nil)))
        bound.value.fireChannelReadComplete()
      }
    }
  }

  // MARK: - Private

  /// - Returns: True if a body was incomplete.
  @discardableResult
  private func endCountedBody(_ context: ChannelHandlerContext) -> Bool {
    guard isInCountedBody else { return false }
    isInCountedBody = false
    context.fireChannelRead(wrapInboundOut(.end(nil)))
    context.fireChannelReadComplete()
    return true
  }
}

extension HTTPResponseHead {
  /// True if `Content-Length` counts the bytes of the body.
  fileprivate var statesBodyLength: Bool {
    headers.contains(name: "Content-Length") && !headers.contains(name: "Transfer-Encoding")
      && !headers.contains(name: "Content-Encoding")
  }
}
