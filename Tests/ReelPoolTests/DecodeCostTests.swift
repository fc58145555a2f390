import ReelPool
import Testing

@Suite struct DecodeCostTests {
  @Test func aNegativeCostIsNone() {
    #expect(DecodeCost(frame: .milliseconds(-1)).frame == .zero)
    #expect(DecodeCost(frame: .milliseconds(3)).frame == .milliseconds(3))
  }
}
