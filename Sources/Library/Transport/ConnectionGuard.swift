import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOSSL

/// Ends a connection whose server breaks the protocol, or sends bytes without end that carry no response.
///
/// The handler stands next to the network, or to TLS, where it sees bytes. It is needed because NIO reports a
/// connection error of HTTP/2 (RFC 9113 §5.4.1) with a GOAWAY frame, but then reads on, and because it limits
/// neither the frames of unknown types nor what an HTTP/1.1 server sends between the parts of a response.
final class ConnectionGuard: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  /// The maximum number of bytes without a head or a part of a body.
  static let idleByteCount = 256 << 10
  /// The flow control window of a stream, which AsyncHTTPClient sets. As many bytes may still arrive after a stream is
  /// reset, and NIO drops them.
  private static let windowByteCount = 8 << 20

  private enum FrameType {
    static let resetStream = 3
    static let goAway = 7
  }

  private let isHTTP2: Bool
  /// Bytes since the last head or part of a body.
  private var byteCount = 0
  private var hasHeard = false
  /// True if nothing more is read.
  fileprivate private(set) var isOver = false
  /// Why the connection ended, or will end.
  private var fault: TransferFailure?
  /// The stream that this side reset last, because its response is malformed.
  private var resetStream: HTTP2StreamID?

  private init(isHTTP2: Bool) { self.isHTTP2 = isHTTP2 }

  /// Adds the handlers to an HTTP/1.1 connection. Call it on its event loop.
  static func addToHTTP1(_ channel: any Channel) throws -> ConnectionGuard {
    let pipeline = channel.pipeline.syncOperations
    let connection = ConnectionGuard(isHTTP2: false)
    try pipeline.addHandler(connection, position: .before(pipeline.handler(type: HTTPRequestEncoder.self)))
    return connection
  }

  /// Adds the handlers to an HTTP/2 connection. Call it on its event loop.
  static func addToHTTP2(_ channel: any Channel) throws {
    let pipeline = channel.pipeline.syncOperations
    let http2 = try pipeline.handler(type: NIOHTTP2Handler.self)
    let connection = ConnectionGuard(isHTTP2: true)
    try pipeline.addHandler(connection, position: .before(http2))
    try pipeline.addHandler(FrameGuard(connection), position: .after(http2))
  }

  /// Call it for each head and each part of a body.
  func recordProgress() { byteCount = 0 }

  /// Returns why a stream of the connection failed with `error`.
  func explained(_ error: any Error) -> any Error {
    guard let error = error as? NIOHTTP2Errors.StreamClosed else { return error }
    if let fault { return fault }
    let name = error.errorCode.name
    return TransferFailure.connectionLost(
      reason: error.streamID == resetStream
        ? "the response breaks the HTTP/2 protocol (\(name))"
        : "HTTP/2 stream reset by the server (\(name))")
  }

  /// Why the streams of the connection end with it; nil for no other reason than that it was closed.
  var streamFault: TransferFailure? { isHTTP2 ? fault : nil }

  /// Ends the connection because of an error of the server.
  fileprivate func end(_ code: HTTP2ErrorCode, _ channel: any Channel) {
    guard !isOver else { return }
    isOver = true
    fault = .malformed(reason: "the server broke the HTTP/2 protocol: \(code.name)")
    // Not from within a read or write: GOAWAY is still to be sent. The close bypasses TLS, which would wait for the
    // server's answer.
    channel.eventLoop.assumeIsolated().execute {
      guard let tls = try? channel.pipeline.syncOperations.context(handlerType: NIOSSLClientHandler.self)
      else {
        return channel.close(promise: nil)
      }
      tls.close(promise: nil)
    }
  }

  /// Notes that the server will end the connection.
  fileprivate func recordGoAway(_ code: HTTP2ErrorCode) {
    guard fault == nil else { return }
    fault = .connectionLost(reason: "HTTP/2 connection ended by the server (\(code.name))")
  }

  /// Tells AsyncHTTPClient that a stream of an HTTP/2 connection has ended which the server never saw. It counts only
  /// the streams that NIO reports, and would otherwise believe this one open as long as the connection.
  static func releaseUnsentStream(of connection: any Channel) {
    let handler = try? connection.pipeline.syncOperations.context(handlerType: FrameGuard.self)
    handler?.fireUserInboundEventTriggered(
      NIOHTTP2StreamCreatedEvent(
        streamID: .rootStream, localInitialWindowSize: nil, remoteInitialWindowSize: nil))
    handler?.fireUserInboundEventTriggered(StreamClosedEvent(streamID: .rootStream, reason: nil))
  }

  // MARK: - ChannelDuplexHandler

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isOver else { return }
    let bytes = unwrapInboundIn(data)
    if !hasHeard, !isHTTP2, Self.isTLS(bytes) {
      isOver = true
      return context.fireErrorCaught(TransferFailure.unexpectedTLS)
    }
    hasHeard = true
    byteCount += bytes.readableBytes
    // They are passed on first: a single read may have more bytes than the limit, with parts of a body among them.
    context.fireChannelRead(data)
    guard byteCount > Self.idleByteCount, !isOver else { return }
    if isHTTP2 {
      end(.enhanceYourCalm, context.channel)
    } else {
      isOver = true
      context.fireErrorCaught(
        TransferFailure.malformed(
          reason: "the server sent \(Self.idleByteCount) bytes without a response or a part of its body"))
    }
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if isHTTP2, case .byteBuffer(let frame) = unwrapOutboundIn(data) { inspect(frame, context) }
    context.write(data, promise: promise)
  }

  // MARK: - Private

  /// True for the beginning of a TLS alert or handshake message (RFC 8446 §5.1).
  private static func isTLS(_ bytes: ByteBuffer) -> Bool {
    guard let start = bytes.getBytes(at: bytes.readerIndex, length: 2) else { return false }
    return start[1] == 3 && (start[0] == 21 || start[0] == 22)
  }

  /// Looks at a frame that NIO sends: a header of nine bytes, then its payload (RFC 9113 §4.1).
  private func inspect(_ frame: ByteBuffer, _ context: ChannelHandlerContext) {
    let start = frame.readerIndex
    switch frame.getInteger(at: start + 3, as: UInt8.self).map(Int.init) {
    case FrameType.resetStream:
      resetStream = frame.getInteger(at: start + 5, as: Int32.self).map { HTTP2StreamID(max(0, $0)) }
      byteCount -= Self.windowByteCount
    case FrameType.goAway:
      guard let code = frame.getInteger(at: start + 13, as: UInt32.self), code != 0 else { return }
      end(HTTP2ErrorCode(networkCode: Int(code)), context.channel)
    default: break
    }
  }
}

/// Checks the frames and events of an HTTP/2 connection that NIO accepts, but at which AsyncHTTPClient or its codec
/// trap.
private final class FrameGuard: ChannelInboundHandler {
  typealias InboundIn = HTTP2Frame
  typealias InboundOut = HTTP2Frame

  private let connection: ConnectionGuard
  /// The open streams, all of them requests.
  private var streams: Set<HTTP2StreamID> = []
  private var hasOpenedStream = false
  /// Settings for when the next stream is open. AsyncHTTPClient sets its timer for an idle connection once more if the
  /// maximum number of streams changes meanwhile.
  private var laterSettings: HTTP2Frame?

  init(_ connection: ConnectionGuard) { self.connection = connection }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !connection.isOver else { return }
    var frame = unwrapInboundIn(data)
    switch frame.payload {
    case .data(let content) where content.data.readableBytes > 0: connection.recordProgress()
    case .headers(let content):
      connection.recordProgress()
      // Trailers have no status.
      if let status = content.headers.first(where: { $0.name == ":status" })?.value,
        !Self.isValid(status, endsStream: content.endStream)
      {
        return connection.end(.protocolError, context.channel)
      }
    // The client allows none (RFC 9113 §8.4). NIO takes those that come before the server has acknowledged that.
    case .pushPromise: return connection.end(.protocolError, context.channel)
    case .goAway(_, let code, _): connection.recordGoAway(code)
    case .settings(.settings(let settings)):
      frame.payload = .settings(.settings(settings.map(Self.allowingOneStream)))
      if hasOpenedStream, streams.isEmpty {
        laterSettings = frame
        return
      }
    default: break
    }
    context.fireChannelRead(wrapInboundOut(frame))
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    guard !connection.isOver else { return }
    switch event {
    case let event as NIOHTTP2StreamCreatedEvent:
      // Streams of a server have even numbers (RFC 9113 §5.1.1).
      guard !Int(event.streamID).isMultiple(of: 2) else { return }
      streams.insert(event.streamID)
      hasOpenedStream = true
    case let event as StreamClosedEvent:
      // After a malformed promise, NIO reports the end of a stream whose beginning it has not reported.
      guard streams.remove(event.streamID) != nil else { return }
    default: break
    }
    context.fireUserInboundEventTriggered(event)
    // Not from within the write that opens the stream: it would be flushed only at the end of the next read.
    if laterSettings != nil {
      context.eventLoop.assumeIsolated().execute { self.deliverLaterSettings(context) }
    }
  }

  private func deliverLaterSettings(_ context: ChannelHandlerContext) {
    guard !connection.isOver, !streams.isEmpty, context.channel.isActive, let frame = laterSettings
    else { return }
    laterSettings = nil
    context.fireChannelRead(wrapInboundOut(frame))
    context.fireChannelReadComplete()
  }

  /// A server that allows no stream for now gets none, as NIO holds the request back. AsyncHTTPClient must send one, so
  /// that a later limit reaches it.
  private static func allowingOneStream(_ setting: HTTP2Setting) -> HTTP2Setting {
    guard setting.parameter == .maxConcurrentStreams, setting.value == 0 else { return setting }
    return HTTP2Setting(parameter: .maxConcurrentStreams, value: 1)
  }

  /// Three digits (RFC 9110 §15), and no end after an interim response (RFC 9113 §8.1).
  private static func isValid(_ status: String, endsStream: Bool) -> Bool {
    let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
    return status.utf8.count == 3 && status.utf8.allSatisfy(digits.contains)
      && !(endsStream && status.hasPrefix("1"))
  }
}

extension HTTP2ErrorCode {
  /// The name of the code in RFC 9113 §7, such as `PROTOCOL_ERROR`.
  fileprivate var name: String {
    let names = [
      "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
      "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR",
      "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
    ]
    return names.indices.contains(networkCode) ? names[networkCode] : "error \(networkCode)"
  }
}
