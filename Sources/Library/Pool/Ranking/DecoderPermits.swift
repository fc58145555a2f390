internal import ReelCore
package import ReelPlayback

/// Permits to have a video decoder open, for all players of a pool.
///
/// - A free permit goes to the waiting claim with the best rank, and among equal ranks to the earliest one.
/// - If none is free, a permit of lower priority is revoked: first that of a resting decoder (it is open only
///   so that playback can start sooner), then that of the worst rank below the waiting one's. Its holder
///   closes the decoder when its call into the decoder returns, and the permit goes to the waiting claim.
/// - A permit of rank 0 is never revoked.
/// - A pinned player has a permit of its own beyond the limit.
package final class DecoderPermits: Sendable {
  fileprivate enum Phase: Sendable, Equatable {
    case idle
    /// Waiting since the request with this number.
    case waiting(Int)
    case open
  }

  fileprivate struct Claim: Sendable {
    let number: Int
    let player: Int
    var phase = Phase.idle
    var isResting = false
    var isRevoked = false
    let wake: @Sendable () -> Void
  }

  fileprivate struct Player: Sendable {
    let number: Int
    var rank: Int
    var isPinned = false
  }

  fileprivate struct State: Sendable {
    let limit: Int
    var players: [Player] = []
    var claims: [Claim] = []
    var nextNumber = 0
    var highWaterCount = 0
  }

  private let state: Locked<State>

  /// - Parameter limit: The number of permits; less than 1 counts as 1.
  package init(limit: Int) { state = Locked(State(limit: max(limit, 1))) }

  /// The number of permits that are taken.
  package var openCount: Int { state.withLock { $0.openCount } }
  /// The maximum number of permits taken at once.
  package var highWaterCount: Int { state.withLock { $0.highWaterCount } }
  /// The number of claims that wait for a permit.
  package var waiterCount: Int { state.withLock { $0.waiters.count } }

  /// Creates the claims of one player.
  ///
  /// - Parameter rank: 0 is the best.
  package func makePlayer(rank: Int) -> PlayerDecoders {
    let number = state.withLock { state in
      let number = state.makeNumber()
      state.players.append(Player(number: number, rank: rank))
      return number
    }
    return PlayerDecoders(self, number: number)
  }

  // MARK: - Internal

  fileprivate func rank(of player: Int) -> Int { state.withLock { $0.rank(of: player) } }

  fileprivate func setRank(_ rank: Int, of player: Int) { change(player) { $0.rank = rank } }

  fileprivate func isPinned(_ player: Int) -> Bool { state.withLock { $0.isPinned(player) } }

  fileprivate func setPinned(_ isPinned: Bool, _ player: Int) { change(player) { $0.isPinned = isPinned } }

  fileprivate func isWaiting(_ player: Int) -> Bool {
    state.withLock { state in state.waiters.contains { state.claims[$0].player == player } }
  }

  fileprivate func removePlayer(_ player: Int) {
    state.withLock { state in state.players.removeAll { $0.number == player } }
  }

  fileprivate func makeClaim(of player: Int, _ wake: @escaping @Sendable () -> Void) -> Int {
    state.withLock { state in
      let number = state.makeNumber()
      state.claims.append(Claim(number: number, player: player, wake: wake))
      return number
    }
  }

  fileprivate func removeClaim(_ number: Int) {
    settle { state in state.claims.removeAll { $0.number == number } }
  }

  fileprivate func take(_ number: Int) -> Bool {
    let (isOpen, wakes) = state.withLock { state -> (Bool, [@Sendable () -> Void]) in
      guard let index = state.index(of: number) else { return (false, []) }
      let claim = state.claims[index]
      if claim.phase == .open, !claim.isRevoked { return (true, []) }
      if claim.phase == .open || claim.phase == .idle {
        state.claims[index].close()
        state.claims[index].phase = .waiting(state.makeNumber())
      }
      let wakes = state.settle(except: number)
      return (state.claims[index].phase == .open, wakes)
    }
    for wake in wakes { wake() }
    return isOpen
  }

  fileprivate func isRevoked(_ number: Int) -> Bool {
    state.withLock { state in state.index(of: number).map { state.claims[$0].isRevoked } ?? false }
  }

  fileprivate func setResting(_ isResting: Bool, _ number: Int) {
    settle { state in
      guard let index = state.index(of: number), state.claims[index].isResting != isResting else { return }
      state.claims[index].isResting = isResting
    }
  }

  fileprivate func giveBack(_ number: Int) {
    settle { state in
      guard let index = state.index(of: number) else { return }
      state.claims[index].close()
    }
  }

  // MARK: - Private

  private func change(_ player: Int, _ body: (inout Player) -> Void) {
    settle { state in
      if let index = state.players.firstIndex(where: { $0.number == player }) { body(&state.players[index]) }
    }
  }

  /// Changes the state, and notifies claims that may open a decoder now, or have to close theirs.
  private func settle(_ body: (inout State) -> Void) {
    let wakes = state.withLock { state in
      body(&state)
      return state.settle()
    }
    for wake in wakes { wake() }
  }
}

/// The access of one player to `DecoderPermits`. Its rank may be changed at any time.
package final class PlayerDecoders: DecoderLimit {
  private let permits: DecoderPermits
  private let number: Int

  fileprivate init(_ permits: DecoderPermits, number: Int) {
    self.permits = permits
    self.number = number
  }

  deinit { permits.removePlayer(number) }

  /// The rank; 0 is the best.
  package var rank: Int {
    get { permits.rank(of: number) }
    set { permits.setRank(newValue, of: number) }
  }

  /// True for a player that has left the window and continues to play.
  package var isPinned: Bool {
    get { permits.isPinned(number) }
    set { permits.setPinned(newValue, number) }
  }

  /// True if the player waits for a permit.
  package var isWaiting: Bool { permits.isWaiting(number) }

  package func makeClaim(_ wake: @escaping @Sendable () -> Void) -> any DecoderClaim {
    Claim(permits, number: permits.makeClaim(of: number, wake), player: self)
  }

  private final class Claim: DecoderClaim {
    private let permits: DecoderPermits
    private let number: Int
    /// Keeps the player and its rank alive.
    private let player: PlayerDecoders

    init(_ permits: DecoderPermits, number: Int, player: PlayerDecoders) {
      self.permits = permits
      self.number = number
      self.player = player
    }

    deinit { permits.removeClaim(number) }

    var isRevoked: Bool { permits.isRevoked(number) }
    func take() -> Bool { permits.take(number) }
    func setResting(_ isResting: Bool) { permits.setResting(isResting, number) }
    func giveBack() { permits.giveBack(number) }
  }
}

extension DecoderPermits.Claim {
  fileprivate mutating func close() {
    phase = .idle
    isResting = false
    isRevoked = false
  }

  fileprivate var arrival: Int? { if case .waiting(let number) = phase { number } else { nil } }
}

extension DecoderPermits.State {
  fileprivate mutating func makeNumber() -> Int {
    nextNumber += 1
    return nextNumber
  }

  fileprivate func index(of claim: Int) -> Int? { claims.firstIndex { $0.number == claim } }

  /// Returns the rank of a player; that of a removed player is the worst.
  fileprivate func rank(of player: Int) -> Int { players.first { $0.number == player }?.rank ?? .max }

  fileprivate func isPinned(_ player: Int) -> Bool {
    players.first { $0.number == player }?.isPinned ?? false
  }

  fileprivate var openCount: Int { claims.count { $0.phase == .open } }

  /// The indices of the waiting claims, the most important first.
  fileprivate var waiters: [Int] {
    claims.indices.compactMap { index in
      claims[index].arrival.map { (index, rank(of: claims[index].player), $0) }
    }
    .sorted { ($0.1, $0.2) < ($1.1, $1.2) }.map(\.0)
  }

  /// Grants and revokes permits, and returns the closures that notify claims.
  ///
  /// Revocations are decided again each time: one that no longer serves a waiting claim is cancelled.
  fileprivate mutating func settle(except caller: Int? = nil) -> [@Sendable () -> Void] {
    let wereRevoked = claims.map(\.isRevoked)
    for index in claims.indices { claims[index].isRevoked = false }
    var told: [Int] = []
    // The waiting claims that open a decoder first.
    var free = limit + players.count { $0.isPinned } - openCount
    for waiter in waiters {
      if free > 0 {
        free -= 1
        claims[waiter].phase = .open
        told.append(waiter)
      } else if let victim = victim(for: rank(of: claims[waiter].player)) {
        claims[victim].isRevoked = true
        if !wereRevoked[victim] { told.append(victim) }
      } else {
        break
      }
    }
    highWaterCount = max(highWaterCount, openCount)
    return told.filter { claims[$0].number != caller }.map { claims[$0].wake }
  }

  /// Returns the open claim of the lowest priority, if it is lower than that of `rank`.
  private func victim(for rank: Int) -> Int? {
    var worst: (index: Int, isResting: Bool, rank: Int)?
    for (index, claim) in claims.enumerated() where claim.phase == .open && !claim.isRevoked {
      let own = self.rank(of: claim.player)
      guard own > 0, !isPinned(claim.player), claim.isResting || own > rank else { continue }
      if let worst, (worst.isResting ? 1 : 0, worst.rank) >= (claim.isResting ? 1 : 0, own) { continue }
      worst = (index, claim.isResting, own)
    }
    return worst?.index
  }
}
