import ReelCore
import ReelLab
@testable import ReelSimulation
import Testing

@testable import ReelLab

@Suite("Viewers")
struct ViewerSpecTests {
  @Test(
    "Written forms",
    arguments: [
      ("exp:5s", "exp:5s"), ("exp:5s,flicks=20%", "exp:5s,flicks=20%"),
      ("weibull:0.8,6s", "weibull:0.8,6s"),
      ("weibull:0.8,6s, Bursts = 0 % ,back=12.5%", "weibull:0.8,6s,back=12.5%,bursts=0%"),
      ("retention,back=15%,bursts=5%,flicks=0%", "retention"),
    ])
  func parsing(text: String, canonical: String) throws {
    let viewer = try ViewerSpec(parsing: text)
    #expect(viewer.description == canonical)
    #expect(try ViewerSpec(parsing: canonical) == viewer)
  }

  @Test(
    "What is no viewer",
    arguments: [
      "", "flicks=20%", "exp:5s,flicks=20", "exp:5s,flicks=0.2", "exp:5s,flicks=101%", "exp:5s,flicks=-1%",
      "exp:5s,flicks=", "exp:5s,flicks=1%,flicks=1%", "exp:5s,flick=1%", "exp:5s,", "weibull:1,flicks=1%",
    ])
  func malformed(text: String) {
    let error = #expect(throws: ReelError.self) { try ViewerSpec(parsing: text) }
    #expect(error?.kind == .usage)
  }

  @Test("Shares are from 0 to 1, and a trace has none of its own")
  func limits() throws {
    for share in [-0.01, 1.01, .nan, .infinity] {
      #expect(throws: ReelError.self) { try SwipeShares(flicks: share) }
      #expect(throws: ReelError.self) { try SwipeShares(back: share) }
      #expect(throws: ReelError.self) { try SwipeShares(bursts: share) }
    }
    let trace = DwellSpec.trace(try DwellTrace(text: "1\n", name: "t"))
    #expect(try ViewerSpec(dwell: trace).reportedShares == nil)
    #expect(throws: ReelError.self) { try ViewerSpec(dwell: trace, shares: try SwipeShares(flicks: 0.1)) }
  }

  @Test("A share holds for as many random numbers; whole percents depend on the number modulo 100")
  func holding() {
    for percent in [0, 1, 5, 15, 50, 99, 100] {
      for number in [0, 1, 4, 5, 14, 15, 49, 50, 98, 99] as [UInt64] {
        for hundreds in [0, 77, 123_456_789] as [UInt64] {
          #expect(
            SwipeShares.holds(Double(percent) / 100, for: hundreds * 100 + number)
              == (number < UInt64(percent)))
        }
      }
    }
    var random = SplitMix64(seed: 1)
    let count = (0..<100_000).filter { _ in SwipeShares.holds(0.005, for: random.next()) }.count
    #expect((430...570).contains(count))
  }

  @Test("Known values of exponential and power, by their bits")
  func portableMath() {
    let exponentials: [(Double, UInt64)] = [
      (0, 4_607_182_418_800_017_408), (1, 4_613_303_445_314_885_482), (-1, 4_600_298_746_774_613_816),
      (0.5, 4_610_103_999_673_009_820), (10, 4_671_783_802_770_883_936), (-20.5, 4_473_616_198_666_092_716),
      (100, 5_256_625_774_849_891_317),
    ]
    for (power, bits) in exponentials { #expect(PortableMath.exponential(power).bitPattern == bits) }
    let powers: [(Double, Double, UInt64)] = [
      (2, 0.5, 4_609_047_870_845_172_684), (0.25, 1.25, 4_595_537_071_963_061_196),
      (3.7, 10, 4_692_004_697_513_152_374), (1, 3, 4_607_182_418_800_017_408),
      (10, -2, 4_576_918_229_304_087_678), (0, 2, 0), (-1, 2, 0),
    ]
    for (base, power, bits) in powers { #expect(PortableMath.power(base, power).bitPattern == bits) }
    #expect(PortableMath.exponential(1e9) == PortableMath.exponential(700))
    #expect(PortableMath.exponential(-1e9) > 0)
  }
}
