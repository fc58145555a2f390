import Foundation
import ReelCore

/// Counts requests and the bytes of their responses, separately for the network and for local files.
final class TrafficCounter: Fetching {
  struct Traffic: Sendable, Hashable {
    /// The number of requests, including retries and redirects. Opening a local file counts as one.
    var requestCount = 0
    /// The number of body bytes after decompression.
    var byteCount: Int64 = 0
  }

  private struct Counts {
    var network = Traffic()
    var local = Traffic()
  }

  private let base: any Fetching
  private let counts = Locked(Counts())

  init(_ base: any Fetching) { self.base = base }

  /// The network traffic so far.
  var network: Traffic { counts.withLock { $0.network } }
  /// The traffic of local files so far.
  var local: Traffic { counts.withLock { $0.local } }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var request = request
    let isLocal = request.url.isFileURL
    // The requests counted so far for this transfer. More may be reported until it ends.
    let counted = Locked(0)
    note(1, of: counted, isLocal: isLocal)
    request.addReport { [self] in note($0.requestCount, of: counted, isLocal: isLocal) }
    let response = try await base.fetch(request)
    note(response.requestCount, of: counted, isLocal: isLocal)
    return response.wrappingBody { [self] body in
      let chunk = try await body.next()
      if let chunk { add(Traffic(byteCount: Int64(chunk.count)), isLocal: isLocal) }
      return chunk
    }
  }

  // MARK: - Private

  private func note(_ requestCount: Int, of counted: Locked<Int>, isLocal: Bool) {
    let news = counted.withLock { counted in
      defer { counted = max(counted, requestCount) }
      return max(0, requestCount - counted)
    }
    add(Traffic(requestCount: news), isLocal: isLocal)
  }

  private func add(_ traffic: Traffic, isLocal: Bool) {
    counts.withLock { counts in
      let key = isLocal ? \Counts.local : \Counts.network
      counts[keyPath: key].requestCount += traffic.requestCount
      counts[keyPath: key].byteCount += traffic.byteCount
    }
  }
}
