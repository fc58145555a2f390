import ReelCore
import ReelFFmpeg
import ReelPool
import ReelSimulation
import Testing

@Suite struct DecodeCostTests {
  @Test func aNegativeCostIsNone() {
    #expect(DecodeCost(frame: .milliseconds(-1)).frame == .zero)
    #expect(DecodeCost(frame: .milliseconds(3)).frame == .milliseconds(3))
    let cost = DecodeCost(
      opening: .milliseconds(-1), codecs: [:],
      others: DecodeCost.Frame(constant: .milliseconds(-1), nanosecondsPerPixel: -.infinity))
    #expect(cost == DecodeCost(frame: .zero))
  }

  @Test func absurdCostsAreBounded() {
    let cost = DecodeCost.Frame(constant: .seconds(1), nanosecondsPerPixel: 1e300)
    #expect(cost.duration(pixelCount: .max) == .seconds(3600))
    #expect(cost.duration(pixelCount: -1) == .seconds(1))
    #expect(DecodeCost.Frame(nanosecondsPerPixel: .nan).duration(pixelCount: 1000) == .zero)
  }

  @Test func aFlatCostIsThatOfEveryFrame() {
    let cost = DecodeCost()
    for pixelCount in [0, 1, 1 << 40] {
      #expect(cost.duration(of: .av1, pixelCount: pixelCount) == .milliseconds(4))
    }
    #expect(cost.opening == .zero)
  }
}
