import Foundation
import Logging
import NIOCore
import ReelCore
import ReelGateway
import ReelManifest
import ReelSources
import ReelTestSupport
import ReelTesting
import Testing

/// When the simulations begin: 2026-01-31T12:00:00Z.
private let launch = WallTime(nanosecondsSince1970: 1_769_860_800_000_000_000)

private func seconds(_ value: Double) -> MediaTime { MediaTime(seconds: value, timescale: 1_000_000) }

/// The playlists of live presentations, hour by hour in simulated time, against the rules of RFC 8216 §6.2.
@Suite("Live presentations as HLS", .hangLimit)
struct LivePlaylistTests {
  private let clock = ManualClock(launch)

  /// The addressings, with the fixture that has segments for each.
  static let cases: [(String, DASHLiveSimulation.Options)] = [
    ("dash-number/manifest.mpd", .init(addressing: .number, periods: .onePerPass)),
    ("dash-number/manifest.mpd", .init(addressing: .timeline, periods: .onePerPass)),
    ("dash-timeline/manifest.mpd", .init(addressing: .timeline, periods: .single)),
    ("dash-number/manifest.mpd", .init(addressing: .timeline, timeShiftBufferDepth: seconds(60))),
    (
      "dash-number/manifest.mpd",
      .init(addressing: .timeline, periods: .onePerPass, minimumUpdatePeriod: seconds(5))
    ),
    (
      "dash-number/manifest.mpd",
      .init(addressing: .number, availabilityTimeOffset: seconds(0.5), timeSchemes: [.direct])
    ),
    (
      "dash-number/manifest.mpd",
      .init(
        addressing: .timeline,
        disturbances: .init(
          stalls: [.init(after: seconds(150), length: seconds(20))],
          staleCopies: .init(every: 3, age: seconds(4))))
    ),
  ]

  @Test(
    "A day of each addressing: every segment once, in order, and the same for every client",
    arguments: 0..<cases.count)
  func day(number: Int) async throws {
    let (name, options) = Self.cases[number]
    let simulation = try simulation(name, options, after: 100)
    let source = try await playlists(simulation)
    var followers: [String: Follower] = [:]
    let tracks = source.tracks
    #expect(tracks.count >= 2)
    // Polls for some seconds of each hour, and so also after an hour without a request.
    for hour in 0..<24 {
      for step in 0..<16 {
        for track in tracks {
          let text = try #require(await source.text(track))
          try followers[track, default: Follower()].take(text, isAfterPause: step == 0 && hour > 0)
        }
        clock.advance(by: seconds(0.75))
      }
      clock.advance(by: seconds(3_588))
    }
    for (track, follower) in followers {
      #expect(follower.problems.isEmpty, "\(track): \(follower.problems.prefix(3))")
      #expect(follower.count > 24 * 10, "\(track)")
    }
    let starts = Set(followers.values.map(\.targetDurations))
    #expect(starts.count == 1)
  }

  @Test("A segment is listed as soon as the MPD lists it")
  func latency() async throws {
    let simulation = try simulation("dash-number/manifest.mpd", .init(addressing: .timeline), after: 100.2)
    let source = try await playlists(simulation)
    for _ in 0..<40 {
      let text = try #require(await source.text("video-0"))
      let playlist = try hlsPlaylist(text)
      let newest = try #require(playlist.dates.last)
      // The end of the newest segment, and the time.
      #expect((clock.now - newest - seconds(1)).seconds < 1 + 0.5)
      clock.advance(by: seconds(0.5))
    }
  }

  @Test("An MPD that becomes static ends the playlists")
  func ending() async throws {
    let simulation = try simulation(
      "dash-number/manifest.mpd", .init(addressing: .timeline, passCount: 40), after: 100)
    let source = try await playlists(simulation)
    let before = try #require(await source.text("video-0"))
    #expect(!before.contains("#EXT-X-ENDLIST"))
    clock.advance(by: seconds(60))
    let after = try #require(await source.text("video-0"))
    #expect(after.hasSuffix("#EXT-X-ENDLIST\n"))
    let (old, new) = (try hlsPlaylist(before), try hlsPlaylist(after))
    #expect(new.sequence >= old.sequence)
    #expect(new.segments.last.map { $0.uri } == "\(new.sequence + new.segments.count - 1).m4s")
    let audio = try #require(await source.text("audio-0"))
    #expect(audio.hasSuffix("#EXT-X-ENDLIST\n"))
  }

  @Test("An origin that fails leaves the playlists as they are; then they go on")
  func failure() async throws {
    let simulation = try simulation("dash-number/manifest.mpd", .init(addressing: .timeline), after: 100)
    let fetcher = SwitchedFetcher(SimulationFetcher(resource: simulation))
    let source = try await playlists(simulation, fetcher: fetcher)
    var follower = Follower()
    for step in 0..<180 {
      fetcher.fails = (60..<120).contains(step)
      try follower.take(try #require(await source.text("video-0")), isAfterPause: step == 120)
      clock.advance(by: seconds(1))
    }
    #expect(follower.problems.isEmpty, "\(follower.problems.prefix(3))")
    #expect(follower.count > 100)
  }

  @Test("One reading serves all clients, and only while one asks")
  func readings() async throws {
    let simulation = try simulation(
      "dash-number/manifest.mpd", .init(addressing: .timeline, minimumUpdatePeriod: seconds(2)), after: 100)
    let fetcher = SwitchedFetcher(SimulationFetcher(resource: simulation))
    let source = try await playlists(simulation, fetcher: fetcher)
    let first = fetcher.count
    for _ in 0..<20 { _ = await source.text("video-0") }
    #expect(fetcher.count == first)
    clock.advance(by: seconds(600))
    #expect(fetcher.count == first)
    await withTaskGroup(of: Void.self) { group in
      for track in ["video-0", "audio-0"] {
        for _ in 0..<50 { group.addTask { _ = await source.text(track) } }
      }
    }
    #expect(fetcher.count == first + 1)
  }

  @Test("Live HLS goes on too, each playlist by itself")
  func hls() async throws {
    clock.set(launch + seconds(100))
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: "hls-fmp4/master.m3u8"))
    let simulation = try HLSLiveSimulation(material, start: launch) { [clock] in clock.now }
    let source = try await playlists(simulation, at: simulation.manifestPath)
    var followers: [String: Follower] = [:]
    for _ in 0..<200 {
      for track in source.tracks {
        try followers[track, default: Follower()].take(
          try #require(await source.text(track)), isAfterPause: false)
      }
      clock.advance(by: seconds(0.5))
    }
    for (track, follower) in followers {
      #expect(follower.problems.isEmpty, "\(track): \(follower.problems.prefix(3))")
      #expect(follower.count >= 95, "\(track)")
    }
  }

  @Test(
    "Holes of a live timeline are gaps, at most as long as the segments around them",
    arguments: [
      (
        #"<S t="0" d="2" r="1"/><S t="10" d="2" r="1"/>"#,
        ["2,", "2,", "gap 2,", "gap 2,", "gap 2,", "2,", "2,"]
      ),
      (#"<S t="0" d="2" r="1"/><S t="10" d="4"/>"#, ["2,", "2,", "gap 3,", "gap 3,", "4,"]),
      (#"<S t="0" d="2"/><S d="3"/><S t="6" d="2"/>"#, ["2,", "3,", "2,"]),
    ])
  func holes(entries: String, durations: [String]) throws {
    let template =
      #"<SegmentTemplate initialization="i.mp4" media="$RepresentationID$/$Time$.m4s"><SegmentTimeline>"#
      + entries + "</SegmentTimeline></SegmentTemplate>"
    let rungs = rung("a", 300_000, "avc1.64000b") + rung("b", 600_000, "avc1.64000b")
    let text =
      #"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" availabilityStartTime="\#(launch)""#
      + #" minimumUpdatePeriod="PT2S"><Period id="a" start="PT0S">"#
      + set(#"contentType="video""#, template + rungs) + "</Period></MPD>"
    let hls = try VirtualHLS(dashPresentation(text, now: launch + seconds(15)))
    #expect(hls.tracks.count == 2)
    for track in hls.tracks {
      let playlist = try hlsPlaylist(hls.mediaPlaylist(of: track) { $0.name })
      #expect(playlist.segments.map { $0.isGap ? "gap \($0.duration)" : $0.duration } == durations)
    }
  }

  @Test("Audio that is available before video does not begin a presentation alone")
  func beginning() throws {
    func hls(at elapsed: Double) throws -> VirtualHLS {
      let text =
        #"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" availabilityStartTime="\#(launch)">"#
        + #"<Period id="a" start="PT0S">"#
        + set(
          #"contentType="video""#,
          #"<SegmentTemplate duration="2" media="v$Number$.m4s"/>"# + rung("v", 300_000, "avc1.64000b"))
        + set(
          #"contentType="audio""#,
          #"<SegmentTemplate duration="1" media="a$Number$.m4s"/>"# + rung("a", 64_000, "mp4a.40.2"))
        + "</Period></MPD>"
      return try VirtualHLS(dashPresentation(text, now: launch + seconds(elapsed)))
    }
    #expect(try hls(at: 1.5).tracks.isEmpty)
    #expect(try hls(at: 2.5).tracks.map(\.name) == ["video-0", "audio-0"])
  }

  @Test("A file whose index can't be read is not requested at each reading")
  func unreadableIndex() async throws {
    clock.set(launch + seconds(100))
    let template =
      #"<SegmentTemplate duration="2" initialization="i.mp4" media="$Number$.m4s"/>"#
      + rung("v", 300_000, "avc1.64000b")
    let file = #"<BaseURL>gone.mp4</BaseURL><SegmentBase indexRange="0-99"/>"#
    let manifest = FixedManifest(
      text: #"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" availabilityStartTime="\#(launch)""#
        + #" minimumUpdatePeriod="PT2S"><Period id="a" start="PT0S" duration="PT60S">"#
        + set(#"contentType="video""#, rung("v", 300_000, "avc1.64000b", content: file))
        + #"</Period><Period id="b" start="PT60S">"# + set(#"contentType="video""#, template)
        + "</Period></MPD>")
    let fetcher = SwitchedFetcher(SimulationFetcher(resource: manifest))
    let source = try await playlists(manifest, at: "/live.mpd", fetcher: fetcher)
    for _ in 0..<10 {
      _ = await source.text("video-0")
      clock.advance(by: seconds(2))
    }
    #expect(fetcher.count(of: "live.mpd") > 5)
    #expect(fetcher.count(of: "gone.mp4") == 1)
    clock.advance(by: seconds(60))
    _ = await source.text("video-0")
    #expect(fetcher.count(of: "gone.mp4") == 2)
  }

  @Test("Clients of a presentation that has not begun get 503 until it does", arguments: [-30.0, 0.1])
  func notBegun(after elapsed: Double) async throws {
    clock.set(launch + seconds(elapsed))
    let template = #"<SegmentTemplate duration="2" initialization="i.mp4" media="$Number$.m4s"/>"#
    let manifest = FixedManifest(
      text: #"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" availabilityStartTime="\#(launch)""#
        + #" minimumUpdatePeriod="PT2S"><Period id="a" start="PT0S">"#
        + set(#"contentType="video""#, template + rung("v", 300_000, "avc1.64000b")) + "</Period></MPD>")
    var loading = LoadingConfiguration()
    loading.clock = clock
    let fetcher = SwitchedFetcher(SimulationFetcher(resource: manifest))
    let gateway = try await Gateway.start(
      #require(URL(string: "http://origin.example/live.mpd")), fetcher: fetcher, loading: loading,
      logger: silentLogger)
    for path in ["/master.m3u8", "/media/video-0/index.m3u8", "/"] {
      let early = try await http(gateway.url(path))
      #expect(early.status == 503)
      #expect(early.fields["retry-after"] == "2")
      #expect(early.text == "the presentation has not begun\n")
    }
    #expect(fetcher.count(of: "live.mpd") == 1)
    clock.set(launch + seconds(5))
    #expect(try await http(gateway.url("/master.m3u8")).text.contains("media/video-0/index.m3u8"))
    let playlist = try hlsPlaylist(try await http(gateway.url("/media/video-0/index.m3u8")).text)
    #expect(playlist.segments.map(\.uri) == ["0.m4s", "1.m4s"])
    #expect(playlist.targetDuration == "2")
    await gateway.stop()
  }

  @Test("Periods with segments of different lengths, and the same ids again, leave no hole in the numbers")
  func periodsOfDifferentLengths() throws {
    let start =
      #"availabilityStartTime="2026-01-01T00:00:00Z" minimumUpdatePeriod="PT2S" timeShiftBufferDepth="PT30S""#
    func presentation(at seconds: Int) throws -> Presentation {
      // Periods of 12 s in turn with segments of 2 s and of 4 s.
      let periods = (0...(seconds / 12)).filter { $0 * 12 + 12 > seconds - 40 }.map { index in
        let length = index % 2 == 0 ? 2 : 4
        let template =
          #"<SegmentTemplate duration="\#(length)" initialization="\#(index)/i.mp4" media="\#(index)/$Number$.m4s"/>"#
        return #"<Period id="\#(index % 2)" start="PT\#(index * 12)S">"#
          + set(#"contentType="video""#, template + rung("v", 300_000, "avc1.64000b")) + "</Period>"
      }
      let text =
        #"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" \#(start)>\#(periods.joined())</MPD>"#
      let now =
        try #require(WallTime(iso8601: "2026-01-01T00:00:00Z"))
        + MediaTime(value: Int64(seconds), timescale: 1)
      return try dashPresentation(text, now: now)
    }
    var hls = try VirtualHLS(presentation(at: 50))
    var follower = Follower()
    for seconds in 51..<200 {
      let text = hls.mediaPlaylist(of: try #require(hls.tracks.first)) { $0.name }
      try follower.take(text, isAfterPause: false)
      let playlist = try hlsPlaylist(text)
      #expect(
        playlist.segments.map(\.uri) == playlist.segments.indices.map { "\(playlist.sequence + $0).m4s" })
      hls = try VirtualHLS(presentation(at: seconds), following: hls)
    }
    // Dates are 4 s apart where the segments are.
    #expect(follower.problems.filter { !$0.hasPrefix("2026-01-01T") } == [])
    #expect(follower.count > 50)
  }

  @Test("A period whose start moves along with its list of segments, as FFmpeg writes it, is one period")
  func movingStart() throws {
    func presentation(at newest: Int) throws -> Presentation {
      let first = max(1, newest - 14)
      let urls = (first...newest).map { #"<SegmentURL media="\#($0).m4s"/>"# }.joined()
      let list =
        #"<SegmentList timescale="1000000" duration="2000000" startNumber="\#(first)">"#
        + #"<Initialization sourceURL="i.mp4"/>\#(urls)</SegmentList>"#
      let text =
        #"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" availabilityStartTime="\#(launch)""#
        + #" minimumUpdatePeriod="PT2S"><Period id="0" start="PT\#((first - 1) * 2)S">"#
        + set(#"contentType="video""#, rung("v", 300_000, "avc1.64000b", content: list)) + "</Period></MPD>"
      return try dashPresentation(text, now: launch + seconds(Double(newest * 2) + 3))
    }
    var hls = try VirtualHLS(presentation(at: 5))
    for newest in 6..<60 {
      hls = try VirtualHLS(presentation(at: newest), following: hls)
      let playlist = try hlsPlaylist(hls.mediaPlaylist(of: #require(hls.tracks.first)) { $0.name })
      let first = max(1, newest - 14)
      #expect(playlist.sequence == first - 1)
      #expect(playlist.segments.map(\.uri) == (first...newest).map { "\($0 - 1).m4s" })
      #expect(!playlist.segments.contains { $0.discontinuity != 0 })
    }
  }

  @Test(
    "A period that is announced and withdrawn, and a wrong @availabilityStartTime, do not end the playlists")
  func withdrawals() throws {
    let start = try #require(WallTime(iso8601: "2026-01-01T00:00:00Z"))
    func presentation(at second: Int, ad: Int? = nil, startedAt: String = "2026-01-01T00:00:00Z") throws
      -> Presentation
    {
      let template =
        #"<SegmentTemplate duration="2" initialization="$RepresentationID$/i.mp4" media="$RepresentationID$/$Number$.m4s"/>"#
      func period(_ id: String, _ start: Int) -> String {
        #"<Period id="\#(id)" start="PT\#(start)S">"#
          + set(#"contentType="video""#, template + rung(id, 300_000, "avc1.64000b")) + "</Period>"
      }
      let attributes =
        #"availabilityStartTime="\#(startedAt)" minimumUpdatePeriod="PT2S" timeShiftBufferDepth="PT30S""#
      let text =
        #"<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" \#(attributes)>"#
        + period("p", 0) + (ad.map { period("ad", $0) } ?? "") + "</MPD>"
      return try dashPresentation(text, now: start + MediaTime(value: Int64(second), timescale: 1))
    }
    var hls = try VirtualHLS(presentation(at: 100))
    var follower = Follower()
    func follow(_ next: Presentation) throws {
      hls = try VirtualHLS(next, following: hls)
      try follower.take(hls.mediaPlaylist(of: try #require(hls.tracks.first)) { $0.name }, isAfterPause: true)
    }
    for second in 100..<110 { try follow(presentation(at: second)) }
    for second in 110..<116 { try follow(presentation(at: second, ad: 111)) }
    for second in 116..<140 { try follow(presentation(at: second)) }
    var end = try #require(hls.tracks.first).endIndex
    let date = {
      try hlsPlaylist(hls.mediaPlaylist(of: try #require(hls.tracks.first)) { $0.name }).dates.last
    }
    #expect(try (start + seconds(139) - #require(try date())).seconds < 4)
    var second = 140
    for wrong in ["2025-12-31T23:59:00Z", "1960-01-01T00:00:00Z", "2026-01-01T00:00:30Z"] {
      for _ in 0..<4 {
        try follow(presentation(at: second, startedAt: wrong))
        second += 1
      }
      for _ in 0..<20 {
        try follow(presentation(at: second))
        second += 1
      }
      let now = try #require(hls.tracks.first).endIndex
      #expect(now > end, "\(wrong)")
      end = now
      #expect(try (start + seconds(Double(second - 1)) - #require(try date())).seconds < 4, "\(wrong)")
    }
    #expect(follower.problems.filter { !$0.hasPrefix("20") && !$0.hasPrefix("19") } == [])
  }

  // MARK: - Private

  private func simulation(
    _ name: String, _ options: DASHLiveSimulation.Options, after elapsed: Double
  ) throws -> DASHLiveSimulation {
    clock.set(launch + seconds(elapsed))
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: name))
    return try DASHLiveSimulation(material, start: launch, options: options) { [clock] in clock.now }
  }

  private func playlists(
    _ simulation: DASHLiveSimulation, fetcher: (any Fetching)? = nil
  ) async throws -> LivePlaylists {
    try await playlists(simulation, at: simulation.manifestPath, fetcher: fetcher)
  }

  private func playlists(
    _ simulation: any DynamicResource, at path: String, fetcher: (any Fetching)? = nil
  ) async throws -> LivePlaylists {
    var configuration = LoadingConfiguration()
    configuration.clock = clock
    let url = try #require(URL(string: "http://origin.example\(path)"))
    let hls = try await VirtualHLS(
      url: url, fetcher: fetcher ?? SimulationFetcher(resource: simulation), configuration: configuration)
    return LivePlaylists(GatewayPlaylists(hls, logger: silentLogger), hls.tracks.map(\.name))
  }
}

/// The playlists of a gateway, as text.
private struct LivePlaylists {
  let tracks: [String]
  private let playlists: GatewayPlaylists

  init(_ playlists: GatewayPlaylists, _ tracks: [String]) {
    self.playlists = playlists
    self.tracks = tracks
  }

  func text(_ track: String) async -> String? {
    await playlists.mediaPlaylist(ofTrackNamed: track).map { String(buffer: $0) }
  }
}

/// A fetcher that fails when told to, and counts its requests.
private final class SwitchedFetcher: Fetching {
  private let base: any Fetching
  private let state = Locked((fails: false, names: [String]()))

  init(_ base: any Fetching) { self.base = base }

  var fails: Bool {
    get { state.withLock { $0.fails } }
    set { state.withLock { $0.fails = newValue } }
  }
  var count: Int { state.withLock { $0.names.count } }

  /// The number of requests for a file.
  func count(of name: String) -> Int { state.withLock { $0.names.count { $0 == name } } }

  func fetch(_ request: FetchRequest) async throws -> FetchResponse {
    let fails = state.withLock { state in
      state.names.append(request.url.lastPathComponent)
      return state.fails
    }
    if fails { throw ReelError(.server, "503 Service Unavailable", status: 503) }
    return try await base.fetch(request)
  }
}

/// An MPD that stays as it is, at `/live.mpd`.
private struct FixedManifest: DynamicResource {
  let text: String

  func response(at path: String) -> Origin.Response? {
    path == "/live.mpd" ? Origin.Response(text, contentType: "application/dash+xml") : nil
  }
}

/// The lines of a media playlist that matter here.
private struct TextPlaylist {
  struct Segment: Hashable {
    var uri: String
    var duration: String
    var map: String?
    var isGap: Bool
    var discontinuity: Int
  }

  var sequence = 0
  var discontinuitySequence = 0
  var targetDuration = ""
  var segments: [Segment] = []
  /// The date of each segment, from the dates that are stated.
  var dates: [WallTime] = []
}

private func hlsPlaylist(_ text: String) throws -> TextPlaylist {
  var playlist = TextPlaylist()
  var (map, duration, isGap, discontinuities): (String?, String, Bool, Int) = (nil, "", false, 0)
  var date: WallTime?
  for line in text.split(separator: "\n").map(String.init) {
    func value(_ tag: String) -> String? {
      line.hasPrefix(tag + ":") ? String(line.dropFirst(tag.count + 1)) : nil
    }
    if let number = value("#EXT-X-MEDIA-SEQUENCE") { playlist.sequence = try #require(Int(number)) }
    if let number = value("#EXT-X-DISCONTINUITY-SEQUENCE") {
      playlist.discontinuitySequence = try #require(Int(number))
      discontinuities = playlist.discontinuitySequence
    }
    if let number = value("#EXT-X-TARGETDURATION") { playlist.targetDuration = number }
    if let text = value("#EXT-X-MAP") { map = text }
    if let text = value("#EXTINF") { duration = text }
    if let text = value("#EXT-X-PROGRAM-DATE-TIME") { date = WallTime(iso8601: text) }
    if line == "#EXT-X-GAP" { isGap = true }
    if line == "#EXT-X-DISCONTINUITY" { (discontinuities, map) = (discontinuities + 1, nil) }
    if !line.hasPrefix("#") {
      playlist.segments.append(
        .init(uri: line, duration: duration, map: map, isGap: isGap, discontinuity: discontinuities))
      if let known = date {
        playlist.dates.append(known)
        date = known + seconds(try #require(Double(duration.dropLast())))
      }
      isGap = false
    }
  }
  return playlist
}

/// A client that remembers what every segment was, and compares.
private struct Follower {
  private var known: [Int: TextPlaylist.Segment] = [:]
  private var last: TextPlaylist?
  private(set) var problems: [String] = []
  private(set) var targetDurations: Set<String> = []
  /// The number of different segments.
  private(set) var count = 0

  mutating func take(_ text: String, isAfterPause: Bool) throws {
    let playlist = try hlsPlaylist(text)
    targetDurations.insert(playlist.targetDuration)
    if playlist.segments.isEmpty { problems.append("no segments") }
    if targetDurations.count > 1 { problems.append("another target duration") }
    if let last {
      if playlist.sequence < last.sequence { problems.append("\(last.sequence) -> \(playlist.sequence)") }
      let end = last.sequence + last.segments.count
      if playlist.sequence + playlist.segments.count < end { problems.append("the end went back") }
      if playlist.sequence > end, !isAfterPause { problems.append("missed \(end)..<\(playlist.sequence)") }
    }
    for (index, segment) in playlist.segments.enumerated() {
      let number = playlist.sequence + index
      if let before = known[number] {
        if before != segment { problems.append("\(number): \(before) -> \(segment)") }
      } else {
        known[number] = segment
        count += 1
        if segment.isGap { problems.append("\(number) is a gap") }
      }
    }
    // Dates rise without holes, but for rounding.
    for (earlier, later) in zip(playlist.dates, playlist.dates.dropFirst())
    where (later - earlier).seconds <= 0 || (later - earlier).seconds > 2.5 {
      problems.append("\(earlier) -> \(later)")
    }
    known = known.filter { $0.key >= playlist.sequence - 100 }
    last = playlist
  }
}
