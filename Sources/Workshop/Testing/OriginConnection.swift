import Foundation
import HTTPTypes
import Logging
import NIOCore
import NIOHTTP1
import ReelCore
import ReelSimulation

/// One connection of an origin: receives requests and sends their responses in order.
///
/// Responses are written as plain bytes, not through an HTTP encoder, so that every byte can be counted,
/// paced and falsified.
final class OriginConnection: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = ByteBuffer

  private struct Pending {
    var answer: Answer
    /// The index in the log.
    var record: Int
    /// The time at which its first byte may enter the link.
    var startAt: NIODeadline
  }

  /// The number of bytes read and written at a time without a modelled link.
  private static let chunkByteCount = 64 << 10

  private let state: OriginState
  private let shaper: LinkShaper?
  private let logger: Logger
  /// The time at which the connection's handshake over the modelled link would end.
  private let establishedAt: NIODeadline
  private let number: Int
  private var head: HTTPRequestHead?
  /// The body of a POST request, as far as it is not too long.
  private var body = ByteBuffer()
  private var isBodyTooLong = false
  /// The responses to send, the current one first.
  private var pending: [Pending] = []
  private var flow: Flow?
  private var startTimer: Scheduled<Void>?
  /// Closes the connection unless a request arrives.
  private var requestTimer: Scheduled<Void>?
  private var isClosed = false

  init(state: OriginState, shaper: LinkShaper?, logger: Logger) {
    self.state = state
    self.shaper = shaper
    self.logger = logger
    number = state.connectionOpened()
    establishedAt = .now() + Self.roundTrip(state)
  }

  func handlerAdded(context: ChannelHandlerContext) { awaitRequest(context: context) }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      self.head = head
      body.clear()
      isBodyTooLong = false
    case .body(var part):
      guard head?.method == .POST, state.configuration.receiver != nil, !isBodyTooLong else { break }
      isBodyTooLong = body.readableBytes + part.readableBytes > Origin.Configuration.postLimit
      if isBodyTooLong { body.clear() } else { body.writeBuffer(&part) }
    case .end:
      requestTimer?.cancel()
      if let head = head.take() { receive(head, context: context) }
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    flow?.setWritable(context.channel.isWritable, at: .now())
    if context.channel.isWritable {
      if let shaper { shaper.wake() } else { pump(context: context) }
    }
    context.fireChannelWritabilityChanged()
  }

  func channelInactive(context: ChannelHandlerContext) {
    isClosed = true
    startTimer?.cancel()
    requestTimer?.cancel()
    for pending in pending { state.answerEnded(pending.record) }
    pending = []
    if let flow = flow.take() { shaper?.remove(flow) }
    state.connectionClosed()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    logger.debug("connection failed", metadata: ["connection": "\(number)", "error": "\(error)"])
    context.close(promise: nil)
  }

  // MARK: - Private

  private static func roundTrip(_ state: OriginState) -> TimeAmount {
    guard let link = state.configuration.link else { return .zero }
    return TimeAmount(link.roundTripTime)
  }

  /// A part of a request is not enough.
  private func awaitRequest(context: ChannelHandlerContext) {
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    requestTimer = context.eventLoop.scheduleTask(in: TimeAmount(state.configuration.requestLimit)) {
      bound.value.close(promise: nil)
    }
  }

  private func receive(_ head: HTTPRequestHead, context: ChannelHandlerContext) {
    let path = String(AnswerPlanner.split(head.uri).path).removingPercentEncoding
      .map(state.configuration.resourcePath)
    var request = RequestRecord(
      method: head.method.rawValue, path: path ?? head.uri, target: head.uri,
      headers: HTTPFields(
        head.headers.compactMap { field in
          HTTPField.Name(field.name).map { HTTPField(name: $0, value: field.value) }
        }), connection: number, client: context.remoteAddress?.ipAddress, arrival: state.elapsed)
    let fault = state.takeFault(for: path ?? head.uri)
    let planner = AnswerPlanner(
      supportsRanges: state.configuration.supportsRanges,
      methods: state.configuration.receiver == nil ? "GET, HEAD, OPTIONS" : "GET, HEAD, POST, OPTIONS",
      resource: { [state] in state.resource(at: $0) })
    let answer = planner.answer(
      to: head, path: path, fault: fault, posted: head.method == .POST ? posted(request) : nil)
    request.status = answer.isSilent ? nil : Int(answer.status.code)
    let record = state.requestCame(request)
    logger.debug(
      "request",
      metadata: ["connection": "\(number)", "target": "\(head.uri)", "status": "\(answer.status.code)"])
    if answer.isSilent { return state.answerEnded(record) }
    // On loopback, connections and requests take no time. Therefore, the response is delayed by the link's
    // handshake and by its round trip.
    let receivedAt = max(NIODeadline.now(), establishedAt)
    let startAt = receivedAt + Self.roundTrip(state) + TimeAmount(answer.delay)
    pending.append(Pending(answer: answer, record: record, startAt: startAt))
    if pending.count == 1 { startNext(context: context) }
  }

  /// Returns the answer to a POST request, whose body has arrived; nil to refuse its path.
  private func posted(_ request: RequestRecord) -> Origin.Response? {
    guard isBodyTooLong else { return state.configuration.receiver?(request, Array(body.readableBytesView)) }
    let limit = Origin.Configuration.postLimit
    return Origin.Response("the body has more than \(limit) bytes\n", contentType: "text/plain", status: 413)
  }

  private func startNext(context: ChannelHandlerContext) {
    guard let next = pending.first else { return }
    guard next.startAt > .now() else { return start(next, context: context) }
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    startTimer = context.eventLoop.scheduleTask(deadline: next.startAt) {
      let (connection, context) = bound.value
      guard !connection.isClosed, let next = connection.pending.first else { return }
      connection.start(next, context: context)
    }
  }

  private func start(_ next: Pending, context: ChannelHandlerContext) {
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    let flow = Flow(next.answer, readyAt: next.startAt) { bytes, headByteCount, isLast in
      let (connection, context) = bound.value
      connection.send(bytes, headByteCount: headByteCount, isLast: isLast, of: next, context: context)
    }
    self.flow = flow
    flow.setWritable(context.channel.isWritable, at: .now())
    if let shaper { shaper.add(flow) } else { pump(context: context) }
  }

  /// Sends as many bytes as the client accepts, if no link limits it.
  private func pump(context: ChannelHandlerContext) {
    while let flow, flow.isReady {
      flow.take(Self.chunkByteCount).deliver()
      if self.flow === flow { flow.setWritable(context.channel.isWritable, at: .now()) }
    }
  }

  private func send(
    _ bytes: ByteBuffer, headByteCount: Int, isLast: Bool, of pending: Pending, context: ChannelHandlerContext
  ) {
    guard !isClosed else { return }
    let isComplete = isLast && [.keepAlive, .close].contains(pending.answer.ending)
    state.bytesSent(
      bytes.readableBytes, headByteCount: headByteCount, isLast: isComplete, for: pending.record)
    if isLast { flow = nil }
    let written = context.writeAndFlush(wrapOutboundOut(bytes))
    if isLast { finish(pending.answer.ending, written: written, context: context) }
  }

  private func finish(_ ending: Answer.Ending, written: EventLoopFuture<Void>, context: ChannelHandlerContext)
  {
    guard !isClosed else { return }
    if ending != .stall, let pending = pending.first { state.answerEnded(pending.record) }
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    switch ending {
    case .keepAlive:
      pending.removeFirst()
      if pending.isEmpty { awaitRequest(context: context) } else { startNext(context: context) }
    case .close:
      written.whenComplete { _ in bound.value.1.close(promise: nil) }
    case .reset:
      // With no time to linger, closing drops unsent bytes and sends a reset.
      written.whenComplete { _ in
        let context = bound.value.1
        if let options = context.channel as? any SocketOptionProvider {
          options.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
            bound.value.1.close(promise: nil)
          }
        } else {
          context.close(promise: nil)
        }
      }
    case .stall: break
    }
  }
}

extension TimeAmount {
  init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self = .seconds(seconds) + .nanoseconds(attoseconds / 1_000_000_000)
  }
}

/// The state of an origin that is visible outside its event loop.
final class OriginState: Sendable {
  private struct Waiter {
    var condition: @Sendable (Origin.Snapshot) -> Bool
    var continuation: CheckedContinuation<Origin.Snapshot, Never>
  }

  private struct State {
    var snapshot = Origin.Snapshot()
    /// With an observer, the requests whose answers have not ended, by their numbers.
    var observed: [Int: RequestRecord] = [:]
    var observedCount = 0
    var routes: [String: Origin.Response]
    /// The number of times that each route was set.
    var routeVersions: [String: Int] = [:]
    var faults: [FaultRule]
    var waiters: [UInt64: Waiter] = [:]
    var waiterCount: UInt64 = 0
  }

  let configuration: Origin.Configuration
  private let startedAt = ContinuousClock.now
  private let state: Locked<State>

  init(_ configuration: Origin.Configuration) {
    self.configuration = configuration
    state = Locked(
      State(routes: configuration.routes, faults: configuration.faults), rank: .transfer)
  }

  /// The time since the origin was created.
  var elapsed: Duration { ContinuousClock.now - startedAt }

  var snapshot: Origin.Snapshot { state.withLock { $0.snapshot } }

  func setRoute(_ path: String, _ response: Origin.Response?) {
    state.withLock { state in
      state.routes[path] = response
      state.routeVersions[path, default: 0] += 1
    }
  }

  func setFaults(_ faults: [FaultRule]) {
    state.withLock { $0.faults = faults }
  }

  /// Records a connection, and returns its number.
  func connectionOpened() -> Int {
    let now = elapsed
    return change { snapshot in
      snapshot.connectionArrivals.append(now)
      snapshot.openConnectionCount += 1
      return snapshot.acceptedConnectionCount
    }
  }

  func connectionClosed() {
    change { $0.openConnectionCount -= 1 }
  }

  /// Records a request, and returns its number.
  func requestCame(_ record: RequestRecord) -> Int {
    guard configuration.observer == nil else {
      return state.withLock { state in
        state.observedCount += 1
        state.observed[state.observedCount] = record
        return state.observedCount
      }
    }
    return change { snapshot in
      snapshot.requests.append(record)
      return snapshot.requests.count - 1
    }
  }

  func bytesSent(_ count: Int, headByteCount: Int, isLast: Bool, for number: Int) {
    let now = elapsed
    let update = { @Sendable (record: inout RequestRecord) in
      record.bytesSent += Int64(count)
      record.bodyBytesSent += Int64(count - headByteCount)
      if record.firstByteSent == nil { record.firstByteSent = now }
      if isLast { record.lastByteSent = now }
    }
    guard configuration.observer == nil else {
      return state.withLock { state in
        guard var record = state.observed[number] else { return }
        update(&record)
        state.observed[number] = record
      }
    }
    change { update(&$0.requests[number]) }
  }

  /// Tells the observer about a request whose answer has ended, once.
  func answerEnded(_ number: Int) {
    guard let observer = configuration.observer,
      let record = state.withLock({ $0.observed.removeValue(forKey: number) })
    else { return }
    observer(record)
  }

  /// Takes the first unused fault for this path.
  func takeFault(for path: String) -> Fault? {
    state.withLock { state in
      guard
        let index = state.faults.firstIndex(where: { $0.count != 0 && $0.matches(path: path) })
      else { return nil }
      if let count = state.faults[index].count { state.faults[index].count = count - 1 }
      return state.faults[index].fault
    }
  }

  /// Returns the resource at a decoded path.
  func resource(at path: String) -> Resource? {
    let (route, version) = state.withLock { ($0.routes[path], $0.routeVersions[path] ?? 0) }
    if let route { return Resource(route, at: path, version: version) }
    for source in configuration.resources {
      guard let response = source.response(at: path) else { continue }
      // Other bytes of the same size at the same path must get another tag.
      var hasher = Hasher()
      response.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
      return Resource(response, at: path, version: Int(hasher.finalize().magnitude >> 1))
    }
    guard let file = configuration.file else {
      return configuration.directory.flatMap { Resource(path: path, below: $0) }
    }
    return file(path).flatMap { Resource(path: $0.path, below: $0.folder) }
  }

  /// Waits until `condition` holds, or until the task is cancelled.
  func wait(until condition: @escaping @Sendable (Origin.Snapshot) -> Bool) async -> Origin.Snapshot {
    let number = state.withLock { state in
      state.waiterCount += 1
      return state.waiterCount
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let met: Origin.Snapshot? = state.withLock { state in
          if Task.isCancelled || condition(state.snapshot) { return state.snapshot }
          state.waiters[number] = Waiter(condition: condition, continuation: continuation)
          return nil
        }
        if let met { continuation.resume(returning: met) }
      }
    } onCancel: {
      let (waiter, snapshot) = state.withLock { ($0.waiters.removeValue(forKey: number), $0.snapshot) }
      waiter?.continuation.resume(returning: snapshot)
    }
  }

  // MARK: - Private

  @discardableResult
  private func change<Result: Sendable>(_ body: @Sendable (inout Origin.Snapshot) -> Result) -> Result {
    let (result, released, snapshot) = state.withLock { state in
      let result = body(&state.snapshot)
      guard !state.waiters.isEmpty else { return (result, [Waiter](), Origin.Snapshot()) }
      let met = state.waiters.filter { $0.value.condition(state.snapshot) }
      for number in met.keys { state.waiters[number] = nil }
      return (result, Array(met.values), state.snapshot)
    }
    for waiter in released { waiter.continuation.resume(returning: snapshot) }
    return result
  }
}

/// The open connections of an origin, which are closed with it.
final class ConnectionList: Sendable {
  private let channels = Locked<[ObjectIdentifier: any Channel]>([:])

  func insert(_ channel: any Channel) {
    let id = ObjectIdentifier(channel)
    channels.withLock { $0[id] = channel }
    channel.closeFuture.whenComplete { _ in self.channels.withLock { $0[id] = nil } }
  }

  func closeAll() {
    for channel in channels.withLock({ Array($0.values) }) { channel.close(promise: nil) }
  }
}
