import Foundation
import Reel
import ReelGateway

// A program of Docs/Cookbook.md, word for word.

/// Serves a presentation, on demand or live, as HLS on this machine. A player of HLS opens the `url` of the result.
func serveAsHLS(_ manifest: URL) async throws -> Gateway {
  try await Gateway.start(manifest, fetcher: TransportFetcher())
}
