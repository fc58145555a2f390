import Foundation
import Reel
import Synchronization

/// Fetches for one poster: only over HTTP(S), and no more bytes than a limit.
///
/// The media of a playlist comes through here too, so a playlist can't name local files.
final class LimitedFetcher: Fetching {
  /// The bytes of all answers together.
  static let byteLimit = 32 << 20

  private let transport: any Fetching
  private let remaining = Mutex(LimitedFetcher.byteLimit)

  init(_ transport: any Fetching) { self.transport = transport }

  /// Throws `ReelError` of kind `usage` for a scheme other than HTTP(S).
  static func check(_ url: URL) throws(ReelError) {
    guard ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false else {
      throw ReelError(.usage, "only http and https URLs are allowed", at: url.absoluteString)
    }
  }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    try Self.check(request.url)
    var response = try await transport.fetch(request)
    let (body, location) = (response.body, response.url.absoluteString)
    response.body = FetchBody {
      var iterator = body.makeAsyncIterator()
      guard let bytes = try await iterator.next() else { return nil }
      let isWithin = self.remaining.withLock { remaining in
        remaining -= bytes.count
        return remaining >= 0
      }
      guard isWithin else {
        throw ReelError(.badMedia, "needs more than the limit of \(Self.byteLimit) bytes", at: location)
      }
      return bytes
    }
    return response
  }
}
