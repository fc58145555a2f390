import Foundation
import HTTPTypes
import Reel

// A program of Docs/Cookbook.md, word for word.

/// Sends a token with each request to a host, and gets another one when the server refuses it.
struct TokenFetcher: Fetching {
  let host: String
  /// Returns the current token, or one to use instead of a refused one.
  let token: @Sendable (_ refused: String?) async throws -> String
  let fetcher = TransportFetcher(configuration: TransportConfiguration(retryPolicy: .never))

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    guard request.url.host() == host else { return try await fetcher.fetch(request) }
    let current = try await token(nil)
    do { return try await send(request, current) } catch let error as ReelError where error.status == 401 {
      return try await send(request, token(current))
    }
  }

  private func send(_ request: FetchRequest, _ token: String) async throws -> FetchResponse {
    var request = request
    request.headers[.authorization] = "Bearer \(token)"
    return try await fetcher.fetch(request)
  }
}
