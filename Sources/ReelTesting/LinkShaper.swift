import NIOCore
import ReelCore

/// A modelled link's bottleneck, shared by all flows: parcels are delivered when the last of their bits would be across.
///
/// The lateness of a timer never adds up: what is due by then is delivered at once, and the next parcel begins when it
/// should have. Belongs to the origin's event loop.
final class LinkShaper {
  /// Timers are not set closer than this; faster links deliver some parcels at a time.
  private static let tick = Duration.microseconds(100)

  private let loop: any EventLoop
  private var flows: [Flow] = []
  /// Its times count from the zero of `NIODeadline`.
  private var bottleneck: LinkBottleneck
  private var crossing: Flow.Parcel?
  private var timer: Scheduled<Void>?
  private var isRunning = false

  init(bitsPerSecond: Int64, loop: any EventLoop) {
    bottleneck = LinkBottleneck(bitsPerSecond: bitsPerSecond)
    self.loop = loop
  }

  func add(_ flow: Flow) {
    flows.append(flow)
    run()
  }

  /// Takes a flow off the link with all that it still had to send.
  func remove(_ flow: Flow) {
    if let index = flows.firstIndex(where: { $0 === flow }) {
      flows.remove(at: index)
      bottleneck.remove(at: index)
    }
    if crossing?.flow === flow { crossing = nil }
  }

  /// Goes on after a flow has become ready.
  func wake() {
    run()
  }

  // MARK: - Private

  private func run() {
    // A delivery can end an answer and so begin the next, which comes here again: the loop sees its flow by
    // itself.
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
