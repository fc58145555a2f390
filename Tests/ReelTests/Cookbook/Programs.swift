import Foundation
import Reel

// The programs of Docs/Library.md, word for word. This target sees only what programs of other packages see.

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

/// Draws a source while it plays.
func watch(_ url: URL, draw: (VideoFrame) -> Void) async throws {
  let player = Player(url: url)
  player.play()
  for try await frame in player.frames { draw(frame) }
}

/// Passes the audio of a source on while it plays.
func listen(to url: URL, play: @escaping @Sendable ([Float]) -> Void) async throws {
  let player = Player(url: url)
  let audio = player.audio(sampleRate: 48_000, channels: 2)
  let listening = Task { for await buffer in audio { play(buffer.samples) } }
  try await player.ready()  // The first frame is on show.
  try await player.playToEnd()
  await listening.value
}
