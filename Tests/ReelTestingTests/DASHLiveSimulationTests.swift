import Foundation
import HTTPTypes
import ReelCore
import ReelManifest
import ReelTesting
import ReelTransport
import ReelTestSupport
import Testing

@Suite("A simulated live DASH presentation", .hangLimit)
struct DASHLiveSimulationTests {
  typealias Options = DASHLiveSimulation.Options

  @Test("The text, by number: each pass is a Period")
  func numbers() throws {
    let options = Options(
      minimumUpdatePeriod: seconds(2), timeShiftBufferDepth: seconds(4),
      suggestedPresentationDelay: seconds(2.5),
      availabilityTimeOffset: seconds(0.5), timeSchemes: [.httpHead, .direct, .httpISO])
    let (live, _) = try dashSimulation("dash-number/manifest.mpd", options)
    #expect(
      try live.text(after: 10) == """
        <?xml version="1.0" encoding="UTF-8"?>
        <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-live:2011" \
        type="dynamic" minBufferTime="PT1S" maxSegmentDuration="PT1S" \
        availabilityStartTime="2026-01-31T12:00:00Z" publishTime="2026-01-31T12:00:12Z" \
        minimumUpdatePeriod="PT2S" timeShiftBufferDepth="PT4S" suggestedPresentationDelay="PT2.5S">
        \(period(2))\(period(3))\(period(4))\
          <UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-head:2014" value="/live/time"/>
          <UTCTiming schemeIdUri="urn:mpeg:dash:utc:direct:2014" value="2026-01-31T12:00:10Z"/>
          <UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-iso:2014" value="/live/time"/>
        </MPD>

        """)
  }

  private func period(_ pass: Int) -> String {
    func template(_ track: Int) -> String {
      """
              <SegmentTemplate timescale="1000000" initialization="\(track)-init.m4s" \
      media="p\(pass)/\(track)-$Number$.m4s" availabilityTimeOffset="0.5" startNumber="1" duration="1000000">
              </SegmentTemplate>
            </Representation>

      """
    }
    return """
        <Period id="p\(pass)" start="PT\(pass * 3)S">
          <AdaptationSet id="0" contentType="video" segmentAlignment="true">
            <Representation id="0" bandwidth="300000" mimeType="video/mp4" codecs="avc1.64000b" width="160" \
      height="90" frameRate="30/1">
      \(template(0))\
            <Representation id="1" bandwidth="700000" mimeType="video/mp4" codecs="avc1.64000c" width="256" \
      height="144" frameRate="30/1">
      \(template(1))\
          </AdaptationSet>
          <AdaptationSet id="1" contentType="audio" segmentAlignment="true">
            <Representation id="2" bandwidth="32000" mimeType="audio/mp4" codecs="mp4a.40.2">
      \(template(2))\
          </AdaptationSet>
        </Period>

      """
  }

  @Test("The timeline grows, and its old end goes")
  func timeline() throws {
    let options = Options(addressing: .timeline, timeShiftBufferDepth: seconds(4))
    let (live, _) = try dashSimulation("dash-timeline/manifest.mpd", options)
    #expect(live.manifest(atServerTime: launch + seconds(0.99)) == nil)
    let first = try live.text(after: 1)
    #expect(first.values(of: "t") == ["0", "0", "0"])
    #expect(first.values(of: "d") == ["15360", "15360", "45056"])
    let text = try live.text(after: 7)
    #expect(text.values(of: "start") == ["PT3S", "PT6S"])
    // The window begins at 3 s; the first segment of the sound ends 61 ms before the first of the frames.
    let frames = ["0", "15360", "30720"]
    let sound = ["0", "45056", "93184", "141312"]
    #expect(text.values(of: "t") == frames + frames + sound + ["0", "0", "0"])
  }

  @Test("A Period is there when each of its tracks has a segment")
  func newPeriod() throws {
    let options = Options(addressing: .timeline)
    let (live, _) = try dashSimulation("dash-timeline/manifest.mpd", options)
    // The first segment of the sound ends 61 ms before that of the frames.
    #expect(try live.text(after: 3.95).values(of: "id").filter { $0.hasPrefix("p") } == ["p0"])
    #expect(try live.text(after: 4).values(of: "id").filter { $0.hasPrefix("p") } == ["p0", "p1"])
  }

  @Test("One Period: numbers and times go on")
  func single() throws {
    let options = Options(addressing: .timeline, periods: .single, timeShiftBufferDepth: seconds(2))
    let (live, _) = try dashSimulation("dash-timeline/manifest.mpd", options)
    let text = try live.text(after: 3_001)
    #expect(text.values(of: "start") == ["PT0S"])
    let video = [2_999, 3_000].map { String($0 * 15_360) }
    #expect(text.values(of: "t").prefix(4) == (video + video)[...])
    let times = text.values(of: "t").dropFirst(4).compactMap { Int($0) }
    let lengths = text.values(of: "d").dropFirst(4).compactMap { Int($0) }
    #expect(times.count >= 3)
    for index in times.indices.dropLast() { #expect(times[index] + lengths[index] == times[index + 1]) }
  }

  @Test(
    "One Period: the times in the segments are those of the MPD", arguments: ["dash-number", "dash-timeline"])
  func movedSegments(_ name: String) throws {
    let isTimeline = name == "dash-timeline"
    let options = Options(
      addressing: isTimeline ? .timeline : .number, periods: .single,
      minimumUpdatePeriod: isTimeline ? .zero : nil)
    let (live, clock) = try dashSimulation("\(name)/manifest.mpd", options)
    clock.advance(by: seconds(3_602))
    for second in [3_599, 3_600, 3_601] as [Int64] {
      let path = isTimeline ? "/live/1-t\(second * 15_360).m4s" : "/live/1-\(second + 1).m4s"
      let bytes = try #require(live.response(at: path)?.bytes, "\(path)")
      try #require(live.material.tracks.count > 1)
      let original = try live.material.tracks[1].segments[Int(second % 3)].piece.read()
      #expect(try field(bytes, after: "tfdt", skipping: 4) == second * 15_360)
      #expect(try field(bytes, after: "sidx", skipping: 12) == second * 15_360)
      // Nothing else is changed.
      #expect(zip(bytes, original).filter { $0 != $1 }.count <= 16 && bytes.count == original.count)
    }
  }

  /// The 64 bits so many bytes behind the name of a box.
  private func field(_ bytes: [UInt8], after name: String, skipping count: Int) throws -> Int64 {
    let place = try #require(bytes.firstRange(of: Array(name.utf8))).upperBound + count
    return bytes[place..<place + 8].reduce(0) { $0 << 8 | Int64($1) }
  }

  @Test("A segment is there when it is available, and not a moment longer", arguments: [404, 410])
  func availability(_ status: Int) throws {
    let options = Options(
      timeShiftBufferDepth: seconds(4), availabilityTimeOffset: seconds(0.25), goneStatus: status)
    let (live, clock) = try dashSimulation("dash-number/manifest.mpd", options)
    // The second segment of the second pass: from 4 s to 5 s.
    let path = "p1/0-2.m4s"
    for (elapsed, expected) in [(4.749, 404), (4.75, 200), (9.999, 200), (10, status)] {
      clock.set(launch + seconds(elapsed))
      #expect(live.status(path) == expected, "after \(elapsed) s")
    }
    clock.set(launch + seconds(9))
    for path in [
      "p1/0-0.m4s", "p1/0-4.m4s", "p1/9-1.m4s", "p9223372036854775807/0-1.m4s", "0-2.m4s", "p1/0-t0.m4s",
      "p1/0-2.mp4",
      "p-1/0-1.m4s",
    ] {
      #expect(live.status(path) == 404, "\(path)")
    }
    #expect(live.status("0-init.m4s") == 200)
  }

  @Test("The server's clock decides, and UTCTiming tells it")
  func clocks() throws {
    let options = Options(timeSchemes: [.direct], serverClockOffset: seconds(-30))
    let (live, clock) = try dashSimulation("dash-number/manifest.mpd", options)
    clock.advance(by: seconds(31))
    #expect(live.status("p0/0-1.m4s") == 200)
    #expect(live.status("p0/0-2.m4s") == 404)
    let text = String(decoding: live.response(at: live.manifestPath)?.bytes ?? [], as: UTF8.self)
    #expect(text.contains(#"value="2026-01-31T12:00:01Z""#))
    #expect(live.response(at: live.timePath)?.bytes == Array("2026-01-31T12:00:01Z".utf8))
  }

  @Test(
    "It ends as a static presentation with all of it",
    arguments: [
      DASHLiveSimulation.Addressing.number, .timeline,
    ], [DASHLiveSimulation.Periods.onePerPass, .single])
  func end(_ addressing: DASHLiveSimulation.Addressing, _ periods: DASHLiveSimulation.Periods) throws {
    let options = Options(
      addressing: addressing, periods: periods, timeShiftBufferDepth: seconds(2), passCount: 3)
    let name = addressing == .number ? "dash-number" : "dash-timeline"
    let (live, clock) = try dashSimulation("\(name)/manifest.mpd", options)
    #expect(try live.text(after: 8.9).contains(#"type="dynamic""#))
    for elapsed in [9.0, 900] {
      clock.set(launch + seconds(elapsed))
      let text = try live.text(after: elapsed)
      #expect(!text.contains("minimumUpdatePeriod"))
      let presentation = try ManifestReader().presentation(
        from: Array(text.utf8), format: .dash, url: try #require(URL(string: "http://a/live/manifest.mpd")))
      #expect(!presentation.isLive)
      #expect(presentation.duration == seconds(9))
      #expect(
        presentation.periods.map(\.start) == (periods == .single ? [0] : [0, 3, 6]).map { seconds($0) })
      var count = 0
      for group in presentation.periods.flatMap(\.trackGroups) where group.kind == .video {
        try #require(!group.rungs.isEmpty)
        guard case .segments(let list) = group.rungs[0].media else { continue }
        count += list.count
        for segment in list { #expect(live.response(at: segment.url.path())?.status == 200) }
      }
      #expect(count == 9)
    }
  }

  @Test("A stall holds back what comes in it")
  func stall() throws {
    let stall = LiveDisturbances.Stall(after: seconds(6), length: seconds(4))
    let options = Options(addressing: .timeline, disturbances: LiveDisturbances(stalls: [stall]))
    let (live, clock) = try dashSimulation("dash-timeline/manifest.mpd", options)
    #expect(try live.text(after: 9.9) == live.text(after: 6))
    clock.set(launch + seconds(9.9))
    #expect(live.status("p2/0-t0.m4s") == 404)
    clock.set(launch + seconds(10))
    #expect(live.status("p2/0-t0.m4s") == 200)
  }

  @Test("Over HTTP: Reel reads the MPD, and the segments are those of the fixture")
  func http() async throws {
    let options = Options(
      addressing: .timeline, timeSchemes: [.httpHead],
      disturbances: LiveDisturbances(staleCopies: .init(every: 2, age: seconds(1))))
    let (live, clock) = try dashSimulation("dash-timeline/manifest.mpd", options)
    clock.advance(by: seconds(36_001))
    try await Origin.use(.init(resources: [live])) { origin in
      let fetcher = makeFetcher(attempts: 0)
      let url = origin.url(live.manifestPath)
      let bytes = try await fetcher.bytes(url)
      let presentation = try ManifestReader().presentation(from: bytes, format: .dash, url: url)
      #expect(presentation.isLive)
      let period = try #require(presentation.periods.last)
      #expect(period.start == seconds(36_000))
      guard case .segments(let list)? = period.trackGroups.first?.rungs.first?.media else {
        Issue.record("no segments")
        return
      }
      let segment = try #require(list.last)
      #expect(segment.start == seconds(36_000))
      let folder = Fixtures.folder.appending(path: "dash-timeline")
      let media = try await fetcher.bytes(segment.url)
      #expect(try media == Array(Data(contentsOf: folder.appending(path: "0-300000-0.m4s"))))
      let map = try #require(segment.initialization)
      let initialization = try await fetcher.bytes(map.url)
      #expect(try initialization == Array(Data(contentsOf: folder.appending(path: "0-300000-init.mp4"))))
      let stale = try await fetcher.bytes(url)
      #expect(stale != bytes)
      let head = try await fetcher.fetch(
        FetchRequest(.head, url: origin.url(live.timePath), purpose: .resource))
      #expect(head.date == clock.now)
    }
  }

  @Test(
    "What Reel lists at a time is what is there then, and the newest of it",
    arguments: [DASHLiveSimulation.Addressing.number, .timeline],
    [DASHLiveSimulation.Periods.onePerPass, .single])
  func listed(_ addressing: DASHLiveSimulation.Addressing, _ periods: DASHLiveSimulation.Periods) throws {
    let options = Options(
      addressing: addressing, periods: periods, timeShiftBufferDepth: seconds(5),
      availabilityTimeOffset: seconds(0.25))
    let name = addressing == .number ? "dash-number" : "dash-timeline"
    let (live, clock) = try dashSimulation("\(name)/manifest.mpd", options)
    let url = try #require(URL(string: "http://origin.example\(live.manifestPath)"))
    for elapsed in stride(from: 600.05, to: 606, by: 0.1) {
      clock.set(launch + seconds(elapsed))
      let presentation = try ManifestReader().presentation(
        from: Array(try live.text(after: elapsed).utf8), format: .dash, url: url, now: clock.now)
      var ends: [TrackGroup.Kind: MediaTime] = [:]
      for group in presentation.periods.flatMap(\.trackGroups) {
        try #require(!group.rungs.isEmpty)
        guard case .segments(let list) = group.rungs[0].media else { continue }
        for segment in list {
          #expect(live.response(at: segment.url.path())?.status == 200, "\(segment.url) after \(elapsed) s")
          ends[group.kind] = segment.start + segment.duration
        }
      }
      // Segments of a second, each there a quarter of one before its end.
      let newest = (elapsed + 0.25).rounded(.down)
      #expect(ends[.video] == seconds(newest), "after \(elapsed) s")
    }
  }

  @Test("What can't be presented so is refused")
  func refused() throws {
    func error(_ name: String, _ options: Options) -> ReelError? {
      #expect(throws: ReelError.self) { _ = try dashSimulation(name, options) }
    }
    #expect(error("dash-timeline/manifest.mpd", Options())?.reason.contains("not of equal length") == true)
    #expect(error("dash-number/manifest.mpd", Options(minimumUpdatePeriod: nil))?.kind == .usage)
    #expect(error("hls-fmp4/master.m3u8", Options())?.kind == .unsupported)
    _ = try dashSimulation(
      "dash-number/manifest.mpd", Options(periods: .single, minimumUpdatePeriod: nil))
  }
}
