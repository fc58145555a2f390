import Foundation
import Reel
import ReelTestSupport
import ReelTesting
import Synchronization
import Testing

@Suite("The cookbook: images and players", .hangLimit) struct CookbookTests {
  private static func url(_ path: String) -> URL { URL(filePath: Fixtures.path(path)) }

  // MARK: Images

  @Test("The error of a file that FFmpeg can't open has FFmpeg's code")
  func brokenFile() async throws {
    let error = await #expect(throws: ReelError.self) {
      _ = try await FrameExtractor().image(at: .first, of: Self.url("bad/cut-before-moov.mp4"))
    }
    // AVERROR_INVALIDDATA: the letters INDA, negative (libavutil/error.h).
    #expect(error?.ffmpegCode == -0x4144_4e49)
  }

  @Test(
    "A thumbnail is a JPEG", arguments: ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "media/h264.ts"])
  func thumbnail(path: String) async throws {
    let folder = try TemporaryFolder()
    try await writeThumbnail(of: Self.url(path), to: folder.url.appending(path: "a.jpg"))
    let bytes = try folder.bytes("a.jpg")
    #expect(bytes.starts(with: [0xff, 0xd8, 0xff]))
    #expect(bytes.suffix(2) == [0xff, 0xd9])
    #expect((1_000..<60_000).contains(bytes.count))
  }

  @Test("Images are those at the times, in order")
  func images() async throws {
    let folder = try TemporaryFolder()
    try await writeImages(
      of: Self.url("hls-fmp4/master.m3u8"), at: [.first, .seconds(2.5), .seconds(1)], to: folder.url)
    let names = folder.names()
    #expect(names.count == 3)
    for (name, time) in zip(names, [0, 1, 2.5]) {
      let own = try #require(Double(name.dropLast(4)))
      #expect(own <= time + 0.07 && own > time - 0.04, "\(name)")
      #expect(try folder.bytes(name).starts(with: [0x89, 0x50, 0x4e, 0x47]))
    }
  }

  @Test("An image has the size, turned upright, and pixels in both orders")
  func pixels() async throws {
    let url = Self.url("media/h264-faststart.mp4")
    let whole = try await FrameExtractor().image(at: .first, of: url)
    let image = try await FrameExtractor().image(
      at: .first, of: url, maximumSize: PixelSize(width: 100, height: 100))
    #expect(whole.size == whole.presentationSize)
    #expect(max(image.size.width, image.size.height) == 100)
    #expect(image.time == whole.time && image.orientation == .upright)
    let (rgba, bgra) = (try image.rgba, try image.bgra)
    #expect(rgba.count == image.size.width * image.size.height * 4)
    #expect(rgba.count == bgra.count)
    #expect(Array(rgba[0..<4]) == [bgra[2], bgra[1], bgra[0], 255])
    #expect(Set(rgba).count > 20)
    // An image that is not enlarged.
    #expect(try image.scaled(toFit: PixelSize(width: 4000, height: 4000)).size == image.size)
    #expect(try image.scaled(to: PixelSize(width: 50, height: 80)).size == PixelSize(width: 50, height: 80))
  }

  @Test("An image of RGB has the pixels of the decoded frame")
  func same() async throws {
    let decoded = Mutex<VideoFrame?>(nil)
    let url = Self.url("media/h264-faststart.mp4")
    try await FrameExtractor().extract(.first, from: .url(url)) { frame in decoded.withLock { $0 = frame } }
    let frame = try #require(decoded.withLock { $0 })
    let image = try await FrameExtractor().image(at: .first, of: url)
    #expect(try image.rgba == frame.rgba)
    #expect(try image.png() == frame.png())
    #expect(
      frame.withPlanes { $0.map(\.rowCount) } == [
        frame.size.height, frame.size.height / 2, frame.size.height / 2,
      ])
    #expect(image.withPlanes { $0.count } == 1)
  }

  @Test("A frame that is stored on its side is turned")
  func turned() async throws {
    let url = Self.url("media/rotate-90.mp4")
    let image = try await FrameExtractor().image(at: .first, of: url)
    #expect(image.size.height > image.size.width)
  }

  @Test("A time after the end is an error, and ends the images before it")
  func late() async throws {
    let times = Mutex<[MediaTime]>([])
    let error = await reelError {
      let images = FrameExtractor().images(
        at: [.seconds(100), .seconds(1)], of: Self.url("hls-fmp4/master.m3u8"))
      for try await image in images { times.withLock { $0.append(image.time) } }
    }
    #expect(error?.kind == .usage)
    #expect(times.withLock { $0 }.count == 1)
  }

  @Test("Extraction ends with its reader")
  func left() async throws {
    let faults = try FaultRule.parse("segment-1.ts=stall:8000")
    try await Origin.use(Origin.Configuration(directory: Fixtures.folder, faults: faults)) { origin in
      let url = origin.url("hls-ts/master.m3u8")
      for try await _ in FrameExtractor().images(at: [.first, .seconds(1.5)], of: url) {
        await origin.wait { $0.requests.contains { $0.path.hasSuffix("segment-1.ts") } }
        break
      }
      await origin.wait { $0.openConnectionCount < $0.acceptedConnectionCount }
    }
  }

  // MARK: Players

  @Test("Frames come while a source plays, and end with it")
  func watching() async throws {
    let frames = Mutex<[MediaTime]>([])
    try await watch(Self.url("hls-fmp4/master.m3u8")) { frame in frames.withLock { $0.append(frame.time) } }
    let times = frames.withLock { $0 }
    // A busy machine drops frames, but not the last one.
    #expect(times == times.sorted() && times.count > 1)
    #expect(times.last.map { $0.seconds > 2.9 } == true)
  }

  @Test("A source that can't be played is an error")
  func broken() async throws {
    let error = await reelError { try await watch(Self.url("bad/text.mp4")) { _ in } }
    #expect(error?.location?.hasSuffix("bad/text.mp4") == true)
    let player = Player(url: Self.url("bad/text.mp4"))
    #expect(await reelError { try await player.ready() }?.kind == error?.kind)
    #expect(await reelError { try await player.playToEnd() }?.kind == error?.kind)
    #expect(await reelError { for try await _ in player.frames {} }?.kind == error?.kind)
    for await _ in player.audio(sampleRate: 48_000, channels: 2) { Issue.record("audio of text") }
  }

  @Test("The audio of a source has the format that was asked for, and all samples")
  func listening() async throws {
    let samples = Mutex<[Float]>([])
    let player = Player(url: Self.url("hls-fmp4/master.m3u8"))
    let audio = player.audio(sampleRate: 48_000, channels: 2)
    let listening = Task { for await buffer in audio { samples.withLock { $0 += buffer.samples } } }
    try await player.playToEnd()
    await listening.value
    let all = samples.withLock { $0 }
    #expect((280_000...300_000).contains(all.count), "\(all.count) samples of 2 channels, 3 s")
    #expect(all.contains { abs($0) > 0.01 })
  }

  @Test("A player without an item, and one that stops")
  func stopped() async throws {
    let player = Player(playerItem: nil)
    #expect(await reelError { try await player.ready() }?.kind == .usage)
    #expect(await reelError { try await player.playToEnd() }?.kind == .usage)
    player.replaceCurrentItem(with: PlayerItem(url: Self.url("hls-fmp4/master.m3u8")))
    try await player.ready()
    let playing = Task { try await player.playToEnd() }
    let watching = Task { for try await _ in player.frames {} }
    for await status in player.timeControlStatus.values where status == .playing { break }
    player.stop()
    #expect(await reelError { try await playing.value }?.kind == .superseded)
    try await watching.value
  }

  @Test("A player pauses if its wait is cancelled")
  func cancelled() async throws {
    let player = Player(url: Self.url("hls-fmp4/master.m3u8"))
    let playing = Task { try await player.playToEnd() }
    let watching = Task { for try await _ in player.frames {} }
    for await status in player.timeControlStatus.values where status == .playing { break }
    playing.cancel()
    await #expect(throws: CancellationError.self) { try await playing.value }
    watching.cancel()
    await #expect(throws: CancellationError.self) { try await watching.value }
    #expect(player.timeControlStatus.value == .paused)
    await player.stopAndWait()
  }
}
