import ReelPool
import Testing

@Suite struct DecodeCostTests {
  @Test func aNegativeCostIsNone() {
    #expect(DecodeCost(picture: .milliseconds(-1)).picture == .zero)
    #expect(DecodeCost(picture: .milliseconds(3)).picture == .milliseconds(3))
  }
}
