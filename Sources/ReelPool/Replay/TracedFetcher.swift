internal import Foundation
internal import ReelCore

/// Notes each request, its answer, and what came of its body.
struct TracedFetcher: Fetching, ConnectionOpening {
  private let base: any Fetching
  private let trace: WalkTrace
  private let clock: any MonotonicClock

  init(_ base: any Fetching, trace: WalkTrace, clock: any MonotonicClock) {
    self.base = base
    self.trace = trace
    self.clock = clock
  }

  func openConnection(to url: URL) { (base as? any ConnectionOpening)?.openConnection(to: url) }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    trace.note(.request, request, at: clock.now, detail: request.range.map { "\($0.httpText)" })
    var response: FetchResponse
    do {
      response = try await base.fetch(request)
    } catch {
      trace.note(.response, request, at: clock.now, detail: (error as? ReelError)?.reason ?? "cancelled")
      throw error
    }
    trace.note(.response, request, at: clock.now)
    let body = response.body
    let count = Locked(Int64(0))
    let (trace, clock) = (trace, clock)
    response.body = FetchBody {
      do {
        var iterator = body.makeAsyncIterator()
        let chunk = try await iterator.next()
        let total = count.withLock { count in
          count += Int64(chunk?.count ?? 0)
          return count
        }
        if chunk == nil { trace.note(.received, request, at: clock.now, bytes: total) }
        return chunk
      } catch {
        trace.note(
          .received, request, at: clock.now, bytes: count.withLock { $0 },
          detail: (error as? ReelError)?.reason ?? "cancelled")
        throw error
      }
    }
    return response
  }
}

extension ByteRange {
  fileprivate var httpText: String { length.map { "\(offset)+\($0)" } ?? "\(offset)+" }
}
