import Foundation
import ReelPool
import ReelSimulation
import Testing

@Suite("Pseudo-random numbers")
struct SplitMix64Tests {
  @Test("The numbers of the published algorithm")
  func known() {
    var random = SplitMix64(seed: 1_234_567)
    let numbers = (0..<5).map { _ in random.next() }
    #expect(
      numbers == [
        6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
        4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
      ])
  }

  @Test("Exponential numbers are those of the inversion, by a logarithm of our own")
  func exponential() {
    var (random, units) = (SplitMix64(seed: 3), SplitMix64(seed: 3))
    var sum = 0.0
    for _ in 0..<100_000 {
      let number = random.nextExponential()
      let expected = -log(1 - units.nextUnit())
      #expect(number >= 0)
      #expect(abs(number - expected) <= 1e-14 * max(1, expected))
      sum += number
    }
    #expect(abs(sum / 100_000 - 1) < 0.02)
  }

  @Test("The same bits on every machine")
  func bits() {
    var random = SplitMix64(seed: 42)
    let bits = (0..<4).map { _ in random.nextExponential().bitPattern }
    #expect(
      bits == [
        4_608_772_687_558_689_724, 4_595_445_919_913_324_229, 4_599_554_457_330_263_203,
        4_601_271_629_093_676_484,
      ])
  }
}
