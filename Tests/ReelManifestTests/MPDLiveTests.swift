import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

@Suite struct MPDLiveTests {
  private let byNumber = #"<SegmentTemplate media="$Number$" duration="2"/>"#
  private let attributes = #"type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z""#

  /// So many seconds after the beginning.
  private func at(_ seconds: Double) throws -> WallTime {
    try #require(WallTime(iso8601: "2026-01-01T00:00:00Z")) + MediaTime(seconds: seconds)
  }

  private func live(
    _ content: String, _ more: String = "", period: String = #"id="p" start="PT0S""#, at seconds: Double,
    limits: ManifestLimits = ManifestLimits()
  ) throws -> Presentation {
    let text = mpd(videoSet(content), attributes: "\(attributes) \(more)", period: period)
    return try dashPresentation(text, limits: limits, now: try at(seconds))
  }

  private func timeline(_ entries: String, _ more: String = "") -> String {
    #"<SegmentTemplate media="$Number$" \#(more)><SegmentTimeline>\#(entries)</SegmentTimeline></SegmentTemplate>"#
  }

  /// Lists that have lost their first segments count from @startNumber, and others from the start of the period.
  @Test(
    arguments: [(51, 106.0, [100, 102, 104]), (51, 6.5, [0, 2, 4]), (1, 6.5, [0, 2, 4])]
      as [(Int, Double, [Double])])
  func slidingLists(number: Int, seconds: Double, starts: [Double]) throws {
    let presentation = try live(
      """
      <SegmentList duration="2" startNumber="\(number)"><SegmentURL media="a"/><SegmentURL media="b"/>\
      <SegmentURL media="c"/></SegmentList>
      """, at: seconds)
    let segments = try presentation.segments()
    #expect(segments.map(\.start.seconds) == starts)
    #expect(segments.map(\.url.lastPathComponent) == ["a", "b", "c"])
  }

  @Test(
    arguments: [
      (0, []), (1.999, []), (2, [1]), (7.999, [1, 2, 3]), (8, [1, 2, 3, 4]), (-5, []),
    ] as [(Double, [Int64])])
  func segmentsComeWithTheClock(seconds: Double, numbers: [Int64]) throws {
    let presentation = try live(byNumber, at: seconds)
    #expect(try presentation.segments().map(\.number) == numbers)
    #expect(presentation.isLive)
    #expect(presentation.duration == nil)
  }

  @Test(
    arguments: [
      (#"timeShiftBufferDepth="PT5S""#, 20, [8, 9, 10]), (#"timeShiftBufferDepth="PT4S""#, 20, [9, 10]),
      (#"timeShiftBufferDepth="PT4S""#, 21, [9, 10]), (#"timeShiftBufferDepth="PT0S""#, 21, [10]),
      (#"timeShiftBufferDepth="PT5S" availabilityEndTime="2026-01-01T00:00:30Z""#, 100, [13, 14, 15]),
      (#"timeShiftBufferDepth="PT5S" mediaPresentationDuration="PT29S""#, 100, [13, 14, 15]),
    ] as [(String, Double, [Int64])])
  func theWindowEndsAtTheEdge(more: String, seconds: Double, numbers: [Int64]) throws {
    #expect(try live(byNumber, more, at: seconds).segments().map(\.number) == numbers)
  }

  @Test func aPeriodOfKnownLengthGrowsToo() throws {
    let known = try live(byNumber, period: #"start="PT10S" duration="PT5S""#, at: 14)
    #expect(try known.segments().map(\.number) == [1, 2])
    let ended = try live(byNumber, period: #"start="PT10S" duration="PT5S""#, at: 15)
    #expect(try ended.segments().map(\.number) == [1, 2, 3])
    #expect(try ended.segments().last?.duration.seconds == 1)
    let last = try live(byNumber, "mediaPresentationDuration='PT20S'", at: 6)
    #expect(try last.segments().count == 3)
  }

  @Test func offsetsOfAllLevelsAddUp() throws {
    let template =
      #"<SegmentTemplate media="$Number$" duration="4" timescale="2" availabilityTimeOffset="0.5"/>"#
    let text = """
      <MPD \(attributes)><BaseURL availabilityTimeOffset="0.25">a/</BaseURL><Period start="PT0S">
      <BaseURL>b/</BaseURL><AdaptationSet mimeType="video/mp4"><BaseURL availabilityTimeOffset="0.75">c/</BaseURL>
      \(template)<Representation id="v"/></AdaptationSet></Period></MPD>
      """
    let presentation = try dashPresentation(text, now: try at(4.499))
    #expect(try presentation.segments().count == 2)
    #expect(try dashPresentation(text, now: try at(4.5)).segments().count == 3)
    let rung = try #require(presentation.periods.first?.trackGroups.first?.rungs.first)
    #expect(rung.availabilityTimeOffset == MediaTime(value: 3, timescale: 2))
    #expect(try presentation.segments().urls[0] == "https://origin.example/a/b/a/b/c/1")
  }

  @Test func anInfiniteOffsetGivesAllThatCanBeCounted() throws {
    let template = #"<SegmentTemplate media="$Number$" duration="2" availabilityTimeOffset="INF"/>"#
    #expect(try live(template, period: #"start="PT0S" duration="PT30S""#, at: 4).segments().count == 15)
    #expect(try live(template, at: 4).segments().count == 2)
    let odd = try live(template.replacingOccurrences(of: "INF", with: "soon"), at: 4)
    #expect(try odd.segments().count == 2)
    #expect(odd.warnings.first?.reason.contains("@availabilityTimeOffset 'soon'") == true)
  }

  @Test func aTimelineIsListedAsFarAsItCanBeHad() throws {
    let entries = #"<S t="0" d="2" r="9"/>"#
    #expect(try live(timeline(entries), at: 9).segments().map(\.number) == [1, 2, 3, 4])
    #expect(
      try live(timeline(entries), #"timeShiftBufferDepth="PT5S""#, at: 13).segments().map(\.number)
        == [4, 5, 6])
    #expect(
      try live(timeline(entries), #"timeShiftBufferDepth="PT5S""#, at: 22).segments().map(\.number)
        == [8, 9, 10])
    #expect(try live(timeline(entries, #"availabilityTimeOffset="1""#), at: 9).segments().count == 5)
  }

  @Test(arguments: [(7.94, 3), (7.95, 4)])
  func aListedSegmentMayEndAFrameLater(seconds: Double, count: Int) throws {
    let listed = timeline(#"<S t="0" d="2000" r="9"/>"#, #"timescale="1000""#)
    #expect(try live(listed, at: seconds).segments().count == count)
    let counted = timeline(#"<S t="0" d="2000" r="-1"/>"#, #"timescale="1000""#)
    #expect(try live(counted, at: seconds).segments().count == 3)
  }

  @Test func aTimelineThatIsNotRenewedStaysListed() throws {
    let presentation = try live(
      timeline(#"<S t="0" d="2" r="9"/>"#), #"timeShiftBufferDepth="PT5S""#, at: 10_000)
    #expect(try presentation.segments().count == 10)
  }

  @Test func aTimelineWithoutEndGrowsWithTheClock() throws {
    let entries = #"<S t="0" d="3"/><S d="2" r="-1"/>"#
    #expect(try live(timeline(entries), at: 8).segments().map(\.number) == [1, 2, 3])
    #expect(try live(timeline(entries), at: 9).segments().map(\.number) == [1, 2, 3, 4])
    let limited = try live(timeline(entries), at: 1e9, limits: ManifestLimits(segments: 100))
    #expect(try limited.segments().count == 100)
    #expect(try limited.segments().last?.number == 499_999_999)
  }

  @Test func aListOfURLsIsCutByTheClock() throws {
    let list =
      #"<SegmentList duration="2"><SegmentURL media="a"/><SegmentURL media="b"/><SegmentURL media="c"/></SegmentList>"#
    #expect(try live(list, at: 5).segments().urls.map { $0.suffix(1) } == ["a", "b"])
    #expect(try live(list, at: 50).segments().urls.map { $0.suffix(1) } == ["a", "b", "c"])
    #expect(try live("<SegmentList duration='2'/>", at: 5).segments().isEmpty)
  }

  @Test func numbersAreExactAfterDecades() throws {
    let text = mpd(
      videoSet(
        #"<SegmentTemplate media="$Number$" timescale="90000" duration="180180" startNumber="7"/>"#),
      attributes:
        #"type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z" timeShiftBufferDepth="PT10S""#)
    // 899,999,999 × 2.002 s, and the same but for a nanosecond.
    let end = Int64(899_999_999) * 2_002_000_000
    let there = try dashPresentation(text, now: WallTime(nanosecondsSince1970: end)).segments()
    #expect(there.last?.number == 900_000_005)
    let before = try dashPresentation(text, now: WallTime(nanosecondsSince1970: end - 1)).segments()
    #expect(before.last?.number == 900_000_004)
    #expect(there.last?.start == MediaTime(value: 899_999_998 * 2002, timescale: 1000))
  }

  @Test func aClockThatRunsForeverKeepsTheNewest() throws {
    let presentation = try live(byNumber, at: 1e9, limits: ManifestLimits(segments: 50))
    #expect(try presentation.segments().map(\.number).first == 499_999_951)
    #expect(try presentation.segments().count == 50)
  }

  @Test(arguments: ["", #"availabilityStartTime="soon""#])
  func withoutItsBeginningNothingCanBeCounted(start: String) {
    let text = mpd(videoSet(byNumber), attributes: #"type="dynamic" \#(start)"#)
    let error = manifestError { _ = try dashPresentation(text) }
    #expect(error?.reason.contains("has no @availabilityStartTime that can be read") == true)
    #expect(error?.advice == "give MPD@availabilityStartTime")
  }

  @Test func withoutItsBeginningATimelineIsListed() throws {
    let text = mpd(videoSet(timeline(#"<S t="0" d="2" r="9"/>"#)), attributes: #"type="dynamic""#)
    let presentation = try dashPresentation(text)
    #expect(try presentation.segments().count == 10)
    #expect(presentation.live?.presentation == nil)
  }

  @Test func whatIsNotThereYetIsEmpty() throws {
    let presentation = try live(timeline(""), at: 5)
    #expect(try presentation.segments().isEmpty)
    #expect(presentation.live != nil)
    let announced = try dashPresentation(
      """
      <MPD \(attributes)><Period id="a" start="PT0S">\(videoSet(byNumber))</Period>
      <Period id="b">\(videoSet(byNumber))</Period></MPD>
      """, now: try at(10))
    #expect(announced.periods.map(\.id) == ["a"])
    #expect(announced.warnings.map(\.place) == [.element("MPD/Period[2]")])
  }

  @Test func aNewPeriodTakesOver() throws {
    let first = #"<Period id="a" start="PT0S">\#(videoSet(byNumber))</Period>"#
    let second = #"<Period id="b" start="PT10S">\#(videoSet(byNumber))</Period>"#
    let presentation = try dashPresentation(
      "<MPD \(attributes) timeShiftBufferDepth='PT6S'>\(first)\(second)</MPD>", now: try at(14))
    #expect(presentation.periods.map(\.id) == ["a", "b"])
    #expect(try presentation.segments().map(\.number) == [5])
    #expect(try presentation.segments(period: 1).map(\.number) == [1, 2])
    #expect(try presentation.segments(period: 1).starts.map(\.seconds) == [10, 12])
    #expect(try presentation.segments(period: 1).first?.discontinuity == 1)
  }

  @Test func theSameMPDAtAnotherTime() throws {
    let presentation = try live(byNumber, at: 4)
    let atTime = try #require(presentation.live?.presentation)
    let later = try atTime(try at(8))
    #expect(try presentation.segments().count == 2)
    #expect(try later.segments().count == 4)
    let again = try #require(later.live?.presentation)
    #expect(try again(try at(10)).segments().count == 5)
  }

  @Test(
    arguments: [
      ("", 6_000), (#"suggestedPresentationDelay="PT3.5S""#, 3_500), (#"minBufferTime="PT5S""#, 7_500),
      (#"minBufferTime="PT500S""#, 10_000), (#"timeShiftBufferDepth="PT5S""#, 5_000),
      (#"minBufferTime="P10000D""#, 10_000),
    ] as [(String, Int64)])
  func theDelayIsStatedOrFollowsFromTheSegments(more: String, milliseconds: Int64) throws {
    #expect(
      try live(byNumber, more, at: 100).live?.delay == MediaTime(value: milliseconds, timescale: 1000))
  }

  @Test func theLatencyOfTheServiceIsAimedAt() throws {
    let text = """
      <MPD \(attributes)><ServiceDescription><Scope schemeIdUri="urn:x"/><Latency target="3500" min="2000"/>
      <PlaybackRate min="0.96" max="1.04"/></ServiceDescription><Period start="PT0S">\(videoSet(byNumber))</Period></MPD>
      """
    #expect(
      try dashPresentation(text, now: try at(9)).live?.delay == MediaTime(value: 3500, timescale: 1000))
  }

  @Test(
    arguments: [
      ("", .never), (#"minimumUpdatePeriod="PT0S""#, .after(.zero)),
      (#"minimumUpdatePeriod="PT2.5S""#, .after(MediaTime(value: 5, timescale: 2))),
    ] as [(String, LiveTiming.Reload)])
  func reloading(more: String, reload: LiveTiming.Reload) throws {
    #expect(try live(byNumber, more, at: 1).live?.reload == reload)
  }

  @Test func whereItIsReadFromAndWhatTheClockIsSetBy() throws {
    let text = """
      <MPD \(attributes) availabilityEndTime="2026-01-02T00:00:00Z" publishTime="noon" timeShiftBufferDepth="PT30S">
      <Location>../live.mpd?x=1</Location><Location>https://b.example/l.mpd</Location>
      <Location>file:///etc/passwd</Location>
      <Period start="PT0S">\(videoSet(byNumber))</Period>
      <UTCTiming schemeIdUri="urn:mpeg:dash:utc:ntp:2014" value="pool.example"/>
      <UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-xsdate:2014" value="https://t.example/a  /time"/>
      <UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-iso:2014" value="https://t.example/iso"/>
      <UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-head:2014" value="https://t.example/h"/>
      <UTCTiming schemeIdUri="urn:mpeg:dash:utc:direct:2014" value="2026-01-01T00:00:09Z"/>
      <UTCTiming schemeIdUri="urn:mpeg:dash:utc:direct:2014" value="now"/></MPD>
      """
    let presentation = try dashPresentation(text, now: try at(9))
    let live = try #require(presentation.live)
    #expect(
      live.locations.map(\.absoluteString) == [
        "https://origin.example/a/live.mpd?x=1", "https://b.example/l.mpd",
      ])
    #expect(
      live.clockSources == [
        .httpBody(try #require(URL(string: "https://t.example/a"))),
        .httpBody(try #require(URL(string: "https://origin.example/time"))),
        .httpBody(try #require(URL(string: "https://t.example/iso"))),
        .httpHead(try #require(URL(string: "https://t.example/h"))), .direct(try at(9)),
      ])
    #expect(live.availabilityStart == (try at(0)))
    #expect(live.availabilityEnd == (try at(86_400)))
    #expect(live.timeShiftBufferDepth == MediaTime(value: 30, timescale: 1))
    #expect(
      presentation.warnings.map(\.reason) == [
        "@publishTime 'noon' is not a date: ignored",
        "'file:///etc/passwd' is a local file in a remote manifest",
        "the scheme urn:mpeg:dash:utc:ntp:2014 is not asked: this UTCTiming is ignored",
        "the value 'now' is not a date: this UTCTiming is ignored",
      ])
  }

  @Test func eventsAndTheLikeAreChecked() throws {
    func model(_ values: [String]) throws -> MPD {
      try MPD(
        Array(
          """
          <MPD type="dynamic"><PatchLocation ttl="\(values[0])">p.mpp</PatchLocation><Period>
          <EventStream schemeIdUri="urn:scte" value="1" timescale="\(values[1])" presentationTimeOffset="\(values[2])">
          <Event presentationTime="\(values[3])" duration="\(values[4])"><scte:Signal x="1"> <b/> </scte:Signal></Event>
          <Event messageData="m"/><Event/></EventStream>
          <ServiceDescription><Latency target="\(values[5])" min="\(values[6])" max="\(values[7])"/>
          <Latency target="?"/></ServiceDescription>
          <AdaptationSet><ProducerReferenceTime id="1" inband="true" presentationTime="\(values[8])" wallClockTime="w">
          <UTCTiming schemeIdUri="urn:u"/></ProducerReferenceTime><InbandEventStream schemeIdUri="urn:i"/></AdaptationSet>
          </Period></MPD>
          """.utf8))
    }
    let good = try model(["60", "1000", "5", "10", "20", "3500", "2000", "5000", "7"])
    #expect(good.warnings.isEmpty)
    #expect(good.periods.first?.adaptationSets.count == 1)
    let bad = try model(["a", "0", "b", "c", "d", "-1", "e", "f", "g"])
    #expect(
      bad.warnings.map(\.reason) == [
        "@ttl 'a' is not a duration: ignored",
        "@timescale '0' is not a positive whole number: ignored",
        "@presentationTimeOffset 'b' is not a whole number: ignored",
        "@presentationTime 'c' is not a whole number: ignored",
        "@duration 'd' is not a whole number: ignored",
        "@target '-1' is not a whole number of 0 or more: ignored",
        "@min 'e' is not a whole number of 0 or more: ignored",
        "@max 'f' is not a whole number of 0 or more: ignored",
        "@presentationTime 'g' is not a whole number: ignored",
      ])
    #expect(bad.periods.first?.adaptationSets.count == 1)
  }

  @Test(arguments: [
    #"timeShiftBufferDepth="P290Y""#, #"mediaPresentationDuration="P290Y""#,
    #"availabilityEndTime="2262-01-01T00:00:00Z""#, #"suggestedPresentationDelay="P290Y""#,
    #"timeShiftBufferDepth="PT-5S""#, #"minimumUpdatePeriod="NaN""#,
  ])
  func extremesNeverTrap(more: String) {
    let sets = [
      byNumber, #"<SegmentTemplate media="$Number$" duration="9223372036854775807"/>"#,
      #"<SegmentTemplate media="$Number$" duration="1" timescale="9223372036854775807"/>"#,
      #"<SegmentTemplate media="$Number$" duration="1" startNumber="9223372036854775807"/>"#,
      #"<SegmentTemplate media="$Number$" duration="1" presentationTimeOffset="-9223372036854775808"/>"#,
      #"<SegmentTemplate media="$Number$" duration="1" eptDelta="9223372036854775807" presentationTimeOffset="1"/>"#,
      #"<SegmentTemplate media="$Number$" duration="1" eptDelta="-9223372036854775808"/>"#,
      #"<SegmentTemplate media="$Number$" duration="1" availabilityTimeOffset="1e300"/>"#,
      timeline(#"<S d="1" r="-1"/>"#, #"timescale="9223372036854775807""#),
      timeline(#"<S t="9223372036854775807" d="1" r="-1"/>"#),
      timeline(#"<S d="9223372036854775807" r="-1"/>"#),
      timeline(#"<S d="2" r="99999999999"/>"#), timeline(#"<S d="1" r="9223372036854775807"/>"#),
      timeline(#"<S d="2" r="-1"/>"#, #"presentationTimeOffset="-9223372036854775808""#),
    ]
    for set in sets {
      for now in [WallTime(nanosecondsSince1970: .min), .now, WallTime(nanosecondsSince1970: .max)] {
        let text = mpd(videoSet(set), attributes: "\(attributes) \(more)", period: #"start="P1D""#)
        guard let presentation = try? dashPresentation(text, now: now) else { continue }
        guard let list = presentation.periods.first?.trackGroups.first?.rungs.first?.media.segments else {
          continue
        }
        #expect(list.count <= 1_000_000)
        if !list.isEmpty { _ = (list[0], list[list.count - 1]) }
      }
    }
  }
}
