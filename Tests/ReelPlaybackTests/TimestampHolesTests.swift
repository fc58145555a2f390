import ReelCore
import Testing

@testable import ReelReading
import ReelSources

@Suite("Holes in the timestamps of a container")
struct TimestampHolesTests {
  private func time(_ frames: Int64) -> MediaTime { MediaTime(value: frames, timescale: 30) }

  private func holes(
    at places: [Int64], limit: TimestampHoles.Limit, damagedAfter damage: Int? = nil
  ) -> [Range<MediaTime>] {
    var (holes, found) = (TimestampHoles(), [Range<MediaTime>]())
    for (index, place) in places.enumerated() {
      if index == damage { holes.recordDamage() }
      holes.record(.video, decodedAt: time(place), presentedAt: time(place), duration: time(1), limit: limit)
      if let hole = holes.take() { found.append(hole.range) }
    }
    return found
  }

  @Test("Media is absent where segments go on much later; in a file only after longer")
  func limits() {
    let places = Array(Int64(0)..<30) + Array(60..<70)
    #expect(holes(at: places, limit: .segments) == [time(30)..<time(60)])
    #expect(holes(at: places, limit: .file).isEmpty)
    #expect(holes(at: [0, 1, 2, 400], limit: .file) == [time(3)..<time(400)])
  }

  @Test("After damage, short holes count")
  func damage() {
    let places = Array(Int64(0)..<30) + Array(32..<50)
    #expect(holes(at: places, limit: .segments).isEmpty)
    #expect(holes(at: places, limit: .file, damagedAfter: 28) == [time(30)..<time(32)])
  }

  @Test("Frames that usually stay on show for long have no holes between them")
  func longFrames() {
    #expect(holes(at: [0, 9, 18, 36, 54, 90], limit: .segments).isEmpty)
  }

  @Test("Reordered frames have none")
  func reordered() {
    var holes = TimestampHoles()
    for (place, shown) in [(0, 0), (1, 4), (2, 2), (3, 1), (4, 3), (5, 8)] {
      holes.record(
        .video, decodedAt: time(Int64(place)), presentedAt: time(Int64(shown)), duration: time(1),
        limit: .segments)
      #expect(holes.take() == nil)
    }
  }
}
