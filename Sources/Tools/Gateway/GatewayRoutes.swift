import Foundation
import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import ReelCore
import ReelManifest

/// The responses of a gateway, by path.
struct GatewayRoutes: Sendable {
  let playlists: GatewayPlaylists
  /// True to relay all media.
  let isRelay: Bool
  let fetcher: any Fetching
  /// Nil if no media is decrypted.
  let decrypted: DecryptedMedia?
  let logger: Logger
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
    let playlists = playlists
    guard try await connection.whileOpen({ await playlists.hasBegun }) else { return .notBegun }
    let path = request.uri.path.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
    switch path.count {
    case 0: return await multivariantPlaylist
    case 1 where path[0] == "master.m3u8": return await multivariantPlaylist
    case 3 where path[0] == "media":
      if path[2] == Self.playlistName {
        let text = try await connection.whileOpen { await playlists.mediaPlaylist(ofTrackNamed: path[1]) }
        return text.map(playlist)
      }
      guard let resource = await playlists.resource(named: path[2], ofTrackNamed: path[1]) else { return nil }
      return try await media(resource, request, connection)
    default: return nil
    }
  }

  private var multivariantPlaylist: Response {
    get async {
      let text = await playlists.multivariantPlaylist { "media/\($0.name)/\(Self.playlistName)" }
      return playlist(ByteBuffer(string: text))
    }
  }

  /// On demand, a playlist does not change while it is served, but another gateway may follow at the same port.
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
    logger.debug(
      "media",
      metadata: [
        "path": "\(request.uri.path)",
        "url": "\(resource.url.logText.prefix(1_000))",
      ])
    if let part = resource.encryptedPart, let decrypted {
      return try await decrypted.response(to: request, for: resource, part, connection: connection)
    }
    if resource.isReachable, !isRelay {
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

  /// The answer before a live presentation has begun.
  static var notBegun: Response {
    var response = text(.serviceUnavailable, "the presentation has not begun")
    response.headers[.retryAfter] = "2"
    return response
  }

  /// Returns an answer for media that can't be served. It contains no location, so that it does not reveal local paths.
  static func failure(of part: String, _ error: ReelError) -> Response {
    let status: HTTPResponse.Status =
      if error.kind == .timedOut {
        .gatewayTimeout
      } else if error.found == .encrypted {
        .forbidden
      } else {
        .badGateway
      }
    return text(status, "\(part): \(error.reason.printable.prefix(500))")
  }
}
