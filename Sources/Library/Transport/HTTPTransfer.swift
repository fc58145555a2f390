import AsyncHTTPClient
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import ReelCore

/// One request and its response: the head first, then the body in chunks on demand.
///
/// Up to `TransportConfiguration.readAheadByteCount` bytes are held here, and the connection is not read further until they are taken.
/// If a connection breaks, AsyncHTTPClient drops the bytes that it holds back; those held here are kept. For
/// one consumer.
///
/// Cancelling a task that waits in `head()` or `nextChunk()` ends the transfer at once, like `cancel()`. The
/// errors thrown are `TransferFailure` and `CancellationError`.
///
/// `TransferState` decides what follows from each event; this class performs it when the lock is released.
final class HTTPTransfer: HTTPClientResponseDelegate {
  typealias Response = Void

  private let state: Locked<TransferState>
  private let receipt: AnswerReceipt
  private let configuration: TransportConfiguration
  private let host: String
  /// Receives the change in the number of held bytes, negative when they are taken.
  private let recordHeld: (@Sendable (Int) -> Void)?

  private init(
    host: String, configuration: TransportConfiguration, order: FetchRequest, receipt: AnswerReceipt
  ) {
    self.host = host
    self.receipt = receipt
    self.configuration = configuration
    let limit = configuration.readAheadByteCount
    let minimum = min(max(1, order.minimumChunkByteCount), limit)
    state = Locked(
      TransferState(minimumChunkByteCount: minimum, readAheadByteCount: limit), rank: .transfer)
    recordHeld = order.recordHeld
  }

  deinit {
    receipt.withdraw()
    // Subtract the bytes that were never taken.
    recordHeld?(-state.withLock { $0.heldByteCount })
  }

  /// Sends the request.
  ///
  /// - Parameters:
  ///   - order: The request, from which this one was made.
  ///   - admit: Throws an error if the request must not be sent over a connection.
  static func start(
    _ request: HTTPClient.Request, for order: FetchRequest, on client: HTTPClient,
    admit: (@Sendable (any Channel) throws(ReelError) -> Void)?, configuration: TransportConfiguration,
    logger: Logger
  ) -> HTTPTransfer {
    let transfer = HTTPTransfer(
      host: request.host, configuration: configuration, order: order, receipt: AnswerReceipt(admit: admit))
    var request = request
    transfer.receipt.attach(to: &request.headers)
    let task = client.execute(request: request, delegate: transfer, logger: logger)
    transfer.state.withLock { $0.task = task }
    transfer.watchTime()
    return transfer
  }

  /// The number of body bytes received, before decompression.
  var receivedByteCount: Int { receipt.byteCount }

  /// When the connection was opened; nil until the request is sent, or if unknown.
  var connectionOpenedAt: ContinuousClock.Instant? { receipt.connectionOpenedAt }

  /// When the request was started, last sent over a connection, and answered.
  var times: TransferTimes { state.withLock { $0.times } }

  /// Returns the head of the response. Call it once.
  func head() async throws -> HTTPResponseHead {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        if let known = update({ $0.awaitHead(continuation) }) { continuation.resume(with: known) }
      }
    } onCancel: {
      cancel()
    }
  }

  /// Returns the next bytes of the body, or nil after the last. Call it after `head()`.
  func nextChunk() async throws -> ByteBuffer? {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        switch update({ $0.awaitChunk(continuation) }) {
        case .wait: watchTime()
        case .deliver(let chunk, let room):
          room?.succeed()
          continuation.resume(with: chunk)
        }
      }
    } onCancel: {
      cancel()
    }
  }

  /// Reads the rest of an unwanted body, so that its connection can serve the next request. Gives up and closes
  /// the connection if the rest exceeds `limit` bytes or does not arrive within `drainTimeout`.
  ///
  /// - Returns: The first chunk of the body as text.
  @discardableResult
  func drain(upTo limit: Int = 64 << 10) async -> String {
    let loop = state.withLock { $0.task?.eventLoop }
    let time = TimeAmount.nanoseconds(configuration.drainTimeout.nanoseconds)
    let patience = loop?.scheduleTask(in: time) { self.cancel() }
    var count = 0
    var text = ""
    while count <= limit, let chunk = try? await nextChunk() {
      if count == 0 { text = String(buffer: chunk) }
      count += chunk.readableBytes
    }
    patience?.cancel()
    cancel()
    return text
  }

  /// Ends the transfer. Closes its connection if the response is incomplete.
  func cancel() {
    end(.failure(CancellationError()))
  }

  // MARK: - HTTPClientResponseDelegate

  func didSendRequestHead(task: HTTPClient.Task<Void>, _ head: HTTPRequestHead) {
    update { $0.requestSent() }
    watchTime()
  }

  func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
    let waiter = update { $0.headReceived(head) }
    waiter?.resume(returning: head)
    return task.eventLoop.makeSucceededVoidFuture()
  }

  func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
    switch update({ $0.bodyReceived(buffer, on: task.eventLoop) }) {
    case .readOn: break
    case .readOnAfter(let room): return room
    case .deliver(let chunk, let consumer): consumer.resume(returning: chunk)
    }
    return task.eventLoop.makeSucceededVoidFuture()
  }

  func didReceiveError(task: HTTPClient.Task<Void>, _ error: any Error) {
    let status = state.withLock { $0.head.map { Int($0.status.code) } }
    end(
      .failure(
        TransferFailure(error, host: host, connectTimeout: configuration.connectTimeout, status: status)))
  }

  func didFinishRequest(task: HTTPClient.Task<Void>) {
    end(.success(()))
  }

  // MARK: - Private

  /// Changes the state, and records by how much the number of held bytes changes.
  private func update<Action>(_ change: (inout TransferState) -> sending Action) -> sending Action {
    state.withLock { state in
      let heldByteCount = state.heldByteCount
      defer {
        if state.heldByteCount != heldByteCount { recordHeld?(state.heldByteCount - heldByteCount) }
      }
      return change(&state)
    }
  }

  private func end(_ result: Result<Void, any Error>) {
    let (waiting, task) = update { ($0.end(result), $0.task) }
    guard let waiting else { return }
    if case .failure(let error) = result { task?.fail(reason: error) }
    switch waiting {
    case .nobody: break
    case .head(let waiter, let error): waiter.resume(throwing: error)
    case .consumer(let consumer, let chunk): consumer.resume(with: chunk)
    case .connection(let room): room.succeed()
    }
  }

  /// Sets the timer for the current wait, unless one is set. When it fires, that wait may have ended and another
  /// one begun: then it is set again.
  private func watchTime() {
    state.withLock { state in
      // Without a task there is no event loop yet. This is called again when the task is set.
      guard state.timer == nil, let loop = state.task?.eventLoop, let wait = state.wait else { return }
      let rest = time(of: wait.limit) - (.now - wait.since)
      state.timer = loop.scheduleTask(in: .nanoseconds(rest.nanoseconds)) { [weak self] in self?.checkTime() }
    }
  }

  private func checkTime() {
    let wait = state.withLock { state in
      state.timer = nil
      return state.wait
    }
    guard let wait else { return }
    let time = time(of: wait.limit)
    if .now - wait.since < time {
      watchTime()
    } else {
      end(.failure(TransferFailure.timedOut(wait.limit, after: time)))
    }
  }

  private func time(of limit: TransferFailure.Limit) -> Duration {
    switch limit {
    case .connect: configuration.connectTimeout
    case .firstByte: configuration.firstByteTimeout
    case .idle: configuration.idleTimeout
    }
  }
}

/// The moments of a transfer. They are nil until they have come.
struct TransferTimes {
  var started = ContinuousClock.now
  var sent: ContinuousClock.Instant?
  var answered: ContinuousClock.Instant?
}

/// The state of a transfer. Each event returns what its caller does when the lock is released.
private struct TransferState {
  typealias HeadWaiter = CheckedContinuation<HTTPResponseHead, any Error>
  typealias Consumer = CheckedContinuation<ByteBuffer?, any Error>

  enum Phase {
    /// The request waits for a connection since this time, and possibly the caller of `head()` for its answer.
    case connecting(since: ContinuousClock.Instant, HeadWaiter?)
    /// The request is sent.
    case answering(since: ContinuousClock.Instant, HeadWaiter?)
    /// The head has arrived. The body is read, and nobody waits for it.
    case streaming
    /// The consumer waits for a chunk. The last bytes came, or its wait began, at this time.
    case starved(since: ContinuousClock.Instant, Consumer)
    /// As many bytes are held as may be. The promise succeeds when there is room for more.
    case full(EventLoopPromise<Void>)
    /// Nothing more arrives. Held bytes can still be taken.
    case ended(Result<Void, any Error>)
  }

  private(set) var phase = Phase.connecting(since: .now, nil)
  private(set) var times = TransferTimes()
  private(set) var head: HTTPResponseHead?
  private(set) var heldByteCount = 0
  var task: HTTPClient.Task<Void>?
  /// The timer for `wait`.
  var timer: Scheduled<Void>?

  /// A wait for a chunk ends when this many bytes have arrived, or no more will arrive.
  private let minimumChunkByteCount: Int
  private let readAheadByteCount: Int
  private var chunks = CircularBuffer<ByteBuffer>()

  init(minimumChunkByteCount: Int, readAheadByteCount: Int) {
    self.minimumChunkByteCount = minimumChunkByteCount
    self.readAheadByteCount = readAheadByteCount
  }

  /// The wait that must not take longer than a limit; nil if the server owes nothing.
  var wait: (limit: TransferFailure.Limit, since: ContinuousClock.Instant)? {
    switch phase {
    case .connecting(let since, _): (.connect, since)
    case .answering(let since, _): (.firstByte, since)
    case .starved(let since, _): (.idle, since)
    case .streaming, .full, .ended: nil
    }
  }

  // MARK: - Events

  /// Returns the head if it is known, or why there is none; otherwise `waiter` is called later.
  mutating func awaitHead(_ waiter: HeadWaiter) -> Result<HTTPResponseHead, any Error>? {
    switch phase {
    case .connecting(let since, _): phase = .connecting(since: since, waiter)
    case .answering(let since, _): phase = .answering(since: since, waiter)
    case .streaming, .starved, .full, .ended:
      if let head { return .success(head) }
      if case .ended(.failure(let error)) = phase { return .failure(error) }
      return .failure(Self.headless)
    }
    return nil
  }

  mutating func requestSent() {
    times.sent = .now
    // A request that is sent again, on another connection, has no more time.
    guard case .connecting(_, let waiter) = phase else { return }
    phase = .answering(since: .now, waiter)
    stopTimer()
  }

  /// Returns the caller that waits for the head.
  mutating func headReceived(_ head: HTTPResponseHead) -> HeadWaiter? {
    switch phase {
    case .connecting(_, let waiter), .answering(_, let waiter):
      self.head = head
      times.answered = .now
      phase = .streaming
      stopTimer()
      return waiter
    // It was cancelled meanwhile, or this is a second head.
    case .ended, .streaming, .starved, .full: return nil
    }
  }

  enum BodyAction {
    case readOn
    case readOnAfter(EventLoopFuture<Void>)
    case deliver(ByteBuffer?, to: Consumer)
  }

  mutating func bodyReceived(_ buffer: ByteBuffer, on loop: any EventLoop) -> BodyAction {
    guard buffer.readableBytes > 0 else { return .readOn }
    switch phase {
    case .starved(_, let consumer):
      hold(buffer)
      guard heldByteCount >= minimumChunkByteCount else {
        phase = .starved(since: .now, consumer)
        return .readOn
      }
      phase = .streaming
      return .deliver(takeChunk(), to: consumer)
    case .streaming:
      hold(buffer)
      guard heldByteCount >= readAheadByteCount else { return .readOn }
      let room = loop.makePromise(of: Void.self)
      phase = .full(room)
      return .readOnAfter(room.futureResult)
    case .full(let room):
      hold(buffer)
      return .readOnAfter(room.futureResult)
    // It was cancelled meanwhile, or the body has no head.
    case .ended, .connecting, .answering: return .readOn
    }
  }

  enum ChunkAction {
    case wait
    /// Delivers a chunk or the end, and reads the connection further if there was no room.
    case deliver(Result<ByteBuffer?, any Error>, room: EventLoopPromise<Void>?)
  }

  mutating func awaitChunk(_ consumer: Consumer) -> ChunkAction {
    switch phase {
    case .streaming where heldByteCount < minimumChunkByteCount:
      phase = .starved(since: .now, consumer)
      return .wait
    case .streaming:
      return .deliver(.success(takeChunk()), room: nil)
    case .full(let room):
      let chunk = takeChunk()
      guard heldByteCount < readAheadByteCount else {
        return .deliver(.success(chunk), room: nil)
      }
      phase = .streaming
      return .deliver(.success(chunk), room: room)
    case .ended(let result):
      return .deliver(takeChunk().map { .success($0) } ?? result.map { nil }, room: nil)
    case .connecting, .answering, .starved:
      preconditionFailure("the transfer has no chunk to wait for: \(phase)")
    }
  }

  /// Those that wait when a transfer ends.
  enum Waiting {
    case nobody
    case head(HeadWaiter, any Error)
    /// It gets this chunk or the end.
    case consumer(Consumer, Result<ByteBuffer?, any Error>)
    case connection(EventLoopPromise<Void>)
  }

  /// Returns the waiting caller; nil if the transfer had ended.
  mutating func end(_ result: Result<Void, any Error>) -> Waiting? {
    let before = phase
    if case .ended = before { return nil }
    phase = .ended(result)
    stopTimer()
    if case .failure(is CancellationError) = result {
      chunks.removeAll()
      heldByteCount = 0
    }
    switch before {
    case .connecting(_, let waiter), .answering(_, let waiter):
      let error: any Error = if case .failure(let error) = result { error } else { Self.headless }
      return waiter.map { .head($0, error) } ?? .nobody
    case .streaming, .ended: return .nobody
    // Bytes that have arrived come before the ending.
    case .starved(_, let consumer):
      return .consumer(consumer, takeChunk().map { .success($0) } ?? result.map { nil })
    case .full(let room): return .connection(room)
    }
  }

  // MARK: - Private

  private static let headless = TransferFailure.connectionLost(reason: "the answer ended before its head")

  private mutating func stopTimer() { timer.take()?.cancel() }

  private mutating func hold(_ buffer: ByteBuffer) {
    chunks.append(buffer)
    heldByteCount += buffer.readableBytes
  }

  /// Takes held chunks, joined until they have the minimum size or none is left; nil if nothing is held.
  private mutating func takeChunk() -> ByteBuffer? {
    guard var chunk = chunks.popFirst() else { return nil }
    while chunk.readableBytes < minimumChunkByteCount, var next = chunks.popFirst() {
      chunk.writeBuffer(&next)
    }
    heldByteCount -= chunk.readableBytes
    return chunk
  }
}
