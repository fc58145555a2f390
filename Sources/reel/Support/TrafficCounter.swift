import ReelCore

/// Counts the requests that go through it, and the bytes of their answers.
final class TrafficCounter: Fetching {
  private struct Counts {
    /// Sent, retries and redirects included, by transfers that have ended.
    var ended = 0
    /// Transfers that have not ended.
    var running = 0
    var byteCount: Int64 = 0
  }

  private let base: any Fetching
  private let counts = Locked(Counts())

  init(_ base: any Fetching) { self.base = base }

  /// Requests sent so far; a transfer that still runs counts as one.
  var requestCount: Int { counts.withLock { $0.ended + $0.running } }

  /// Body bytes so far, after decompression.
  var byteCount: Int64 { counts.withLock { $0.byteCount } }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    var request = request
    let report = request.report
    counts.withLock { $0.running += 1 }
    request.report = { [self] metrics in
      counts.withLock { counts in
        counts.running -= 1
        counts.ended += metrics.requestCount
      }
      report?(metrics)
    }
    var response = try await base.fetch(request)
    let body = response.body
    response.body = FetchBody { [self] in
      var iterator = body.makeAsyncIterator()
      let chunk = try await iterator.next()
      if let chunk { counts.withLock { $0.byteCount += Int64(chunk.count) } }
      return chunk
    }
    return response
  }
}
