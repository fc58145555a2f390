import Foundation
import Reel
import ReelGateway

// A program of Docs/Cookbook.md, word for word.

/// Serves a DASH presentation as HLS on this machine. A player of HLS opens the `url` of the result.
func serveAsHLS(_ mpd: URL) async throws -> Gateway {
  let source = try await SourceProber().probe(.url(mpd))
  guard let presentation = source.presentation else {
    throw ReelError(.unsupported, "neither HLS nor DASH", at: mpd.absoluteString)
  }
  return try await Gateway.start(VirtualHLS(presentation), fetcher: TransportFetcher())
}
