public import Foundation
import Hummingbird
public import Logging
import NIOCore
import NIOPosix
public import ReelCore
public import ReelManifest

/// Serves a presentation as HLS over HTTP/1.1, to any player on this machine or its network.
///
/// | path | answer |
/// |---|---|
/// | `/`, `/master.m3u8` | the multivariant playlist |
/// | `/media/video-0/index.m3u8` | the media playlist of a track |
/// | `/media/video-0/init-0.mp4`, `…/12.m4s`, `…/file-0.mp4` | media |
///
/// Playlists are its own. Media is redirected to where it is (302), or passed through: where it is asked for, and always
/// where the client could not go there by itself (`file:`, `data:`). What is passed through is read from its origin
/// no faster than the client reads; single ranges are served (206, 416), and a client that leaves ends the request to
/// the origin. Any page may read it (CORS). What is not of the presentation is 404, whatever a path or a query says; an
/// origin that fails is 502, one that is too slow 504, with a line of text.
///
/// A page whose media is redirected needs CORS from the origin as well, and `crossorigin` on its element; one whose
/// media is passed through needs neither.
public final class Gateway: Sendable {
  /// Where a player begins: the multivariant playlist, with 127.0.0.1 for a gateway that listens on all addresses.
  public let url: URL
  public let port: Int

  private let group: MultiThreadedEventLoopGroup
  private let server: Task<Void, any Error>

  private init(url: URL, port: Int, group: MultiThreadedEventLoopGroup, server: Task<Void, any Error>) {
    self.url = url
    self.port = port
    self.group = group
    self.server = server
  }

  /// Begins to serve `hls`. `fetcher` gets what is passed through.
  ///
  /// Throws `ReelError`: `usage` for a port or host that is none, `network` where the address can't be had.
  public static func start(
    _ hls: VirtualHLS, configuration: Configuration = Configuration(), fetcher: any Fetching,
    logger: Logger = Logger(label: "reel.gateway")
  ) async throws -> Gateway {
    let address = "\(configuration.host):\(configuration.port)"
    guard (0...65_535).contains(configuration.port) else {
      throw ReelError(.usage, "\(configuration.port) is no port", at: address, advice: "0 is for a free one")
    }
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let (ports, port) = AsyncStream<Int?>.makeStream()
    let routes = GatewayRoutes(
      hls: hls, isProxy: configuration.isProxy, fetcher: fetcher, logger: logger,
      playlists: PlaylistCache(hls))
    let application = Application(
      router: routes.router,
      server: .http1(
        configuration: .init(
          additionalChannelHandlers: [ClientConnection()], idleTimeout: .seconds(60))),
      configuration: ApplicationConfiguration(
        address: .hostname(configuration.host, port: configuration.port)),
      onServerRunning: { port.yield($0.localAddress?.port) },
      eventLoopGroupProvider: .shared(group), logger: Self.silent(logger))
    let server = Task {
      defer { port.finish() }
      try await application.run()
    }
    let bound = await withTaskCancellationHandler {
      await ports.first { _ in true }
    } onCancel: {
      server.cancel()
    }
    if let bound = bound.flatMap({ $0 }),
      let url = URL.server(host: configuration.host, port: bound, path: "master.m3u8")
    {
      if !Task.isCancelled { return Gateway(url: url, port: bound, group: group, server: server) }
    }
    server.cancel()
    let outcome = await server.result
    try? await group.shutdownGracefully()
    try Task.checkCancellation()
    if case .failure(let error) = outcome, error is IOError {
      throw ReelError(
        .network, "can't listen: \(text(error))", at: address,
        advice: "choose another port, or 0 for a free one")
    }
    throw ReelError(.usage, "\(configuration.host) is no host to listen on", at: address)
  }

  /// Closes all connections and stops listening; nothing of it is left when it returns. Further calls do nothing.
  public func stop() async {
    server.cancel()
    _ = await server.result
    try? await group.shutdownGracefully()
  }

  // MARK: - Private

  /// What the server tells of itself is thrown, returned or logged here: it has no lines of its own.
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
