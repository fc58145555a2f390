internal import ReelCore

/// The thread that a simulation runs on, from its first run to its end.
///
/// Always the same one: a body that waits on a fiber goes on where it began, because Swift keeps the accesses that a
/// function has begun by thread (`swift_beginAccess`).
final class SimulationThread: Sendable {
  private enum Order: Sendable {
    case none
    case run(@Sendable () -> Void)
    case end
  }

  private final class Shared: Sendable {
    let order = Monitor(Order.none)
  }

  private let shared = Shared()
  private let hasBegun = Locked(false)

  /// As those of `WorkerThreads`.
  private static let stackSize = 2 << 20

  deinit {
    shared.order.withLock { $0 = .end }
    shared.order.signal()
  }

  /// Runs `body` when the thread is idle: one at a time is given.
  func run(_ body: @escaping @Sendable () -> Void) {
    let isFirst = hasBegun.withLock { hasBegun in
      defer { hasBegun = true }
      return !hasBegun
    }
    shared.order.withLock { $0 = .run(body) }
    guard isFirst else { return shared.order.signal() }
    NativeThread.start(named: "reel.simulation", stackSize: Self.stackSize) { [shared] in
      while let body = Self.next(shared) { body() }
    }
  }

  // MARK: - Private

  private static func next(_ shared: Shared) -> (@Sendable () -> Void)? {
    shared.order.wait { order -> Monitor<Order>.Step<(@Sendable () -> Void)?> in
      switch order {
      case .none: return .wait(until: nil)
      case .end: return .end(nil)
      case .run(let body):
        order = .none
        return .end(body)
      }
    }
  }
}
