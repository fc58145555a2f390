public import Foundation
import HummingbirdCore
public import Logging
import NIOCore
import NIOPosix
public import ReelCore
public import ReelManifest

/// An HTTP/1.1 server that offers a presentation as HLS, to any player on this machine or its network.
///
/// | path | answer |
/// |---|---|
/// | `/`, `/master.m3u8` | the multivariant playlist |
/// | `/media/video-0/index.m3u8` | the media playlist of a track |
/// | `/media/video-0/init-0.mp4`, `…/12.m4s`, `…/file-0.mp4` | media |
///
/// The gateway generates the playlists. It redirects requests for media to the origin (302), or relays the media. It
/// always relays media that a client can't reach by itself (`file:`, `data:`).
///
/// - Relayed media is read from the origin no faster than the client reads it. Single ranges are supported (206, 416).
///   The request to the origin ends when the client disconnects.
/// - A path outside of the presentation is answered with 404. If the origin fails, the answer is 502, or 504 after a
///   time-out, with a line of text.
/// - Web pages of any origin may read the answers (CORS). If media is redirected, its origin must allow CORS as well,
///   and the page must set `crossorigin` on its media element.
public final class Gateway: Sendable {
  /// The URL of the multivariant playlist, for a player. Its host is 127.0.0.1 if the gateway listens on all addresses.
  public let url: URL
  /// The port that the gateway listens on.
  public let port: Int

  private let group: MultiThreadedEventLoopGroup
  private let server: Task<Void, any Error>

  private init(url: URL, port: Int, group: MultiThreadedEventLoopGroup, server: Task<Void, any Error>) {
    self.url = url
    self.port = port
    self.group = group
    self.server = server
  }

  /// Starts a gateway and returns once it listens.
  ///
  /// - Parameters:
  ///   - hls: The playlists to serve.
  ///   - configuration: The address to listen on, and how to deliver media.
  ///   - fetcher: Fetches relayed media, and finds the first reachable URL of media with several.
  ///   - logger: Receives requests for media and failures of origins at level `debug`.
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
    let (ports, port) = AsyncStream<Int?>.makeStream()
    let routes = GatewayRoutes(
      hls: hls, isProxy: configuration.isProxy, fetcher: fetcher, logger: logger,
      playlists: PlaylistCache(hls))
    let server = Server(
      childChannelSetup: HTTP1Channel(
        responder: routes.respond,
        configuration: .init(additionalChannelHandlers: [ClientConnection()], idleTimeout: .seconds(60))),
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
      if !Task.isCancelled { return Gateway(url: url, port: bound, group: group, server: running) }
    }
    running.cancel()
    let outcome = await running.result
    try? await group.shutdownGracefully()
    try Task.checkCancellation()
    if case .failure(let error) = outcome, error is IOError {
      throw ReelError(
        .network, "can't listen: \(text(error))", at: address,
        advice: "choose another port, or 0 for any free port")
    }
    throw ReelError(.usage, "\(configuration.host) is not a host to listen on", at: address)
  }

  /// Stops listening and closes all connections. When it returns, all resources are released. Further calls do nothing.
  public func stop() async {
    server.cancel()
    _ = await server.result
    try? await group.shutdownGracefully()
  }

  // MARK: - Private

  /// Silences the server's own log: the gateway throws, returns or logs all that matters itself.
  private static func silent(_ logger: Logger) -> Logger {
    var logger = logger
    logger.logLevel = .critical
    return logger
  }

  private static func text(_ error: any Error) -> String {
    guard let error = error as? IOError else { return String(describing: error) }
    return String(cString: strerror(error.errnoCode)).lowercased()
  }
}
