import ReelCore
import ReelSimulation
import Testing

@Suite("The bottleneck of a modelled link")
struct LinkBottleneckTests {
  /// A byte each microsecond.
  private var link = LinkBottleneck(bitsPerSecond: 8_000_000)

  @Test("A parcel begins when the link is free, and not before its start")
  mutating func times() {
    #expect(link.put(1000, at: .seconds(1)) == .microseconds(1_001_000))
    #expect(link.put(500, at: .seconds(1)) == .microseconds(1_001_500))
    #expect(link.put(1, at: .seconds(2)) == .microseconds(2_000_001))
    #expect(link.freeAt == .microseconds(2_000_001))
  }

  @Test("Times are not rounded to a clock's unit")
  mutating func precision() {
    var thirds = LinkBottleneck(bitsPerSecond: 24_000_000)
    for _ in 0..<3000 { _ = thirds.put(1, at: .zero) }
    #expect(thirds.freeAt > .nanoseconds(999_999) && thirds.freeAt <= .milliseconds(1))
  }

  @Test("Those that may send take turns")
  mutating func turns() {
    #expect((0..<5).map { _ in link.takeTurn(among: 3) { _ in true } } == [0, 1, 2, 0, 1])
    #expect((0..<3).map { _ in link.takeTurn(among: 3) { $0 != 2 } } == [0, 1, 0])
    #expect(link.takeTurn(among: 3) { _ in false } == nil)
    #expect(link.takeTurn(among: 0) { _ in true } == nil)
  }

  @Test("A transfer that is gone does not cost another its turn")
  mutating func removal() {
    _ = link.takeTurn(among: 3) { _ in true }
    link.remove(at: 0)
    #expect(link.takeTurn(among: 2) { _ in true } == 0)
    link.remove(at: 1)
    #expect(link.takeTurn(among: 1) { _ in true } == 0)
  }
}
