import Reel
import ReelTesting

// The program of Docs/Testing.md on drawing, word for word.

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
