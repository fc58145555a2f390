public import Foundation
public import HTTPTypes
public import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import ReelCore
@_exported public import ReelSimulation

/// An HTTP/1.1 server for tests, benchmarks and `reel serve`, with an optional modelled link and optional faults.
///
/// It serves files, responses in memory, and generated responses (`DynamicResource`).
///
/// It answers GET, HEAD and OPTIONS, keeps connections alive, and supports single ranges (206, 416) and conditional
/// requests (304, `If-Range`): each resource has an entity tag, and a file has `Last-Modified`. It derives the media type
/// from the file extension, and allows web pages of any origin to read the answers (CORS). A path can't leave the
/// directory, neither by `..` nor by a symbolic link. Files are read as they are sent. A request for a directory gives
/// 404. A connection on which no request arrives for 30 s, or only a part of one, is closed.
///
/// ## The modelled link
///
/// With a `LinkSpec`, all connections of the origin share one bottleneck to the clients:
///
/// - **Rate.** Heads and bodies are sent as packets of at most 1,448 bytes, one after the other. Answers with bytes to
///   send take turns. A packet is written to its connection when its last bit would have arrived at `bitsPerSecond`.
///   The overhead of TCP and IP is not counted.
/// - **Round trip.** A new connection takes one round trip before its first request is handled. The first byte of an
///   answer can be sent one round trip after the request was handled, on new and on open connections: half of it is for
///   the request, half for the answer. So the first byte arrives two round trips after a client starts to connect, and
///   one round trip after a request over an open connection.
/// - Requests use none of the rate. There is **no slow start**, no loss and no jitter: a new connection can use the
///   full rate from its first byte. The options `jitter`, `tcp`, `tls` and `dns` of a link are ignored.
/// - When a client closes its connection, the bytes queued for it leave the link at once. A client that does not read
///   yields its turns to the others.
public final class Origin: Sendable {
  /// The URL `http://HOST:PORT/`. Its host is 127.0.0.1 if the origin listens on all addresses.
  package let baseURL: URL
  /// The port that the origin listens on.
  public let port: Int

  /// The limit of unsent bytes in the system's send buffer. Without it, megabytes can wait there, and are lost when a
  /// client ends a transfer.
  private static let unsentByteCount = 128 << 10

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

  /// Starts an origin and returns once it listens.
  ///
  /// - Parameters:
  ///   - configuration: The resources, the address, the link and the faults.
  ///   - logger: Receives requests and failed connections at level `debug`.
  /// - Throws: `ReelError` of kind `noSuchFile` if the directory does not exist, `network` if the address can't be
  ///   bound, or `usage` for an invalid host.
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
    // All connections share one event loop, so the state of the link needs no lock. The loop has its own thread, so
    // clients in the same process do not delay its timers.
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let loop = group.next()
    let connections = ConnectionList()
    let address = "\(configuration.host):\(configuration.port)"
    let noHost = ReelError(.usage, "\(configuration.host) is not a host to listen on", at: address)
    do {
      let shaper = try await loop.submit {
        NIOLoopBound(
          configuration.link.map { LinkShaper($0, loop: loop) }, eventLoop: loop)
      }.get()
      let listener = try await ServerBootstrap(group: group)
        .serverChannelOption(.backlog, value: 1_024)
        .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .serverChannelInitializer { listener in
          listener.eventLoop.makeCompletedFuture {
            // At the limit of open files, the next connection is accepted after a pause.
            try listener.pipeline.syncOperations.addHandler(
              AcceptBackoffHandler(shouldForwardIOErrorCaught: false))
          }
        }
        .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
        .childChannelOption(.tcpOption(.init(rawValue: TCP_NOTSENT_LOWAT)), value: Self.unsentByteCount)
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
      else { throw noHost }
      return Origin(
        baseURL: baseURL, port: port, state: state, group: group, listener: listener, connections: connections
      )
    } catch {
      try? await group.shutdownGracefully()
      guard let error = error as? IOError else { throw noHost }
      throw ReelError(
        .network, "can't listen: \(ReelError.systemText(error.errnoCode).lowercased())", at: address,
        advice: "choose another port, or 0 for any free port")
    }
  }

  /// Stops listening and closes all connections. Further calls do nothing.
  public func stop() async {
    try? await listener.close()
    connections.closeAll()
    try? await group.shutdownGracefully()
  }

  /// Returns the URL of a path. Characters are percent-encoded as needed.
  public func url(_ path: String) -> URL {
    baseURL.appending(path: path.drop { $0 == "/" })
  }

  /// The requests so far, in order of arrival.
  public var requestLog: [RequestRecord] { state.snapshot.requests }

  /// The requests and connections so far.
  package var snapshot: Snapshot { state.snapshot }

  /// Suspends until `condition` holds, or the task is cancelled.
  ///
  /// - Parameter condition: Evaluated now and after every change, under a lock: it must not block or use the origin.
  /// - Returns: The snapshot that met the condition, or the current one after cancellation.
  @discardableResult
  public func wait(until condition: @escaping @Sendable (Snapshot) -> Bool) async -> Snapshot {
    await state.wait(until: condition)
  }

  /// Serves `response` from now on under `path`, percent-decoded with its leading slash; nil removes the route.
  public func setRoute(_ path: String, _ response: Response?) {
    state.setRoute(path, response)
  }

  /// Replaces all fault rules; counts start again.
  public func setFaults(_ faults: [FaultRule]) {
    state.setFaults(faults)
  }
}

extension Origin {
  /// The resources that an origin serves, the address that it listens on, and its link and faults.
  public struct Configuration: Sendable {
    /// The directory whose files are served; nil for none.
    package var directory: URL?
    /// Responses in memory, by percent-decoded path with its leading slash. They take precedence over `resources` and
    /// files.
    package var routes: [String: Response]
    /// Resources that generate their responses. The first one with a response for a path applies. They take precedence
    /// over files.
    package var resources: [any DynamicResource]
    /// The name or address to listen on.
    package var host: String
    /// The port to listen on; 0 for any free port.
    package var port: Int
    /// The modelled link between the origin and its clients; nil for no limit.
    package var link: LinkSpec?
    /// The faults. The first rule that matches a request and is not used up applies.
    package var faults: [FaultRule]
    /// False to ignore ranges and always send the whole resource.
    package var supportsRanges: Bool
    /// The time from the start of a connection, or the end of a response, until the next request has arrived whole.
    package var requestLimit = Duration.seconds(30)
    /// Returns the path of the resource that a request's decoded path means. Faults and resources are found by it, and
    /// `RequestRecord.path` is it.
    package var resourcePath: @Sendable (_ path: String) -> String = { $0 }
    /// Returns the folder, and a path below it, of the file for a path; nil for none. Replaces `directory`.
    package var file: (@Sendable (_ path: String) -> (folder: URL, path: String)?)?
    /// Answers a POST request with a body of at most `postLimit` bytes; nil to refuse its path. Without it, POST is refused.
    /// Called on the event loop, as `observer`.
    package var receiver: (@Sendable (_ request: RequestRecord, _ body: [UInt8]) -> Response?)?
    /// Receives each request when its answer has ended, sent completely or not. The log then stays empty.
    package var observer: (@Sendable (RequestRecord) -> Void)?
    /// The maximum number of bytes of a POST request's body.
    package static let postLimit = 64_000

    /// Creates a configuration. By default, the origin listens on any free port of this machine and serves nothing.
    public init(
      directory: URL? = nil, routes: [String: Response] = [:], resources: [any DynamicResource] = [],
      host: String = "127.0.0.1", port: Int = 0, link: LinkSpec? = nil, faults: [FaultRule] = [],
      supportsRanges: Bool = true
    ) {
      self.directory = directory
      self.routes = routes
      self.resources = resources
      self.host = host
      self.port = port
      self.link = link
      self.faults = faults
      self.supportsRanges = supportsRanges
    }
  }

  /// A response in memory.
  public struct Response: Sendable, Hashable {
    /// The HTTP status. Ranges apply to 200 only; with any other status, all bytes are sent.
    package var status: Int
    /// The body.
    package var bytes: [UInt8]
    /// The media type; nil to derive it from the extension of the path.
    package var contentType: String?
    /// Additional header fields, in place of the origin's of the same names, such as `ETag`. One without a value only
    /// removes those.
    package var headers: HTTPFields

    /// Creates a response from bytes.
    public init(
      _ bytes: [UInt8], contentType: String? = nil, headers: HTTPFields = [:], status: Int = 200
    ) {
      self.status = status
      self.bytes = bytes
      self.contentType = contentType
      self.headers = headers
    }

    /// Creates a response from text in UTF-8.
    public init(
      _ text: String, contentType: String? = nil, headers: HTTPFields = [:], status: Int = 200
    ) {
      self.init(Array(text.utf8), contentType: contentType, headers: headers, status: status)
    }
  }

  /// The requests and connections of an origin up to a point in time.
  public struct Snapshot: Sendable, Hashable {
    /// The requests, in order of arrival.
    public var requests: [RequestRecord] = []
    /// The time at which each connection was accepted, measured from the creation of the origin.
    package var connectionArrivals: [Duration] = []
    /// The number of connections accepted so far.
    public var acceptedConnectionCount: Int { connectionArrivals.count }
    /// The number of connections that are open.
    public var openConnectionCount = 0
  }
}

/// A request that an `Origin` received, and the progress of its answer. Times are measured from the creation of the
/// origin.
public struct RequestRecord: Sendable, Hashable {
  /// The method, such as `GET`.
  public var method: String
  /// The percent-decoded path without the query, or `target` if it can't be decoded.
  public var path: String
  /// The request target as received, with its query.
  package var target: String
  /// The header fields, in order.
  public var headers: HTTPFields
  /// The number of the connection, counted from 1 in order of acceptance.
  package var connection: Int
  /// The address of the client, without its port; nil if unknown.
  package var client: String?
  /// The time at which the request arrived.
  package var arrival: Duration
  /// The time at which the first byte of the answer was written to the connection; nil if none was.
  package var firstByteSent: Duration?
  /// The time at which the last byte was written; nil until then, and always after a `silence`, `stall` or
  /// `reset` fault.
  package var lastByteSent: Duration?
  /// The status of the answer; nil if a `silence` fault withholds it.
  public var status: Int?
  /// The number of bytes of head and body written so far.
  package var bytesSent: Int64 = 0
  /// The number of bytes of the body written so far.
  package var bodyBytesSent: Int64 = 0
  /// True if the last byte of the answer has been written, even if a `close` fault shortened it.
  package var isComplete: Bool { lastByteSent != nil }

  /// The value of the `Range` field; nil without one.
  public var range: String? { header("Range") }

  /// Returns the value of the first header field with a name, without regard to case; nil if there is none.
  public func header(_ name: String) -> String? {
    headers.first { $0.name.canonicalName == name.lowercased() }?.value
  }
}

/// A resource that generates its responses on request, such as a live stream.
public protocol DynamicResource: Sendable {
  /// Returns the current response for `path`, or nil if the path does not belong to the resource.
  ///
  /// The origin calls this once for each GET and HEAD request, on its event loop: a slow call delays all other answers.
  ///
  /// - Parameter path: The percent-decoded path with its leading slash, without the query.
  func response(at path: String) -> Origin.Response?
}
