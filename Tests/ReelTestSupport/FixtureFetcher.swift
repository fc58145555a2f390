package import Foundation
package import ReelCore
import ReelPlayback

/// Serves the fixtures from memory, below any host, with faults; and counts what is under way.
package final class FixtureFetcher: Fetching, ConnectionOpening {
  /// What becomes of a request.
  package enum Fault: Sendable {
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
    /// An answer after a short real time, in chunks; the time and the sizes differ from run to run.
    case uneven
    /// No answer until `release()`.
    case hold
    /// No answer until the request is cancelled.
    case never
  }

  private struct State {
    var requests: [FetchRequest] = []
    var opened: [URL] = []
    var underWay: [URL: Int] = [:]
    var heldCount = 0
    var fault: @Sendable (FetchRequest, Int) -> Fault
  }

  private let state: Locked<State>
  private let isReleased = ObservedSource(false)
  /// Never set.
  private let isOver = ObservedSource(false)
  private let chunkByteCount: Int
  private let sleep: @Sendable (Duration) async throws -> Void
  private static let files = Locked<[String: [UInt8]]>([:])

  /// - Parameters:
  ///   - clock: The clock for delays of faults; nil for real time.
  ///   - fault: Called with each request and its number, from 0.
  package init(
    chunkByteCount: Int = 4 << 10, clock: (any MonotonicClock)? = nil,
    fault: @escaping @Sendable (FetchRequest, Int) -> Fault = { _, _ in .none }
  ) {
    self.chunkByteCount = chunkByteCount
    state = Locked(State(fault: fault))
    if let clock {
      sleep = { try await clock.sleep(for: $0) }
    } else {
      sleep = { try await Task.sleep(for: $0) }
    }
  }

  package var requests: [FetchRequest] { state.withLock { $0.requests } }
  /// Each request as text with its range: nothing was fetched twice if no two are the same.
  package var keys: [String] {
    requests.map { request in
      "\(request.url.absoluteString) \(request.range.map { "\($0.offset) \($0.length ?? -1)" } ?? "")"
    }
  }
  /// Requests that wait for their answer, and bodies that were neither read to their end nor let go.
  package var underWayCount: Int { state.withLock { $0.underWay.values.reduce(0, +) } }
  package func underWayCount(of url: URL) -> Int { state.withLock { $0.underWay[url] ?? 0 } }
  /// Requests that wait for their answer, and bodies that have not been let go.
  package var heldCount: Int { state.withLock { $0.heldCount } }
  /// Where connections were opened ahead to.
  package var opened: [URL] { state.withLock { $0.opened } }

  package func setFault(_ fault: @escaping @Sendable (FetchRequest, Int) -> Fault) {
    state.withLock { $0.fault = fault }
  }

  /// Answers what is held, and holds nothing any more.
  package func release() { isReleased.set(true) }

  package func openConnection(to url: URL) { state.withLock { $0.opened.append(url) } }

  package func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let (number, fault) = state.withLock { state in
      state.requests.append(request)
      return (state.requests.count - 1, state.fault)
    }
    let presence = Presence(request.url, in: self)
    try Task.checkCancellation()
    var delivery = Delivery(chunkByteCount: chunkByteCount, sleep: sleep)
    var excess = 0
    var other: [UInt8]?
    switch fault(request, number) {
    case .none: break
    case .error(let error): throw error.located(at: request.url.absoluteString)
    case .bytes(let bytes): other = bytes
    case .cut(let count): delivery.cut = count
    case .endless(let error, let count): (delivery.ending, delivery.cut, excess) = (error, count, 100)
    case .delay(let duration): try await sleep(duration)
    case .slow(let duration): delivery.pause = duration
    case .uneven:
      delivery.isUneven = true
      try await Task.sleep(for: .microseconds(Int.random(in: 0...2000)))
    case .hold:
      for await value in isReleased.values where value { break }
      try Task.checkCancellation()
    case .never:
      for await value in isOver.values where value { break }
      try Task.checkCancellation()
    }
    let all = try other ?? Self.bytes(of: request.url)
    let start = Int(clamping: request.range?.offset ?? 0)
    guard start < all.count || start == 0 else {
      throw ReelError(.server, "416", at: request.url.absoluteString, status: 416)
    }
    let end = Int(clamping: request.range?.end ?? Int64(all.count))
    let body = Body(all[start..<min(max(start, end), all.count)], delivery, presence)
    return FetchResponse(
      url: request.url, contentType: nil, bodyOffset: Int64(start),
      bodyByteCount: Int64(body.byteCount + excess), resourceByteCount: Int64(all.count + excess),
      supportsRanges: true, body: FetchBody { try await body.next() })
  }

  // MARK: - Private

  private static func bytes(of url: URL) throws -> [UInt8] {
    let path = url.isFileURL ? url.path : Fixtures.folder.path + url.path
    // A local file may be a test's own, which changes.
    if !url.isFileURL, let known = files.withLock({ $0[path] }) { return known }
    guard let data = FileManager.default.contents(atPath: path) else {
      throw ReelError(.server, "404", at: url.absoluteString, status: 404)
    }
    let bytes = Array(data)
    if !url.isFileURL { files.withLock { $0[path] = bytes } }
    return bytes
  }

  /// Counts as under way until `end()`, and as held while it is there.
  private final class Presence: Sendable {
    private let url: URL
    private let fetcher: FixtureFetcher
    private let isUnderWay = Locked(true)

    init(_ url: URL, in fetcher: FixtureFetcher) {
      self.url = url
      self.fetcher = fetcher
      fetcher.state.withLock { state in
        state.underWay[url, default: 0] += 1
        state.heldCount += 1
      }
    }

    func end() {
      let wasUnderWay = isUnderWay.withLock { value in
        defer { value = false }
        return value
      }
      if wasUnderWay { fetcher.state.withLock { $0.underWay[url, default: 0] -= 1 } }
    }

    deinit {
      end()
      fetcher.state.withLock { $0.heldCount -= 1 }
    }
  }

  /// How a body comes.
  private struct Delivery: Sendable {
    let chunkByteCount: Int
    let sleep: @Sendable (Duration) async throws -> Void
    var isUneven = false
    /// Before each chunk.
    var pause = Duration.zero
    /// Bytes after which the body breaks off.
    var cut = Int.max
    /// The error at the end; nil for none, or that of a lost connection.
    var ending: ReelError?
  }

  private final class Body: Sendable {
    let byteCount: Int
    private let rest: Locked<ArraySlice<UInt8>>
    private let delivery: Delivery
    private let presence: Presence

    init(_ bytes: ArraySlice<UInt8>, _ delivery: Delivery, _ presence: Presence) {
      byteCount = bytes.count
      rest = Locked(bytes)
      self.delivery = delivery
      self.presence = presence
    }

    func next() async throws -> [UInt8]? {
      try Task.checkCancellation()
      if delivery.pause > .zero { try await delivery.sleep(delivery.pause) }
      let size = delivery.isUneven ? Int.random(in: 1...20_000) : delivery.chunkByteCount
      let (chunk, isCut, isEnd) = rest.withLock { rest in
        let left = delivery.cut - (byteCount - rest.count)
        let chunk = Array(rest.prefix(min(size, left)))
        rest.removeFirst(chunk.count)
        return (chunk, left <= 0, rest.isEmpty)
      }
      if isEnd || isCut { presence.end() }
      if isCut { throw delivery.ending ?? ReelError(.network, "the connection was lost") }
      if chunk.isEmpty, let ending = delivery.ending { throw ending }
      return chunk.isEmpty ? nil : chunk
    }
  }
}
