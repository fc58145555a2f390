import Foundation
import ReelCore
import ReelPlayback
import ReelPool
import Testing

@Suite("Players in a virtual world", .timeLimit(.minutes(5)))
struct VirtualPlaybackTests {
  static let sources = [
    "/hls-fmp4/master.m3u8", "/hls-ts/master.m3u8", "/dash-timeline/manifest.mpd", "/media/audio-aac.mp4",
    "/hls-aes128/index.m3u8", "/media/h264-moov-last.mp4",
  ]

  private static func trace(_ path: String) async throws -> VirtualScene {
    let scene = VirtualScene()
    try await scene.world.run { try await scene.play(path) }
    await scene.world.runToRest()
    return scene
  }

  @Test("Played to the end, it takes the same course each time", arguments: sources)
  func course(path: String) async throws {
    let scene = try await Self.trace(path)
    for _ in 0..<2 {
      let other = try await Self.trace(path)
      #expect(other.trace == scene.trace)
      #expect(other.world.now == scene.world.now)
    }
    #expect(scene.world.bodyCount == 0)
    #expect(scene.fetcher.transferCount == 0)
    if let folder = ProcessInfo.processInfo.environment["REEL_TRACES"] {
      try scene.trace.joined(separator: "\n").write(
        toFile: folder + "/" + path.replacing("/", with: "_"), atomically: true, encoding: .utf8)
    }
  }
}
