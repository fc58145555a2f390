import Foundation
import Reel
import ReelGateway
import ReelTestSupport
import ReelTesting
import Synchronization
import Testing

@Suite("The cookbook: sources, feeds and servers", .hangLimit) struct CookbookFeedTests {
  private static func url(_ path: String) -> URL { URL(filePath: Fixtures.path(path)) }

  private static let feed = Feed(
    urls: ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "hls-ts/master.m3u8"].map(url))

  @Test("A frame of each second")
  func everySecond() async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "reel-cookbook-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await writeFrames(of: Self.url("media/h264-long.mp4"), to: folder)
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    let times = names.compactMap { Double($0.dropLast(4)) }.sorted()
    #expect(times.count == 8)
    for (second, time) in times.enumerated() { #expect(abs(time - Double(second)) < 0.07) }
  }

  @Test("The level of a tone, and the error of a source without media")
  func level() async throws {
    var levels: [Float] = []
    try await meter(Self.url("hls-fmp4/master.m3u8")) { levels.append($0) }
    #expect(levels.contains { (-60..<0).contains($0) })
    #expect(levels.allSatisfy { $0 < 3 })
    #expect(await reelError { try await meter(Self.url("bad/text.mp4")) { _ in } } != nil)
  }

  @Test("A jump returns the frame at its time, and plays on")
  func jumping() async throws {
    let player = Player(url: Self.url("hls-fmp4/master.m3u8"))
    let frame = try #require(try await jump(to: .seconds(2), in: player))
    #expect((1.9...2.01).contains(frame.time.seconds))
    for await status in player.timeControlStatus.values where status == .playing { break }
    await player.stopAndWait()
  }

  @Test("A bad URL is asked for three times, and what to tell the viewer depends on the error")
  func badURL() async throws {
    #expect(try await problem(playing: Self.url("media/h264-faststart.mp4")) == nil)
    let faults = try FaultRule.parse("master.m3u8=status:503")
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      let temporary = try await problem(playing: origin.url("hls-fmp4/master.m3u8"))
      #expect(temporary?.hasPrefix("Try again later. ") == true)
      #expect(origin.requestLog.count >= 3)
      let final = try await problem(playing: origin.url("none.mp4"))
      #expect(final?.hasPrefix("Not playable. ") == true)
    }
  }

  @Test("The latency of a live stream")
  func live() async throws {
    // Three segments of 1 s, of which the first began 10 s ago.
    let date = Date(timeIntervalSinceNow: -10).formatted(.iso8601)
    let segments = (0..<3).map { "#EXTINF:1,\nlow/segment-\($0).ts\n" }.joined()
    let playlist =
      "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n#EXT-X-PROGRAM-DATE-TIME:\(date)\n" + segments
    let configuration = Origin.Configuration(
      directory: Fixtures.folder, routes: ["/hls-ts/live.m3u8": Origin.Response(Array(playlist.utf8))])
    try await Origin.use(configuration) { origin in
      let (latencies, continuation) = AsyncStream<Duration>.makeStream()
      let watching = Task {
        try await watchLatency(of: origin.url("hls-ts/live.m3u8")) { continuation.yield($0) }
      }
      let latency = await latencies.first { _ in true }
      watching.cancel()
      try await watching.value
      // However late it is read, it is not the time since another epoch.
      #expect(try (.seconds(1)..<HangLimit.duration).contains(#require(latency)))
    }
  }

  @Test("An output of one's own gets all pixels")
  func pipe() async throws {
    let pipe = Pipe()
    let player = Player(url: Self.url("media/h264-faststart.mp4"))
    let reading = Task.detached { try pipe.fileHandleForReading.readToEnd() ?? Data() }
    try player.attach(PixelPipe(pipe.fileHandleForWriting))
    player.setRate(.infinity)
    try await player.playToEnd()
    let size = try #require(player.currentFrame()?.presentationSize)
    await player.stopAndWait()
    let byteCount = try await reading.value.count
    #expect(byteCount >= 30 * size.width * size.height * 4)
    #expect(byteCount % (size.width * size.height * 4) == 0)
  }

  @Test("Swipes go to the end, and throw the error of an item that can't be played")
  func measures() async throws {
    try await Origin.use { origin in
      let urls = ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "hls-ts/master.m3u8"].map(origin.url)
      try await printSwipes(through: Feed(urls: urls), watching: .milliseconds(1))
      let missing = Feed(urls: urls + [origin.url("missing.mp4")])
      let error = await reelError { try await printSwipes(through: missing, watching: .milliseconds(1)) }
      #expect(error?.status == 404)
    }
  }

  @Test("A feed has the titles and posters that a program gives it")
  func titles() throws {
    let (url, poster) = (Self.url("a.mp4"), Self.url("a.jpg"))
    let feed = makeFeed(of: [
      (url: url, title: "One", poster: poster), (url: url, title: "Again", poster: nil),
    ])
    #expect(feed.items.map(\.title) == ["One", "Again"])
    #expect(feed.items.map(\.poster) == [poster, nil])
    #expect(feed.items.map(\.id.occurrence) == [1, 2])
  }

  @Test("Memory is reported while a pool loads")
  func memory() async throws {
    let pool = PlayerPool(feed: Self.feed)
    let (sizes, continuation) = AsyncStream<Int>.makeStream()
    let watching = Task {
      await watchMemory(of: pool, limit: 64_000_000) { continuation.yield($0.total.byteCount) }
    }
    for await size in sizes where size > 10_000 { break }
    pool.close()
    await watching.value
  }

  @Test("The position in a feed is kept while another is visited")
  func feeds() throws {
    let pool = FakePlayerPool(stage: .firstFrame)
    let other = Feed(name: "other", urls: [Self.url("a.mp4"), Self.url("b.mp4")])
    let service = PlayerService(pool: pool, feeds: [Self.feed, other])
    let playing = try #require(visit(other, from: Self.feed, with: service))
    #expect(playing.feed == Self.feed.name && playing.index == 1)
    #expect(service.position(in: "other") == 1)
  }

  @Test("A token that a server refuses is replaced, and its request repeated")
  func token() async throws {
    let refused = Mutex<[String?]>([])
    let configuration = Origin.Configuration(
      directory: Fixtures.folder, faults: try FaultRule.parse("*.m3u8=status:401x1"))
    let origin = try await Origin.start(configuration)
    let fetcher = TokenFetcher(host: "127.0.0.1") { token in
      refused.withLock { $0.append(token) }
      return token == nil ? "old" : "new"
    }
    let image: Result<VideoFrame, any Error>
    do {
      image = .success(
        try await FrameExtractor(fetcher: fetcher).image(at: .first, of: origin.url("hls-fmp4/master.m3u8")))
    } catch { image = .failure(error) }
    await origin.stop()
    #expect(try image.get().size.width > 0)
    #expect(refused.withLock { $0.contains("old") })
    let statuses = origin.requestLog.filter { $0.path == "/hls-fmp4/master.m3u8" }.map(\.status)
    #expect(statuses == [401, 200])
  }

  @Test(
    "A gateway serves playlists of HLS",
    arguments: [
      "dash-baseurl/fallback.mpd", "dash-baseurl/manifest.mpd", "dash-gpac/multirate.mpd",
      "dash-number/manifest.mpd",
      "dash-ondemand/manifest.mpd", "dash-periods/manifest.mpd", "dash-segmentlist/manifest.mpd",
      "dash-timeline/manifest.mpd", "hls-aes128/fmp4.m3u8", "hls-aes128/index.m3u8",
      "hls-aes128/rotating.m3u8", "hls-byterange-fmp4/index.m3u8", "hls-byterange-ts/index.m3u8",
      "hls-discontinuity/fmp4.m3u8", "hls-discontinuity/ts.m3u8", "hls-fmp4/master.m3u8",
      "hls-hevc/index.m3u8", "hls-open-gop/index.m3u8", "hls-ts/master.m3u8",
    ])
  func gateway(manifest: String) async throws {
    let gateway = try await serveAsHLS(Self.url(manifest))
    let image = try await FrameExtractor().image(at: .first, of: gateway.url)
    #expect(image.size.width > 0)
    await gateway.stop()
  }

  @Test("A gateway serves encrypted media in the clear")
  func decryptingGateway() async throws {
    let id = try #require(KeyID("31323334353637383930313233343536"))
    let key = try #require(ContentKey("32333435363738393031323334353637"))
    let gateway = try await serveDecrypted(Self.url("encrypted/cbcs/manifest.mpd"), keys: [id: key])
    let image = try await FrameExtractor().image(at: .first, of: gateway.url)
    #expect(image.size.width == 128)
    await gateway.stop()
  }

  @Test("A media file can't be served as HLS")
  func gatewayOfMedia() async throws {
    let error = await reelError { _ = try await serveAsHLS(Self.url("media/h264-faststart.mp4")) }
    #expect(error?.kind == .badManifest)
  }
}
