import NIOCore
import ReelCore

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

  /// A recorded link is at its start now.
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
    // A delivery can end a response and begin the next one, which calls this again. The running loop finds its
    // flow.
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
