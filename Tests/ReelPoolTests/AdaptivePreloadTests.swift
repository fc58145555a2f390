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

  @Test("Before anything was measured, every neighbour gets its start, and the current item has no bounds")
  func unknown() {
    let plan = policy.plan(in: PoolSituation(slotCount: 4, itemCount: 9, currentIndex: 3))
    #expect(plan.neighbours.map(\.distance) == [1, -1, 2])
    #expect(plan.neighbours.allSatisfy { $0.target.bufferDuration == .milliseconds(500) })
    #expect(plan.neighbours.allSatisfy { $0.target.stage == .buffered })
    #expect(plan.current == LoadingBounds())
    #expect(policy.plan(in: PoolSituation(slotCount: 4, itemCount: 0, currentIndex: 0)) == PreloadPlan())
    #expect(policy.plan(in: PoolSituation(slotCount: 1, itemCount: 9, currentIndex: 0)).neighbours.isEmpty)
    #expect(policy.plan(in: PoolSituation(slotCount: 3, itemCount: 1, currentIndex: 0)).neighbours.isEmpty)
  }

  /// The depth of the current item and of the next one once all have their starts.
  private func depths(
    mbits: Double, deviation: Double = 0, change: (inout PoolSituation) -> Void = { _ in }
  ) -> (current: Duration, next: Duration) {
    let plan = policy.plan(
      in: situation(mbits: mbits, deviation: deviation) { situation in
        for distance in -1...2 { load(&situation, at: distance, .seconds(1)) }
        change(&situation)
      })
    let next = plan.neighbours.first { $0.distance == 1 }
    return (plan.current.forwardBufferDuration ?? .zero, next?.target.bufferDuration ?? .zero)
  }

  @Test("On a link that is far above the item, only the least depths are loaded")
  func fast() {
    let depths = self.depths(mbits: 400)
    // 2 s and 1 s, and two round trips.
    #expect(depths.current == .milliseconds(2100))
    #expect(depths.next == .milliseconds(1100))
  }

  @Test("The less steady a link is, the more is buffered, though not without end")
  func unsteady() {
    let depths = [0.0, 1, 2, 4, 16].map { self.depths(mbits: 4, deviation: $0).current }
    #expect(depths == depths.sorted())
    #expect(depths[0] > .milliseconds(2100), "a calm link may change")
    #expect(depths[4] > .seconds(4))
    #expect(depths[4] < .seconds(20))
  }

  @Test("An item that the viewer will soon leave is loaded less far")
  func leaving() {
    func depth(watching seconds: Int) -> Duration {
      self.depths(mbits: 2, deviation: 1) { situation in
        for _ in 0..<20 {
          situation.history.record(ViewingHistory.Swipe(watchedDuration: .seconds(seconds), isForward: true))
        }
        situation.watchedDuration = .seconds(1)
      }.current
    }
    // A viewer of two seconds has one left: nothing after that is worth its bytes.
    #expect(depth(watching: 2) == .milliseconds(2100))
    #expect(depth(watching: 8) > .seconds(4))
  }

  @Test("The next item is loaded less far than the current one, and less still if viewers go back")
  func next() {
    func depths(isForward: Bool) -> (current: Duration, next: Duration) {
      self.depths(mbits: 2, deviation: 1) { situation in
        for seconds in 1...20 {
          situation.history.record(
            ViewingHistory.Swipe(watchedDuration: .seconds(seconds), isForward: isForward))
        }
      }
    }
    let (onward, back) = (depths(isForward: true), depths(isForward: false))
    #expect(onward.next > .milliseconds(1100))
    #expect(onward.next < onward.current)
    #expect(back.next == .milliseconds(1100))
  }

  @Test(
    "The rung is the highest that the link exceeds nine times out of ten, beside the start of the next item")
  func rung() {
    let peaks = [1.0, 2, 4, 8].map { mbits in
      policy.plan(in: situation(mbits: mbits)).current.peakBitRate ?? 0
    }
    // By hand: the quantile is -0.8 / 0.18^0.5 = -1.8856, so e^(-1.8856 x 0.3 - 0.045) = 0.543 of the mean. Items of
    // 20 s without retention are watched for 10 x (1 - e^-2) = 8.65 s, of which the start takes 0.5 / 9.15.
    #expect(abs(Double(peaks[0]) - 513_300) < 2_000, "\(peaks[0])")
    #expect(abs(Double(peaks[3]) - 8 * Double(peaks[0])) < 16)
    #expect(peaks == peaks.sorted())
    let unsteady = policy.plan(in: situation(mbits: 4, deviation: 2)).current.peakBitRate ?? 0
    #expect(unsteady < peaks[2] * 2 / 3)
  }

  @Test("An item that the viewer waits for begins with a rung that comes within 100 ms")
  func awaited() {
    let awaited = policy.plan(in: situation(mbits: 10)).current
    #expect((awaited.startPeakBitRate ?? 0) < 2_000_000)
    let shown = policy.plan(in: situation(mbits: 10) { load(&$0, at: 0, .seconds(1)) }).current
    #expect(shown.startPeakBitRate == nil)
  }

  @Test("The current item waits for the next one's start once it can play meanwhile, and for no other's")
  func order() {
    func bound(loaded: [Int]) -> (bound: Duration, isReviewed: Bool) {
      let plan = policy.plan(
        in: situation(mbits: 2.2, deviation: 1.5) { situation in
          for distance in loaded { load(&situation, at: distance, .seconds(2)) }
        })
      return (plan.current.forwardBufferDuration ?? .zero, plan.reviewInterval != nil)
    }
    let (none, next, all) = (bound(loaded: [0]), bound(loaded: [0, 1]), bound(loaded: [-1, 0, 1, 2]))
    #expect(none.bound < next.bound)
    #expect(next.bound == all.bound)
    #expect(none.isReviewed)
  }

  @Test("What its segment goes on to take of the link counts as the start of the next item")
  func receiveWindow() {
    func bound(segment: Duration) -> Duration {
      let plan = policy.plan(
        in: situation(mbits: 4, deviation: 3) { situation in
          load(&situation, at: 0, .seconds(1))
          for index in situation.items.indices { situation.items[index].segmentDuration = segment }
        })
      return plan.current.forwardBufferDuration ?? .zero
    }
    #expect(bound(segment: .milliseconds(500)) < bound(segment: .seconds(1)))
    // 256 kB are 1.05 s of 2 Mbit/s.
    #expect(bound(segment: .seconds(2)) == bound(segment: .seconds(6)))
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

  @Test(
    "Nothing is planned anew once the current item is loaded to its end, and the neighbours to their depth")
  func complete() {
    let plan = policy.plan(
      in: situation(mbits: 20) { situation in
        for distance in -2...2 { load(&situation, at: distance, .seconds(15)) }
        for index in situation.items.indices { situation.items[index].isLoadedToEnd = true }
      })
    #expect(plan.reviewInterval == nil)
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
