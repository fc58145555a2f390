import Foundation
import ReelCore
import ReelTestSupport

/// Serves the fixtures from memory, below any host, with faults; and counts what is under way.
final class FixtureFetcher: Fetching {
  /// What becomes of a request.
  enum Fault: Sendable {
    case none
    /// No answer but this.
    case error(ReelError)
    /// An answer with these bytes in place of the file's.
    case bytes([UInt8])
    /// An answer whose body breaks off after so many bytes.
    case cut(Int)
    /// An answer that announces more than there is, with an error in place of the rest, or of what comes after so many
    /// bytes.
    case endless(ReelError, after: Int = .max)
    /// An answer after a time.
    case delay(Duration)
    /// An answer, each chunk of it after a time.
    case slow(Duration)
    /// No answer until the request is cancelled.
    case never
  }

  private struct State {
    var requests: [FetchRequest] = []
    var underWayCount = 0
    var files: [String: [UInt8]] = [:]
  }

  private let state = Locked(State())
  private let fault: @Sendable (FetchRequest, Int) -> Fault
  private let chunkByteCount: Int
  private let sleep: @Sendable (Duration) async throws -> Void

  /// - Parameters:
  ///   - clock: The clock for delays of faults; nil for real time.
  ///   - fault: Called with each request and its number, from 0.
  init(
    chunkByteCount: Int = 4 << 10, clock: (any MonotonicClock)? = nil,
    fault: @escaping @Sendable (FetchRequest, Int) -> Fault = { _, _ in .none }
  ) {
    self.chunkByteCount = chunkByteCount
    self.fault = fault
    if let clock {
      sleep = { try await clock.sleep(for: $0) }
    } else {
      sleep = { try await Task.sleep(for: $0) }
    }
  }

  var requests: [FetchRequest] { state.withLock { $0.requests } }
  /// Requests that wait for their answer, and bodies that have not been let go.
  var underWayCount: Int { state.withLock { $0.underWayCount } }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let number = state.withLock { state in
      state.requests.append(request)
      return state.requests.count - 1
    }
    let presence = Presence(self)
    try Task.checkCancellation()
    var cut = Int.max
    var ending: ReelError?
    var excess = 0
    var pause = Duration.zero
    var other: [UInt8]?
    switch fault(request, number) {
    case .none: break
    case .error(let error): throw error.located(at: request.url.absoluteString)
    case .bytes(let bytes): other = bytes
    case .cut(let count): cut = count
    case .endless(let error, let count): (ending, cut, excess) = (error, count, 100)
    case .delay(let duration): try await sleep(duration)
    case .slow(let duration): pause = duration
    case .never: try await sleep(.seconds(3600))
    }
    let all = try other ?? bytes(of: request.url)
    let start = Int(clamping: request.range?.offset ?? 0)
    guard start < all.count || start == 0 else {
      throw ReelError(.server, "416", at: request.url.absoluteString, status: 416)
    }
    let end = Int(clamping: request.range?.end ?? Int64(all.count))
    let body = Body(
      bytes: all[start..<min(max(start, end), all.count)], chunkByteCount: chunkByteCount, cut: cut,
      ending: ending, pause: pause, sleep: sleep, presence: presence)
    return FetchResponse(
      url: request.url, contentType: nil, bodyOffset: Int64(start),
      bodyByteCount: Int64(body.byteCount + excess), resourceByteCount: Int64(all.count + excess),
      supportsRanges: true, body: FetchBody { try await body.next() })
  }

  // MARK: - Private

  private func bytes(of url: URL) throws -> [UInt8] {
    let path = url.isFileURL ? url.path : Fixtures.folder.path + url.path
    if let known = state.withLock({ $0.files[path] }) { return known }
    guard let data = FileManager.default.contents(atPath: path) else {
      throw ReelError(.server, "404", at: url.absoluteString, status: 404)
    }
    let bytes = Array(data)
    state.withLock { $0.files[path] = bytes }
    return bytes
  }

  /// Counts as under way while it is there.
  private final class Presence: Sendable {
    private let fetcher: FixtureFetcher

    init(_ fetcher: FixtureFetcher) {
      self.fetcher = fetcher
      fetcher.state.withLock { $0.underWayCount += 1 }
    }

    deinit { fetcher.state.withLock { $0.underWayCount -= 1 } }
  }

  private final class Body: Sendable {
    let byteCount: Int
    private let rest: Locked<ArraySlice<UInt8>>
    private let chunkByteCount: Int
    private let cut: Int
    private let ending: ReelError?
    private let pause: Duration
    private let sleep: @Sendable (Duration) async throws -> Void
    private let presence: Presence

    init(
      bytes: ArraySlice<UInt8>, chunkByteCount: Int, cut: Int, ending: ReelError?, pause: Duration,
      sleep: @escaping @Sendable (Duration) async throws -> Void, presence: Presence
    ) {
      byteCount = bytes.count
      rest = Locked(bytes)
      self.chunkByteCount = chunkByteCount
      self.cut = cut
      self.ending = ending
      self.pause = pause
      self.sleep = sleep
      self.presence = presence
    }

    func next() async throws -> [UInt8]? {
      try Task.checkCancellation()
      if pause > .zero { try await sleep(pause) }
      let (chunk, isCut) = rest.withLock { rest in
        let left = cut - (byteCount - rest.count)
        let chunk = Array(rest.prefix(min(chunkByteCount, left)))
        rest.removeFirst(chunk.count)
        return (chunk, left <= 0)
      }
      if isCut { throw ending ?? ReelError(.network, "the connection was lost") }
      if chunk.isEmpty, let ending { throw ending }
      return chunk.isEmpty ? nil : chunk
    }
  }
}
