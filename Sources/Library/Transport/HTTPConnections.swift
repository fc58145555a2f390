import AsyncHTTPClient
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPCompression
import NIOPosix
import NIOSSL
internal import ReelCore

/// HTTP clients with their connections: those that the fetchers of the process share, or those of one fetcher.
///
/// There is one client, with one pool of connections for each host, for each combination of connect time-out, proxy,
/// trust and HTTP versions, because AsyncHTTPClient takes these only when a client is created. A client that is
/// deinitialised without a shutdown traps.
///
/// AsyncHTTPClient 1.37 may trap if the connections of a host change between HTTP/2 and HTTP/1.1. A host that has done
/// so is therefore asked for HTTP/1.1 alone, by a client of its own. The change shows in a response, or earlier, in a
/// new connection to the same address (`NegotiatedVersions`).
final class HTTPConnections: Sendable {
  /// The connections that fetchers share.
  static let shared = HTTPConnections()

  /// The maximum size of a decompressed response.
  static let maximumInflatedByteCount = 64 << 20

  /// Per connection, the number and size of the buffers for its next reads, which are kept while it waits.
  /// NIO's defaults, 4 of 64 KiB, would be most of a player's memory apart from its media.
  private static let readCount: UInt = 1
  private static let readByteCount = 8 << 10

  private struct Kind: Hashable {
    var connectTimeout: Duration
    var proxy: HTTPProxies.Proxy?
    /// Nil for connections without TLS: their client need not read the certificates.
    var trust: ServerTrust?
    var isHTTP1Only: Bool
  }

  private struct State {
    var clients: [Kind: HTTPClient] = [:]
    /// Whether the responses of a server with TLS came over HTTP/2.
    var speaksHTTP2: [ServerAddress: Bool] = [:]
    /// The servers that have changed the version.
    var changing: Set<ServerAddress> = []
  }

  private let state = Locked(State())

  deinit {
    // Each transfer keeps these clients, so none is cut off. The call returns at once. AsyncHTTPClient frees the
    // memory of an idle connection (8 kB, 70 kB with TLS) only when its idle time of 60 s has passed.
    for client in state.withLock({ $0.clients.values }) { client.shutdown { _ in } }
  }

  /// Returns the client for requests to a URL.
  func client(for url: URL, _ configuration: TransportConfiguration) -> HTTPClient {
    let server = ServerAddress(url)
    let trust = server?.isSecure == true ? configuration.trust : nil
    // Not under the lock: it takes one itself, and may read a file.
    let tls = trust?.tlsConfiguration
    return state.withLock { state in
      let kind = Kind(
        connectTimeout: configuration.connectTimeout, proxy: configuration.proxies.proxy(for: url),
        trust: trust,
        // A client that may find HTTP/2 opens one connection, and others once it knows the version.
        isHTTP1Only: server.map { !$0.isSecure || state.changing.contains($0) } ?? false)
      if let client = state.clients[kind] { return client }
      let client = Self.makeClient(kind, tls)
      state.clients[kind] = client
      return client
    }
  }

  /// Notes the version of a response from the server of `url`.
  func record(_ version: HTTPVersion, of url: URL) {
    guard let server = ServerAddress(url), server.isSecure else { return }
    state.withLock { state in
      let isHTTP2 = version.major >= 2
      if state.speaksHTTP2.updateValue(isHTTP2, forKey: server) == !isHTTP2 { state.changing.insert(server) }
    }
  }

  /// Notes that a new connection to the server of `url` has another version than earlier ones.
  func recordChange(of url: URL) {
    guard let server = ServerAddress(url) else { return }
    state.withLock { _ = $0.changing.insert(server) }
  }

  /// Opens `count` connections in addition to those in use, or takes idle ones instead.
  ///
  /// AsyncHTTPClient's own `preWarmedHTTP1ConnectionCount` is not used: with it a pool opens an idle connection
  /// again whenever a server closes it, endlessly and without a pause, and it begins only when the first
  /// connection is open. Here a request that is never sent (`ConnectionMonitor` answers it instead of the
  /// server) takes a connection from the pool like any other, and leaves it there for the next.
  ///
  /// - Returns: A closure that cancels these requests. Call it before the next requests: one that still waits
  ///   for its connection would precede them, and make the pool open more. The connection is opened
  ///   nevertheless.
  static func openAhead(
    _ count: Int, for url: URL, on client: HTTPClient, logger: Logger
  ) -> @Sendable () -> Void {
    let headers: HTTPHeaders = [ConnectionMonitor.aheadField: "1"]
    guard count > 0, let request = try? HTTPClient.Request(url: url, headers: headers) else { return {} }
    // The results of these requests are ignored. If they fail, the next request opens its own connection and
    // reports the reason if it can't.
    let tasks = (0..<count).map { _ in
      client.execute(request: request, delegate: IgnoredResponse(), logger: logger)
    }
    return { for task in tasks { task.cancel() } }
  }

  /// Runs `body` once on each thread that serves connections.
  static func onEachThread(_ body: @escaping @Sendable () -> Void) {
    for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() { loop.execute(body) }
  }

  // MARK: - Private

  private static func makeClient(_ kind: Kind, _ tls: TLSConfiguration?) -> HTTPClient {
    var configuration = HTTPClient.Configuration()
    if kind.isHTTP1Only { configuration.httpVersion = .http1Only }
    let versions = NegotiatedVersions()
    configuration.redirectConfiguration = .disallow
    configuration.timeout = .init(connect: .nanoseconds(kind.connectTimeout.nanoseconds))
    configuration.tlsConfiguration = tls
    if let proxy = kind.proxy {
      let authorization = proxy.credentials.map {
        HTTPClient.Authorization.basic(credentials: Data($0.utf8).base64EncodedString())
      }
      configuration.proxy =
        authorization.map { .server(host: proxy.host, port: proxy.port, authorization: $0) }
        ?? .server(host: proxy.host, port: proxy.port)
    }
    // A limit would make requests wait for each other; callers limit how much they fetch at a time. A resting
    // preload keeps its connection with an unread body, and no item may have to wait for it.
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 4096
    // Otherwise a refused connection would be retried until the connect time-out. Retries are up to
    // `RetryPolicy`.
    configuration.connectionPool.retryConnectionEstablishment = false
    configuration.decompression = .enabled(limit: .size(maximumInflatedByteCount))
    // These are called on the event loop of the channel. They add the handlers at once: AsyncHTTPClient traps if
    // the server closes the connection, or breaks the protocol, while it waits for them.
    configuration.http1_1ConnectionDebugInitializer = { channel in
      channel.eventLoop.makeCompletedFuture {
        try versions.check(channel, isHTTP2: false)
        if let options = channel.syncOptions {
          try options.setOption(.maxMessagesPerRead, value: readCount)
          try options.setOption(
            .recvAllocator,
            value: AdaptiveRecvByteBufferAllocator(
              minimum: 1024, initial: 4096, maximum: readByteCount))
        }
        _ = try addMonitor(to: channel, on: ConnectionGuard.addToHTTP1(channel), openedAt: .now)
      }
    }
    configuration.http2ConnectionDebugInitializer = { channel in
      channel.eventLoop.makeCompletedFuture {
        try versions.check(channel, isHTTP2: true)
        try ConnectionGuard.addToHTTP2(channel)
      }
    }
    configuration.http2StreamChannelDebugInitializer = { channel in
      channel.eventLoop.makeCompletedFuture {
        guard let parent = channel.parent else { throw ChannelError.ioOnClosedChannel }
        let connection = try parent.pipeline.syncOperations.handler(type: ConnectionGuard.self)
        let monitor = try addMonitor(to: channel, on: connection, openedAt: nil)
        channel.closeFuture.assumeIsolated().whenComplete { _ in
          if !monitor.hasSent { ConnectionGuard.releaseUnsentStream(of: parent) }
        }
      }
    }
    return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
  }

  private static func addMonitor(
    to channel: any Channel, on connection: ConnectionGuard, openedAt: ContinuousClock.Instant?
  ) throws -> ConnectionMonitor {
    let pipeline = channel.pipeline.syncOperations
    let decompressor = try pipeline.handler(type: NIOHTTPResponseDecompressor.self)
    let monitor = ConnectionMonitor(on: connection, openedAt: openedAt)
    try pipeline.addHandler(monitor, position: .before(decompressor))
    return monitor
  }
}

/// The HTTP versions of the TLS connections of one client, by the address of the server or proxy.
private final class NegotiatedVersions: Sendable {
  private let isHTTP2 = Locked<[SocketAddress: Bool]>([:])

  /// Call it on the event loop of a new connection.
  ///
  /// - Throws: `TransferFailure.versionChanged`, and closes the connection, if the first one to its address had another
  ///   version.
  func check(_ channel: any Channel, isHTTP2 isNew: Bool) throws {
    guard (try? channel.pipeline.syncOperations.context(handlerType: NIOSSLClientHandler.self)) != nil,
      let address = channel.remoteAddress
    else { return }
    let first = isHTTP2.withLock { known in
      let first = known[address] ?? isNew
      known[address] = first
      return first
    }
    guard first != isNew else { return }
    // AsyncHTTPClient first takes the error.
    channel.eventLoop.execute { channel.close(promise: nil) }
    throw TransferFailure.versionChanged
  }
}

/// Discards a response.
private final class IgnoredResponse: HTTPClientResponseDelegate {
  func didFinishRequest(task: HTTPClient.Task<Void>) {}
}

extension Duration {
  /// The duration in nanoseconds, at most `Int64.max`.
  var nanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    guard !overflow else { return seconds < 0 ? .min : .max }
    let (sum, carry) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
    return carry ? .max : sum
  }
}

/// A handler in each connection, between the HTTP parser and the decompressor. It sees data that
/// AsyncHTTPClient does not report: the bytes of a body before decompression, and whether the connection
/// existed before its request.
///
/// If a server closes a connection in the middle of a body with a stated length, the body ends here: the bytes
/// before are delivered, and the reader knows that some are missing. AsyncHTTPClient would fail the request and
/// drop an arbitrary number of the last bytes. It still does so after a reset (RST).
///
/// It passes on what the parser takes only in the order that AsyncHTTPClient expects, which traps otherwise: a head
/// with a status of at least 200, then its body and an end, once for each request.
///
/// It also answers the requests of `HTTPConnections.openAhead` itself, and fails those that must not be sent to the
/// address of the connection (`TransportFetcher.Admission`).
final class ConnectionMonitor: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias InboundOut = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  /// Marks a request that must not be sent.
  static let aheadField = "reel-open-ahead"

  /// The maximum number of interim responses (RFC 9110 §15.2) before a response.
  private static let interimCount = 64

  private enum Stage {
    /// No request has been sent, or its response is complete.
    case idle
    case awaitingHead(interimCount: Int)
    /// - isCounted: True if the body is complete only if it has its stated length (RFC 9112 §8).
    case inBody(isCounted: Bool)
    /// The server has broken the protocol.
    case failed
  }

  private let connection: ConnectionGuard
  /// When the connection was opened; nil for a stream of an HTTP/2 connection.
  private let openedAt: ContinuousClock.Instant?
  /// The outcome of the current request if it is not sent: an empty answer, or an error.
  private var unsent: Result<Void, any Error>?
  /// True once a request has been sent.
  private(set) var hasSent = false
  private var receipt: AnswerReceipt?
  private var stage = Stage.idle

  init(on connection: ConnectionGuard, openedAt: ContinuousClock.Instant?) {
    self.connection = connection
    self.openedAt = openedAt
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch (unwrapInboundIn(data), stage) {
    case (.head(let head), .awaitingHead(let count)):
      let status = head.status.code
      switch status {
      case 200...:
        stage = .inBody(isCounted: openedAt != nil && head.statesBodyLength)
      case 100, 102..<200:
        guard count < Self.interimCount else {
          return fail("more than \(Self.interimCount) interim responses", context)
        }
        stage = .awaitingHead(interimCount: count + 1)
        return
      // 101 would need a request for another protocol (RFC 9110 §15.2.2).
      default:
        return fail("unexpected status \(status)", status: Int(status), context)
      }
    case (.body(let buffer), .inBody):
      receipt?.add(buffer.readableBytes)
    case (.end, .inBody):
      receipt = nil
      stage = .idle
    case (_, .failed):
      return
    case (.head, _), (.body, _), (.end, _):
      return fail("the server sent parts of a response out of order", context)
    }
    connection.recordProgress()
    context.fireChannelRead(data)
  }

  func channelInactive(context: ChannelHandlerContext) {
    endCountedBody(context)
    receipt = nil
    if let fault = connection.streamFault { context.fireErrorCaught(fault) }
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if let error = error as? HTTPParserError, error == .invalidEOFState, endCountedBody(context) { return }
    context.fireErrorCaught(connection.explained(error))
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    var data = data
    if case .head(var head) = unwrapOutboundIn(data) {
      receipt = AnswerReceipt.detach(from: &head.headers, openedAt: openedAt)
      unsent =
        head.headers.contains(name: Self.aheadField) ? .success(()) : receipt?.refusal(for: context.channel)
      if unsent == nil {
        hasSent = true
        stage = .awaitingHead(interimCount: 0)
      }
      data = wrapOutboundOut(.head(head))
    }
    guard let outcome = unsent else {
      context.write(data, promise: promise)
      return
    }
    promise?.succeed()
    if case .end = unwrapOutboundIn(data) {
      unsent = nil
      // Not from within the write: the writing handler accepts a response only after the write has returned.
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      let isStream = openedAt == nil
      context.eventLoop.execute {
        switch outcome {
        case .success:
          let head = HTTPResponseHead(version: .http1_1, status: .noContent)
          bound.value.fireChannelRead(Self.wrapInboundOut(.head(head)))
          bound.value.fireChannelRead(Self.wrapInboundOut(.end(nil)))
          bound.value.fireChannelReadComplete()
          if isStream { bound.value.close(promise: nil) }
        // AsyncHTTPClient closes the stream or connection.
        case .failure(let error): bound.value.fireErrorCaught(error)
        }
      }
    }
  }

  // MARK: - Private

  private func fail(_ reason: String, status: Int? = nil, _ context: ChannelHandlerContext) {
    stage = .failed
    context.fireErrorCaught(TransferFailure.malformed(reason: reason, status: status))
  }

  /// - Returns: True if a body was incomplete.
  @discardableResult
  private func endCountedBody(_ context: ChannelHandlerContext) -> Bool {
    guard case .inBody(isCounted: true) = stage else { return false }
    stage = .idle
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
