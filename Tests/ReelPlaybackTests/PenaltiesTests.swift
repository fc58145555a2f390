import ReelReading
import Testing

@Suite("Penalties")
struct PenaltiesTests {
  @Test("Each penalty is twice as long as the one before, up to eight minutes")
  func growth() {
    var penalties = RungPenalties()
    var now = Duration.seconds(1000)
    var lengths: [Duration] = []
    for _ in 0..<6 {
      let end = penalties.penalize("a", now: now)
      lengths.append(end - now)
      #expect(penalties.isPenalized("a", now: end - .nanoseconds(1)))
      #expect(!penalties.isPenalized("a", now: end))
      now = end
    }
    #expect(lengths == [60, 120, 240, 480, 480, 480].map { .seconds($0) })
  }

  @Test("A failure during a penalty changes nothing")
  func duringPenalty() {
    var penalties = RungPenalties()
    #expect(penalties.penalize("a", now: .seconds(0)) == .seconds(60))
    let second = penalties.penalize("a", now: .seconds(59))
    #expect(second == .seconds(60))
    #expect(penalties.penalize("a", now: .seconds(60)) == .seconds(180))
  }

  @Test("A long time without a failure is forgotten")
  func forgetting() {
    var penalties = RungPenalties()
    penalties.penalize("a", now: .seconds(0))
    #expect(penalties.penalize("a", now: .seconds(539)) == .seconds(539 + 120))
    #expect(penalties.penalize("a", now: .seconds(659 + 480)) == .seconds(659 + 540))
  }

  @Test("What is usable")
  func usable() {
    let rungs = ["a", "b", "c"].enumerated().map { RungCandidate(index: $0, id: $1, bitsPerSecond: $0) }
    var penalties = RungPenalties()
    #expect(penalties.usable(rungs, now: .zero) == rungs)
    penalties.penalize("b", now: .seconds(0))
    #expect(penalties.usable(rungs, now: .seconds(1)).map(\.id) == ["a", "c"])
    penalties.penalize("a", now: .seconds(10))
    penalties.penalize("c", now: .seconds(20))
    #expect(penalties.usable(rungs, now: .seconds(30)).isEmpty)
    #expect(penalties.usable(rungs, now: .seconds(60)).map(\.id) == ["b"])
    #expect(penalties.usable(rungs, now: .seconds(80)) == rungs)
  }

  @Test("Other keys and other durations")
  func otherKeys() {
    var penalties = Penalties<Int>(baseDuration: .seconds(1), maximumDuration: .seconds(3))
    #expect(penalties.penalize(7, now: .zero) == .seconds(1))
    #expect(penalties.penalize(7, now: .seconds(1)) == .seconds(3))
    #expect(penalties.penalize(7, now: .seconds(3)) == .seconds(6))
    #expect(!penalties.isPenalized(8, now: .seconds(3)))
  }
}
