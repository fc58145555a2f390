import NIOCore
import NIOHTTP1

/// Decides which request is the last of a connection, and says so in the request and in its response.
///
/// The server itself only recognizes the exact field `Connection: close`. But the field is a list of options in any
/// letter case (RFC 9110 §7.6.1), and a connection with HTTP/1.0 closes after each response (RFC 9112 §9.3), whose body
/// must not be chunked (§6.1).
final class ConnectionClosing: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  /// The latest request.
  private var version = HTTPVersion.http1_1
  private var isLast = false

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .head(var head) = unwrapInboundIn(data) else { return context.fireChannelRead(data) }
    version = head.version
    let isOld = (version.major, version.minor) < (1, 1)
    isLast = isOld || !head.isKeepAlive
    if isLast { head.headers.replaceOrAdd(name: "connection", value: "close") }
    context.fireChannelRead(wrapInboundOut(.head(head)))
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard isLast, case .head(var head) = unwrapOutboundIn(data) else {
      return context.write(data, promise: promise)
    }
    head.headers.replaceOrAdd(name: "connection", value: "close")
    if version == .http1_0 { head.version = version }
    context.write(wrapOutboundOut(.head(head)), promise: promise)
  }
}
