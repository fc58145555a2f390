internal import Foundation
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

  private let requests: ResourceRequests
  /// Bytes before this position were already counted when the source's format was detected.
  private let countedEnd: Int64
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
  private var expectation = Expectation.order
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
      for feed in feeds { feed.pipe.forgetInterruption() }
      if case .plan(let planned) = expectation { planned.forgetInterruption() }
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

  /// The bytes that will be read, as far as they are known beyond the demuxer's reading order.
  private enum Expectation {
    case order
    /// Next these, with nothing after them. libavformat reads through short gaps itself, so a read may begin before
    /// them.
    case range(Range<Int64>)
    /// Only these.
    case plan(PlannedTransfers)

    /// Returns the bytes that will be read from `position` on, if a known range begins soon after it or contains it.
    /// Before a planned range, whose transfer has begun, only the bytes up to it.
    func bytes(from position: Int64) -> Range<Int64>? {
      let reach = position + ReadingOrder.readThroughByteCount
      switch self {
      case .order: return nil
      case .range(let range): return position < range.upperBound && range.lowerBound <= reach ? range : nil
      case .plan(let planned):
        return planned.start(after: position).flatMap { $0 <= reach ? position..<$0 : nil }
      }
    }
  }

  /// The maximum number of bytes that a seek forward reads through if exactly the wanted bytes can be
  /// requested.
  private static let exactReadThroughByteCount: Int64 = 2 << 10
  private static let headByteCount = 64 << 10

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
    byteCount = response.resourceByteCount
    self.isSeekable = isSeekable && response.supportsRanges && response.resourceByteCount != nil
    countedEnd = Int64(read.count)
    self.spoolByteLimit = spoolByteLimit
    requests = ResourceRequests(
      url: response.url, byteCount: response.resourceByteCount, fetcher: fetcher, scope: scope,
      recorder: recorder, capacity: capacity, recordDamage: recordDamage, recordTraffic: recordTraffic)
    feeds = [requests.feed(of: response, read: read)]
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    if let byteCount, position >= byteCount { return 0 }
    let count = try readHead(into: buffer) ?? readPart(into: buffer) ?? readWhole(into: buffer)
    position += Int64(count)
    return count
  }

  func seek(to offset: Int64) throws { position = offset }

  /// Prepares for reading elsewhere: of the open transfers, only one that is already there stays.
  ///
  /// - Parameter range: The next bytes to be read, with nothing after them; nil if they are not known. Ignored if
  ///   all ranges to be read are known.
  func leave(expecting range: @autoclosure () -> Range<Int64>? = nil) {
    hasLeft = true
    if case .plan = expectation { return }
    expectation = range().map(Expectation.range) ?? .order
  }

  /// Ends the open transfers, if a later read can request the bytes that it needs.
  func endTransfers() {
    if case .plan = expectation { return }
    if isSeekable { feeds.removeAll() }
  }

  /// Announces the ranges that will be read, in this order. Several are fetched at a time, before they are read.
  func plan(_ ranges: [Range<Int64>]) {
    expectation = .plan(
      PlannedTransfers(of: whole == nil ? ranges.filter { $0.upperBound > head.count } : [], requests))
  }

  // MARK: - Private

  private func readHead(into buffer: UnsafeMutableRawBufferPointer) -> Int? {
    guard position < head.count else { return nil }
    let bytes = head[Int(position)...].prefix(buffer.count)
    buffer.copyBytes(from: bytes)
    return bytes.count
  }

  /// Reads from a transfer; nil if there is only the one of the whole file.
  private func readPart(into buffer: UnsafeMutableRawBufferPointer) throws -> Int? {
    guard whole == nil, let feed = try feedAtPosition() else { return nil }
    if position < feed.position { return feed.readAgain(at: position, into: buffer) }
    let wanted = buffer.prefix(Int(clamping: feed.end.map { $0 - position } ?? .max))
    guard let count = try receive(from: feed, into: UnsafeMutableRawBufferPointer(rebasing: wanted)) else {
      return nil
    }
    if position == head.count, head.count < Self.headByteCount {
      head.append(contentsOf: buffer.prefix(count))
    }
    return count
  }

  /// Reads from the whole file, once it has been received up to the position.
  private func readWhole(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    guard let whole else { return 0 }
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
    return try whole.source.read(into: buffer)
  }

  /// Returns a feed whose next byte is the one at the position; nil if it brings the whole file.
  private func feedAtPosition() throws -> ResourceFeed? {
    let feed = openFeed()
    while feed.position < position {
      let wanted = Int(min(position - feed.position, 16 << 10))
      let count = try withUnsafeTemporaryAllocation(byteCount: wanted, alignment: 1) { chunk in
        try receive(from: feed, into: chunk)
      }
      guard let count else { return nil }
      if count == 0 { break }
    }
    return feed
  }

  /// Returns a feed that reaches the position, for which a transfer begins if none does.
  private func openFeed() -> ResourceFeed {
    if case .plan(let planned) = expectation, let feed = planned.feed(at: position) {
      endLeft()
      return feed
    }
    let expected = expectation.bytes(from: position)
    let readThrough = expected == nil ? order.readThroughByteCount : Self.exactReadThroughByteCount
    let known = feeds.lastIndex { $0.reaches(position, leavingOut: readThrough) }.map { feeds.remove(at: $0) }
    endLeft()
    if let known {
      feeds.append(known)
      return known
    }
    // The index of a truncated file refers to samples beyond its end.
    let end = order.end(from: position).map { min($0, byteCount ?? .max) }
    let feed = requests.feed(
      at: position, end: expected?.upperBound ?? end, recentByteCount: order.recentByteCount)
    if let ended = feeds.firstIndex(where: { $0.hasEnded(shortlyBefore: position) }) {
      feed.follow(feeds.remove(at: ended))
    } else if feeds.count == ReadingOrder.maximumTransferCount {
      feeds.removeFirst()
    }
    feeds.append(feed)
    return feed
  }

  /// Ends the transfers that were left, once the one to continue with has been taken.
  private func endLeft() {
    if hasLeft { feeds.removeAll() }
    hasLeft = false
  }

  /// Reads from a feed; nil if it brings the whole file instead of a range, after which `whole` is set. A feed that
  /// fails is ended: a later read requests the rest again.
  private func receive(from feed: ResourceFeed, into buffer: UnsafeMutableRawBufferPointer) throws -> Int? {
    do {
      let count = try interruptible(feed) { try feed.pipe.read(into: buffer) }
      if feed.ignoresRange {
        try takeWhole(from: feed, buffer.prefix(count))
        return nil
      }
      feed.advance(over: buffer.prefix(count))
      requests.recorder.add(.segment, bytes: min(Int64(count), max(0, feed.position - countedEnd)))
      return count
    } catch let error as ReelError {
      feeds.removeAll { $0 === feed }
      if case .plan(let planned) = expectation { planned.end(feed) }
      throw error
    }
  }

  /// Makes a feed of the whole file the only one.
  private func takeWhole(
    from feed: ResourceFeed, _ bytes: UnsafeMutableRawBufferPointer.SubSequence
  ) throws {
    let file = try SpoolFile(of: requests.url.reelName)
    let source = FileByteSource(file, isCancelled: { [scope = requests.scope] in scope.isCancelled })
    let whole = Whole(feed: feed, file: file, source: source)
    try keep(bytes, in: whole)
    self.whole = whole
    feeds = []
    if case .plan = expectation { plan([]) }
  }

  private func keep(_ bytes: UnsafeMutableRawBufferPointer.SubSequence, in whole: Whole) throws {
    guard max(byteCount ?? 0, whole.file.byteCount + Int64(bytes.count)) <= spoolByteLimit else {
      throw ReelError(
        .badMedia, "the server ignores byte ranges, and the file is too large to keep",
        at: requests.url.reelName)
    }
    try whole.file.append(Array(bytes))
    requests.recorder.add(.segment, bytes: Int64(bytes.count))
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
}
