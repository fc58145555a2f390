import Foundation
import Hummingbird
import Logging
import Reel
import Synchronization

/// An HTTP service that answers `GET /poster?url=URL` with a frame of a video as PNG.
@main
struct PosterService {
  static func main() async {
    do {
      let arguments = Array(CommandLine.arguments.dropFirst())
      guard arguments.count <= 2, let port = Int(arguments.first ?? "8090"), (0...65_535).contains(port)
      else {
        throw ReelError(.usage, "usage: PosterService [PORT] [ADDRESS]")
      }
      // Only this machine can connect, unless another address is named.
      let address = arguments.count > 1 ? arguments[1] : "127.0.0.1"
      try await serve(address, port)
    } catch {
      FileHandle.standardError.write(Data("PosterService: \(error)\n".utf8))
      exit(1)
    }
  }

  static func serve(_ address: String, _ port: Int) async throws {
    let posters = Posters()
    let router = Router()
    router.get("/poster") { request, _ in
      guard let url = request.uri.queryParameters["url"].map(String.init) else {
        return failure(.badRequest, "url is missing: /poster?url=https://example.com/video.mp4&at=2.5")
      }
      let at = request.uri.queryParameters["at"].map { Double($0) ?? .nan } ?? 0
      do {
        let image = try await posters.image(of: url, at: at)
        return Response(
          status: .ok, headers: [.contentType: "image/png"],
          body: ResponseBody(byteBuffer: ByteBuffer(bytes: image)))
      } catch let error as ReelError {
        return failure(status(of: error), "\(error)")
      }
    }
    var logger = Logger(label: "posters")
    logger.logLevel = .error
    let application = Application(
      router: router, configuration: ApplicationConfiguration(address: .hostname(address, port: port)),
      onServerRunning: { channel in
        print("http://\(address):\(channel.localAddress?.port ?? port)/poster")
        fflush(nil)
      }, logger: logger)
    try await application.runService()
  }

  private static func failure(_ status: HTTPResponse.Status, _ text: String) -> Response {
    Response(
      status: status, headers: [.contentType: "text/plain; charset=utf-8"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: text + "\n")))
  }

  /// The status that tells a client whose fault it was.
  private static func status(of error: ReelError) -> HTTPResponse.Status {
    switch error.kind {
    case .usage: .badRequest
    case .badMedia, .badManifest, .unsupported: .unprocessableContent
    case .noSuchFile, .server, .network: .badGateway
    case .timedOut: .gatewayTimeout
    case .cancelled: .serviceUnavailable
    case .cannotCreateOutput, .cannotWriteOutput, .internalFault: .internalServerError
    }
  }
}
