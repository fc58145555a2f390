import Foundation
import Reel

// A program of Docs/Caching.md, word for word.

/// Makes a pool whose items start from disk if the folder has them.
func makePool(of feed: Feed, keptIn folder: URL) -> PlayerPool {
  let cache = MediaCache(at: folder, byteLimit: 500_000_000, inFrontOf: TransportFetcher())
  return PlayerPool(feed: feed, fetcher: cache)
}
