import Foundation
import ReelCore
import ReelManifest
import ReelTesting
import ReelTransport
import ReelTestSupport
import Testing

@Suite("A simulated live HLS stream", .hangLimit)
struct HLSLiveSimulationTests {
  @Test("The window slides, and every number stays with its segment")
  func window() throws {
    let (live, _) = try hlsSimulation("hls-ts/master.m3u8", .init(windowCount: 4))
    #expect(
      live.lines(after: 4.999) == [
        "#EXTM3U", "#EXT-X-VERSION:3", "#EXT-X-TARGETDURATION:1", "#EXT-X-MEDIA-SEQUENCE:0",
        "#EXT-X-DISCONTINUITY-SEQUENCE:0",
        "#EXT-X-PROGRAM-DATE-TIME:2026-01-31T12:00:00Z", "#EXTINF:1.000000,", "live-0-0.ts",
        "#EXT-X-PROGRAM-DATE-TIME:2026-01-31T12:00:01Z", "#EXTINF:1.000000,", "live-0-1.ts",
        "#EXT-X-PROGRAM-DATE-TIME:2026-01-31T12:00:02Z", "#EXTINF:1.000000,", "live-0-2.ts",
        "#EXT-X-DISCONTINUITY",
        "#EXT-X-PROGRAM-DATE-TIME:2026-01-31T12:00:03Z", "#EXTINF:1.000000,", "live-0-3.ts",
      ])
    #expect(live.lines(after: 5).contains("#EXT-X-MEDIA-SEQUENCE:1"))
  }

  @Test("The number of a segment's run never changes, an hour long")
  func discontinuities() throws {
    let (live, _) = try hlsSimulation("hls-ts/master.m3u8", .init(windowCount: 5))
    for elapsed in 0..<3600 {
      let lines = live.lines(after: Double(elapsed))
      let first = try #require(lines.first { $0.hasPrefix("#EXT-X-DISCONTINUITY-SEQUENCE:") })
      var run = try #require(Int(first.dropFirst(30)))
      for line in lines {
        if line == "#EXT-X-DISCONTINUITY" { run += 1 }
        guard line.hasPrefix("live-0-"), let number = Int(line.dropFirst(7).prefix { $0 != "." }) else {
          continue
        }
        #expect(run == number / 3, "segment \(number) after \(elapsed) s")
      }
    }
  }

  @Test("All tracks keep step")
  func alignment() throws {
    let (live, _) = try hlsSimulation()
    for elapsed in [30.0, 3_000, 300_000] {
      let ends = live.material.tracks.indices.map { track -> Int? in
        let last = live.lines(after: elapsed, track: track).last
        return last.flatMap { Int($0.drop { $0 != "-" }.dropFirst(3).prefix { $0 != "." }) }
      }
      #expect(ends.allSatisfy { $0 == Int(elapsed) - 1 }, "\(ends)")
    }
  }

  @Test("Reel reads it as a live playlist")
  func reading() throws {
    let (live, _) = try hlsSimulation()
    let read = try live.segments(after: 100)
    #expect(read.isLive)
    try #require(read.segments.map(\.number) == Array(94..<100))
    #expect(read.segments[0].initialization?.url.lastPathComponent == "init-0-0.mp4")
    #expect(read.warnings.isEmpty)
    let before = try live.segments(after: -1)
    #expect(before.isLive && before.segments.isEmpty)
  }

  @Test("EVENT keeps all, and ENDLIST ends it")
  func event() throws {
    let (live, _) = try hlsSimulation("hls-ts/master.m3u8", .init(isEvent: true, segmentCount: 7))
    #expect(live.lines(after: 6.9).filter { $0.hasPrefix("live-") }.count == 6)
    #expect(live.lines(after: 6.9).contains("#EXT-X-PLAYLIST-TYPE:EVENT"))
    #expect(live.lines(after: 6.9).last != "#EXT-X-ENDLIST")
    for elapsed in [7.0, 70] {
      #expect(live.lines(after: elapsed).filter { $0.hasPrefix("live-") }.count == 7)
      #expect(live.lines(after: elapsed).last == "#EXT-X-ENDLIST")
    }
    let (sliding, _) = try hlsSimulation("hls-ts/master.m3u8", .init(windowCount: 2, segmentCount: 7))
    #expect(sliding.lines(after: 70).filter { $0.hasPrefix("live-") } == ["live-0-5.ts", "live-0-6.ts"])
  }

  @Test("A stall holds back what comes in it")
  func stall() throws {
    let stall = LiveDisturbances.Stall(after: seconds(10), length: seconds(5))
    let (live, clock) = try hlsSimulation(
      "hls-ts/master.m3u8", .init(disturbances: LiveDisturbances(stalls: [stall])))
    #expect(live.lines(after: 14.9) == live.lines(after: 10))
    #expect(live.lines(after: 15).last == "live-0-14.ts")
    clock.set(launch + seconds(14))
    #expect(live.response(at: "/live/low/live-0-10.ts") == nil)
    clock.set(launch + seconds(15))
    #expect(live.response(at: "/live/low/live-0-10.ts") != nil)
  }

  @Test("Over HTTP: an old copy now and then")
  func staleCopies() async throws {
    let stale = LiveDisturbances.StaleCopies(every: 3, age: seconds(4))
    let (live, clock) = try hlsSimulation(
      "hls-ts/master.m3u8", .init(disturbances: LiveDisturbances(staleCopies: stale)))
    clock.advance(by: seconds(60))
    try await Origin.use(.init(resources: [live])) { origin in
      var sequences: [Int64?] = []
      for _ in 0..<4 {
        let url = origin.url("live/low/index.m3u8")
        let bytes = try await makeFetcher(attempts: 0).bytes(url)
        sequences.append(try ManifestReader().mediaPlaylist(from: bytes, url: url).segments.first?.number)
      }
      #expect(sequences == [54, 54, 50, 54])
    }
  }

  @Test(
    "Over HTTP: from the multivariant playlist to the bytes of the fixture, and no further than they are there"
  )
  func http() async throws {
    let (live, clock) = try hlsSimulation("hls-fmp4/master.m3u8", .init(windowCount: 3))
    clock.advance(by: seconds(7_000))
    try await Origin.use(.init(resources: [live])) { origin in
      let fetcher = makeFetcher(attempts: 0)
      let url = origin.url(live.manifestPath)
      let response = try await fetcher.fetch(FetchRequest(url: url, purpose: .manifest))
      #expect(response.date == clock.now)
      let presentation = try ManifestReader().presentation(
        from: try await response.body.collect(upTo: 1 << 20), format: .hls, url: url)
      let video = try #require(presentation.periods.first?.trackGroups.first { $0.kind == .video })
      try #require(!video.rungs.isEmpty)
      guard case .playlist(let playlist) = video.rungs[0].media else {
        Issue.record("no playlist")
        return
      }
      let read = try ManifestReader().mediaPlaylist(from: try await fetcher.bytes(playlist), url: playlist)
      let last = try #require(read.segments.last)
      #expect(last.number == 6_999)
      #expect(last.programDateTime == launch + seconds(6_999))
      try #require(playlist.pathComponents.count > 2)
      let folder = Fixtures.folder.appending(path: "hls-fmp4").appending(path: playlist.pathComponents[2])
      let bytes = try await fetcher.bytes(last.url)
      #expect(try bytes == Array(Data(contentsOf: folder.appending(path: "segment-0.m4s"))))
      let map = try #require(last.initialization)
      let initialization = try await fetcher.bytes(map.url)
      #expect(try initialization == Array(Data(contentsOf: folder.appending(path: "init.mp4"))))

      let name = last.url.lastPathComponent
      func status(_ number: Int) async -> Int? {
        let other = name.replacingOccurrences(of: "6999", with: "\(number)")
        _ = try? await fetcher.bytes(last.url.deletingLastPathComponent().appending(path: other))
        return origin.requestLog.last?.status
      }
      // Three segments in the window, and four more seconds for who has the playlist already.
      let statuses = [await status(7_000), await status(6_997), await status(6_993), await status(6_992)]
      #expect(statuses == [404, 200, 200, 404])
    }
  }

  @Test(
    "What is no path of the stream is none",
    arguments: [
      "/live", "/live/", "/other/low/index.m3u8", "/live/low/live-0--1.m4s", "/live/high/live-9-1.m4s",
      "/live/low/live-0-1.ts", "/live/live-0-1.m4s", "/live/low/init-0-9.mp4",
      "/live/low/live-0-99999999999999999999.m4s",
      "/live/low/live-0-9223372036854775807.m4s",
    ])
  func unknownPaths(_ path: String) throws {
    let (live, clock) = try hlsSimulation()
    clock.advance(by: seconds(5))
    #expect(live.response(at: path) == nil)
  }

  @Test("DASH material is refused")
  func refused() throws {
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: "dash-number/manifest.mpd"))
    #expect(throws: ReelError.self) { try HLSLiveSimulation(material, start: launch) }
  }
}
