internal import Foundation
internal import HTTPTypes
package import ReelCore

/// One answer on a modelled link: real bytes go in, and come out when they have crossed the link.
final class LinkedTransfer: Sendable {
  fileprivate struct Transit {
    /// The bytes in sending order: those that have crossed the link come first.
    var bytes = ByteQueue()
    /// The number of bytes that have crossed the link.
    var arrivedCount = 0
    /// True if no more bytes come in.
    var isComplete = false
    var failure: (any Error)?
    /// True if all bytes have crossed the link, or no more will.
    var isOver = false
    var isCancelled = false
    var firstByteAt: Duration?
    var metrics: RequestMetrics
    var isReported = false
    var reader: CheckedContinuation<[UInt8]?, any Error>?
    var supplierWait: CheckedContinuation<Void, Never>?
    var supplier: Task<Void, Never>?
    var onNeed: (@Sendable (LinkedTransfer) -> Void)?
    var number = 0
    var isSupplying = false
  }

  private let scheduler: LinkScheduler
  private let connection: Int
  private let readyAt: Duration
  private let began: Duration
  private let keepsConnection: Bool
  private let report: (@Sendable (RequestMetrics) -> Void)?
  private let state: Locked<Transit>

  /// The number of waiting bytes below which more are requested.
  private static let lowWaterByteCount = 32 << 10
  /// The maximum number of bytes returned at a time.
  fileprivate static let chunkByteCount = 64 << 10

  init(
    _ scheduler: LinkScheduler, departure: LinkModel.Departure, readyAt: Duration, began: Duration,
    metrics: RequestMetrics, keepsConnection: Bool = true, report: (@Sendable (RequestMetrics) -> Void)?
  ) {
    self.scheduler = scheduler
    connection = departure.connection
    self.readyAt = readyAt
    self.began = began
    self.keepsConnection = keepsConnection
    self.report = report
    state = Locked(Transit(metrics: metrics), rank: .transfer)
    let number = scheduler.begin(self, readyAt: readyAt, on: connection)
    state.withLock { $0.number = number }
  }

  // MARK: Bytes in

  /// - Parameter onNeed: Called when more bytes can be sent: adds some, or finishes. Nil for a caller that
  ///   waits instead.
  func begin(onNeed: (@Sendable (LinkedTransfer) -> Void)?) {
    state.withLock { $0.onNeed = onNeed }
    supplyIfNeeded()
  }

  func setSupplier(_ task: Task<Void, Never>) {
    let isOver = state.withLock { state in
      state.supplier = task
      return state.isCancelled
    }
    if isOver { task.cancel() }
  }

  func put(_ bytes: [UInt8]) {
    let number = state.withLock { state -> Int? in
      guard !state.isComplete, !state.isCancelled else { return nil }
      state.bytes.append(bytes)
      return state.number
    }
    if let number { scheduler.put(bytes.count, of: number) }
  }

  /// Ends the transfer; `error` says why, if it failed.
  func finish(_ error: (any Error)?) {
    let number = state.withLock { state -> Int? in
      guard !state.isComplete, !state.isCancelled else { return nil }
      state.isComplete = true
      state.failure = error
      state.onNeed = nil
      return state.number
    }
    // A transfer without bytes ends with its head, not before that arrives.
    guard let number, scheduler.complete(number) else { return }
    endWhenReady()
  }

  /// Returns when more bytes can be sent. Throws `CancellationError` if no more will be.
  func waitForNeed() async throws {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isNeeded = state.withLock { state in
          if state.isCancelled || scheduler.waitingCount(of: state.number) < Self.lowWaterByteCount {
            return true
          }
          state.supplierWait = continuation
          return false
        }
        if isNeeded { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.supplierWait.take() }?.resume()
    }
    if state.withLock({ $0.isCancelled }) { throw CancellationError() }
  }

  // MARK: The link

  /// Receives a parcel that has crossed the link.
  func receive(_ delivery: LinkModel.Delivery) {
    let (reader, chunk) = state.withLock { state -> (CheckedContinuation<[UInt8]?, any Error>?, [UInt8]) in
      state.arrivedCount += delivery.byteCount
      state.metrics.byteCount += Int64(delivery.byteCount)
      if state.firstByteAt == nil {
        state.firstByteAt = delivery.time
        state.metrics.timeToFirstByte = delivery.time - began
      }
      guard let reader = state.reader.take() else { return (nil, []) }
      return (reader, state.take())
    }
    if let reader {
      scheduler.read(chunk.count, of: number)
      reader.resume(returning: chunk)
    }
    if delivery.isLast { end(at: delivery.time) } else { supplyIfNeeded() }
  }

  // MARK: Bytes out

  /// Returns the next bytes; nil at the end.
  func next() async throws -> [UInt8]? {
    if Task.isCancelled { cancel() }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let (outcome, count) = state.withLock { state -> (Result<[UInt8]?, any Error>?, Int) in
          if state.isCancelled { return (.failure(CancellationError()), 0) }
          if state.arrivedCount > 0 {
            let chunk = state.take()
            return (.success(chunk), chunk.count)
          }
          if state.isOver { return (state.failure.map { .failure($0) } ?? .success(nil), 0) }
          state.reader = continuation
          return (nil, 0)
        }
        if count > 0 { scheduler.read(count, of: number) }
        if let outcome { continuation.resume(with: outcome) }
      }
    } onCancel: {
      cancel()
    }
  }

  /// Abandons the rest: the connection is closed, unless all bytes have crossed the link.
  func cancel() {
    let (reader, supplierWait, supplier, wasOver) = state.withLock { state in
      let wasOver = state.isOver
      state.isCancelled = true
      state.isOver = true
      state.bytes = ByteQueue()
      state.arrivedCount = 0
      state.onNeed = nil
      return (state.reader.take(), state.supplierWait.take(), state.supplier.take(), wasOver)
    }
    supplier?.cancel()
    supplierWait?.resume()
    if !wasOver {
      scheduler.remove(number, connection: connection, keeps: false)
      publish(at: scheduler.clock.now)
    }
    reader?.resume(throwing: CancellationError())
  }

  // MARK: - Private

  private var number: Int { state.withLock { $0.number } }

  /// Requests more bytes if few wait to be sent.
  private func supplyIfNeeded() {
    while true {
      let (onNeed, waiter) = state.withLock {
        state -> ((@Sendable (LinkedTransfer) -> Void)?, CheckedContinuation<Void, Never>?) in
        guard !state.isComplete, !state.isCancelled, !state.isSupplying,
          scheduler.waitingCount(of: state.number) < Self.lowWaterByteCount
        else { return (nil, nil) }
        state.isSupplying = state.onNeed != nil
        return (state.onNeed, state.supplierWait.take())
      }
      waiter?.resume()
      guard let onNeed else { return }
      onNeed(self)
      state.withLock { $0.isSupplying = false }
    }
  }

  private func endWhenReady() {
    let now = scheduler.clock.now
    guard readyAt > now else { return end(at: now) }
    let time = readyAt
    scheduler.clock.schedule(at: time) { self.end(at: time) }
  }

  /// Records that all bytes have crossed the link.
  private func end(at time: Duration) {
    let (isNews, reader, failure) = state.withLock {
      state -> (Bool, CheckedContinuation<[UInt8]?, any Error>?, (any Error)?) in
      guard !state.isOver else { return (false, nil, nil) }
      state.isOver = true
      state.supplier = nil
      // Remaining bytes are read first.
      return (true, state.arrivedCount == 0 ? state.reader.take() : nil, state.failure)
    }
    guard isNews else { return }
    scheduler.remove(number, connection: connection, keeps: failure == nil && keepsConnection)
    publish(at: time)
    guard let reader else { return }
    if let failure { reader.resume(throwing: failure) } else { reader.resume(returning: nil) }
  }

  private func publish(at time: Duration) {
    let metrics = state.withLock { state -> RequestMetrics? in
      guard !state.isReported else { return nil }
      state.isReported = true
      let failure = state.isCancelled ? CancellationError() : state.failure
      state.metrics.outcome = RequestMetrics.Outcome(failure.map { .failure($0) } ?? .success(()))
      if let first = state.firstByteAt { state.metrics.transferTime = time - first }
      return state.metrics
    }
    if let metrics { report?(metrics) }
  }
}

extension LinkedTransfer.Transit {
  /// Takes the bytes that have crossed the link and have not been read.
  fileprivate mutating func take() -> [UInt8] {
    let chunk = bytes.take(min(arrivedCount, LinkedTransfer.chunkByteCount))
    arrivedCount -= chunk.count
    return chunk
  }
}

/// The contents of local files that simulations read, kept in memory: a walk visits an item several times,
/// and each piece that is read outside the simulation costs several thread switches.
///
/// May be shared by concurrent simulations. If a file changes meanwhile, simulations read its old or its new
/// content.
package final class FileAnswers: Sendable {
  fileprivate struct File {
    let size: Int64
    var pieces: [Int64: [UInt8]] = [:]
    /// A count of uses.
    var lastUse: Int
  }

  private struct State {
    var files: [URL: File] = [:]
    var byteCount = 0
    var useCount = 0
  }

  /// The body of an answer, read piece by piece.
  package struct Body: Sendable {
    fileprivate let url: URL
    fileprivate var offset: Int64
    fileprivate let end: Int64

    /// True if nothing is left.
    package var isAtEnd: Bool { offset >= end }

    /// The request to send if `FileAnswers.take` returns nil.
    package var missing: FetchRequest {
      let start = offset / pieceByteCount * pieceByteCount
      return FetchRequest(
        url: url, range: ByteRange(offset: start, length: pieceByteCount), purpose: .resource)
    }

    /// Advances past the part of these bytes, requested with `missing`, that belongs to the body; returns
    /// that part.
    mutating func take(_ bytes: [UInt8]) throws(ReelError) -> [UInt8] {
      let start = Int(offset % pieceByteCount)
      let count = min(bytes.count - start, Int(end - offset))
      guard count > 0 else {
        throw ReelError(
          .badMedia, "the file was truncated while it was read: byte \(offset) is gone",
          at: url.absoluteString)
      }
      offset += Int64(count)
      return start == 0 && count == bytes.count ? bytes : Array(bytes[start..<(start + count)])
    }
  }

  /// 512 MiB by default.
  package static let defaultByteLimit = 512 << 20

  private let byteLimit: Int
  private let state = Locked(State())

  /// - Parameter byteLimit: The maximum number of bytes; the least recently used files are removed first.
  package init(byteLimit: Int = FileAnswers.defaultByteLimit) { self.byteLimit = byteLimit }

  /// The number of bytes that are kept.
  package var byteCount: Int { state.withLock { $0.byteCount } }

  /// Returns the answer of a file that was read before; nil if it must be fetched.
  package func answer(to request: FetchRequest) -> (head: FetchResponse, body: Body)? {
    guard request.url.isFileURL, request.method == .get else { return nil }
    let size = state.withLock { state -> Int64? in
      state.useCount += 1
      state.files[request.url]?.lastUse = state.useCount
      return state.files[request.url]?.size
    }
    let offset = request.range?.offset ?? 0
    guard let size, offset < size || offset == 0 && size == 0 else { return nil }
    let length = min(request.range?.length ?? .max, size - offset)
    let head = FetchResponse(
      url: request.url, contentType: nil, bodyOffset: offset, bodyByteCount: length, resourceByteCount: size,
      supportsRanges: true, body: FetchBody { nil })
    return (head, Body(url: request.url, offset: offset, end: offset + length))
  }

  /// Records a real answer; nil if it is not that of a file with a known size.
  package func record(_ response: FetchResponse, to request: FetchRequest) -> Body? {
    guard request.url.isFileURL, request.method == .get, response.url == request.url,
      let size = response.resourceByteCount, let length = response.bodyByteCount
    else { return nil }
    state.withLock { state in
      state.useCount += 1
      guard state.files[request.url] == nil else { return }
      state.files[request.url] = File(size: size, lastUse: state.useCount)
    }
    return Body(url: request.url, offset: response.bodyOffset, end: response.bodyOffset + length)
  }

  /// Returns the next bytes of a body, and advances past them; nil if they are not in memory.
  package func take(_ body: inout Body) -> [UInt8]? {
    let index = body.offset / pieceByteCount
    guard let piece = state.withLock({ $0.files[body.url]?.pieces[index] }) else { return nil }
    return try? body.take(piece)
  }

  /// Stores the bytes requested with `Body.missing`.
  package func keep(_ bytes: [UInt8], for request: FetchRequest) {
    guard let offset = request.range?.offset, !bytes.isEmpty else { return }
    let dropped = state.withLock { state -> [File] in
      guard state.files[request.url] != nil, state.files[request.url]?.pieces[offset / pieceByteCount] == nil
      else { return [] }
      state.files[request.url]?.pieces[offset / pieceByteCount] = bytes
      state.byteCount += bytes.count
      guard state.byteCount > byteLimit else { return [] }
      var dropped: [File] = []
      // The order of uses is unambiguous, so the order of the dictionary does not matter.
      for (url, file) in state.files.sorted(by: { $0.value.lastUse < $1.value.lastUse })
      where url != request.url {
        guard state.byteCount > byteLimit else { break }
        state.byteCount -= file.pieces.values.reduce(0) { $0 + $1.count }
        state.files[url]?.pieces = [:]
        dropped.append(file)
      }
      return dropped
    }
    withExtendedLifetime(dropped) {}
  }
}

/// The size of the parts in which files are read: 128 KiB.
private let pieceByteCount: Int64 = 128 << 10
