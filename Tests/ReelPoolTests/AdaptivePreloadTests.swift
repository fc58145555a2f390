import ReelPlayback
import ReelPool
import Testing

@Suite("The policy adaptive")
struct AdaptivePreloadTests {
  private let policy = AdaptivePreload()

  /// A situation in the middle of a feed, with items of one rung of 2 Mbit/s, on a link with this mean and deviation.
  private func situation(
    mbits: Double, deviation: Double = 0, change: (inout PoolSituation) -> Void = { _ in }
  ) -> PoolSituation {
    var situation = PoolSituation(direction: 1, slotCount: 3, itemCount: 20, currentIndex: 10)
    situation.throughput = ThroughputEstimate(
      mean: mbits * 1e6, standardDeviation: deviation * 1e6, roundTripTime: .milliseconds(50))
    situation.items = (8...12).map { index in
      var item = PoolSituation.Item(index: index, distance: index - 10)
      item.duration = .seconds(20)
      item.rungs = [ItemRung(id: "only", bitRate: 2_000_000)]
      return item
    }
    change(&situation)
    return situation
  }

  private func load(_ situation: inout PoolSituation, at distance: Int, _ duration: Duration) {
    guard let index = situation.items.firstIndex(where: { $0.distance == distance }) else { return }
    situation.items[index].stage = .buffered
    situation.items[index].bufferedDuration = duration
  }

  @Test("Before anything was measured only the start of the next item is loaded")
  func unknown() {
    let plan = policy.plan(in: PoolSituation(slotCount: 4, itemCount: 9, currentIndex: 3))
    #expect(plan.neighbours.map(\.distance) == [1])
    #expect(plan.neighbours.first?.target.bufferDuration == .milliseconds(500))
    #expect(plan.current == LoadingBounds())
    #expect(policy.plan(in: PoolSituation(slotCount: 4, itemCount: 0, currentIndex: 0)) == PreloadPlan())
    #expect(policy.plan(in: PoolSituation(slotCount: 1, itemCount: 9, currentIndex: 0)).neighbours.isEmpty)
  }

  @Test("On a steady link that is fast enough, every item has the media with which playback starts")
  func fast() {
    let plan = policy.plan(
      in: situation(mbits: 20) { situation in
        for distance in -1...1 { load(&situation, at: distance, .seconds(1)) }
      })
    #expect(plan.current.forwardBufferDuration == .milliseconds(500))
    #expect(plan.neighbours.count == 2)
    #expect(plan.neighbours.allSatisfy { $0.target.bufferDuration == .milliseconds(500) })
    #expect((plan.current.peakBitRate ?? 0) > 2_000_000)
    #expect(plan.reviewInterval == nil)
  }

  @Test("The less steady a link is, the more is buffered")
  func unsteady() {
    let depths = [0, 1, 2, 4, 16].map { deviation in
      let plan = policy.plan(
        in: situation(mbits: 4, deviation: Double(deviation)) { situation in
          for distance in -1...1 { load(&situation, at: distance, .seconds(3)) }
        })
      return plan.current.forwardBufferDuration ?? .zero
    }
    #expect(depths == depths.sorted())
    #expect(depths.first == .milliseconds(500))
    #expect(depths[4] > .seconds(3))
  }

  @Test("A link that can't carry a rung beside the start of the next item gets a lower one")
  func rung() {
    let peaks = [1.0, 2, 4, 8].map { mbits in
      policy.plan(in: situation(mbits: mbits)).current.peakBitRate ?? 0
    }
    #expect(peaks == peaks.sorted())
    #expect(peaks[0] < 1_000_000 && peaks[0] > 900_000)
  }

  @Test("The current item waits for a neighbour's start once it can play meanwhile")
  func order() {
    let waiting = policy.plan(
      in: situation(mbits: 2.2, deviation: 1.5) { load(&$0, at: 0, .seconds(2)) })
    let complete = policy.plan(
      in: situation(mbits: 2.2, deviation: 1.5) { situation in
        for distance in -1...1 { load(&situation, at: distance, .seconds(2)) }
      })
    let bounds = [waiting, complete].map { $0.current.forwardBufferDuration ?? .zero }
    #expect(bounds[0] < bounds[1])
    #expect(waiting.reviewInterval != nil)
  }

  @Test(
    "The second neighbour is the item behind for viewers who go back, and the one after the next for others")
  func neighbours() {
    func second(isForward: Bool) -> Int? {
      let plan = policy.plan(
        in: situation(mbits: 1) { situation in
          for _ in 0..<20 {
            situation.history.record(
              ViewingHistory.Swipe(watchedDuration: .milliseconds(700), isForward: isForward))
          }
        })
      return plan.neighbours.dropFirst().first?.distance
    }
    #expect(second(isForward: true) == 2)
    #expect(second(isForward: false) == -1)
  }

  @Test("Items that can't be loaded are waited for no more")
  func failed() {
    let plan = policy.plan(
      in: situation(mbits: 20) { situation in
        for index in situation.items.indices { situation.items[index].hasFailed = true }
      })
    #expect(plan.reviewInterval == nil)
  }
}
