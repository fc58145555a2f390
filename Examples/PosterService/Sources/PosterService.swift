import Foundation
import Hummingbird
import Logging
import Reel
import ReelStills
import ServiceLifecycle

/// An HTTP service that answers `GET /poster?url=URL` with a good frame of a video as JPEG.
@main
struct PosterService {
  static func main() async throws {
    let port = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 8090
    let router = Router()
    router.get("/poster") { request, _ in try await poster(of: request.uri.queryParameters["url"] ?? "") }
    var logger = Logger(label: "posters")
    logger.logLevel = .error
    let application = Application(
      router: router, configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: port)),
      onServerRunning: { channel in
        print("http://127.0.0.1:\(channel.localAddress?.port ?? port)/poster")
        fflush(nil)
      }, logger: logger)
    let group = ServiceGroup(
      services: [application], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
    try await group.run()
  }

  static func poster(of text: Substring) async throws -> Response {
    guard let url = URL(string: String(text)), ["http", "https"].contains(url.scheme?.lowercased()) else {
      throw HTTPError(.badRequest, message: "url must be an http or https URL")
    }
    do {
      let size = PixelSize(width: 640, height: 640)
      let image = try await PosterExtractor().poster(of: url, maximumSize: size)
      let bytes = ByteBuffer(bytes: try image.jpeg(quality: 0.8))
      return Response(
        status: .ok, headers: [.contentType: "image/jpeg"], body: ResponseBody(byteBuffer: bytes))
    } catch let error as ReelError {
      let isOrigins = [.server, .network, .noSuchFile, .timedOut].contains(error.kind)
      throw HTTPError(isOrigins ? .badGateway : .unprocessableContent, message: "\(error)")
    }
  }
}
