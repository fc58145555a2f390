import Foundation
package import ReelCore
package import ReelTesting

/// Fetches directly from a simulated live stream, without a server.
package struct SimulationFetcher: Fetching {
  private let resource: any DynamicResource

  package init(resource: any DynamicResource) { self.resource = resource }

  package func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    guard let response = resource.response(at: request.url.path), response.status == 200 else {
      throw ReelError(.server, "404", at: request.url.absoluteString, status: 404)
    }
    let bytes = response.bytes
    let start = min(Int(clamping: request.range?.offset ?? 0), bytes.count)
    let end = min(Int(clamping: request.range?.end ?? Int64(bytes.count)), bytes.count)
    let rest = Locked(bytes[start..<max(start, end)])
    return FetchResponse(
      url: request.url, contentType: response.contentType, bodyOffset: Int64(start),
      bodyByteCount: Int64(max(start, end) - start), resourceByteCount: Int64(bytes.count),
      supportsRanges: true,
      body: FetchBody {
        rest.withLock { rest in
          let chunk = Array(rest.prefix(16 << 10))
          rest.removeFirst(chunk.count)
          return chunk.isEmpty ? nil : chunk
        }
      })
  }
}
