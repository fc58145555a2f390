import NIOCore
import ReelCore

/// The bottleneck of a modelled link, shared by all flows: parcels of one packet's size cross it one after
/// the other, by turns between the flows that have bytes, and are delivered when the last of their bits would
/// be across.
///
/// All times are computed from the times before them and not from when a timer fires, so the lateness of a
/// timer never adds up: what is due by then is delivered at once, and the next parcel begins when it should
/// have. Belongs to the origin's event loop.
final class LinkShaper {
  /// The payload of a full TCP segment on Ethernet.
  static let parcelByteCount = 1_448
  /// Timers are not set closer than this; faster links deliver some parcels at a time.
  private static let tick = TimeAmount.microseconds(100)

  private let nanosecondsPerByte: Double
  private let loop: any EventLoop
  private var flows: [Flow] = []
  /// The flow whose turn is next.
  private var turn = 0
  /// When the link has carried all that was put on it, in nanoseconds of `NIODeadline`; not rounded from
  /// parcel to parcel.
  private var freeAt = 0.0
  private var crossing: Flow.Parcel?
  private var timer: Scheduled<Void>?
  private var isRunning = false

  init(bitsPerSecond: Int64, loop: any EventLoop) {
    nanosecondsPerByte = 8e9 / Double(bitsPerSecond)
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
      if index < turn { turn -= 1 }
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
    let now = Double(NIODeadline.now().uptimeNanoseconds)
    while true {
      if crossing == nil, let flow = nextFlow() {
        let parcel = flow.take(Self.parcelByteCount)
        let start = max(freeAt, Double(flow.readyAt.uptimeNanoseconds))
        freeAt = start + Double(parcel.buffer.readableBytes) * nanosecondsPerByte
        crossing = parcel
      }
      guard let parcel = crossing else { return }
      guard freeAt <= now else { break }
      crossing = nil
      if parcel.isLast { remove(parcel.flow) }
      parcel.deliver()
    }
    let due = max(freeAt, now + Double(Self.tick.nanoseconds))
    let bound = NIOLoopBound(self, eventLoop: loop)
    timer = loop.scheduleTask(deadline: .uptimeNanoseconds(UInt64(due))) { bound.value.run() }
  }

  private func nextFlow() -> Flow? {
    for step in flows.indices {
      let index = (turn + step) % flows.count
      guard flows[index].isReady else { continue }
      turn = index + 1
      return flows[index]
    }
    return nil
  }
}
