import ReelCore
import ReelLab
@testable import ReelSimulation
import Testing

@testable import ReelLab

@Suite("How a walk is swiped")
struct SwipeSpecTests {
  @Test(
    "Written forms",
    arguments: [
      ("exp:5s", "exp:5s"), ("exp:5s,back=20%", "exp:5s,back=20%"),
      ("exp:6s, Bursts = 0 % ,back=12.5%", "exp:6s,back=12.5%,bursts=0%"),
      ("retention,back=15%,bursts=5%", "retention"),
    ])
  func parsing(text: String, canonical: String) throws {
    let spec = try SwipeSpec(parsing: text)
    #expect(spec.description == canonical)
    #expect(try SwipeSpec(parsing: canonical) == spec)
  }

  @Test(
    "Malformed texts",
    arguments: [
      "", "back=20%", "exp:5s,back=20", "exp:5s,back=0.2", "exp:5s,back=101%", "exp:5s,back=-1%",
      "exp:5s,back=", "exp:5s,back=1%,back=1%", "exp:5s,backs=1%", "exp:5s,", "exp:5s,flicks=20%",
    ])
  func malformed(text: String) {
    let error = #expect(throws: ReelError.self) { try SwipeSpec(parsing: text) }
    #expect(error?.kind == .usage)
  }

  @Test("Shares are from 0 to 1, and a trace has none of its own")
  func limits() throws {
    for share in [-0.01, 1.01, .nan, .infinity] {
      #expect(throws: ReelError.self) { try SwipeShares(back: share) }
      #expect(throws: ReelError.self) { try SwipeShares(bursts: share) }
    }
    let trace = DwellSpec.trace(try DwellTrace(text: "1\n", name: "t"))
    #expect(try SwipeSpec(dwell: trace).reportedShares == nil)
    #expect(throws: ReelError.self) { try SwipeSpec(dwell: trace, shares: try SwipeShares(back: 0.1)) }
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
}
