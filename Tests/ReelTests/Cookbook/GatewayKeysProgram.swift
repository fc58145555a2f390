import Foundation
import Reel
import ReelGateway
import ReelGatewayKeys

// A program of Docs/Cookbook.md, word for word.

/// Serves an encrypted presentation in the clear, on this machine alone.
func serveDecrypted(_ manifest: URL, keys: [KeyID: ContentKey]) async throws -> Gateway {
  try await Gateway.start(
    manifest, fetcher: TransportFetcher(), decryption: MediaDecryptor(keys: KnownKeys(keys: keys)))
}

struct KnownKeys: KeyProvider {
  let keys: [KeyID: ContentKey]

  func key(for request: KeyRequest) async throws -> ContentKey? { request.id.flatMap { keys[$0] } }

  func holdsKey(for id: KeyID) -> Bool { keys[id] != nil }
}
