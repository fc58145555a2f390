import ReelCore
import ReelPlayback
import ReelPool
import Testing

@Suite("Permits for open decoders")
struct DecoderPermitsTests {
  /// A claim, and how often it was told.
  private final class Holder: Sendable {
    let claim: any DecoderClaim
    private let wakes: Locked<Int>

    init(_ player: PlayerDecoders) {
      let wakes = Locked(0)
      self.wakes = wakes
      claim = player.makeClaim { wakes.withLock { $0 += 1 } }
    }

    var wakeCount: Int { wakes.withLock { $0 } }
  }

  @Test("Free permits go by rank, then by arrival, and a rank that changes counts at once")
  func ranks() {
    let permits = DecoderPermits(limit: 1)
    let players = [0, 3, 2, 2, 5].map { permits.makePlayer(rank: $0) }
    let holders = players.map { Holder($0) }
    #expect(holders.map { $0.claim.take() } == [true, false, false, false, false])
    #expect(permits.waiterCount == 4)
    #expect(players.map(\.isWaiting) == [false, true, true, true, true])
    players[4].rank = 1
    var order: [Int] = []
    holders[0].claim.giveBack()
    for _ in 0..<4 {
      let next = holders.indices.first { !order.contains($0) && $0 > 0 && holders[$0].wakeCount == 1 }
      guard let next else { break }
      order.append(next)
      #expect(holders[next].claim.take())
      holders[next].claim.giveBack()
    }
    #expect(order == [4, 2, 3, 1])
    #expect(permits.highWaterCount == 1)
    #expect(permits.openCount == 0)
  }

  @Test("The current item takes the permit of the worst rank, and gets it when that has been given back")
  func revocation() {
    let permits = DecoderPermits(limit: 2)
    let players = [1, 2, 9].map { permits.makePlayer(rank: $0) }
    let holders = players.map { Holder($0) }
    #expect(holders[0].claim.take())
    #expect(holders[1].claim.take())
    #expect(!holders[2].claim.take())
    #expect(!holders[1].claim.isRevoked)
    players[2].rank = 0
    #expect(!holders[0].claim.isRevoked)
    #expect(holders[1].claim.isRevoked)
    #expect(holders[1].wakeCount == 1)
    #expect(permits.openCount == 2)
    // Once more: it has to be closed first.
    #expect(!holders[2].claim.take())
    holders[1].claim.giveBack()
    #expect(holders[2].wakeCount == 1)
    #expect(holders[2].claim.take())
    #expect(!holders[1].claim.take())
    #expect(permits.highWaterCount == 2)
    // Who is shown is not asked to give it up.
    players[2].rank = 1
    players[1].rank = 0
    #expect(holders[0].claim.isRevoked || holders[2].claim.isRevoked)
    players[1].rank = 5
    #expect(!holders[0].claim.isRevoked)
    #expect(!holders[2].claim.isRevoked)
  }

  @Test(
    "A decoder that rests is given up for a first frame, whatever its rank, but not that of the current item")
  func resting() {
    let permits = DecoderPermits(limit: 2)
    let players = (0..<3).map { permits.makePlayer(rank: $0) }
    let holders = players.map { Holder($0) }
    #expect(holders[0].claim.take())
    #expect(holders[1].claim.take())
    holders[0].claim.setResting(true)
    #expect(!holders[2].claim.take())
    #expect(!holders[1].claim.isRevoked)
    holders[1].claim.setResting(true)
    #expect(holders[1].claim.isRevoked)
    #expect(!holders[0].claim.isRevoked)
    holders[1].claim.giveBack()
    #expect(holders[2].claim.take())
  }

  @Test("A pinned player has a permit besides, and a claim that ends gives its permit back")
  func pinned() {
    let permits = DecoderPermits(limit: 0)
    let (pinned, current) = (permits.makePlayer(rank: 0), permits.makePlayer(rank: 0))
    let first = Holder(pinned)
    #expect(first.claim.take())
    var second: Holder? = Holder(current)
    #expect(second?.claim.take() == false)
    pinned.isPinned = true
    #expect(second?.wakeCount == 1)
    #expect(second?.claim.take() == true)
    #expect(permits.openCount == 2)
    second = nil
    #expect(permits.openCount == 1)
  }
}
