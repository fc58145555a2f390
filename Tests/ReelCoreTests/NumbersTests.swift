import ReelCore
import Testing

@Suite("Numbers as text")
struct NumbersTests {
  @Test(
    "So many decimals at the most",
    arguments: [(1.0, 3, "1"), (1.25, 1, "1.2"), (100, 0, "100"), (0.1004, 3, "0.1"), (-2.5, 2, "-2.5")])
  func decimals(value: Double, places: Int, text: String) {
    #expect(value.formatted(places: places) == text)
  }

  @Test(
    "Durations are rounded to the microsecond",
    arguments: [(1_499, 1), (1_500, 2), (-1_500, -2), (0, 0), (2_000_000_499, 2_000_000)])
  func microseconds(nanoseconds: Int64, microseconds: Int64) {
    let duration = Duration.nanoseconds(nanoseconds)
    #expect(duration.wholeMicroseconds == microseconds)
    #expect(duration.milliseconds == Double(microseconds) / 1e3)
  }
}
