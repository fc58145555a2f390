import Foundation
import ReelCore
import ReelPlayback
import ReelTestSupport

/// Serves the fixtures below any host, from memory, with faults; and counts what is under way.
final class PoolFetcher: Fetching, ConnectionOpening {
  /// What becomes of a request.
  enum Fault: Sendable {
    case none
    case error(ReelError)
    /// No answer until `release()`.
    case hold
  }

  private struct State {
    var requests: [FetchRequest] = []
    var underWay: [URL: Int] = [:]
    var opened: [URL] = []
    var fault: @Sendable (FetchRequest) -> Fault
  }

  private let state: Locked<State>
  private let isReleased = ObservedProperty(false)
  private static let files = Locked<[String: [UInt8]]>([:])

  /// - Parameter fault: asked for each request.
  init(fault: @escaping @Sendable (FetchRequest) -> Fault = { _ in .none }) {
    state = Locked(State(fault: fault))
  }

  var requests: [FetchRequest] { state.withLock { $0.requests } }
  /// Each with its range: nothing was fetched twice where no two are the same.
  var keys: [String] {
    requests.map { request in
      "\(request.url.absoluteString) \(request.range.map { "\($0.offset) \($0.length ?? -1)" } ?? "")"
    }
  }
  /// Requests that wait for their answer, and bodies that were neither read to their end nor let go.
  var underWayCount: Int { state.withLock { $0.underWay.values.reduce(0, +) } }
  func underWayCount(of url: URL) -> Int { state.withLock { $0.underWay[url] ?? 0 } }
  /// Where connections were opened ahead to.
  var opened: [URL] { state.withLock { $0.opened } }

  func setFault(_ fault: @escaping @Sendable (FetchRequest) -> Fault) { state.withLock { $0.fault = fault } }

  /// Answers what was held, and holds nothing any more.
  func release() { isReleased.set(true) }

  func openConnection(to url: URL) { state.withLock { $0.opened.append(url) } }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let fault = state.withLock { state in
      state.requests.append(request)
      return state.fault
    }
    let presence = Presence(request.url, in: self)
    try Task.checkCancellation()
    switch fault(request) {
    case .none: break
    case .error(let error): throw error.located(at: request.url.absoluteString)
    case .hold:
      for await value in isReleased.values where value { break }
      try Task.checkCancellation()
    }
    let all = try Self.bytes(of: request.url)
    let start = min(Int(clamping: request.range?.offset ?? 0), all.count)
    let end = min(Int(clamping: request.range?.end ?? Int64(all.count)), all.count)
    let rest = Locked(
      (bytes: all[start..<max(start, end)], presence: Optional(presence)), rank: .transfer)
    return FetchResponse(
      url: request.url, contentType: nil, bodyOffset: Int64(start),
      bodyByteCount: Int64(max(start, end) - start), resourceByteCount: Int64(all.count),
      supportsRanges: true,
      body: FetchBody {
        try Task.checkCancellation()
        return rest.withLock { rest in
          let chunk = Array(rest.bytes.prefix(8 << 10))
          rest.bytes.removeFirst(chunk.count)
          if rest.bytes.isEmpty { rest.presence = nil }
          return chunk.isEmpty ? nil : chunk
        }
      })
  }

  // MARK: - Private

  private static func bytes(of url: URL) throws -> [UInt8] {
    let path = url.isFileURL ? url.path : Fixtures.folder.path + url.path
    return try files.withLock { files in
      if let known = files[path] { return known }
      guard let data = FileManager.default.contents(atPath: path) else {
        throw ReelError(.server, "404", at: url.absoluteString, status: 404)
      }
      files[path] = Array(data)
      return Array(data)
    }
  }

  /// Counts as under way while it is there.
  private final class Presence: Sendable {
    private let url: URL
    private let fetcher: PoolFetcher

    init(_ url: URL, in fetcher: PoolFetcher) {
      self.url = url
      self.fetcher = fetcher
      fetcher.state.withLock { $0.underWay[url, default: 0] += 1 }
    }

    deinit { fetcher.state.withLock { $0.underWay[url, default: 0] -= 1 } }
  }
}
