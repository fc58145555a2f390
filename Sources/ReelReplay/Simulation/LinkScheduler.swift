internal import ReelCore

/// A link model on a clock: hands parcels to their transfers when they are across.
final class LinkScheduler: Sendable {
  fileprivate struct State {
    var model: LinkModel
    /// By number, in the order in which they began.
    var transfers: [(number: Int, transfer: LinkedTransfer)] = []
    /// Set to when more may be across.
    var alarm = Alarm()
    /// Somebody hands out what is across: one at a time, so that a transfer's parcels come in order.
    var isAdvancing = false
    /// There may be more since.
    var mustAdvance = false
  }

  let clock: any MonotonicClock
  private let tick: Duration
  private let state: Locked<State>

  /// - Parameter tick: parcels that come within so long are handed out together.
  init(_ model: LinkModel, clock: any MonotonicClock, tick: Duration) {
    self.clock = clock
    self.tick = tick
    state = Locked(State(model: model))
  }

  var transferCount: Int { state.withLock { $0.transfers.count } }

  func withModel<Result: Sendable>(_ body: (inout LinkModel) -> Result) -> Result {
    state.withLock { body(&$0.model) }
  }

  /// Begins a transfer; gives its number.
  func begin(_ transfer: LinkedTransfer, readyAt: Duration) -> Int {
    state.withLock { state in
      let number = state.model.begin(readyAt: readyAt)
      state.transfers.append((number, transfer))
      return number
    }
  }

  /// So many more bytes of a transfer can be sent.
  func put(_ count: Int, of number: Int) {
    state.withLock { $0.model.put(count, of: number, at: clock.now) }
    advance()
  }

  /// No more bytes of a transfer will come. True where all are across.
  func complete(_ number: Int) -> Bool { state.withLock { $0.model.complete(number) } }

  func read(_ count: Int, of number: Int) {
    state.withLock { $0.model.read(count, of: number, at: clock.now) }
    advance()
  }

  func waitingCount(of number: Int) -> Int { state.withLock { $0.model.waitingCount(of: number) } }

  /// Takes a transfer off the link; its connection is kept where it is at its end.
  func remove(_ number: Int, connection: Int, keeps: Bool) {
    let removed = state.withLock { state -> LinkedTransfer? in
      guard let index = state.transfers.firstIndex(where: { $0.number == number }) else { return nil }
      state.model.remove(number)
      if keeps { state.model.free(connection, at: clock.now) } else { state.model.close(connection) }
      return state.transfers.remove(at: index).transfer
    }
    guard removed != nil else { return }
    advance()
  }

  /// Hands out what is across by now, and comes again when more is.
  func advance() {
    let begins = state.withLock { state in
      state.mustAdvance = true
      defer { state.isAdvancing = true }
      return !state.isAdvancing
    }
    guard begins else { return }
    while takesTurn() {
      let now = clock.now
      while let (delivery, transfer) = next(by: now) { transfer.receive(delivery) }
      reschedule(at: now)
    }
  }

  // MARK: - Private

  /// False where nothing has changed since the last turn: others may advance then.
  private func takesTurn() -> Bool {
    state.withLock { state in
      guard state.mustAdvance else {
        state.isAdvancing = false
        return false
      }
      state.mustAdvance = false
      return true
    }
  }

  private func reschedule(at now: Duration) {
    let change = state.withLock { state in
      // A call that comes too soon does no harm.
      state.alarm.setUnlessEarlier(at: state.model.nextTime.map { max($0, now + tick) })
    }
    guard let change else { return }
    state.carryOut(change, of: \.alarm, on: clock) { [weak self] in self?.callHasCome($0) }
  }

  private func next(by now: Duration) -> (LinkModel.Delivery, LinkedTransfer)? {
    state.withLock { state in
      while let delivery = state.model.nextDelivery(by: now) {
        if let found = state.transfers.first(where: { $0.number == delivery.transfer }) {
          return (delivery, found.transfer)
        }
      }
      return nil
    }
  }

  private func callHasCome(_ number: Int) {
    _ = state.withLock { $0.alarm.ring(number) }
    advance()
  }
}
