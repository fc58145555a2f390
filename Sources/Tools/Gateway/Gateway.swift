public import Foundation
import HummingbirdCore
public import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
public import ReelCore
import ReelManifest
public import ReelSources
public import ServiceLifecycle

/// An HTTP/1.1 server that offers a presentation as HLS, to any player on this machine or its network.
///
/// | path | answer |
/// |---|---|
/// | `/`, `/master.m3u8` | the multivariant playlist |
/// | `/media/video-0/index.m3u8` | the media playlist of a track |
/// | `/media/video-0/12.m4s` and others | media and keys, as the playlists name them |
///
/// The gateway generates the playlists. It redirects requests for media to the origin (302), or relays the media, or names
/// the origin in the playlists (`Delivery`). It always relays media that a client can't reach by itself (`file:`, `data:`),
/// and media that it decrypts.
///
/// - Relayed media is read from the origin no faster than the client reads it. Single ranges are supported (206, 416).
///   The request to the origin ends when the client disconnects.
/// - Before a live presentation has begun, everything is answered with 503 and Retry-After.
/// - A path outside of the presentation is answered with 404. If the origin fails, the answer is 502, or 504 after a
///   time-out, with a line of text.
/// - Web pages of any origin may read the answers (CORS). If media is redirected, its origin must allow CORS as well,
///   and the page must set `crossorigin` on its media element.
///
/// It serves from `start` on until `stop()` or the end of `run()`, also if nothing refers to it any more. It is also a
/// `Service` of swift-service-lifecycle, for a program that runs it in a `ServiceGroup`.
public final class Gateway: Sendable, Service {
  /// The URL of the multivariant playlist, for a player. Its host is 127.0.0.1 if the gateway listens on all addresses: for
  /// other devices, put this machine's address in its place.
  public let url: URL
  /// The port that the gateway listens on.
  public let port: Int

  private let playlists: GatewayPlaylists
  private let group: MultiThreadedEventLoopGroup
  private let server: Task<Void, any Error>

  private init(
    url: URL, port: Int, playlists: GatewayPlaylists, group: MultiThreadedEventLoopGroup,
    server: Task<Void, any Error>
  ) {
    self.url = url
    self.port = port
    self.playlists = playlists
    self.group = group
    self.server = server
  }

  /// Reads a presentation of HLS or DASH, on demand or live, starts a gateway for it, and returns once it listens.
  ///
  /// - Parameters:
  ///   - source: The URL of the manifest.
  ///   - configuration: The address to listen on, and how to deliver media.
  ///   - fetcher: Fetches relayed media and the manifests, those of a live presentation for as long as a client asks.
  ///   - loading: The header fields and limits of the requests. Its `keyProvider` is not used: pass `decryption`.
  ///   - decryption: Decrypts the media whose keys it has; nil for none. Decrypted media is relayed, never redirected.
  ///   - logger: The same as in `start(_:configuration:fetcher:logger:)`, which also takes a `VirtualHLS`: create one to get
  ///     its warnings, or to limit the bit rate.
  /// - Throws: `ReelError` of `VirtualHLS.init(url:fetcher:configuration:)`, or of kind `usage` for an invalid host or port,
  ///   or `network` if the address can't be bound; `CancellationError`.
  public static func start(
    _ source: URL, configuration: Configuration = Configuration(), fetcher: any Fetching,
    loading: LoadingConfiguration = LoadingConfiguration(), decryption: (any MediaDecrypting)? = nil,
    logger: Logger = Logger(label: "reel.gateway")
  ) async throws -> Gateway {
    try await start(
      VirtualHLS(url: source, fetcher: fetcher, configuration: loading, decryption: decryption),
      configuration: configuration, fetcher: fetcher, logger: logger)
  }

  /// Starts a gateway and returns once it listens.
  ///
  /// - Parameters:
  ///   - hls: The playlists to serve. Those of a live presentation are updated.
  ///   - configuration: The address to listen on, and how to deliver media.
  ///   - fetcher: Fetches relayed media, and finds the first reachable URL of media with several.
  ///   - logger: Receives requests for media and failures of origins at level `debug`, and at level `warning` that a live
  ///     manifest can't be read, or media can't be decrypted.
  /// - Throws: `ReelError` of kind `usage` for an invalid host or port, or `network` if the address can't be bound;
  ///   `CancellationError`.
  public static func start(
    _ hls: VirtualHLS, configuration: Configuration = Configuration(), fetcher: any Fetching,
    logger: Logger = Logger(label: "reel.gateway")
  ) async throws -> Gateway {
    let address = "\(configuration.host):\(configuration.port)"
    guard (0...65_535).contains(configuration.port) else {
      throw ReelError(
        .usage, "\(configuration.port) is not a port", at: address, advice: "use 0 for any free port")
    }
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    if hls.tracks.isEmpty {
      logger.warning(
        "the presentation has not begun: clients get 503 until it does",
        metadata: hls.live?.start.map { ["begins": "\($0)"] })
    }
    let (ports, port) = AsyncStream<Int?>.makeStream()
    let playlists = GatewayPlaylists(hls, isDirect: configuration.delivery == .direct, logger: logger)
    let origin = hls.fetcher ?? fetcher
    let routes = GatewayRoutes(
      playlists: playlists, isRelay: configuration.delivery == .relayed, fetcher: origin,
      decrypted: hls.decryption.map { DecryptedMedia(decryption: $0, fetcher: origin, logger: logger) },
      logger: logger)
    let server = Server(
      childChannelSetup: HTTP1Channel(
        responder: routes.respond,
        configuration: .init(additionalChannelHandlers: [ClientConnection()], idleTimeout: .seconds(30))),
      configuration: ServerConfiguration(address: .hostname(configuration.host, port: configuration.port)),
      onServerRunning: { port.yield($0.localAddress?.port) }, eventLoopGroup: group,
      logger: Self.silent(logger))
    let running = Task {
      defer { port.finish() }
      try await server.run()
    }
    let bound = await withTaskCancellationHandler {
      await ports.first { _ in true }
    } onCancel: {
      running.cancel()
    }
    if let bound = bound.flatMap({ $0 }),
      let url = URL.server(host: configuration.host, port: bound, path: "master.m3u8")
    {
      if !Task.isCancelled {
        return Gateway(url: url, port: bound, playlists: playlists, group: group, server: running)
      }
    }
    running.cancel()
    let outcome = await running.result
    try? await group.shutdownGracefully()
    try Task.checkCancellation()
    if case .failure(let error as IOError) = outcome {
      throw ReelError(
        .network, "can't listen: \(ReelError.systemText(error.errnoCode).lowercased())", at: address,
        advice: "choose another port, or 0 for any free port")
    }
    throw ReelError(.usage, "\(configuration.host) is not a host to listen on", at: address)
  }

  /// Stops listening and closes all connections. When it returns, all resources are released. Further calls do nothing.
  public func stop() async {
    server.cancel()
    await playlists.stop()
    _ = await server.result
    try? await group.shutdownGracefully()
  }

  /// Serves until the service group shuts down or the task is cancelled, then stops. Throws if the server fails before.
  public func run() async throws {
    let ended = await cancelWhenGracefulShutdown { [server] in
      await withTaskCancellationHandler {
        await server.result
      } onCancel: {
        server.cancel()
      }
    }
    await stop()
    if !server.isCancelled { try ended.get() }
  }

  // MARK: - Private

  /// Silences the server's own log: the gateway itself throws, returns or logs everything important.
  private static func silent(_ logger: Logger) -> Logger {
    var logger = logger
    logger.logLevel = .critical
    return logger
  }
}

extension Gateway {
  /// The address that a gateway listens on, and how it delivers media.
  public struct Configuration: Sendable, Hashable {
    /// The name or address to listen on, such as `127.0.0.1`, or `0.0.0.0` for all addresses.
    package var host: String
    /// The port to listen on; 0 for any free port.
    package var port: Int
    /// How media that clients can reach (`http`, `https`) gets to them.
    package var delivery: Delivery

    /// Creates a configuration. By default, the gateway listens on any free port for clients on this machine.
    public init(host: String = "127.0.0.1", port: Int = 0, delivery: Delivery = .redirected) {
      self.host = host
      self.port = port
      self.delivery = delivery
    }
  }

  /// How media gets to clients.
  public enum Delivery: Sendable, Hashable {
    /// Playlists name the gateway, which redirects clients to the origin of each segment.
    case redirected
    /// Playlists name the origin. A client keeps its connections to it, and the gateway sees no request for media.
    case direct
    /// The gateway passes all media on. Clients need not reach the origin.
    case relayed
  }
}

/// Watches a client's connection, so that no work continues after a client has disconnected.
///
/// A client that only closes its side may still read, or may be gone. It gets its response, unless an origin
/// delivers nothing for 3 s: then nothing is sent that would show that the client is gone.
final class ClientConnection: ChannelInboundHandler, RemovableChannelHandler, Sendable {
  typealias InboundIn = Any

  private struct State {
    var isClosed = false
    /// True if the client sends nothing more.
    var isHalfClosed = false
    /// Cancels the work for the current request.
    var cancel: (@Sendable () -> Void)?
    /// The number of operations so far.
    var count = 0
  }

  /// The maximum time that a client that has closed its side waits for an origin.
  private static let patience = Duration.seconds(3)

  private let state = Locked(State())

  func handlerAdded(context: ChannelHandlerContext) {
    let pipeline = context.pipeline.syncOperations
    guard let decoder = try? pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self) else {
      return
    }
    try? pipeline.addHandler(ConnectionClosing(), position: .after(decoder))
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed? = event as? ChannelEvent {
      let operation = state.withLock { state in
        state.isHalfClosed = true
        return state.cancel == nil ? nil : state.count
      }
      if let operation { cancelLater(operation) }
    }
    context.fireUserInboundEventTriggered(event)
  }

  func channelInactive(context: ChannelHandlerContext) {
    let cancel = state.withLock { state in
      state.isClosed = true
      let cancel = state.cancel
      state.cancel = nil
      return cancel
    }
    cancel?()
    context.fireChannelInactive()
  }

  /// Runs `operation`, and cancels it when the connection closes. One at a time: requests of a connection are answered
  /// one after the other.
  func whileOpen<Result: Sendable>(
    _ operation: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    let task = Task(operation: operation)
    let (isClosed, isHalfClosed, count) = state.withLock { state in
      if !state.isClosed { state.cancel = { task.cancel() } }
      state.count += 1
      return (state.isClosed, state.isHalfClosed, state.count)
    }
    if isClosed { task.cancel() }
    if isHalfClosed { cancelLater(count) }
    defer { state.withLock { $0.cancel = nil } }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }

  // MARK: - Private

  /// Cancels an operation unless it ends in time.
  private func cancelLater(_ operation: Int) {
    Task {
      try? await Task.sleep(for: Self.patience)
      state.withLock { $0.count == operation ? $0.cancel : nil }?()
    }
  }
}

/// Determines the last request of a connection, and marks it and its response as such.
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
