internal import Foundation
internal import ReelCore
internal import ReelPool

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
    let (trace, clock, item) = (trace, clock, RequestOwner.item)
    let number = trace.makeRequestNumber()
    let note = { @Sendable (event: WalkEvent.Kind, bytes: Int64?, detail: String?) in
      trace.note(event, request, number: number, of: item, at: clock.now, bytes: bytes, detail: detail)
    }
    note(.request, nil, request.range?.httpText)
    let response: FetchResponse
    do {
      response = try await base.fetch(request)
    } catch {
      note(.response, nil, Self.reason(of: error))
      throw error
    }
    note(.response, nil, nil)
    // How much of the body came is told once: at its end, or when it is let go.
    let byteCount = Locked<Int64>(0)
    let onEnd = { @Sendable (result: Result<Void, any Error>) in
      var detail: String?
      if case .failure(let error) = result { detail = Self.reason(of: error) }
      note(.received, byteCount.withLock { $0 }, detail)
    }
    return response.wrappingBody(onEnd: onEnd) { body in
      let chunk = try await body.next()
      if let chunk {
        byteCount.withLock { $0 += Int64(chunk.count) }
        note(.chunk, Int64(chunk.count), nil)
      }
      return chunk
    }
  }

  private static func reason(of error: any Error) -> String {
    (error as? ReelError)?.reason ?? "cancelled"
  }
}

extension ByteRange {
  fileprivate var httpText: String { length.map { "\(offset)+\($0)" } ?? "\(offset)+" }
}
