import ReelCore
import Testing

@testable import ReelManifest

@Suite struct XMLDurationTests {
  @Test(
    arguments: [
      ("PT0H11M58.998S", 718_998, 1000), ("P1DT2H", 93_600, 1), ("PT1.5S", 3, 2), ("P1Y", 31_536_000, 1),
      ("P1M1W", 3_196_800, 1), ("PT0S", 0, 1), ("PT0.5H", 1800, 1),
      ("PT1001.001000046S", 1_001_001_000_046, 1_000_000_000),
      ("P0Y0M0DT0H3M30.000S", 210, 1),
    ] as [(String, Int64, Int32)])
  func readsDurationsExactly(text: String, value: Int64, timescale: Int32) throws {
    let duration = try #require(XMLDuration(text))
    #expect(duration.time == MediaTime(value: value, timescale: timescale))
    #expect(duration.isWellFormed)
  }

  @Test func readsPlainNumbersAsSeconds() throws {
    let duration = try #require(XMLDuration("634.566"))
    #expect(duration.time == MediaTime(value: 634_566, timescale: 1000))
    #expect(!duration.isWellFormed)
  }

  @Test(arguments: [
    "", "P", "PT", "-PT1S", "PT-1S", "PT1", "P1H", "PT1D", "2S", "PT1S ", "PTxS", "PT1SS1", "P300Y",
  ])
  func refusesTheRest(text: String) {
    #expect(XMLDuration(text) == nil)
  }
}
