import ReelCore
import Testing

@testable import ReelStills

@Suite("Key frames that a source read forward has lost")
struct StoryboardGapsTests {
  private func gaps(every interval: Double, duration: Double?) throws -> StoryboardGaps {
    StoryboardGaps(try StoryboardPlan(.every(interval), places: nil, start: .zero, duration: duration))
  }

  private func times(_ seconds: [Double]) -> [MediaTime] { seconds.map { MediaTime(seconds: $0) } }

  @Test("A gap counts only where there is damage, and by the distance of other key frames")
  func damage() throws {
    var gaps = try gaps(every: 1, duration: nil)
    // Key frames every 4 s.
    #expect(gaps.slots(of: times([0]), between: -1, and: 0, hasFailed: false, hasDamage: false) == [])
    #expect(gaps.slots(of: times([4]), between: 0, and: 4, hasFailed: false, hasDamage: false) == [])
    #expect(gaps.slots(of: times([8]), between: 4, and: 8, hasFailed: false, hasDamage: true) == [])
    #expect(gaps.slots(of: times([20]), between: 8, and: 20, hasFailed: false, hasDamage: true) == [12, 16])
    #expect(gaps.slots(of: times([32]), between: 20, and: 32, hasFailed: false, hasDamage: false) == [])
  }

  @Test("Key frames that could not be decoded, without those of other slots")
  func failed() throws {
    var gaps = try gaps(every: 2, duration: 100)
    let lost = gaps.slots(
      of: times([0, 1, 2, 4, 6, 7]), between: 0, and: 3, hasFailed: true, hasDamage: false)
    #expect(lost == [1, 2])
    // Those that are not even named key frames leave a gap.
    #expect(gaps.slots(of: times([8]), between: 3, and: 4, hasFailed: false, hasDamage: false) == [])
    #expect(gaps.slots(of: times([16]), between: 4, and: 8, hasFailed: true, hasDamage: false) == [5, 6, 7])
  }

  @Test("Behind a cut, only where key frames would be, up to the stated duration")
  func cut() throws {
    var gaps = try gaps(every: 2, duration: 40)
    _ = gaps.slots(of: times([0, 10, 20]), between: -1, and: 10, hasFailed: false, hasDamage: false)
    #expect(gaps.slots(after: 10, behind: MediaTime(seconds: 24.3)) == [15])
    #expect(gaps.slots(after: 10, behind: MediaTime(seconds: 39.5)) == [])
    // A key frame where the source ends has no slot.
    var exact = try self.gaps(every: 2, duration: 6.0004)
    _ = exact.slots(of: times([0, 2.0002, 4.0003]), between: -1, and: 2, hasFailed: false, hasDamage: false)
    #expect(exact.slots(after: 2, behind: MediaTime(seconds: 5)) == [])
    var unknown = try self.gaps(every: 2, duration: nil)
    _ = unknown.slots(of: times([0, 2]), between: -1, and: 1, hasFailed: false, hasDamage: false)
    #expect(unknown.slots(after: 1, behind: MediaTime(seconds: 3)) == [])
    var even = try self.gaps(every: 10, duration: 60)
    _ = even.slots(of: times([0, 2, 4, 6]), between: -1, and: 0, hasFailed: false, hasDamage: false)
    #expect(even.slots(after: 0, behind: MediaTime(seconds: 7)) == [1, 2, 3, 4, 5])
  }
}
