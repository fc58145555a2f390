import AsyncHTTPClient
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import ReelCore

/// One request and its response: the head first, then the body in chunks on demand.
///
/// Up to `readAheadByteCount` bytes are held here, and the connection is not read further until they are taken.
/// If a connection breaks, AsyncHTTPClient drops the bytes that it holds back; those held here are kept. For
/// one consumer.
///
/// Cancelling a task that waits in `head()` or `nextChunk()` ends the transfer at once, like `cancel()`. The
/// errors thrown are `TransferFailure` and `CancellationError`.
final class HTTPTransfer: HTTPClientResponseDelegate {
  typealias Response = Void

  static let readAheadByteCount = 64 << 10

  private enum Phase {
    case connecting
    case waitingForHead
    case streaming
  }

  private struct State {
    var phase = Phase.connecting
    var task: HTTPClient.Task<Void>?
    /// Set when nothing more will arrive from the connection.
    var ending: Result<Void, any Error>?
    var head: HTTPResponseHead?
    /// The chunks that have arrived and have not been taken yet.
    var chunks = CircularBuffer<ByteBuffer>()
    var heldByteCount = 0
    /// Succeeds when there is room for more.
    var roomMade: EventLoopPromise<Void>?
    var headWaiter: CheckedContinuation<HTTPResponseHead, any Error>?
    var chunkWaiter: CheckedContinuation<ByteBuffer?, any Error>?
    /// The time at which the current wait for a chunk began.
    var waitingSince = ContinuousClock.now
    var isIdleTimerArmed = false
    var timer: Scheduled<Void>?
  }

  private let state = Locked(State(), rank: .transfer)
  private let receipt = AnswerReceipt()
  private let configuration: TransportConfiguration
  private let host: String
  /// A wait for a chunk ends when this many bytes have arrived, or no more will arrive.
  private let minimumChunkByteCount: Int
  /// Receives the change in the number of held bytes, negative when they are taken.
  private let recordHeld: (@Sendable (Int) -> Void)?

  private init(host: String, configuration: TransportConfiguration, order: FetchRequest) {
    self.host = host
    self.configuration = configuration
    minimumChunkByteCount = min(max(1, order.minimumChunkByteCount), Self.readAheadByteCount)
    recordHeld = order.recordHeld
  }

  deinit {
    receipt.withdraw()
    // Subtract the bytes that were never taken.
    recordHeld?(-state.withLock { $0.heldByteCount })
  }

  /// Sends the request.
  ///
  /// - Parameter plan: The request, from which this one was made.
  static func start(
    _ request: HTTPClient.Request, for order: FetchRequest, on client: HTTPClient,
    configuration: TransportConfiguration, logger: Logger
  ) -> HTTPTransfer {
    let transfer = HTTPTransfer(host: request.host, configuration: configuration, order: order)
    var request = request
    transfer.receipt.attach(to: &request.headers)
    let task = client.execute(request: request, delegate: transfer, logger: logger)
    transfer.state.withLock { $0.task = task }
    transfer.armHeadTimer()
    return transfer
  }

  /// The number of body bytes received, before decompression.
  var receivedByteCount: Int { receipt.byteCount }

  /// When the connection was opened; nil until the request is sent, or if unknown.
  var connectionOpenedAt: ContinuousClock.Instant? { receipt.connectionOpenedAt }

  /// Returns the head of the response. Call it once.
  func head() async throws -> HTTPResponseHead {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let known: Result<HTTPResponseHead, any Error>? = state.withLock { state in
          if let head = state.head { return .success(head) }
          if case .failure(let error) = state.ending { return .failure(error) }
          state.headWaiter = continuation
          return nil
        }
        if let known { continuation.resume(with: known) }
      }
    } onCancel: {
      cancel()
    }
  }

  /// Returns the next bytes of the body, or nil after the last.
  func nextChunk() async throws -> ByteBuffer? {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let (known, room): (Result<ByteBuffer?, any Error>?, EventLoopPromise<Void>?) = state.withLock {
          state in
          if state.heldByteCount >= minimumChunkByteCount || state.ending != nil,
            let chunk = takeChunk(&state)
          {
            let hasRoom = state.heldByteCount < Self.readAheadByteCount
            return (.success(chunk), hasRoom ? state.roomMade.take() : nil)
          }
          if let ending = state.ending { return (ending.map { nil }, nil) }
          state.chunkWaiter = continuation
          state.waitingSince = .now
          return (nil, nil)
        }
        room?.succeed()
        if let known { continuation.resume(with: known) } else { armIdleTimer() }
      }
    } onCancel: {
      cancel()
    }
  }

  /// Reads the rest of an unwanted body, so that its connection can serve the next request. Gives up and closes
  /// the connection if the rest exceeds `limit` bytes or does not arrive at once.
  func drain(upTo limit: Int = 64 << 10) async {
    let loop = state.withLock { $0.task?.eventLoop }
    let patience = loop?.scheduleTask(in: .milliseconds(100)) { self.cancel() }
    var count = 0
    while count <= limit, let chunk = try? await nextChunk() { count += chunk.readableBytes }
    patience?.cancel()
    cancel()
  }

  /// Ends the transfer. Closes its connection if the response is incomplete.
  func cancel() {
    end(.failure(CancellationError()))
  }

  // MARK: - HTTPClientResponseDelegate

  func didSendRequestHead(task: HTTPClient.Task<Void>, _ head: HTTPRequestHead) {
    let isFirst = state.withLock { state in
      guard state.phase == .connecting else { return false }
      state.phase = .waitingForHead
      return true
    }
    if isFirst { armHeadTimer() }
  }

  func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
    let waiter = state.withLock { state in
      state.phase = .streaming
      state.timer.take()?.cancel()
      state.head = head
      return state.headWaiter.take()
    }
    waiter?.resume(returning: head)
    return task.eventLoop.makeSucceededVoidFuture()
  }

  func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
    guard buffer.readableBytes > 0 else { return task.eventLoop.makeSucceededVoidFuture() }
    let waiter: CheckedContinuation<ByteBuffer?, any Error>?
    let room: EventLoopFuture<Void>?
    var chunk: ByteBuffer? = buffer
    (waiter, room) = state.withLock { state in
      if state.heldByteCount + buffer.readableBytes >= minimumChunkByteCount,
        let waiter = state.chunkWaiter.take()
      {
        if state.heldByteCount > 0 {
          hold(buffer, &state)
          chunk = takeChunk(&state)
        }
        return (waiter, nil)
      }
      guard state.ending == nil else { return (nil, nil) }
      hold(buffer, &state)
      // Bytes have arrived: restart the idle time limit.
      state.waitingSince = .now
      guard state.heldByteCount >= Self.readAheadByteCount else { return (nil, nil) }
      let promise = task.eventLoop.makePromise(of: Void.self)
      state.roomMade = promise
      return (nil, promise.futureResult)
    }
    waiter?.resume(returning: chunk)
    return room ?? task.eventLoop.makeSucceededVoidFuture()
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

  private func hold(_ buffer: ByteBuffer, _ state: inout State) {
    state.chunks.append(buffer)
    state.heldByteCount += buffer.readableBytes
    recordHeld?(buffer.readableBytes)
  }

  /// Takes held chunks, joined until they have the minimum size or none is left; nil if nothing is held.
  private func takeChunk(_ state: inout State) -> ByteBuffer? {
    guard var chunk = state.chunks.popFirst() else { return nil }
    while chunk.readableBytes < minimumChunkByteCount, var next = state.chunks.popFirst() {
      chunk.writeBuffer(&next)
    }
    state.heldByteCount -= chunk.readableBytes
    recordHeld?(-chunk.readableBytes)
    return chunk
  }

  private func end(_ ending: Result<Void, any Error>) {
    struct Released {
      var headWaiter: CheckedContinuation<HTTPResponseHead, any Error>?
      var chunkWaiter: CheckedContinuation<ByteBuffer?, any Error>?
      /// The result for the waiting consumer of a chunk.
      var chunk: Result<ByteBuffer?, any Error>
      var roomMade: EventLoopPromise<Void>?
      var task: HTTPClient.Task<Void>?
    }
    let released: Released? = state.withLock { state in
      guard state.ending == nil else { return nil }
      state.ending = ending
      state.timer.take()?.cancel()
      if case .failure(is CancellationError) = ending {
        state.chunks.removeAll()
        recordHeld?(-state.heldByteCount)
        state.heldByteCount = 0
      }
      let waiter = state.chunkWaiter.take()
      // Bytes that have arrived come before the ending.
      let chunk = waiter == nil ? nil : takeChunk(&state)
      return Released(
        headWaiter: state.headWaiter.take(), chunkWaiter: waiter,
        chunk: chunk.map { .success($0) } ?? ending.map { nil }, roomMade: state.roomMade.take(),
        task: state.task)
    }
    guard let released else { return }
    if case .failure(let error) = ending {
      released.task?.fail(reason: error)
      released.headWaiter?.resume(throwing: error)
    }
    released.roomMade?.succeed()
    released.chunkWaiter?.resume(with: released.chunk)
  }

  /// Starts the timer for the current wait: for the connection, or for the head of the response.
  private func armHeadTimer() {
    state.withLock { state in
      // Without a task there is no event loop yet. This is called again when the task is set.
      guard state.ending == nil, let loop = state.task?.eventLoop else { return }
      let phase = state.phase
      let (limit, time): (TransferFailure.Limit, Duration)
      switch phase {
      case .connecting: (limit, time) = (.connect, configuration.connectTimeout)
      case .waitingForHead: (limit, time) = (.firstByte, configuration.firstByteTimeout)
      case .streaming: return
      }
      state.timer?.cancel()
      state.timer = loop.scheduleTask(in: .nanoseconds(time.nanoseconds)) { [weak self] in
        guard let self, self.state.withLock({ $0.phase == phase }) else { return }
        self.end(.failure(TransferFailure.timedOut(limit, after: time)))
      }
    }
  }

  /// Starts the timer for stalled bodies. One timer serves all waits of a transfer: it checks how long the
  /// current wait lasts, and is set again for the time when that could reach the limit.
  private func armIdleTimer(after time: Duration? = nil) {
    state.withLock { state in
      guard state.ending == nil, time != nil || !state.isIdleTimerArmed, let loop = state.task?.eventLoop
      else { return }
      state.isIdleTimerArmed = true
      let wait = time ?? configuration.idleTimeout
      state.timer = loop.scheduleTask(in: .nanoseconds(wait.nanoseconds)) { [weak self] in self?.checkIdle() }
    }
  }

  private func checkIdle() {
    let rest: Duration? = state.withLock { state in
      guard state.chunkWaiter != nil else {
        state.isIdleTimerArmed = false
        return nil
      }
      return configuration.idleTimeout - (.now - state.waitingSince)
    }
    guard let rest else { return }
    if rest > .zero {
      armIdleTimer(after: rest)
    } else {
      end(.failure(TransferFailure.timedOut(.idle, after: configuration.idleTimeout)))
    }
  }
}

/// A `FetchRequest` on its way through redirects and retries.
struct RequestPlan {
  let method: HTTPMethod
  var url: URL
  var range: ByteRange?
  /// The validator that the resource must still have, for a part that continues an earlier one.
  var ifRange: String?
  private var fields: [HeaderField]
  /// True for whole manifests and sources of unknown kind.
  private let acceptsCompression: Bool

  init(_ request: FetchRequest) {
    method = request.method == .head ? .HEAD : .GET
    url = request.url
    range = request.range
    fields = request.headers
    acceptsCompression =
      request.range == nil && (request.purpose == .manifest || request.purpose == .source)
  }

  /// Returns the plan for the rest of a body: `range` of the resource at `url`, the target of earlier
  /// redirects.
  func continuing(at url: URL, range: ByteRange, ifRange: String?) -> RequestPlan {
    var copy = self
    if copy.url != url { copy.redirect(to: url) }
    copy.range = range
    copy.ifRange = ifRange
    return copy
  }

  /// Redirects to another URL. Credentials are not sent to another server.
  mutating func redirect(to target: URL) {
    if !Self.isSameServer(url, target) {
      let secrets: Set = ["authorization", "cookie", "proxy-authorization"]
      fields.removeAll { secrets.contains($0.name.lowercased()) }
    }
    url = target
  }

  func headers(configuration: TransportConfiguration) -> HTTPHeaders {
    var headers = HTTPHeaders()
    headers.add(name: "User-Agent", value: configuration.userAgent)
    headers.add(name: "Accept", value: "*/*")
    for field in fields where !field.name.isEmpty {
      // A field of the caller replaces Reel's own; several fields of the caller with the same name are all
      // kept.
      if headers.contains(name: field.name),
        !fields.prefix(while: { $0 != field }).contains(where: { $0.isNamed(field.name) })
      {
        headers.remove(name: field.name)
      }
      headers.add(name: field.name, value: field.value)
    }
    // "identity" must be stated: without the field, the decompressor would request compression.
    let coding = acceptsCompression && range == nil ? "gzip, deflate" : "identity"
    headers.replaceOrAdd(name: "Accept-Encoding", value: coding)
    if let range { headers.replaceOrAdd(name: "Range", value: range.httpHeaderValue) }
    if let ifRange { headers.replaceOrAdd(name: "If-Range", value: ifRange) }
    if let user = url.user(percentEncoded: false), !headers.contains(name: "Authorization") {
      let secret = "\(user):\(url.password(percentEncoded: false) ?? "")"
      headers.add(name: "Authorization", value: "Basic " + Data(secret.utf8).base64EncodedString())
    }
    if !headers.contains(name: "Cookie"), let cookies = configuration.cookies?.header(for: url) {
      headers.add(name: "Cookie", value: cookies)
    }
    return headers
  }

  // MARK: - Private

  /// Returns true if the credentials for `url` may also be sent to `other`: the same host and port, and no
  /// loss of TLS.
  private static func isSameServer(_ url: URL, _ other: URL) -> Bool {
    guard url.host()?.lowercased() == other.host()?.lowercased() else { return false }
    switch (url.scheme?.lowercased(), other.scheme?.lowercased()) {
    case ("https", "http"): return false
    case ("http", "https"): return (url.port ?? 80) == 80 && (other.port ?? 443) == 443
    case ("https", _): return (url.port ?? 443) == (other.port ?? 443)
    default: return (url.port ?? 80) == (other.port ?? 80)
    }
  }
}

extension HeaderField {
  fileprivate func isNamed(_ other: String) -> Bool { name.lowercased() == other.lowercased() }
}
