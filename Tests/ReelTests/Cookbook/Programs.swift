import Foundation
import Reel

// Programs of Docs/Cookbook.md, word for word. This target sees only what programs of other packages see.

/// Writes the first frame of a source as JPEG, at most 320 pixels wide and high.
func writeThumbnail(of url: URL, to file: URL) async throws {
  let image = try await FrameExtractor().image(
    at: .first, of: url, maximumSize: .init(width: 320, height: 320))
  try image.jpeg(quality: 0.8).write(to: file)
}

/// Writes the frames on show at some times as PNG.
func writeImages(of url: URL, at times: [MediaTime], to folder: URL) async throws {
  for try await image in FrameExtractor().images(at: times, of: url) {
    try image.png().write(to: folder.appending(path: "\(image.time.seconds).png"))
  }
}

/// Writes a frame for each second of a source as PNG.
func writeFrames(of url: URL, to folder: URL) async throws {
  try await FrameExtractor().extract(.every(.seconds(1)), from: .url(url)) { frame in
    try frame.png().write(to: folder.appending(path: "\(frame.time.seconds).png"))
  }
}

/// Draws a source while it plays.
func watch(_ url: URL, draw: (VideoFrame) -> Void) async throws {
  let player = Player(url: url)
  player.play()
  for try await frame in player.frames { draw(frame) }
}

/// Reports the level of the audio while a source plays, in decibels: 0 is full scale, silence is minus infinity.
func meter(_ url: URL, report: (Float) -> Void) async throws {
  let player = Player(url: url)
  let audio = player.audio(sampleRate: 48_000, channels: 1)
  player.play()
  try await player.ready()  // Throws if the source can't be played.
  for await buffer in audio {
    let power = buffer.samples.reduce(0) { $0 + $1 * $1 } / Float(buffer.samples.count)
    report(10 * log10(power))
  }
}

/// Jumps to a time, and plays on from there. Returns the frame at that time, or nil if another seek came first.
func jump(to time: MediaTime, in player: Player) async throws -> VideoFrame? {
  try await player.ready()
  guard try await player.seek(to: time) else { return nil }
  let frame = player.currentFrame()
  player.play()
  return frame
}

/// Plays a source to its end, with up to two retries. Returns what to tell the viewer if that fails.
func problem(playing url: URL) async throws -> String? {
  var configuration = PlayerConfiguration()
  configuration.retryPolicy = ItemRetryPolicy(attempts: 2, baseDelay: .milliseconds(100))
  let player = Player(url: url, configuration: configuration)
  do {
    try await player.playToEnd()
    return nil
  } catch let error as ReelError {
    return "\(error.isTemporary ? "Try again later." : "Not playable.") \(error.reason)"
  }
}

/// Reports how far behind the live edge a live stream plays, until the task is cancelled.
func watchLatency(of url: URL, report: (Duration) -> Void) async throws {
  let item = PlayerItem(url: url)
  let player = Player(playerItem: item)
  player.play()
  try await player.ready()
  for await latency in item.liveLatency.values { if let latency { report(latency) } }
  await player.stopAndWait()
}

/// An output that passes frames to another program through a pipe: upright, in RGBA, without padding.
final class PixelPipe: FrameOutput {
  let isExternal = true
  private let pipe: FileHandle
  init(_ pipe: FileHandle) { self.pipe = pipe }
  func show(_ frame: VideoFrame) throws { try pipe.write(contentsOf: frame.rgba) }
  func finish() throws { try pipe.close() }
}

/// Makes a feed with a title and a poster for each video.
func makeFeed(of videos: [(url: URL, title: String, poster: URL?)]) -> Feed {
  var feed = Feed(name: "home")
  for video in videos {
    feed.append(.url(video.url)) { item in
      item.title = video.title
      item.poster = video.poster
    }
  }
  return feed
}

/// Swipes through a feed, and prints the frame on show after each swipe and how long the viewer waited for it.
func printSwipes(through feed: Feed, watching length: Duration = .seconds(3)) async throws {
  let pool = PlayerPool(feed: feed)
  defer { pool.close() }
  pool.play()
  for index in feed.items.indices.dropFirst() {
    try await Task.sleep(for: length)
    print(try await pool.show(index).firstFrame())
  }
}

/// Reports what each player of a pool holds whenever its loading advances, and ends preloads above the limit in bytes.
func watchMemory(of pool: PlayerPool, limit: Int, report: (MemoryLedger) -> Void) async {
  for await _ in pool.readiness.values {
    let memory = pool.memory
    report(memory)
    if memory.total.byteCount > limit { pool.trim(to: limit) }
  }
}

/// Swipes in one feed, visits another, and returns to where the viewer was in the first.
func visit(_ other: Feed, from feed: Feed, with service: PlayerService) -> NowPlaying? {
  service.playFirst()
  service.next()
  service.select(feed: other.name)
  service.next()
  service.select(feed: feed.name)
  return service.nowPlaying.value
}
