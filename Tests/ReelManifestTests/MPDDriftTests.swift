import Foundation
import ReelCore
import ReelManifest
import ReelTestSupport
import Testing

/// Live timelines of which no segment is available by the clock.
@Suite struct MPDDriftTests {
  /// The time `seconds` after the beginning of 2026.
  private func at(_ seconds: Double) throws -> WallTime {
    try #require(WallTime(iso8601: "2026-01-01T00:00:00Z")) + MediaTime(seconds: seconds)
  }

  private func live(
    _ content: String, _ more: String = "", start: String = "2026-01-01T00:00:00Z", at seconds: Double
  ) throws -> Presentation {
    let attributes = #"type="dynamic" availabilityStartTime="\#(start)" \#(more)"#
    return try dashPresentation(
      mpd(videoSet(content), attributes: attributes, period: #"id="p" start="PT0S""#), now: try at(seconds))
  }

  private func timeline(_ entries: String, _ more: String = "") -> String {
    #"<SegmentTemplate media="$Time$" \#(more)><SegmentTimeline>\#(entries)</SegmentTimeline></SegmentTemplate>"#
  }

  @Test(arguments: ["", #"timeShiftBufferDepth="PT6S""#])
  func aClockThatIsBehindGetsTheNewest(more: String) throws {
    // Listed at 1000 s, read by a clock that shows 970 s.
    let presentation = try live(timeline(#"<S t="990" d="2" r="4"/>"#), more, at: 970)
    let wanted: [Double] = more.isEmpty ? [990, 992, 994, 996, 998] : [992, 994, 996, 998]
    #expect(try presentation.segments().starts.map(\.seconds) == wanted)
    #expect(presentation.live?.drift == MediaTime(value: 30, timescale: 1))
    #expect(presentation.warnings == [try #require(presentation.live?.driftFault)])
    #expect(presentation.warnings.first?.reason.contains("the newest ends 30.0 s in the future") == true)
    #expect(presentation.warnings.first?.place == .element("MPD"))
  }

  @Test func aTimelineThatDoesNotFitItsStartIsPlayed() throws {
    // Times count from 1970, although @availabilityStartTime is in 2026.
    let presentation = try live(timeline(#"<S t="1767225600" d="2" r="4"/>"#), at: 100)
    #expect(try presentation.segments().count == 5)
    #expect(presentation.live?.drift == MediaTime(value: 1_767_225_610 - 100, timescale: 1))
    // A start in the future, as with a wrong time zone.
    let early = try live(timeline(#"<S t="40" d="2" r="4"/>"#), start: "2026-01-01T02:00:00Z", at: 50)
    #expect(try early.segments().last?.start.seconds == 48)
    #expect(early.live?.drift == MediaTime(value: 7200, timescale: 1))
  }

  @Test func theCorrectedClockGoesOnWithoutSteppingBack() throws {
    let first = try live(timeline(#"<S t="990" d="2" r="-1"/>"#), at: 970)
    #expect(try first.segments().starts.map(\.seconds) == [990])
    let drift = try #require(first.live?.drift)
    #expect(drift == MediaTime(value: 22, timescale: 1))
    let atTime = try #require(first.live?.presentation)
    let later = try atTime(try at(970) + drift + MediaTime(value: 4, timescale: 1))
    #expect(try later.segments().starts.map(\.seconds) == [990, 992, 994])
    #expect(later.live?.drift == nil)
    // The next reload, by the same clock.
    let next = try live(timeline(#"<S t="992" d="2" r="-1"/>"#), at: 970 + 22 + 4)
    #expect(try next.segments().starts.map(\.seconds) == [992, 994])
    var window = SegmentWindow(try first.segments(), identity: .start)
    #expect(window.update(try later.segments()) == .grew(by: 2))
    #expect(window.update(try next.segments()) == .unchanged)
  }

  @Test func theEndIsRoundedSoThatItsSegmentIsThere() throws {
    let content = timeline(#"<S t="90000000" d="180180" r="-1"/>"#, #"timescale="90000""#)
    #expect(try live(content, at: 970).segments().count == 1)
    #expect(try live(content, at: 970).live?.drift == MediaTime(value: 32_002, timescale: 1000))
  }

  @Test func aListOfURLsIsTakenTheSame() throws {
    let urls = (0..<5).map { "<SegmentURL media='\($0)'/>" }.joined()
    let list = try live(
      "<SegmentList duration='4'>\(urls)</SegmentList>", start: "2026-01-01T01:00:00Z", at: 0)
    #expect(try list.segments().count == 5)
    #expect(list.live?.drift == MediaTime(value: 3620, timescale: 1))
  }

  @Test func whatIsStillToComeIsNoDrift() throws {
    // Segments that depend on the clock only.
    let counted = #"<SegmentTemplate media="$Number$" duration="2"/>"#
    #expect(try live(counted, at: -30).segments().isEmpty)
    // An event whose segments are all announced in advance.
    let whole = timeline(#"<S t="0" d="2" r="29"/>"#)
    let announced = try live(whole, #"mediaPresentationDuration="PT60S""#, at: -3600)
    #expect(try announced.segments().isEmpty)
    #expect(announced.live?.drift == nil)
    // One segment is available.
    let begun = try live(whole, at: 2)
    #expect(try begun.segments().count == 1)
    #expect(begun.live?.drift == nil)
    #expect(try live(timeline(""), at: 5).segments().isEmpty)
  }

  @Test func offsetsAreTakenOff() throws {
    let content = timeline(#"<S t="990" d="2" r="4"/>"#, #"availabilityTimeOffset="1.5""#)
    let presentation = try live(content, at: 970)
    #expect(try presentation.segments().count == 5)
    #expect(presentation.live?.drift == MediaTime(value: 28_500, timescale: 1000))
  }

  // MARK: More segments than are kept

  @Test(arguments: [
    #"<S t="0" d="2" r="33688627"/>"#, #"<S t="0" d="2" r="-1"/>"#,
    #"<S t="0" d="2" r="9"/><S d="2" r="33688617"/>"#,
  ])
  func theNewestAreKept(entries: String) throws {
    let limits = ManifestLimits(segments: 100)
    let end = 2 * 33_688_628
    let fixed = try dashPresentation(
      mpd(videoSet(timeline(entries)), attributes: #"mediaPresentationDuration="PT\#(end)S""#), limits: limits
    )
    #expect(try fixed.segments().count == 100)
    #expect(try fixed.segments().last?.start.seconds == Double(end - 2))
    #expect(try fixed.segments().first?.url.lastPathComponent == "\(end - 200)")
    #expect(
      fixed.warnings.map(\.reason) == ["more than 100 segments: the oldest 33688528 are left out"])
    let attributes = #"type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z""#
    let live = try dashPresentation(
      mpd(videoSet(timeline(entries)), attributes: attributes, period: #"start="PT0S""#), limits: limits,
      now: WallTime(nanosecondsSince1970: Int64(end - 10) * 1_000_000_000))
    #expect(try live.segments().count == 100)
    #expect(try live.segments().last?.start.seconds == Double(end - 12))
  }

  @Test func theNewestOfManyRunsAreKept() throws {
    let entries = (0..<50).map { #"<S d="\#($0 % 2 + 1)" r="2"/>"# }.joined()
    let text = mpd(videoSet(timeline(entries)), attributes: #"mediaPresentationDuration="PT1000S""#)
    let all = try dashPresentation(text).segments()
    #expect(all.count == 150)
    for limit in [1, 2, 3, 4, 149] {
      let kept = try dashPresentation(text, limits: ManifestLimits(segments: limit)).segments()
      #expect(kept.starts == all.suffix(limit).map(\.start))
      #expect(kept.urls == all.suffix(limit).map(\.url.absoluteString))
    }
  }
}
