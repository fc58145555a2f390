import Foundation
import ReelCore
import Testing

@Suite struct WallTimeTests {
  @Test(arguments: [
    ("1970-01-01T00:00:00Z", 0),
    ("1970-01-01", 0),
    ("1969-12-31T23:59:59.5Z", -500_000_000),
    ("2016-02-29T12:34:56.789Z", 1_456_749_296_789_000_000),
    ("2016-02-29 12:34:56.789", 1_456_749_296_789_000_000),
    ("2016-02-29T13:34:56.789+01:00", 1_456_749_296_789_000_000),
    ("2016-02-29T13:34:56.789+0100", 1_456_749_296_789_000_000),
    ("2016-02-29T11:34:56.789-01", 1_456_749_296_789_000_000),
    ("2016-02-29T12:34Z", 1_456_749_240_000_000_000),
    ("2016-02-29T12:34:56.123456789123Z", 1_456_749_296_123_456_789),
    ("2000-03-01T00:00:00Z", 951_868_800_000_000_000),
    ("2015-06-30T24:00:00Z", 1_435_708_800_000_000_000),
  ])
  func readsDates(text: String, nanoseconds: Int64) {
    #expect(WallTime(iso8601: text)?.nanosecondsSince1970 == nanoseconds)
  }

  @Test(arguments: [
    "", "now", "2016", "2016-13-01", "2016-02-30T00:00:00Z", "2016-02-29T12", "2016-02-29T25:00:00Z",
    "2016-02-29T12:34:56.Z", "2016-02-29T12:34:56+1", "2016-02-29T12:34:56Zx", "9999-01-01T00:00:00Z",
    "-2016-01-01T00:00:00Z",
  ])
  func refusesWhatIsNoDate(text: String) {
    #expect(WallTime(iso8601: text) == nil)
  }

  @Test(arguments: [
    "1970-01-01T00:00:00Z", "1969-12-31T23:59:59.5Z", "2016-02-29T12:34:56.000000001Z",
    "2100-03-01T23:00:01Z", "1678-01-01T00:00:00Z",
  ])
  func writesWhatItReads(text: String) throws {
    #expect(try #require(WallTime(iso8601: text)).description == text)
  }

  @Test func agreesWithFoundation() throws {
    let formatter = ISO8601DateFormatter()
    for day in stride(from: -100_000, through: 100_000, by: 997) {
      let date = Date(timeIntervalSince1970: Double(day) * 86_400 + Double(day % 86_400))
      #expect(WallTime(date).description == formatter.string(from: date))
    }
  }

  @Test func readsHTTPDates() {
    #expect(WallTime(httpDate: "Sun, 06 Nov 1994 08:49:37 GMT")?.description == "1994-11-06T08:49:37Z")
    #expect(WallTime(httpDate: "Sunday, 06-Nov-94 08:49:37 GMT") == nil)
    #expect(WallTime(httpDate: "yesterday") == nil)
    #expect(WallTime(httpDate: "Fri, 31 Dec 9999 23:59:59 GMT") == nil)
    #expect(WallTime.secondsSince1970(httpDate: "Fri, 31 Dec 9999 23:59:59 GMT") == 253_402_300_799)
  }

  @Test(arguments: [
    ("1994-11-06T08:49:37.9Z", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ("1970-01-01T00:00:00Z", "Thu, 01 Jan 1970 00:00:00 GMT"),
    ("1969-12-31T23:59:59.5Z", "Wed, 31 Dec 1969 23:59:59 GMT"),
    ("2024-02-29T12:00:00Z", "Thu, 29 Feb 2024 12:00:00 GMT"),
  ])
  func writesHTTPDates(instant: String, text: String) throws {
    #expect(try #require(WallTime(iso8601: instant)).httpDate == text)
  }

  @Test func addsAndSubtractsLengths() throws {
    let time = try #require(WallTime(iso8601: "2026-01-01T00:00:00Z"))
    let later = time + MediaTime(value: 3003, timescale: 1000)
    #expect(later.description == "2026-01-01T00:00:03.003Z")
    #expect(later - time == MediaTime(value: 3003, timescale: 1000))
    #expect((later - MediaTime(value: 3003, timescale: 1000)) == time)
    let last = WallTime(nanosecondsSince1970: .max)
    #expect(last + MediaTime(value: .max, timescale: 1) == last)
  }
}
