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
    let (trace, clock) = (trace, clock)
    let number = trace.makeRequestNumber()
    let note = { @Sendable (event: WalkTrace.Event, bytes: Int64?, detail: String?) in
      trace.note(event, request, number: number, at: clock.now, bytes: bytes, detail: detail)
    }
    note(.request, nil, request.range?.httpText)
    var response: FetchResponse
    do {
      response = try await base.fetch(request)
    } catch {
      note(.response, nil, Self.reason(of: error))
      throw error
    }
    note(.response, nil, nil)
    let body = TracedBody(response.body) { note(.received, $0, $1) }
    response.body = FetchBody { try await body.next() }
    return response
  }

  fileprivate static func reason(of error: any Error) -> String {
    (error as? ReelError)?.reason ?? "cancelled"
  }
}

/// A body that tells once how much of it came: at its end, or when it is let go.
private final class TracedBody: Sendable {
  private struct State {
    var byteCount: Int64 = 0
    var isOver = false
  }

  private let base: FetchBody
  private let note: @Sendable (Int64, String?) -> Void
  private let state = Locked(State())

  init(_ base: FetchBody, note: @escaping @Sendable (Int64, String?) -> Void) {
    self.base = base
    self.note = note
  }

  deinit { end("cancelled") }

  func next() async throws -> [UInt8]? {
    do {
      var iterator = base.makeAsyncIterator()
      guard let chunk = try await iterator.next() else {
        end(nil)
        return nil
      }
      state.withLock { $0.byteCount += Int64(chunk.count) }
      return chunk
    } catch {
      end(TracedFetcher.reason(of: error))
      throw error
    }
  }

  private func end(_ detail: String?) {
    let count = state.withLock { state -> Int64? in
      defer { state.isOver = true }
      return state.isOver ? nil : state.byteCount
    }
    if let count { note(count, detail) }
  }
}

extension ByteRange {
  fileprivate var httpText: String { length.map { "\(offset)+\($0)" } ?? "\(offset)+" }
}
