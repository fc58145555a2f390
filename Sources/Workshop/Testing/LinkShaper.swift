import NIOCore
import ReelCore
import ReelSimulation

/// The bottleneck of a modelled link, shared by all flows. A parcel is delivered when the last of its bits
/// would have crossed the link.
///
/// Late timers do not accumulate delays: everything due is delivered at once, and the next parcel begins when
/// it should have. Belongs to the origin's event loop.
final class LinkShaper {
  /// The shortest timer. Faster links deliver several parcels at a time.
  private static let tick = Duration.microseconds(100)

  private let loop: any EventLoop
  private var flows: [Flow] = []
  /// Its times count from the zero of `NIODeadline`.
  private var bottleneck: LinkBottleneck
  private var crossing: Flow.Parcel?
  private var timer: Scheduled<Void>?
  private var isRunning = false

  /// A recorded link starts now.
  init(_ link: LinkSpec, loop: any EventLoop) {
    bottleneck = LinkBottleneck(link, zero: NIODeadline.now().uptime)
    self.loop = loop
  }

  func add(_ flow: Flow) {
    flows.append(flow)
    run()
  }

  /// Removes a flow and its unsent bytes from the link.
  func remove(_ flow: Flow) {
    if let index = flows.firstIndex(where: { $0 === flow }) {
      flows.remove(at: index)
      bottleneck.remove(at: index)
    }
    if crossing?.flow === flow { crossing = nil }
  }

  /// Continues after a flow has become ready.
  func wake() {
    run()
  }

  // MARK: - Private

  private func run() {
    // A delivery can end a response and begin the next one, which calls this again. The running loop then
    // includes its flow.
    guard !isRunning else { return }
    isRunning = true
    defer { isRunning = false }
    timer?.cancel()
    timer = nil
    let now = NIODeadline.now().uptime
    while true {
      if crossing == nil, let index = bottleneck.takeTurn(among: flows.count, where: { flows[$0].isReady }) {
        let parcel = flows[index].take(LinkBottleneck.parcelByteCount)
        _ = bottleneck.put(parcel.buffer.readableBytes, at: flows[index].readyAt.uptime)
        crossing = parcel
      }
      guard let parcel = crossing else { return }
      guard bottleneck.freeAt <= now else { break }
      crossing = nil
      if parcel.isLast { remove(parcel.flow) }
      parcel.deliver()
    }
    let due = NIODeadline.uptimeNanoseconds(0) + TimeAmount(max(bottleneck.freeAt, now + Self.tick))
    let bound = NIOLoopBound(self, eventLoop: loop)
    timer = loop.scheduleTask(deadline: due) { bound.value.run() }
  }
}

extension NIODeadline {
  fileprivate var uptime: Duration { .nanoseconds(Int64(clamping: uptimeNanoseconds)) }
}

/// A response being sent: passes its bytes, head first, to the connection as the link allows.
///
/// Belongs to the origin's event loop.
final class Flow {
  private let answer: Answer
  private let head: [UInt8]
  private let total: Int64
  /// The position of the next byte in head and body.
  private var position: Int64 = 0
  /// The time since which there are bytes to send.
  private(set) var readyAt: NIODeadline
  /// False while the client reads more slowly than the link would allow.
  private var isWritable = true
  /// Sends bytes; `isLast` is true after the last.
  private let deliver: (_ bytes: ByteBuffer, _ headByteCount: Int, _ isLast: Bool) -> Void

  init(
    _ answer: Answer, readyAt: NIODeadline,
    deliver: @escaping (_ bytes: ByteBuffer, _ headByteCount: Int, _ isLast: Bool) -> Void
  ) {
    self.answer = answer
    head = answer.headBytes
    total = Int64(head.count) + answer.byteCount
    self.readyAt = readyAt
    self.deliver = deliver
  }

  var hasEnded: Bool { position >= total }

  /// True if bytes can be taken.
  var isReady: Bool { isWritable && !hasEnded }

  func setWritable(_ writable: Bool, at now: NIODeadline) {
    if writable, !isWritable { readyAt = now }
    isWritable = writable
  }

  /// Returns the next bytes, at most `limit`.
  func take(_ limit: Int) -> Parcel {
    let count = Int(min(Int64(limit), total - position))
    var buffer = ByteBufferAllocator().buffer(capacity: count)
    var headByteCount = 0
    if position < head.count {
      let part = head[Int(position)..<min(head.count, Int(position) + count)]
      headByteCount = part.count
      buffer.writeBytes(part)
    }
    let bodyCount = count - buffer.readableBytes
    if bodyCount > 0 {
      let start = position + Int64(buffer.readableBytes) - Int64(head.count)
      answer.body(bodyCount, at: start, into: &buffer)
    }
    // A file that became shorter can't be sent completely. The rest is left out, which the client detects.
    position = buffer.readableBytes < count ? total : position + Int64(count)
    return Parcel(flow: self, buffer: buffer, headByteCount: headByteCount, isLast: hasEnded)
  }

  /// Bytes of a flow that were taken but not delivered yet.
  struct Parcel {
    let flow: Flow
    let buffer: ByteBuffer
    let headByteCount: Int
    let isLast: Bool

    func deliver() {
      flow.deliver(buffer, headByteCount, isLast)
    }
  }
}
