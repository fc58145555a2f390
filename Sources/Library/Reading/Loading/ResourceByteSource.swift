internal import Foundation
internal import HTTPTypes
internal import ReelCore
internal import ReelFFmpeg
internal import ReelSources

/// A remote file for a demuxer. The current transfer continues as long as reading goes forward; a seek sends
/// a range request. The transfer before the seek is kept, because a demuxer that fetches the index from a
/// file's end returns to the beginning, and one whose streams are stored apart alternates between them
/// (`ReadingOrder`). It ends when all reading has moved elsewhere (`leave`), because it would take its share
/// of the network.
///
/// A server may ignore ranges, although it claims to support them or did so before. The first transfer that
/// delivers the whole file then becomes the only one, and its bytes are kept in a temporary file.
///
/// Confined to its demuxer's thread; the transfers run in tasks of their own, which end with the scope or
/// with this object.
final class ResourceByteSource: ByteSource {
  let byteCount: Int64?
  let isSeekable: Bool

  private let url: URL
  private let fetcher: any Fetching
  private let scope: LoadScope
  private let recorder: StartupRecorder
  /// Bytes before this position were already counted when the source's format was detected.
  private let countedEnd: Int64
  private let capacity: Int
  private let spoolByteLimit: Int64
  private var position: Int64 = 0
  /// The first bytes of the file, kept as they are read.
  private var head: [UInt8] = []
  /// The open transfers, the last used one last.
  private var feeds: [ResourceFeed]
  /// The only transfer, if the server ignores ranges.
  private var whole: Whole?
  /// True if reading has moved elsewhere, and has not begun there.
  private var hasLeft = false
  /// The next bytes to be read, with nothing after them: a request is limited to them. libavformat reads
  /// through short gaps itself, so a read may begin before them. Nil if they are not known.
  var expectedRange: Range<Int64>?
  /// The ranges to be read in this order, whose transfers have not begun; in reverse order.
  private var planned: [Range<Int64>] = []
  /// The transfers of planned ranges, in order.
  private var ahead: [ResourceFeed] = []
  private let permits = TransferPermits(plannedTransferCount)
  /// True if all ranges to be read are known.
  private(set) var isPlanned = false
  /// The demuxer's reading order. Transfers that it does not need are ended.
  var order = ReadingOrder.forward {
    didSet {
      feeds.removeAll { !order.needsTransfer(at: $0.position) }
      for feed in feeds {
        feed.recentByteCount = order.recentByteCount
        if let end = order.cut(at: feed.position) { feed.cut(at: end) }
      }
    }
  }
  /// The scope that ends a waiting read but no transfer; nil if reads end only with all loading.
  var interruption: LoadScope? {
    didSet {
      for feed in feeds + ahead { feed.pipe.forgetInterruption() }
      whole?.feed.pipe.forgetInterruption()
    }
  }

  /// A transfer of the whole file, and its bytes so far.
  private struct Whole {
    let feed: ResourceFeed
    let file: SpoolFile
    /// Reads the file.
    let source: FileByteSource
  }

  /// The maximum number of bytes that a seek forward reads through if exactly the wanted bytes can be
  /// requested.
  private static let exactReadThroughByteCount: Int64 = 2 << 10
  private static let headByteCount = 64 << 10
  /// The number of planned ranges that are fetched at the same time: as many as browsers open connections to a host.
  private static let plannedTransferCount = 6
  /// The number of planned ranges that are being fetched, wait for that, or wait to be read. It exceeds the
  /// number of concurrent transfers, so that the next transfer does not wait for the reader.
  private static let plannedFeedCount = 16
  /// The number of bytes of a planned range held before it is read.
  private static let plannedCapacity = 1 << 20
  private let notes: Notes

  /// Handlers for reports on the transfers, called on any thread.
  private struct Notes: Sendable {
    let damage: (@Sendable (ReelError) -> Void)?
    let traffic: (@Sendable (_ requestCount: Int, _ byteCount: Int) -> Void)?
  }

  /// - Parameters:
  ///   - read: The first bytes of the answer's body, which have been taken from it.
  ///   - capacity: The number of unread bytes at which a transfer waits.
  ///   - spoolByteLimit: The largest size of the temporary file.
  ///   - recordDamage: Receives the error of a transfer whose bytes are delivered nevertheless.
  ///  - recordTraffic: Receives the requests that are sent, including the answered one, and the bytes as they
  ///    arrive, whether or not they are read then.
  init(
    response: FetchResponse, read: [UInt8], isSeekable: Bool, fetcher: any Fetching, scope: LoadScope,
    recorder: StartupRecorder, capacity: Int = BytePipe.usualCapacity,
    spoolByteLimit: Int64 = .max,
    recordDamage: (@Sendable (ReelError) -> Void)? = nil,
    recordTraffic: (@Sendable (_ requestCount: Int, _ byteCount: Int) -> Void)? = nil
  ) {
    let notes = Notes(damage: recordDamage, traffic: recordTraffic)
    self.notes = notes
    url = response.url
    byteCount = response.resourceByteCount
    self.isSeekable = isSeekable && response.supportsRanges && response.resourceByteCount != nil
    self.fetcher = fetcher
    self.scope = scope
    self.recorder = recorder
    countedEnd = Int64(read.count)
    self.capacity = capacity
    self.spoolByteLimit = spoolByteLimit
    recordTraffic?(response.requestCount, read.count)
    feeds = [
      ResourceFeed(at: 0, in: scope, capacity: capacity, recentByteCount: 0) { pipe, limit in
        // Others hold the response too.
        defer { response.body.close() }
        try await pipe.write(read)
        try await Self.copy(response, from: Int64(read.count), upTo: limit, to: pipe, notes)
      }
    ]
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    if let byteCount, position >= byteCount { return 0 }
    if position < head.count {
      let bytes = head[Int(position)...].prefix(buffer.count)
      buffer.copyBytes(from: bytes)
      position += Int64(bytes.count)
      return bytes.count
    }
    if let whole { return try read(whole, into: buffer) }
    let feed = try feedAtPosition()
    if let whole { return try read(whole, into: buffer) }
    if position < feed.position {
      let count = feed.readAgain(at: position, into: buffer)
      position += Int64(count)
      return count
    }
    let count: Int
    let wanted = UnsafeMutableRawBufferPointer(
      rebasing: buffer.prefix(Int(clamping: feed.end.map { $0 - position } ?? .max)))
    do {
      count = try receive(from: feed, into: wanted)
    } catch let error as ReelError {
      drop(feed)
      throw error
    }
    if let whole { return try read(whole, into: buffer) }
    if position == head.count, head.count < Self.headByteCount {
      head.append(contentsOf: buffer.prefix(count))
    }
    position += Int64(count)
    return count
  }

  func seek(to offset: Int64) throws { position = offset }

  /// Prepares for reading elsewhere: of the open transfers, only one that is already there stays.
  func leave() { hasLeft = true }

  /// Ends the open transfers, if a later read can request the bytes that it needs.
  func endTransfers() {
    if isSeekable, !isPlanned { feeds.removeAll() }
  }

  /// Announces the ranges that will be read, in this order. Several are fetched at a time, before they are read.
  func plan(_ ranges: [Range<Int64>]) {
    isPlanned = true
    expectedRange = nil
    guard whole == nil else { return }
    planned = ranges.filter { $0.upperBound > head.count }.reversed()
    ahead = []
    beginPlanned()
  }

  // MARK: - Private

  private func beginPlanned() {
    while ahead.count < Self.plannedFeedCount, let range = planned.popLast() {
      ahead.append(
        makeFeed(
          at: range.lowerBound, end: range.upperBound, capacity: Self.plannedCapacity, permits: permits))
    }
  }

  /// Returns the transfer of the planned range that contains the position; nil if none does. Earlier ones are
  /// ended.
  private func plannedFeed() -> ResourceFeed? {
    func index() -> Int? { ahead.firstIndex { $0.reaches(position, leavingOut: .max) } }
    if index() == nil, let next = planned.lastIndex(where: { $0.contains(position) }) {
      planned.removeLast(planned.count - 1 - next)
      ahead = []
      beginPlanned()
    }
    guard let index = index() else { return nil }
    ahead.removeFirst(index)
    if hasLeft { feeds.removeAll() }
    hasLeft = false
    beginPlanned()
    return ahead[0]
  }

  /// Reads from a feed. If it brings the whole file instead of a range, `whole` is set.
  private func receive(from feed: ResourceFeed, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count = try interruptible(feed) { try feed.pipe.read(into: buffer) }
    if feed.ignoresRange.withLock({ $0 }) {
      let file = try SpoolFile(of: url.reelName)
      let whole = Whole(
        feed: feed, file: file, source: FileByteSource(file, isCancelled: { [scope] in scope.isCancelled }))
      try keep(buffer.prefix(count), in: whole)
      self.whole = whole
      feeds = []
      ahead = []
      planned = []
    } else {
      feed.advance(over: buffer.prefix(count))
      recorder.add(.segment, bytes: min(Int64(count), max(0, feed.position - countedEnd)))
    }
    return count
  }

  /// Reads from the position on, once the file has been received up to there.
  private func read(_ whole: Whole, into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    do {
      while whole.file.byteCount <= position {
        let received = try withUnsafeTemporaryAllocation(byteCount: 16 << 10, alignment: 1) { chunk in
          let count = try interruptible(whole.feed) { try whole.feed.pipe.read(into: chunk) }
          try keep(chunk.prefix(count), in: whole)
          return count
        }
        if received == 0 { return 0 }
      }
    } catch let error as ReelError {
      // A later read requests the file again.
      self.whole = nil
      throw error
    }
    try whole.source.seek(to: position)
    let count = try whole.source.read(into: buffer)
    position += Int64(count)
    return count
  }

  private func keep(_ bytes: UnsafeMutableRawBufferPointer.SubSequence, in whole: Whole) throws {
    guard max(byteCount ?? 0, whole.file.byteCount + Int64(bytes.count)) <= spoolByteLimit else {
      throw ReelError(
        .badMedia, "the server ignores byte ranges, and the file is too large to keep", at: url.reelName)
    }
    try whole.file.append(Array(bytes))
    recorder.add(.segment, bytes: Int64(bytes.count))
  }

  /// Ends a feed: a later read requests the rest again.
  private func drop(_ feed: ResourceFeed) {
    feeds.removeAll { $0 === feed }
    ahead.removeAll { $0 === feed }
  }

  private func interruptible<Result>(_ feed: ResourceFeed, _ read: () throws -> Result) throws -> Result {
    guard let interruption else { return try read() }
    // An interruption may come after the read has ended, when the next read is for another position.
    let (pipe, isReading) = (feed.pipe, Locked(true, rank: .transfer))
    let token = interruption.onCancel { isReading.withLock { if $0 { pipe.interrupt() } } }
    defer {
      interruption.forget(token)
      isReading.withLock { $0 = false }
    }
    return try read()
  }

  /// Copies the bytes of a response, which begin at `position`, up to a limit.
  private static func copy(
    _ response: FetchResponse, from position: Int64, upTo limit: Locked<Int64?>, to pipe: BytePipe,
    _ notes: Notes
  ) async throws {
    var position = position
    let isOver = { (position: Int64) in limit.withLock { $0.map { $0 <= position } ?? false } }
    do {
      for try await chunk in response.body {
        notes.traffic?(0, chunk.count)
        position += Int64(chunk.count)
        try await pipe.write(chunk)
        if isOver(position) { return }
      }
    } catch let error as ReelError where error.isOfEarlyEnd && notes.damage != nil {
      notes.damage?(error)
    }
  }

  /// Returns a feed whose next byte is the one at the position.
  private func feedAtPosition() throws -> ResourceFeed {
    if isPlanned, let feed = plannedFeed() {
      try skip(in: feed)
      return feed
    }
    let expected = expectedBytes
    let readThrough = expected == nil ? order.readThroughByteCount : Self.exactReadThroughByteCount
    let index = feeds.lastIndex { $0.reaches(position, leavingOut: readThrough) }
    let known = index.map { feeds.remove(at: $0) }
    if hasLeft { feeds.removeAll() }
    hasLeft = false
    if let known {
      feeds.append(known)
      try skip(in: known)
      return known
    }
    // The index of a truncated file refers to samples beyond its end.
    let end = order.end(from: position).map { min($0, byteCount ?? .max) }
    let feed = makeFeed(at: position, end: expected?.upperBound ?? end, capacity: capacity)
    if let ended = feeds.firstIndex(where: { $0.hasEnded(shortlyBefore: position) }) {
      feed.follow(feeds.remove(at: ended))
    } else if feeds.count == ReadingOrder.maximumTransferCount {
      feeds.removeFirst()
    }
    feeds.append(feed)
    return feed
  }

  /// The bytes that will be read from the position on, if a known range begins soon after it or contains it.
  /// Before a planned range, whose transfer has begun, only the bytes up to it.
  private var expectedBytes: Range<Int64>? {
    guard isPlanned else {
      return expectedRange.flatMap { range in
        position < range.upperBound && range.lowerBound - position <= ReadingOrder.readThroughByteCount
          ? range : nil
      }
    }
    let next = (ahead.map(\.position) + planned.map(\.lowerBound)).filter { $0 > position }.min()
    return next.flatMap { $0 - position <= ReadingOrder.readThroughByteCount ? position..<$0 : nil }
  }

  /// Begins a transfer.
  ///
  /// - Parameter permits: Limits the number of concurrent transfers; nil for no limit.
  private func makeFeed(at start: Int64, end: Int64?, capacity: Int, permits: TransferPermits? = nil)
    -> ResourceFeed
  {
    let (fetcher, url, notes, recorder, byteCount) = (fetcher, url, notes, recorder, byteCount)
    let request = FetchRequest(
      url: url, range: ByteRange(offset: start, length: end.map { $0 - start }), purpose: .segment)
    let ignoresRange = Locked(false)
    let transfer = { @Sendable (pipe: BytePipe, limit: Locked<Int64?>) async throws in
      recorder.add(.segment, requests: 1)
      notes.traffic?(1, 0)
      let response = try await fetcher.fetch(request)
      recorder.add(.segment, requests: response.requestCount - 1)
      notes.traffic?(response.requestCount - 1, 0)
      if let size = response.resourceByteCount, let byteCount, size != byteCount {
        throw ReelError(
          .server, "the resource changed: it had \(byteCount) bytes, and now has \(size)", at: url.reelName)
      }
      guard response.bodyOffset == start || response.bodyOffset == 0 else {
        throw ReelError(
          .server, "the server sent bytes from \(response.bodyOffset) on instead of \(start)",
          at: url.reelName,
          status: 206)
      }
      ignoresRange.withLock { $0 = response.bodyOffset < start }
      try await Self.copy(response, from: response.bodyOffset, upTo: limit, to: pipe, notes)
    }
    return ResourceFeed(
      at: start, end: end, ignoresRange: ignoresRange, in: scope, capacity: capacity,
      recentByteCount: permits == nil ? order.recentByteCount : 0
    ) { pipe, limit in
      guard let permits else { return try await transfer(pipe, limit) }
      try await permits.run { try await transfer(pipe, limit) }
    }
  }

  /// Reads a feed up to the position, unless it brings the whole file.
  private func skip(in feed: ResourceFeed) throws {
    while feed.position < position, whole == nil {
      let wanted = Int(min(position - feed.position, 16 << 10))
      let count: Int
      do {
        count = try withUnsafeTemporaryAllocation(byteCount: wanted, alignment: 1) {
          let buffer = $0
          return try receive(from: feed, into: buffer)
        }
      } catch let error as ReelError {
        drop(feed)
        throw error
      }
      if count == 0 { return }
    }
  }
}

extension ReelError {
  /// True for a body that ended before its announced length, if the server has no more bytes: a request for the
  /// rest is out of range (RFC 9110 §15.5.17).
  var isOfEarlyEnd: Bool { kind == .server && status == 416 }
}
