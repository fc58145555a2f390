import Foundation
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import ReelCore
import ReelManifest

/// The responses of a gateway, by path.
struct GatewayRoutes: Sendable {
  let hls: VirtualHLS
  let isProxy: Bool
  let fetcher: any Fetching
  let logger: Logger
  let playlists: PlaylistCache
  /// The index, among several locations of the same media, of the one that answered last.
  let location = Locked(0)

  private static let playlistName = "index.m3u8"

  /// Answers a request.
  ///
  /// Throws to close the connection: if the client has disconnected, or if the origin breaks off in the middle of a
  /// response.
  @Sendable
  func respond(
    to request: Request, writer: consuming ResponseWriter, channel: any Channel
  ) async throws {
    let connection = try await channel.pipeline.handler(type: ClientConnection.self).get()
    var response = try await crossOriginResponse(to: request, connection)
    response.headers[.date] = WallTime.now.httpDate
    if request.method == .head { response = response.createHeadResponse() }
    try await response.body.write(try await writer.writeHead(response.head))
  }

  // MARK: - Private

  /// Returns a response that any page may read (CORS).
  private func crossOriginResponse(
    to request: Request, _ connection: ClientConnection
  ) async throws -> Response {
    let methods = "GET, HEAD, OPTIONS"
    var response: Response
    switch request.method {
    case .options:
      response = Response(status: .noContent)
      response.headers[.accessControlAllowMethods] = methods
      response.headers[.accessControlAllowHeaders] = "*, Range, Content-Type, Authorization"
      response.headers[.accessControlMaxAge] = "86400"
      response.headers[.allow] = methods
    case .get, .head:
      response =
        try await content(for: request, connection) ?? .text(.notFound, "nothing is served here")
    default:
      response = .text(.methodNotAllowed, "\(request.method.rawValue.prefix(20)) is not served")
      response.headers[.allow] = methods
    }
    response.headers[.accessControlAllowOrigin] = "*"
    response.headers[.accessControlExposeHeaders] =
      "Accept-Ranges, Content-Encoding, Content-Length, Content-Range, Date, Location"
    return response
  }

  /// Returns the resource served at a path; nil for none.
  private func content(for request: Request, _ connection: ClientConnection) async throws -> Response? {
    let path = request.uri.path.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
    switch path.count {
    case 0: return multivariantPlaylist
    case 1 where path[0] == "master.m3u8": return multivariantPlaylist
    case 3 where path[0] == "media":
      guard let track = hls.track(named: path[1]) else { return nil }
      if path[2] == Self.playlistName { return playlist(await playlists.text(of: track)) }
      guard let resource = track.resource(named: path[2]) else { return nil }
      return try await media(resource, request, connection)
    default: return nil
    }
  }

  private var multivariantPlaylist: Response {
    playlist(hls.multivariantPlaylist { "media/\($0.name)/\(Self.playlistName)" })
  }

  /// A playlist does not change while it is served, but another gateway may follow at the same port.
  private func playlist(_ text: String) -> Response { playlist(ByteBuffer(string: text)) }

  private func playlist(_ text: ByteBuffer) -> Response {
    Response(
      status: .ok, headers: [.contentType: "application/vnd.apple.mpegurl", .cacheControl: "no-cache"],
      body: ResponseBody(byteBuffer: text))
  }

  /// Returns the URL for a redirect. An HLS player knows only one location, so of several this is the first
  /// that responds, starting with the last one that did.
  private func reachableURL(of resource: VirtualHLS.Resource) async -> URL {
    let urls = [resource.url] + resource.alternateURLs
    guard urls.count > 1 else { return resource.url }
    let first = location.withLock { $0 } % urls.count
    for step in urls.indices {
      let index = (first + step) % urls.count
      let head = FetchRequest(.head, url: urls[index], purpose: .resource)
      guard (try? await fetcher.fetch(head)) != nil else { continue }
      location.withLock { $0 = index }
      return urls[index]
    }
    return resource.url
  }

  private func media(
    _ resource: VirtualHLS.Resource, _ request: Request, _ connection: ClientConnection
  ) async throws -> Response {
    let scheme = resource.url.scheme?.lowercased()
    let isReachable = scheme == "http" || scheme == "https"
    logger.debug(
      "media",
      metadata: [
        "path": "\(request.uri.path)",
        "url": "\(resource.url.absoluteString.withoutUserInformation.prefix(1_000))",
      ])
    if isReachable, !isProxy {
      let url = try await connection.whileOpen { await reachableURL(of: resource) }
      return Response(
        status: .found,
        headers: [.location: url.absoluteString.withoutUserInformation, .cacheControl: "no-cache"])
    }
    let relay = ResourceRelay(resource: resource, fetcher: fetcher, logger: logger)
    return try await relay.response(to: request, connection: connection)
  }
}

extension Response {
  /// Returns an answer of one line of text.
  static func text(_ status: HTTPResponse.Status, _ text: String) -> Response {
    Response(
      status: status,
      headers: [.contentType: "text/plain; charset=utf-8", .cacheControl: "no-store"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text + "\n")))
  }
}

/// The media playlists of a presentation, each generated once, on demand.
///
/// They do not change, and a long one takes a second or two, which should not be spent for each client. At most
/// 64 MiB are kept; the rest is generated again.
actor PlaylistCache {
  private let hls: VirtualHLS
  private var texts: [Int: Task<ByteBuffer, Never>] = [:]
  private var byteCount = 0

  private static let byteLimit = 64 << 20

  init(_ hls: VirtualHLS) { self.hls = hls }

  /// Returns the playlist of a track, with the names of its resources as URIs.
  func text(of track: VirtualHLS.Track) async -> ByteBuffer {
    if let known = texts[track.index] { return await known.value }
    let hls = hls
    let task = Task { ByteBuffer(string: hls.mediaPlaylist(of: track) { $0.name }) }
    texts[track.index] = task
    let text = await task.value
    byteCount += text.readableBytes
    if byteCount > Self.byteLimit {
      byteCount -= text.readableBytes
      texts[track.index] = nil
    }
    return text
  }
}
