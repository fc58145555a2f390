public import Foundation
public import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import ReelCore

/// An HTTP/1.1 origin for tests, benchmarks and `reel serve`: files, bytes in memory, and what is made when it
/// is asked for (`DynamicResource`), over a modelled link and with faults where they are wanted.
///
/// It answers GET, HEAD and OPTIONS, keeps connections alive, serves single ranges (206, 416) with
/// `If-Range`, names the media type by the extension, and lets any page read it (CORS). A path can't lead out
/// of the directory, by `..` or by a symbolic link. Files are read as they are sent. A directory is not
/// listed: 404.
///
/// ## The modelled link
///
/// With a `LinkSpec` all connections of the origin share one bottleneck towards the clients:
///
/// - **Rate.** Heads and bodies cross it as packets of at most 1,448 bytes, one after the other, by turns
///   between the answers that have bytes to send. A packet is written to its connection at the moment when
///   its last bit would have crossed at `bitsPerSecond`. The overhead of TCP and IP is not counted.
/// - **Round trip.** A new connection takes one round trip before its first request is heard. The first byte
///   of an answer can cross one round trip after its request was heard, over a fresh connection and a kept
///   one alike: half of it is the way of the request, half that of the answer. So a first byte comes two
///   round trips after a client began to connect, and one after a request over an open connection.
/// - Requests cost no rate. There is **no slow start**, no loss, and no jitter: a new connection has the
///   whole rate from its first byte on.
/// - A client that closes takes what was queued for it off the link at once. One that does not read lets the
///   others have its turns.
public final class Origin: Sendable {
  /// `http://HOST:PORT/`, with 127.0.0.1 for an origin that listens on all addresses.
  public let baseURL: URL
  public let port: Int

  private let state: OriginState
  private let group: MultiThreadedEventLoopGroup
  private let listener: any Channel
  private let connections: ConnectionList

  private init(
    baseURL: URL, port: Int, state: OriginState, group: MultiThreadedEventLoopGroup, listener: any Channel,
    connections: ConnectionList
  ) {
    self.baseURL = baseURL
    self.port = port
    self.state = state
    self.group = group
    self.listener = listener
    self.connections = connections
  }

  /// Begins to listen.
  ///
  /// - Throws: `ReelError`: `noSuchFile` where the directory is none, `network` where the address can't be
  ///   had.
  public static func start(
    _ configuration: Configuration, logger: Logger = Logger(label: "reel.origin")
  ) async throws -> Origin {
    if let directory = configuration.directory {
      let path = directory.path(percentEncoded: false)
      var isDirectory: ObjCBool = false
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), isDirectory.boolValue
      else {
        throw ReelError(.noSuchFile, "no such directory", at: path)
      }
    }
    let state = OriginState(configuration)
    // One loop for all: the link is shared, and its state needs no lock. Of its own, so that clients in the
    // same process do not hold up its timers.
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = group.next()
    let connections = ConnectionList()
    do {
      let shaper = try await loop.submit {
        NIOLoopBound(
          configuration.link.map { LinkShaper(bitsPerSecond: $0.bitsPerSecond, loop: loop) }, eventLoop: loop)
      }.get()
      let listener = try await ServerBootstrap(group: group)
        .serverChannelOption(.backlog, value: 1_024)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
        .childChannelOption(.writeBufferWaterMark, value: .init(low: 64 << 10, high: 256 << 10))
        .childChannelInitializer { channel in
          connections.insert(channel)
          return channel.eventLoop.makeCompletedFuture {
            let decoder = HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes)
            try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(decoder))
            let connection = OriginConnection(state: state, shaper: shaper.value, logger: logger)
            try channel.pipeline.syncOperations.addHandler(connection)
          }
        }
        .bind(host: configuration.host, port: configuration.port).get()
      guard let port = listener.localAddress?.port,
        let baseURL = URL.server(host: configuration.host, port: port, path: "")
      else { throw ReelError(.usage, "\(configuration.host) is no host to listen on") }
      return Origin(
        baseURL: baseURL, port: port, state: state, group: group, listener: listener, connections: connections
      )
    } catch {
      try? await group.shutdownGracefully()
      if error is ReelError { throw error }
      throw ReelError(
        .network, "can't listen: \(Self.text(error))", at: "\(configuration.host):\(configuration.port)",
        advice: "choose another port, or 0 for a free one")
    }
  }

  /// Closes all connections and stops listening. Further calls do nothing.
  public func stop() async {
    try? await listener.close()
    connections.closeAll()
    try? await group.shutdownGracefully()
  }

  /// The URL of a path, which is encoded where it has to be.
  public func url(_ path: String) -> URL {
    baseURL.appending(path: path.drop { $0 == "/" })
  }

  /// The requests so far, in the order in which they came.
  public var requestLog: [RequestRecord] { state.snapshot.requests }

  /// What has happened so far.
  public var snapshot: Snapshot { state.snapshot }

  /// Returns when `condition` holds; it is asked after every change. Returns early where the task is
  /// cancelled.
  ///
  /// - Returns: The state that met the condition, or the present one.
  @discardableResult
  public func wait(until condition: @escaping @Sendable (Snapshot) -> Bool) async -> Snapshot {
    await state.wait(until: condition)
  }

  /// Serves `response` under a path from now on; nil takes it away.
  public func setRoute(_ path: String, _ response: Response?) {
    state.setRoute(path, response)
  }

  /// Takes other faults, with fresh counts.
  public func setFaults(_ faults: [FaultRule]) {
    state.setFaults(faults)
  }

  // MARK: - Private

  private static func text(_ error: any Error) -> String {
    guard let error = error as? IOError else { return String(describing: error) }
    return String(cString: strerror(error.errnoCode)).lowercased()
  }
}
