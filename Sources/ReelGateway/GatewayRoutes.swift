import Foundation
import HTTPTypes
import Hummingbird
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
  /// Which of several locations of the same media answered last.
  let location = Locked(0)

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
  private func playlist(_ text: String) -> Response { playlist(ByteBuffer(string: text)) }

  private func playlist(_ text: ByteBuffer) -> Response {
    Response(
      status: .ok, headers: [.contentType: "application/vnd.apple.mpegurl", .cacheControl: "no-cache"],
      body: ResponseBody(byteBuffer: text))
  }

  /// The URL for a redirect. An HLS player knows only one location, so of several this is the first that
  /// responds, starting with the last one that did.
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

  private func media(_ request: Request, _ context: GatewayContext) async throws -> Response {
    guard let trackName = context.parameters.get("track"), let name = context.parameters.get("name"),
      let track = hls.track(named: trackName)
    else { throw HTTPError(.notFound) }
    if name == Self.playlistName { return playlist(await playlists.text(of: track)) }
    guard let resource = track.resource(named: name) else { throw HTTPError(.notFound) }
    let scheme = resource.url.scheme?.lowercased()
    let isReachable = scheme == "http" || scheme == "https"
    logger.debug(
      "media",
      metadata: ["path": "\(request.uri.path)", "url": "\(resource.url.absoluteString.prefix(1_000))"])
    if isReachable, !isProxy {
      let url = try await context.whileConnected { await reachableURL(of: resource) }
      return Response(status: .found, headers: [.location: url.absoluteString, .cacheControl: "no-cache"])
    }
    let relay = ResourceRelay(resource: resource, fetcher: fetcher, logger: logger)
    return try await relay.response(to: request, context: context)
  }
}
