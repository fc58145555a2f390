import Foundation
import Logging
import NIOCore
import NIOHTTP1
import ReelCore

/// One connection of an origin: receives requests and sends their responses in order.
///
/// Responses are written as plain bytes, not through an HTTP encoder, so that every byte can be counted, paced,
/// and wrong.
final class OriginConnection: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = ByteBuffer

  private struct Pending {
    var answer: Answer
    /// The index in the log.
    var record: Int
    /// When its first byte may enter the link.
    var startAt: NIODeadline
  }

  /// The number of bytes read and written at a time without a modelled link.
  private static let chunkByteCount = 64 << 10

  private let state: OriginState
  private let shaper: LinkShaper?
  private let logger: Logger
  /// When the connection's handshake over the modelled link would end.
  private let establishedAt: NIODeadline
  private let number: Int
  private var head: HTTPRequestHead?
  /// The responses to send, the current one first.
  private var pending: [Pending] = []
  private var flow: Flow?
  private var startTimer: Scheduled<Void>?
  private var isClosed = false

  init(state: OriginState, shaper: LinkShaper?, logger: Logger) {
    self.state = state
    self.shaper = shaper
    self.logger = logger
    number = state.connectionOpened()
    establishedAt = .now() + Self.roundTrip(state)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): self.head = head
    case .body: break
    case .end:
      if let head = head.take() { hear(head, context: context) }
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    flow?.setWritable(context.channel.isWritable, at: .now())
    if context.channel.isWritable {
      if let shaper { shaper.wake() } else { taskLoop(context: context) }
    }
    context.fireChannelWritabilityChanged()
  }

  func channelInactive(context: ChannelHandlerContext) {
    isClosed = true
    startTimer?.cancel()
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

  private func hear(_ head: HTTPRequestHead, context: ChannelHandlerContext) {
    let path = String(AnswerPlanner.split(head.uri).path).removingPercentEncoding
    let fault = state.takeFault(for: path ?? head.uri)
    let planner = AnswerPlanner(
      supportsRanges: state.configuration.supportsRanges, resource: { [state] in state.resource(at: $0) })
    let answer = planner.answer(to: head, path: path, fault: fault)
    let record = state.requestCame(
      RequestRecord(
        method: head.method.rawValue, path: path ?? head.uri, target: head.uri,
        headers: head.headers.map { HeaderField(name: $0.name, value: $0.value) }, connection: number,
        arrival: .zero, status: answer.isSilent ? nil : Int(answer.status.code)))
    logger.debug(
      "request",
      metadata: ["connection": "\(number)", "target": "\(head.uri)", "status": "\(answer.status.code)"])
    guard !answer.isSilent else { return }
    // On loopback, connections and requests take no time. So the response is delayed by the link's handshake
    // and by its round trip.
    let heardAt = max(NIODeadline.now(), establishedAt)
    let startAt = heardAt + Self.roundTrip(state) + TimeAmount(answer.delay)
    pending.append(Pending(answer: answer, record: record, startAt: startAt))
    if pending.count == 1 { startNext(context: context) }
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
    if let shaper { shaper.add(flow) } else { taskLoop(context: context) }
  }

  /// Sends as much as the client takes, if no link limits it.
  private func taskLoop(context: ChannelHandlerContext) {
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
    let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
    switch ending {
    case .keepAlive:
      pending.removeFirst()
      startNext(context: context)
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
