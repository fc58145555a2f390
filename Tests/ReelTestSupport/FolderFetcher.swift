import Foundation
package import ReelCore

/// Serves the fixtures below any host, after a real time that differs from request to request.
package final class FolderFetcher: Fetching {
  private let isUneven: Bool
  private let requests = Locked<[FetchRequest]>([])
  private let pieces = Locked(0)

  /// - Parameter isUneven: answers after a pause, in chunks whose sizes differ from run to run.
  package init(isUneven: Bool = false) { self.isUneven = isUneven }

  package var requestCount: Int { requests.withLock { $0.count } }
  package var purposes: [FetchPurpose] { requests.withLock { $0.map(\.purpose) } }
  /// Chunks that were given.
  package var chunkCount: Int { pieces.withLock { $0 } }

  package func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    requests.withLock { $0.append(request) }
    if isUneven { try await Task.sleep(for: .microseconds(Int.random(in: 0...2000))) }
    let path = request.url.isFileURL ? request.url.path : Fixtures.folder.path + request.url.path
    guard let data = FileManager.default.contents(atPath: path) else {
      throw ReelError(.server, "404", at: request.url.absoluteString, status: 404)
    }
    let start = min(Int(clamping: request.range?.offset ?? 0), data.count)
    let end = min(Int(clamping: request.range?.end ?? Int64(data.count)), data.count)
    let rest = Locked(Array(data[start..<max(start, end)])[...])
    let (isUneven, pieces) = (isUneven, pieces)
    return FetchResponse(
      url: request.url, contentType: nil, bodyOffset: Int64(start),
      bodyByteCount: Int64(max(start, end) - start), resourceByteCount: Int64(data.count),
      supportsRanges: true,
      body: FetchBody {
        pieces.withLock { $0 += 1 }
        return rest.withLock { rest in
          let chunk = Array(rest.prefix(isUneven ? Int.random(in: 1...20_000) : 16_384))
          rest.removeFirst(chunk.count)
          return chunk.isEmpty ? nil : chunk
        }
      })
  }
}
