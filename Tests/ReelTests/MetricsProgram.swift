import Foundation
import Reel

// The program of Docs/Library.md on metrics, word for word.

/// Plays a source and passes a line for each request that has ended.
func traceRequests(of url: URL, line: @escaping @Sendable (String) -> Void) async throws {
  let fetcher = TransportFetcher { request in
    line("\(request.purpose) \(request.url.path): \(request.outcome), \(request.byteCount) bytes")
  }
  let player = Player(fetcher: fetcher)
  player.replaceCurrentItem(with: PlayerItem(url: url))
  player.play()
  try await player.playToEnd()
}
