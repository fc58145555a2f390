internal import ReelCore

/// One answer on a modelled link: real bytes go in, and come out when they are across.
final class LinkedTransfer: Sendable {
  fileprivate struct State {
    /// In the order in which they are sent: those that are across first.
    var bytes = ByteQueue()
    /// Those that are across.
    var arrivedCount = 0
    /// No more bytes come in.
    var isComplete = false
    var failure: (any Error)?
    /// All bytes are across, or none will be any more.
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
  private let report: (@Sendable (RequestMetrics) -> Void)?
  private let state: Locked<State>

  /// More bytes are asked for when fewer wait to be sent.
  private static let lowWaterByteCount = 32 << 10
  /// Bytes that are given at a time at most.
  fileprivate static let chunkByteCount = 64 << 10

  init(
    _ scheduler: LinkScheduler, departure: LinkModel.Departure, readyAt: Duration, began: Duration,
    metrics: RequestMetrics, report: (@Sendable (RequestMetrics) -> Void)?
  ) {
    self.scheduler = scheduler
    connection = departure.connection
    self.readyAt = readyAt
    self.began = began
    self.report = report
    state = Locked(State(metrics: metrics), rank: .transfer)
    let number = scheduler.begin(self, readyAt: readyAt, on: connection)
    state.withLock { $0.number = number }
  }

  // MARK: Bytes in

  /// - Parameter onNeed: called when more bytes can be sent: puts some, or finishes. Nil for who waits for that.
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

  /// No more bytes come in, where `error` is there for that reason.
  func finish(_ error: (any Error)?) {
    let number = state.withLock { state -> Int? in
      guard !state.isComplete, !state.isCancelled else { return nil }
      state.isComplete = true
      state.failure = error
      state.onNeed = nil
      return state.number
    }
    // What has no bytes ends with its head: not before that comes.
    guard let number, scheduler.complete(number) else { return }
    endWhenReady()
  }

  /// Returns when more bytes can be sent. Throws `CancellationError` where none will be any more.
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

  /// A parcel is across.
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

  /// The next bytes; nil at the end.
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

  /// Nobody wants the rest: the connection is closed, unless all of it is across.
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
      tell(at: scheduler.clock.now)
    }
    reader?.resume(throwing: CancellationError())
  }

  // MARK: - Private

  private var number: Int { state.withLock { $0.number } }

  /// Asks for more where little is left to be sent.
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

  /// All bytes are across.
  private func end(at time: Duration) {
    let (isNews, reader, failure) = state.withLock {
      state -> (Bool, CheckedContinuation<[UInt8]?, any Error>?, (any Error)?) in
      guard !state.isOver else { return (false, nil, nil) }
      state.isOver = true
      state.supplier = nil
      // Where bytes are left, they are read first.
      return (true, state.arrivedCount == 0 ? state.reader.take() : nil, state.failure)
    }
    guard isNews else { return }
    scheduler.remove(number, connection: connection, keeps: failure == nil)
    tell(at: time)
    guard let reader else { return }
    if let failure { reader.resume(throwing: failure) } else { reader.resume(returning: nil) }
  }

  private func tell(at time: Duration) {
    let metrics = state.withLock { state -> RequestMetrics? in
      guard !state.isReported else { return nil }
      state.isReported = true
      if let first = state.firstByteAt { state.metrics.transferTime = time - first }
      return state.metrics
    }
    if let metrics { report?(metrics) }
  }
}

extension LinkedTransfer.State {
  /// What is across and has not been read.
  fileprivate mutating func take() -> [UInt8] {
    let chunk = bytes.take(min(arrivedCount, LinkedTransfer.chunkByteCount))
    arrivedCount -= chunk.count
    return chunk
  }
}
