import Foundation
import Reel
import ReelTesting

// The programs of Docs/Testing.md on drawing, word for word.

/// Draws a pool: the code under test.
func drawAll(of pool: some PlayerPooling, draw: (VideoFrame) throws -> Void) async throws {
  for await frame in pool.frames { try draw(frame) }
}

/// The first pixel of each frame that is drawn when a viewer swipes to the second item.
func drawnPixels() async throws -> [[UInt8]] {
  let pool = FakePlayerPool(frames: [
    .solid(.red, width: 90, height: 160), .solid(.blue, width: 160, height: 90),
  ])
  pool.show(1)
  pool.close()
  var pixels: [[UInt8]] = []
  try await drawAll(of: pool) { frame in pixels.append(Array(try frame.rgba.prefix(4))) }
  return pixels  // [[255, 0, 0, 255], [0, 0, 255, 255]]
}

/// The frame of an item that is loaded only after the swipe to it.
func frameAfterMiss() async throws -> VideoFrame? {
  let feed = Feed(urls: [URL(filePath: "/a.mp4"), URL(filePath: "/b.mp4")])
  let pool = FakePlayerPool(
    frames: [.solid(.red, width: 90, height: 160), .solid(.blue, width: 160, height: 90)], feed: feed)
  let id = feed.items[1].id
  pool.setStage(.manifest, of: id)
  let swipe = pool.show(1)  // A miss: `swipe.frame` is nil.
  pool.setStage(.firstFrame, of: id)
  return try await swipe.firstFrame().frame
}
