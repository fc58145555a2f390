import Foundation
import ReelCore
import ReelTesting
import ReelTestSupport
import Testing

@Suite("reel manifest", .hangLimit)
struct ManifestCommandTests {
  private func json(_ arguments: String...) async throws -> [String: Any] {
    let result = try await Command.run(["manifest"] + arguments, status: 0)
    #expect(result.outputLines.count == 1)
    return try result.object
  }

  private func rungs(_ record: [String: Any]) throws -> [[String: Any]] {
    let periods = try #require(record["periods"] as? [[String: Any]])
    return periods.flatMap { $0["track_groups"] as? [[String: Any]] ?? [] }
      .flatMap { $0["rungs"] as? [[String: Any]] ?? [] }
  }

  @Test(
    "Every rung has its segments, whatever lists them",
    arguments: [
      ("hls-ts/master.m3u8", 2, 3), ("hls-fmp4/master.m3u8", 3, 3), ("dash-number/manifest.mpd", 3, 3),
      ("dash-ondemand/manifest.mpd", 3, 3), ("dash-segmentlist/manifest.mpd", 3, 3),
      ("dash-gpac/multirate-full.mpd", 4, 360),
    ])
  func segments(path: String, rungCount: Int, segmentCount: Int) async throws {
    let record = try await json(Fixtures.path(path))
    #expect(record["live"] as? Bool == false)
    let rungs = try rungs(record)
    #expect(rungs.count == rungCount)
    for rung in rungs {
      let segments = try #require(rung["segments"] as? [[String: Any]])
      #expect(rung["segment_count"] as? Int == segments.count)
      #expect(abs(segments.count - segmentCount) <= 1)
      #expect(segments.allSatisfy { ($0["url"] as? String)?.hasPrefix("file:///") == true })
      #expect(segments.allSatisfy { ($0["duration"] as? Double ?? 0) > 0 })
    }
  }

  @Test("A rung whose playlist is not there is told of; the rest is printed")
  func missingPlaylist() async throws {
    let folder = try TemporaryFolder()
    let text = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\ngone.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=2\nhere.m3u8\n"
    try folder.write(text, to: "master.m3u8")
    let media = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n#EXT-X-ENDLIST\n"
    try folder.write(media, to: "here.m3u8")
    let record = try await json("\(folder.path)/master.m3u8")
    let rungs = try rungs(record)
    try #require(rungs.count > 1)
    #expect(rungs[0]["error"] != nil)
    #expect((rungs[0]["playlist"] as? String)?.hasSuffix("/gone.m3u8") == true)
    #expect((rungs[1]["segments"] as? [Any])?.count == 1)
    let shallow = try self.rungs(try await json("\(folder.path)/master.m3u8", "--shallow"))
    #expect(shallow.allSatisfy { $0["segments"] == nil && $0["error"] == nil && $0["playlist"] != nil })
  }

  @Test("Segments are written as Foundation's encoder would, even with odd values and names")
  func text() async throws {
    let folder = try TemporaryFolder()
    let media = """
      #EXTM3U
      #EXT-X-TARGETDURATION:6
      #EXT-X-MAP:URI="init.mp4",BYTERANGE="100@0"
      #EXT-X-KEY:METHOD=AES-128,URI="k?ü=1",IV=0x01
      #EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00.123Z
      #EXTINF:5.005,a
      #EXT-X-BYTERANGE:10@5
      a b"c.mp4
      #EXT-X-GAP
      #EXTINF:0.1,
      b.mp4
      #EXT-X-DISCONTINUITY
      #EXTINF:1e-7,
      c.mp4
      #EXT-X-ENDLIST
      """
    try folder.write(media, to: "a.m3u8")
    let result = try await Command.run("manifest", "\(folder.path)/a.m3u8")
    let key =
      #""encryption":{"iv":"0x00000000000000000000000000000001","key_format":"identity","key_url":"@/k?%C3%BC=1","method":"AES-128"}"#
    let expected =
      #"{"duration":5.1050001,"format":"hls","live":false,"periods":[{"duration":5.1050001,"start":0,"track_groups":[{"default":true,"kind":"video","roles":[],"rungs":[{"duration":5.1050001,"id":"0","initializations":[{"byte_length":100,"byte_offset":0,"url":"@/init.mp4"}],"segment_count":3,"segments":["#
      + #"{"byte_length":10,"byte_offset":5,"discontinuity":0,"duration":5.005,\#(key),"initialization":0,"number":0,"program_date_time":"2026-01-01T00:00:00.123Z","start":0,"url":"@/a%20b%22c.mp4"},"#
      + #"{"discontinuity":0,"duration":0.1,\#(key),"gap":true,"initialization":0,"number":1,"start":5.005,"url":"@/b.mp4"},"#
      + #"{"discontinuity":1,"duration":1e-07,\#(key),"initialization":0,"number":2,"start":5.105,"url":"@/c.mp4"}"#
      + #"]}]}]}],"source":"\#(folder.path)/a.m3u8","url":"@/a.m3u8","warnings":[]}"#
    let root = folder.url.absoluteString
    #expect(
      result.outputText
        == expected.replacingOccurrences(of: "@", with: root.hasSuffix("/") ? String(root.dropLast()) : root)
        + "\n")
  }

  @Test("If there are too many segments, each rung gives the number of those left out")
  func manySegments() async throws {
    let folder = try TemporaryFolder()
    let mpd = { (type: String) in
      """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" \(type)>
      <Period start="PT0S"><AdaptationSet mimeType="video/mp4">
      <SegmentTemplate duration="2" media="$RepresentationID$-$Number$.m4s" initialization="i.mp4"/>
      <Representation id="v" bandwidth="1000"/><Representation id="w" bandwidth="2000"/></AdaptationSet></Period></MPD>
      """
    }
    try folder.write(mpd(#"type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z""#), to: "live.mpd")
    let live = try rungs(try await json("\(folder.path)/live.mpd", "--now", "2026-01-02T00:00:00Z"))
    #expect(live.compactMap { $0["segment_count"] as? Int } == [43_200, 43_200])
    #expect(live.compactMap { $0["segments_omitted"] as? Int } == [33_200, 33_200])
    for rung in live {
      let segments = try #require(rung["segments"] as? [[String: Any]])
      #expect(segments.count == 10_000)
      #expect(segments.last?["number"] as? Int == 43_200)
      #expect(segments.last?["initialization"] as? Int == 0)
      #expect((rung["initializations"] as? [Any])?.count == 1)
    }
  }

  @Test("A live timeline without available segments causes a warning, and an error with --strict")
  func drift() async throws {
    let folder = try TemporaryFolder()
    let mpd = """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" profiles="urn:mpeg:dash:profile:isoff-live:2011"
        availabilityStartTime="2026-01-01T00:00:00Z" publishTime="2026-01-01T00:00:00Z" minBufferTime="PT2S"
        minimumUpdatePeriod="PT2S" timeShiftBufferDepth="PT6S">
      <Period id="1" start="PT0S"><AdaptationSet mimeType="video/mp4">
      <SegmentTemplate media="$Time$.m4s"><SegmentTimeline><S t="3600" d="2" r="2"/></SegmentTimeline></SegmentTemplate>
      <Representation id="v" bandwidth="1000" codecs="avc1.64001f"/></AdaptationSet></Period></MPD>
      """
    let path = "\(folder.path)/live.mpd"
    try folder.write(mpd, to: "live.mpd")
    let record = try await json(path, "--now", "2026-01-01T00:59:00Z")
    #expect((try rungs(record)[0]["segments"] as? [Any])?.count == 3)
    let warnings = try #require(record["warnings"] as? [String])
    #expect(warnings.count == 1)
    #expect(warnings.first?.contains("s in the future, and is assumed to end now") == true)
  }

  @Test("A live presentation is listed as it is at a time")
  func time() async throws {
    let folder = try TemporaryFolder()
    let mpd = """
      <MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="dynamic" profiles="urn:mpeg:dash:profile:isoff-live:2011"
        availabilityStartTime="2026-01-01T00:00:00Z" minBufferTime="PT2S" timeShiftBufferDepth="PT6S">
      <Period id="1" start="PT0S"><AdaptationSet mimeType="video/mp4">
      <SegmentTemplate duration="2" media="$Number$.m4s" initialization="i.mp4"/>
      <Representation id="v" bandwidth="1000" codecs="avc1.64001f"/></AdaptationSet></Period></MPD>
      """
    try folder.write(mpd, to: "live.mpd")
    let record = try await json("\(folder.path)/live.mpd", "--now", "2026-01-01T01:00:00Z")
    #expect(record["live"] as? Bool == true)
    let segments = try #require(try rungs(record)[0]["segments"] as? [[String: Any]])
    #expect(segments.last?["number"] as? Int == 1800)
    #expect(segments.last?["start"] as? Double == 3598)
    #expect((3...4).contains(segments.count))
  }

  @Test(
    "As HLS, in a folder, it plays to the same frames",
    arguments: [
      ("dash-number/manifest.mpd", "dash-number-1"), ("dash-ondemand/manifest.mpd", "dash-number-1"),
      ("hls-byterange-fmp4/index.m3u8", "hls-byterange-fmp4"), ("hls-aes128/fmp4.m3u8", "hls-fmp4-low"),
    ])
  func hls(path: String, golden: String) async throws {
    let folder = try TemporaryFolder()
    try await Command.run(
      "manifest", Fixtures.path(path), "--output", "hls", "-o", "\(folder.path)/out", status: 0)
    #expect(folder.names("out").contains("master.m3u8"))
    let record = try await Command.run(
      "frames", "\(folder.path)/out/master.m3u8", "--count", "0", "--json", "--md5", "--format", "ppm", "-o",
      "\(folder.path)/frames", status: 0
    ).object
    let frames = try #require(record["frames"] as? [[String: Any]])
    #expect(frames.compactMap { $0["md5"] as? String } == (try Fixtures.golden(golden)))
  }

  @Test("As HLS, on standard output, each playlist is whole and named")
  func printedHLS() async throws {
    let result = try await Command.run(
      "manifest", Fixtures.path("dash-number/manifest.mpd"), "--output", "hls", status: 0)
    let playlists = result.outputText.components(separatedBy: "#EXTM3U\n").dropFirst()
    #expect(playlists.count == 4)
    #expect(playlists.first?.hasPrefix("# master.m3u8\n") == true)
    #expect(playlists.dropFirst().allSatisfy { $0.hasSuffix("#EXT-X-ENDLIST\n") })
  }

  @Test(
    "A manifest on standard input, from a pipe or a file", arguments: ["cat '%' | \"$@\"", "\"$@\" <'%'"])
  func standardInput(shell: String) async throws {
    let path = Fixtures.path("dash-number/manifest.mpd")
    let result = try await Command.run(
      "manifest", "-", directory: Fixtures.path("dash-number"),
      shell: shell.replacingOccurrences(of: "%", with: path), status: 0)
    #expect(result.outputText.contains("Fixtures/dash-number/1/segment-00003.m4s"))
  }

  @Test(
    "Usage and failures",
    arguments: [
      (["--follow", "x"], Int32(64)), (["--now", "yesterday", "x"], 64), (["-o", "d", "x"], 64),
      (["--output", "xml", "x"], 64), (["/nowhere/a.mpd"], 66), ([Fixtures.path("media/h264.ts")], 65),
      ([Fixtures.path("bad/html.m3u8")], 65),
      (["http://127.0.0.1:1/a.mpd", "--retries", "0"], 69),
    ] as [([String], Int32)])
  func failures(arguments: [String], status: Int32) async throws {
    let result = try await Command.run(["manifest"] + arguments, status: status)
    #expect(!result.errorText.isEmpty)
  }
}
