import ReelCore
import Testing

@testable import ReelReading
@testable import ReelSources

@Suite("Segments with timestamps far after those before")
struct TimestampDetoursTests {
  private func time(_ seconds: Int64) -> MediaTime { MediaTime(value: seconds, timescale: 1) }

  /// The places of packets of a second each.
  private func mapped(_ places: [Int64], isListed: Bool = false) -> [MediaTime] {
    var detours = TimestampDetours()
    return places.map { place in
      time(place)
        + detours.shift(.video, place: time(place), duration: time(1)) { isListed }
    }
  }

  @Test("They continue where the segment before ended, and those after them have their own times")
  func detour() {
    #expect(mapped([0, 1, 7202, 7203, 4, 5]) == [0, 1, 2, 3, 4, 5].map(time))
  }

  @Test("Timestamps that do not come back go on from there")
  func clock() {
    #expect(mapped([0, 1, 7202, 7203, 7204]) == [0, 1, 2, 3, 4].map(time))
  }

  @Test("What the list states, a smaller gap and a step back stay as they are")
  func others() {
    #expect(mapped([0, 1, 7202, 7203], isListed: true) == [0, 1, 7202, 7203].map(time))
    #expect(mapped([0, 1, 30, 31]) == [0, 1, 30, 31].map(time))
    #expect(mapped([10, 11, 0, 1]) == [10, 11, 0, 1].map(time))
  }

  @Test("Both tracks move by the same time")
  func tracks() {
    var detours = TimestampDetours()
    func place(_ kind: TrackKind, _ milliseconds: Int64) -> MediaTime {
      let place = MediaTime(value: milliseconds, timescale: 1000)
      return place
        + detours.shift(kind, place: place, duration: MediaTime(value: 40, timescale: 1000)) { false }
    }
    _ = (place(.video, 960), place(.audio, 980))
    #expect(place(.video, 7_201_000) == MediaTime(value: 1000, timescale: 1000))
    #expect(place(.audio, 7_201_020) == MediaTime(value: 1020, timescale: 1000))
    #expect(place(.audio, 2020) == MediaTime(value: 2020, timescale: 1000))
  }
}
