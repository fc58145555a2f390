internal import Foundation
package import ReelCore

/// The item of a feed that a pool makes a request for.
///
/// A fetcher behind the pool's own reads this value while `fetch(_:)` begins.
package enum RequestOwner {
  /// `nil` outside a pool, and for posters.
  @TaskLocal package static var item: FeedItem.ID?
}

/// A network shared by several slots, in which better ranks go first: a slot's requests begin, and its next
/// bytes are requested, only while no slot of better rank waits for bytes.
///
/// - A slot that received nothing for `patience` no longer blocks others, until something arrives.
/// - A slot that has just received something counts as waiting for a short time (`grace`): it is about to
///   request the next piece, or to send the request that follows from it.
/// - Slots of the same rank do not block each other.
/// - With a limit of transfers (`maximumTransfers`), a slot also waits while others have that many running
///   requests and pieces. Rank 0 does not, and a slot does not wait for itself: it may need two transfers at
///   once to continue.
///
/// A running transfer is held back by not being read: bytes that its receiver buffers without that still
/// arrive.
///
/// What comes from a store (`MediaStoring`) uses no network: it waits for nobody, holds back nobody, and measures nothing.
package final class PriorityFetcher: Sendable {
  /// A slot's use of the network.
  package struct Statistics: Sendable, Hashable {
    package var requestCount = 0
    package var byteCount: Int64 = 0
    /// The number of bytes that came from a store instead.
    package var storedByteCount: Int64 = 0
    /// The number of requests and pieces that had to wait for others.
    package var heldCount = 0

    package init() {}
  }

  /// A request for a resource, or for a piece of a body, that may begin.
  fileprivate struct Operation {
    let number: Int
    let slot: Int
    let began: Duration
  }

  fileprivate struct Waiter {
    let number: Int
    let slot: Int
    let continuation: CheckedContinuation<Void, any Error>
  }

  fileprivate struct SlotState {
    let number: Int
    var rank: Int
    /// The time at which the slot last received something, or began to load.
    var servedAt: Duration?
    var statistics = Statistics()
  }

  fileprivate struct State {
    /// The slots by number, in order.
    var slots: [SlotState] = []
    var operations: [Operation] = []
    /// The waiters in order of arrival.
    var waiters: [Waiter] = []
    var nextNumber = 0
    /// Set to the time at which the waiters are checked again.
    var alarm = Alarm()
    var meter = ThroughputMeter()
  }

  /// The rank of a slot whose requests and pieces begin only while no other slot has one, or waits.
  package static let backgroundRank = Int.max - 1

  private let base: any Fetching
  /// Nil if what is fetched is not stored.
  package let store: (any MediaStoring)?
  private let clock: any MonotonicClock
  private let patience: Duration
  private let grace: Duration
  private let maximumTransfers: Int?
  private let state = Locked(State())

  /// - Parameters:
  ///   - base: Sends the requests.
  ///   - clock: Measures waits.
  ///   - maximumTransfers: The maximum number of concurrent requests and pieces, at least 1; nil for no
  ///     limit.
  package init(
    _ base: any Fetching, clock: any MonotonicClock, patience: Duration = .seconds(1),
    grace: Duration = .milliseconds(20), maximumTransfers: Int? = nil
  ) {
    self.maximumTransfers = maximumTransfers.map { max($0, 1) }
    self.base = base
    store = base as? any MediaStoring
    self.clock = clock
    self.patience = patience
    self.grace = grace
  }

  /// The access of one slot to the network.
  package final class Slot: Fetching {
    private let network: PriorityFetcher
    private let number: Int
    private let owner = Locked<FeedItem.ID?>(nil)

    fileprivate init(_ network: PriorityFetcher, number: Int) {
      self.network = network
      self.number = number
    }

    deinit { network.remove(number) }

    /// The rank; 0 is the best. A change takes effect at once, also for waiting operations.
    package var rank: Int {
      get { network.rank(of: number) }
      set { network.setRank(newValue, of: number) }
    }

    package var statistics: Statistics { network.statistics(of: number) }

    /// Sets the item for which requests are made from now on, which ``RequestOwner`` names to the fetcher
    /// behind.
    package func setOwner(_ item: FeedItem.ID?) { owner.withLock { $0 = item } }

    /// Announces a request: until it comes, the slot counts as having just received something.
    package func expectRequest() { network.expectRequest(of: number) }

    /// True if an operation of the slot waits for slots of better rank.
    package var isHeldBack: Bool { network.isHeldBack(number) }

    package func fetch(_ request: FetchRequest) async throws -> FetchResponse {
      let (network, number) = (network, number)
      let owner = owner.withLock { $0 }
      if let fetch = network.store?.storedFetch(of: request) {
        return followingStore(try await RequestOwner.$item.withValue(owner) { try await fetch() })
      }
      network.count(of: number) { $0.requestCount += 1 }
      var metered = request
      metered.addReport { [weak network] in network?.recordRoundTrips($0) }
      let sent = metered
      let response = try await network.inTurn(of: number) {
        try await RequestOwner.$item.withValue(owner) { try await network.base.fetch(sent) }
      }
      let further = response.requestCount - 1
      if further != 0 { network.count(of: number) { $0.requestCount += further } }
      if response.storedByteCount != nil { return followingStore(response) }
      // The body retains the slot: its account is kept as long as more may arrive.
      let receiver = Locked(ThroughputMeter.Receiver(isCounted: !response.isReceived))
      return response.wrappingBody { [self] body in
        let chunk = try await network.inTurn(of: number) {
          try await network.metering(receiver) { try await body.next() }
        }
        if let chunk {
          withExtendedLifetime(self) { network.count(of: number) { $0.byteCount += Int64(chunk.count) } }
        }
        return chunk
      }
    }

    /// Returns a response whose pieces come from a store or over the network.
    ///
    /// The first piece is expected from the store if no request was sent, and a later one where the one before it came from.
    private func followingStore(_ response: FetchResponse) -> FetchResponse {
      let (network, number) = (network, number)
      let (receiver, last) = (Locked(ThroughputMeter.Receiver()), Locked(response.requestCount == 0))
      let origin = response.pieceOrigin()
      let isStored = { @Sendable () -> Bool in
        let isStored = origin()
        last.withLock { $0 = isStored }
        return isStored
      }
      return response.wrappingBody { [self] body in
        let isExpected = last.withLock { $0 }
        let chunk =
          if isExpected {
            try await body.next()
          } else {
            try await network.inTurn(of: number) {
              try await network.metering(receiver, isStored: isStored) { try await body.next() }
            }
          }
        guard let chunk else { return nil }
        let wasStored = isExpected ? isStored() : last.withLock { $0 }
        withExtendedLifetime(self) {
          network.count(of: number) {
            if wasStored {
              $0.storedByteCount += Int64(chunk.count)
            } else {
              $0.byteCount += Int64(chunk.count)
            }
          }
        }
        return chunk
      }
    }
  }

  /// - Parameter rank: 0 is the best.
  package func makeSlot(rank: Int) -> Slot {
    let number = state.withLock { state in
      let number = state.makeNumber()
      state.slots.append(SlotState(number: number, rank: rank))
      return number
    }
    return Slot(self, number: number)
  }

  /// The throughput of all slots together; nil until enough was measured.
  package var throughput: ThroughputEstimate? { state.withLock { $0.meter.estimate } }

  /// The number of requests and pieces that wait for others.
  package var waiterCount: Int { state.withLock { $0.waiters.count } }

  // MARK: - Private

  /// Runs `body` when it is the slot's turn.
  private func inTurn<Success: Sendable>(
    of slot: Int, _ body: @Sendable () async throws -> Success
  ) async throws -> Success {
    let number = state.withLock { $0.makeNumber() }
    try await wait(number, of: slot)
    defer { end(number, of: slot) }
    return try await body()
  }

  /// Receives the next piece of a body, and measures its rate unless it was stored.
  private func metering(
    _ receiver: Locked<ThroughputMeter.Receiver>, isStored: () -> Bool = { false },
    _ receive: () async throws -> FetchBody.Element?
  ) async throws -> FetchBody.Element? {
    update(receiver) { $0.begin(&$1, at: $2) }
    do {
      let piece = try await receive()
      let byteCount = isStored() ? 0 : piece?.count ?? 0
      update(receiver) { $0.end(&$1, byteCount: byteCount, at: $2) }
      return piece
    } catch {
      update(receiver) { $0.end(&$1, byteCount: 0, at: $2) }
      throw error
    }
  }

  /// Only one task at a time receives from a transfer, so its state may be read and written separately.
  private func update(
    _ receiver: Locked<ThroughputMeter.Receiver>,
    _ body: @Sendable (inout ThroughputMeter, inout ThroughputMeter.Receiver, Duration) -> Void
  ) {
    let now = clock.now
    var copy = receiver.withLock { $0 }
    copy = state.withLock { state in
      var changed = copy
      body(&state.meter, &changed, now)
      return changed
    }
    receiver.withLock { $0 = copy }
  }

  /// A request that was repeated or redirected does not measure a single round trip.
  private func recordRoundTrips(_ metrics: RequestMetrics) {
    guard metrics.requestCount == 1, let isReused = metrics.reusedConnection,
      let duration = metrics.timeToFirstByte
    else { return }
    // One for the connection, and with https one for the key exchange.
    let handshakes = metrics.url.scheme?.lowercased() == "https" ? 2 : 1
    state.withLock { $0.meter.addRoundTrips(isReused ? 1 : 1 + handshakes, in: duration) }
  }

  /// Returns when the operation may begin; it counts as begun then.
  private func wait(_ number: Int, of slot: Int) async throws {
    try Task.checkCancellation()
    let now = clock.now
    let begins = state.withLock { state in
      guard mayBegin(slot, at: now, in: state) else { return false }
      state.operations.append(Operation(number: number, slot: slot, began: now))
      return true
    }
    if begins { return }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        let now = clock.now
        let outcome = state.withLock { state -> Result<Void, any Error>? in
          // Cancelled before it could wait, so nothing would end the wait.
          if Task.isCancelled { return .failure(CancellationError()) }
          if mayBegin(slot, at: now, in: state) {
            state.operations.append(Operation(number: number, slot: slot, began: now))
            return .success(())
          }
          state.count(of: slot) { $0.heldCount += 1 }
          state.waiters.append(Waiter(number: number, slot: slot, continuation: continuation))
          return nil
        }
        if let outcome { continuation.resume(with: outcome) } else { lookAgainLater(from: now) }
      }
    } onCancel: {
      let waiter = state.withLock { state -> Waiter? in
        guard let index = state.waiters.firstIndex(where: { $0.number == number }) else { return nil }
        return state.waiters.remove(at: index)
      }
      waiter?.continuation.resume(throwing: CancellationError())
    }
  }

  private func mayBegin(_ slot: Int, at now: Duration, in state: State) -> Bool {
    state.mayBegin(slot, at: now, patience: patience, grace: grace)
      && (maximumTransfers.map { state.rank(of: slot) == 0 || state.operationCount(without: slot) < $0 }
        ?? true)
  }

  private func end(_ number: Int, of slot: Int) {
    let now = clock.now
    state.withLock { state in
      state.operations.removeAll { $0.number == number }
      if let index = state.slots.firstIndex(where: { $0.number == slot }) {
        state.slots[index].servedAt = now
      }
    }
    lookAgain()
  }

  /// Starts the operations that may begin, in order of rank and then of arrival.
  private func lookAgain() {
    let now = clock.now
    while true {
      let next = state.withLock { state -> CheckedContinuation<Void, any Error>? in
        var best: (index: Int, rank: Int)?
        for (index, waiter) in state.waiters.enumerated() {
          let rank = state.rank(of: waiter.slot)
          if best.map({ rank < $0.rank }) ?? true { best = (index, rank) }
        }
        guard let best, mayBegin(state.waiters[best.index].slot, at: now, in: state) else { return nil }
        let waiter = state.waiters.remove(at: best.index)
        state.operations.append(Operation(number: waiter.number, slot: waiter.slot, began: now))
        return waiter.continuation
      }
      guard let next else { break }
      next.resume()
    }
    lookAgainLater(from: now)
  }

  /// Has the waiters checked again when the patience or the grace with another slot ends.
  ///
  /// - Parameter now: The time at which it was found that they may not begin: deadlines since then count as
  ///   still to come. For the same reason an earlier call is kept; its check serves all waiters.
  private func lookAgainLater(from now: Duration) {
    let change = state.withLock { state -> Alarm.Change? in
      guard !state.waiters.isEmpty else { return state.alarm.setUnlessEarlier(at: nil) }
      let next = state.nextChange(after: now, patience: patience, grace: grace)
      return next.flatMap { state.alarm.setUnlessEarlier(at: $0) }
    }
    guard let change else { return }
    state.carryOut(change, of: \.alarm, on: clock) { [weak self] in self?.timerFired($0) }
  }

  private func timerFired(_ number: Int) {
    _ = state.withLock { $0.alarm.ring(number) }
    lookAgain()
  }

  private func rank(of slot: Int) -> Int { state.withLock { $0.rank(of: slot) } }

  private func setRank(_ rank: Int, of slot: Int) {
    state.withLock { state in
      if let index = state.slots.firstIndex(where: { $0.number == slot }) { state.slots[index].rank = rank }
    }
    lookAgain()
  }

  private func expectRequest(of slot: Int) {
    let now = clock.now
    state.withLock { state in
      if let index = state.slots.firstIndex(where: { $0.number == slot }) {
        state.slots[index].servedAt = now
      }
    }
  }

  private func isHeldBack(_ slot: Int) -> Bool { state.withLock { $0.waiters.contains { $0.slot == slot } } }

  private func statistics(of slot: Int) -> Statistics {
    state.withLock { state in
      state.slots.first { $0.number == slot }?.statistics ?? Statistics()
    }
  }

  private func count(of slot: Int, _ body: @Sendable (inout Statistics) -> Void) {
    state.withLock { $0.count(of: slot, body) }
  }

  private func remove(_ slot: Int) {
    state.withLock { state in state.slots.removeAll { $0.number == slot } }
    lookAgain()
  }
}

extension PriorityFetcher.State {
  fileprivate mutating func makeNumber() -> Int {
    nextNumber += 1
    return nextNumber
  }

  /// Returns the rank of a slot; that of a removed slot is the worst.
  fileprivate func rank(of slot: Int) -> Int { slots.first { $0.number == slot }?.rank ?? .max }

  fileprivate mutating func count(of slot: Int, _ body: (inout PriorityFetcher.Statistics) -> Void) {
    if let index = slots.firstIndex(where: { $0.number == slot }) { body(&slots[index].statistics) }
  }

  /// Returns the number of running requests and pieces of other slots, except in the background.
  fileprivate func operationCount(without slot: Int) -> Int {
    operations.count { $0.slot != slot && rank(of: $0.slot) != PriorityFetcher.backgroundRank }
  }

  /// Returns false while a slot of better rank waits for bytes.
  fileprivate func mayBegin(_ slot: Int, at now: Duration, patience: Duration, grace: Duration) -> Bool {
    let rank = rank(of: slot)
    if rank == PriorityFetcher.backgroundRank,
      operations.contains(where: { self.rank(of: $0.slot) < rank })
        || waiters.contains(where: { self.rank(of: $0.slot) < rank })
    {
      return false
    }
    let isHeld = operations.contains { self.rank(of: $0.slot) < rank && now < $0.began + patience }
    return !isHeld && !slots.contains { $0.rank < rank && $0.servedAt.map { now < $0 + grace } ?? false }
  }

  /// Returns when an operation or a slot that blocks others stops doing so.
  fileprivate func nextChange(after now: Duration, patience: Duration, grace: Duration) -> Duration? {
    let patient = operations.lazy.map { $0.began + patience }
    let graced = slots.lazy.compactMap { $0.servedAt.map { $0 + grace } }
    return (Array(patient) + Array(graced)).filter { $0 > now }.min()
  }
}
