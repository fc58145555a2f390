import Foundation
import ReelGateway
import ReelTransport

/// Serves a presentation of DASH or HLS, complete or live, as HLS on this machine, until it is interrupted.
@main struct HLSGateway {
  static func main() async throws {
    guard CommandLine.arguments.count == 2, let manifest = URL(string: CommandLine.arguments[1]) else {
      print("usage: HLSGateway URL")
      exit(64)
    }
    let gateway = try await Gateway.start(manifest, fetcher: TransportFetcher())
    print(gateway.url.absoluteString)
    // Whoever reads the URL through a pipe gets it now.
    fflush(nil)
    try await gateway.run()
  }
}
