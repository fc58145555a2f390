import Foundation
import Reel

// The program at the beginning of the library section of README.md, word for word. It has no other import of Reel.

func tenLines(urls: [URL], draw: @escaping @Sendable (VideoFrame) -> Void) async throws {
  let pool = PlayerPool(feed: Feed(urls: urls))
  let drawing = Task { for await frame in pool.frames { draw(frame) } }
  defer { drawing.cancel() }
  pool.play()
  try await pool.ready(1)  // The next item's first frame is decoded.
  let swipe = pool.show(1)
  print(swipe, pool.memory.total)  // 256x144 at 0 s after 0.055 ms 1.4 MB
  try await swipe.firstFrame()  // After a miss: waits for the frame, and throws if the item failed.
}

// The same program without its first line, for any pool.
func tenLines(pool: some PlayerPooling, draw: @escaping @Sendable (VideoFrame) -> Void) async throws {
  let drawing = Task { for await frame in pool.frames { draw(frame) } }
  defer { drawing.cancel() }
  pool.play()
  try await pool.ready(1)  // The next item's first frame is decoded.
  let swipe = pool.show(1)
  print(swipe, pool.memory.total)  // 256x144 at 0 s after 0.055 ms 1.4 MB
  try await swipe.firstFrame()  // After a miss: waits for the frame, and throws if the item failed.
}
