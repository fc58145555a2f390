import Foundation
import HTTPTypes
import Hummingbird
import Logging
import ReelCore
import ReelManifest

/// What a gateway answers to which path.
struct GatewayRoutes: Sendable {
  let hls: VirtualHLS
  let isProxy: Bool
  let fetcher: any Fetching
  let logger: Logger

  private static let playlistName = "index.m3u8"

  var router: Router<GatewayContext> {
    let router = Router(context: GatewayContext.self)
    router.add(middleware: CrossOriginMiddleware())
    for method in [HTTPRequest.Method.get, .head] {
      for path in ["/", "/master.m3u8"] {
        router.on(RouterPath(path), method: method) { _, _ in multivariantPlaylist }
      }
      router.on("/media/{track}/{name}", method: method) { request, context in
        try await media(request, context)
      }
    }
    return router
  }

  // MARK: - Private

  private var multivariantPlaylist: Response {
    playlist(hls.multivariantPlaylist { "media/\($0.name)/\(Self.playlistName)" })
  }

  /// A playlist does not change while it is served; but another gateway may come after it at the same port.
  private func playlist(_ text: String) -> Response {
    Response(
      status: .ok, headers: [.contentType: "application/vnd.apple.mpegurl", .cacheControl: "no-cache"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
  }

  private func media(_ request: Request, _ context: GatewayContext) async throws -> Response {
    guard let trackName = context.parameters.get("track"), let name = context.parameters.get("name"),
      let track = hls.track(named: trackName)
    else { throw HTTPError(.notFound) }
    if name == Self.playlistName { return playlist(hls.mediaPlaylist(of: track) { $0.name }) }
    guard let resource = track.resource(named: name) else { throw HTTPError(.notFound) }
    let scheme = resource.url.scheme?.lowercased()
    let isReachable = scheme == "http" || scheme == "https"
    logger.debug(
      "media",
      metadata: ["path": "\(request.uri.path)", "url": "\(resource.url.absoluteString.prefix(1_000))"])
    if isReachable, !isProxy {
      return Response(
        status: .found, headers: [.location: resource.url.absoluteString, .cacheControl: "no-cache"])
    }
    let relay = ResourceRelay(resource: resource, fetcher: fetcher, logger: logger)
    return try await relay.response(to: request, context: context)
  }
}
