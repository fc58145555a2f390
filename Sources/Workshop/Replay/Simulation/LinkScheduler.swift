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
    /// Requests that wait until their connection stands, by its number.
    var waiting: [Int: Waiting] = [:]
  }

  fileprivate struct Waiting {
    let departure: LinkModel.Departure
    let continuation: CheckedContinuation<LinkModel.Departure, any Error>
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

  /// The departure, once its connection stands: returns when the request leaves or before. Throws `CancellationError`.
  func settled(_ departure: LinkModel.Departure) async throws -> LinkModel.Departure {
    guard departure.isPending else { return departure }
    advance()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let outcome = state.withLock { state -> Result<LinkModel.Departure, any Error>? in
          if let settled = state.model.settled(departure) { return .success(settled) }
          // Who is cancelled later finds the continuation.
          if Task.isCancelled { return .failure(CancellationError()) }
          state.waiting[departure.connection] = Waiting(departure: departure, continuation: continuation)
          return nil
        }
        if let outcome { continuation.resume(with: outcome) }
      }
    } onCancel: {
      let waiting = state.withLock { $0.waiting.removeValue(forKey: departure.connection) }
      waiting?.continuation.resume(throwing: CancellationError())
    }
  }

  /// Begins a transfer on a connection; gives its number.
  func begin(_ transfer: LinkedTransfer, readyAt: Duration, on connection: Int) -> Int {
    state.withLock { state in
      let number = state.model.begin(readyAt: readyAt, on: connection)
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
      resumeOpened()
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

  /// Lets the requests go on whose connections have come to stand.
  private func resumeOpened() {
    let resumed = state.withLock { state in
      state.model.takeOpened().compactMap { number in
        state.waiting.removeValue(forKey: number).map { waiting in
          (waiting.continuation, state.model.settled(waiting.departure) ?? waiting.departure)
        }
      }
    }
    for (continuation, departure) in resumed { continuation.resume(returning: departure) }
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
