import ReelPlayback
import Testing

@testable import ReelPool

@Suite("Watch times and first rungs")
struct WatchModelTests {
  @Test("Retention between its seconds, for those who have watched, and after its end")
  func watching() {
    var item = PoolSituation.Item(index: 0, distance: 0)
    item.retention = [0.8, 0.8, 0.4, 0.6, 0]
    let model = WatchModel(item)
    #expect(model.survival(-1) == 1)
    #expect(model.survival(1) == 1)
    #expect(model.survival(1.5) == 0.75)
    #expect(model.survival(3) == 0.5)
    #expect(model.survival(1000) == 0)
    let forecast = WatchForecast(item, ViewingHistory())
    #expect(forecast.probability(of: 1, after: 2) == 1)
    #expect(forecast.probability(of: 1.5, after: 2) == 0.5)
    #expect(forecast.probability(of: 1, after: 1000) == 0)
    item.retention = nil
    item.duration = .seconds(20)
    let unknown = WatchModel(item)
    #expect(abs(unknown.survival(10) - 0.3679) < 0.001)
    #expect(unknown.survival(20) == 0)
  }

  @Test("The rung of a first segment")
  func firstRung() {
    let start = Duration.milliseconds(500)
    func peak(_ rung: FirstRung, _ isAwaited: Bool, _ rate: Double?) -> Int? {
      rung.peakBitRate(
        isAwaited: isAwaited, throughput: rate.map { ThroughputEstimate(mean: $0) }, start: start)
    }
    #expect(peak(.adapted, true, 1e6) == nil)
    #expect(peak(.low, false, 1e9) == 1)
    #expect(peak(.auto, true, nil) == 1)
    #expect(peak(.auto, false, nil) == nil)
    #expect(peak(.auto, true, 10e6) == 2_000_000)
    #expect(peak(.auto, false, 10e6) == 10_000_000)
  }
}
