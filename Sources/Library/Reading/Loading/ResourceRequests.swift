internal import HTTPTypes
internal import ReelCore
internal import ReelSources
internal import struct Foundation.URL

/// The transfers of ranges that will be read in a known order. Several are fetched at a time, before they are read.
///
/// Confined to the thread of its reader.
final class PlannedTransfers {
  /// The ranges whose transfers have not begun, in reverse order.
  private var waiting: [Range<Int64>]
  /// The transfers that have begun, in order.
  private var feeds: [ResourceFeed] = []
  private let requests: ResourceRequests

  /// The number of ranges that are being fetched, wait for that, or wait to be read. It exceeds the number of
  /// concurrent transfers, so that the next transfer does not wait for the reader.
  private static let feedCount = 16

  init(of ranges: [Range<Int64>], _ requests: ResourceRequests) {
    waiting = ranges.reversed()
    self.requests = requests
    begin()
  }

  /// Returns the transfer of the range that contains the position; nil if none does. Earlier ones are ended.
  func feed(at position: Int64) -> ResourceFeed? {
    func index() -> Int? { feeds.firstIndex { $0.reaches(position, leavingOut: .max) } }
    if index() == nil, let next = waiting.lastIndex(where: { $0.contains(position) }) {
      waiting.removeLast(waiting.count - 1 - next)
      feeds = []
      begin()
    }
    guard let index = index() else { return nil }
    feeds.removeFirst(index)
    begin()
    return feeds[0]
  }

  /// Returns where the first range after `position` begins; nil if there is none.
  func start(after position: Int64) -> Int64? {
    (feeds.map(\.position) + waiting.map(\.lowerBound)).filter { $0 > position }.min()
  }

  func end(_ feed: ResourceFeed) { feeds.removeAll { $0 === feed } }

  func forgetInterruption() { for feed in feeds { feed.pipe.forgetInterruption() } }

  private func begin() {
    while feeds.count < Self.feedCount, let range = waiting.popLast() {
      feeds.append(requests.feed(at: range.lowerBound, end: range.upperBound, isPlanned: true))
    }
  }
}

/// Sends the requests for the parts of a remote file.
struct ResourceRequests: Sendable {
  let url: URL
  /// The size of the file; nil if unknown. A response that states another one is an error.
  let byteCount: Int64?
  let fetcher: any Fetching
  let scope: LoadScope
  let recorder: StartupRecorder
  /// The number of unread bytes at which a transfer waits.
  let capacity: Int
  /// These two are called on any thread.
  let recordDamage: (@Sendable (ReelError) -> Void)?
  let recordTraffic: (@Sendable (_ requestCount: Int, _ byteCount: Int) -> Void)?
  private let permits = TransferPermits(plannedTransferCount)

  /// The number of planned ranges that are fetched at the same time: as many as browsers open connections to a host.
  private static let plannedTransferCount = 6
  /// The number of bytes of a planned range held before it is read.
  private static let plannedCapacity = 1 << 20

  /// Returns the transfer of a response, of whose body `read` has been taken.
  func feed(of response: FetchResponse, read: [UInt8]) -> ResourceFeed {
    recordTraffic?(response.requestCount, read.count)
    return ResourceFeed(at: 0, in: scope, capacity: capacity, recentByteCount: 0) { pipe, messages in
      // Others hold the response too.
      defer { response.body.close() }
      try await pipe.write(read)
      try await copy(response, from: Int64(read.count), to: pipe, messages)
    }
  }

  /// Begins a transfer. A planned one waits while as many others are running as may be.
  func feed(at start: Int64, end: Int64?, recentByteCount: Int = 0, isPlanned: Bool = false) -> ResourceFeed {
    ResourceFeed(
      at: start, end: end, in: scope, capacity: isPlanned ? Self.plannedCapacity : capacity,
      recentByteCount: recentByteCount
    ) { pipe, messages in
      guard isPlanned else { return try await transfer(from: start, to: end, pipe, messages) }
      try await permits.run { try await transfer(from: start, to: end, pipe, messages) }
    }
  }

  // MARK: - Private

  private func transfer(
    from start: Int64, to end: Int64?, _ pipe: BytePipe, _ messages: Locked<ResourceFeed.Messages>
  ) async throws {
    recorder.add(.segment, requests: 1)
    recordTraffic?(1, 0)
    let response = try await fetcher.fetch(
      FetchRequest(
        url: url, range: ByteRange(offset: start, length: end.map { $0 - start }), purpose: .segment))
    recorder.add(.segment, requests: response.requestCount - 1)
    recordTraffic?(response.requestCount - 1, 0)
    if let size = response.resourceByteCount, let byteCount, size != byteCount {
      throw ReelError(
        .server, "the resource changed: it had \(byteCount) bytes, and now has \(size)", at: url.reelName)
    }
    guard response.bodyOffset == start || response.bodyOffset == 0 else {
      throw ReelError(
        .server, "the server sent bytes from \(response.bodyOffset) on instead of \(start)",
        at: url.reelName, status: 206)
    }
    messages.withLock { $0.ignoresRange = response.bodyOffset < start }
    try await copy(response, from: response.bodyOffset, to: pipe, messages)
  }

  /// Copies the bytes of a response, which begin at `position`, up to a limit.
  private func copy(
    _ response: FetchResponse, from position: Int64, to pipe: BytePipe,
    _ messages: Locked<ResourceFeed.Messages>
  ) async throws {
    var position = position
    do {
      for try await chunk in response.body {
        recordTraffic?(0, chunk.count)
        position += Int64(chunk.count)
        try await pipe.write(chunk)
        if let limit = messages.withLock({ $0.limit }), limit <= position { return }
      }
    } catch let error as ReelError where error.isOfEarlyEnd && recordDamage != nil {
      recordDamage?(error)
    }
  }
}

extension ReelError {
  /// True for a body that ended before its announced length, if the server has no more bytes: a request for the
  /// rest is out of range (RFC 9110 §15.5.17).
  var isOfEarlyEnd: Bool { kind == .server && status == 416 }
}
