import Foundation
import ReelCore
import ReelPlayback
import ReelPool
import ReelLab
import ReelSimulation
import ReelSources
import ReelTestSupport
import Testing

@Suite("Players in a simulation", .hangLimit)
struct VirtualPlaybackTests {
  static let sources = [
    "/hls-fmp4/master.m3u8", "/hls-ts/master.m3u8", "/dash-timeline/manifest.mpd", "/media/audio-aac.mp4",
    "/hls-aes128/index.m3u8", "/media/h264-moov-last.mp4",
  ]

  /// Plays sources to their ends, all at once, the first with the best rank.
  private static func scene(_ paths: [String]) async throws -> SimulatedScene {
    let scene = SimulatedScene()
    try await scene.simulation.run {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (index, path) in paths.enumerated() {
          group.addTask { try await scene.play(path, name: "\(index)", rank: index) }
        }
        try await group.waitForAll()
      }
    }
    await scene.simulation.runToRest()
    return scene
  }

  @Test("Played to the end, a source takes the same course each time", arguments: sources)
  func course(path: String) async throws {
    let scene = try await Self.scene([path])
    #expect(scene.trace.contains { $0.contains("frame") })
    #expect(scene.trace.last?.contains("playedToEnd") == true)
    for _ in 0..<2 {
      let other = try await Self.scene([path])
      #expect(other.trace == scene.trace)
      #expect(other.simulation.now == scene.simulation.now)
      #expect(other.simulation.stepCount == scene.simulation.stepCount)
    }
    #expect(scene.simulation.bodyCount == 0)
    #expect(scene.fetcher.transferCount == 0)
  }

  @Test("Three players at once take the same course each time, and it is the same in another process")
  func several() async throws {
    let paths = ["/hls-fmp4/master.m3u8", "/hls-ts/master.m3u8", "/dash-timeline/manifest.mpd"]
    let scene = try await Self.scene(paths)
    for name in 0..<3 { #expect(scene.trace.contains { $0.contains(" \(name) playedToEnd") }) }
    for _ in 0..<2 { #expect(try await Self.scene(paths).trace == scene.trace) }
    #expect(scene.simulation.bodyCount == 0)
    // The names of Swift's collections' elements are hashed anew in each process.
    let child = await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
      let paths = ["/hls-fmp4/master.m3u8", "/hls-ts/master.m3u8", "/dash-timeline/manifest.mpd"]
      print(try await Self.scene(paths).trace.joined(separator: "\n"))
    }
    let output = String(decoding: child?.standardOutputContent ?? [], as: UTF8.self)
    #expect(output.contains(scene.trace.joined(separator: "\n")))
  }

  @Test("Who has the best rank gets its first frame as if it were alone")
  func rank() async throws {
    let alone = try await Self.scene(["/hls-fmp4/master.m3u8"])
    let among = try await Self.scene([
      "/hls-fmp4/master.m3u8", "/hls-ts/master.m3u8", "/dash-timeline/manifest.mpd",
    ])
    let first = try #require(alone.trace.first { $0.contains(" 0 firstFrame") })
    #expect(among.trace.contains(first))
    let other = try #require(among.trace.first { $0.contains(" 1 firstFrame") })
    let (own, others) = (try Self.time(of: first), try Self.time(of: other))
    #expect(own < others)
  }

  private static func time(of line: String) throws -> Int64 {
    try #require(line.split(separator: " ").first.flatMap { Int64($0) })
  }

  @Test("A seek takes the same course each time, and shows the frame that was asked for")
  func seek() async throws {
    var traces: [[String]] = []
    for _ in 0..<3 {
      let scene = SimulatedScene()
      try await scene.simulation.run {
        let player = try scene.makePlayer("a")
        let item = PlayerItem(.url(try #require(URL(string: "http://origin/hls-ts/master.m3u8"))))
        let events = item.events
        player.replaceCurrentItem(with: item)
        player.play()
        try await scene.simulation.sleep(for: .milliseconds(700))
        #expect(try await player.seek(to: MediaTime(value: 21, timescale: 10)))
        scene.record("sought \(player.currentTime)")
        #expect(abs(player.currentTime.seconds - 2.1) < 0.001)
        for await event in events {
          if case .playedToEnd = event { break }
        }
        await player.stopAndWait()
      }
      await scene.simulation.runToRest()
      #expect(scene.simulation.bodyCount == 0)
      traces.append(scene.trace)
    }
    try #require(traces.count > 2)
    #expect(traces[0].contains { $0.contains("seekDone") })
    #expect(traces[0] == traces[1])
    #expect(traces[0] == traces[2])
  }

  @Test("Stopped at any moment, nothing is left", arguments: [1, 150, 215, 285, 290, 360, 500, 1200])
  func stop(milliseconds: Int) async throws {
    let scene = SimulatedScene()
    try await scene.simulation.run {
      let player = try scene.makePlayer("a")
      player.replaceCurrentItem(
        with: PlayerItem(.url(try #require(URL(string: "http://origin/hls-fmp4/master.m3u8")))))
      player.play()
      try await scene.simulation.sleep(for: .milliseconds(milliseconds))
      await player.stopAndWait()
    }
    let end = scene.simulation.now
    // A call into a decoder is waited for.
    #expect(end >= .milliseconds(milliseconds))
    #expect(end <= .milliseconds(milliseconds) + DecodeCost().frame)
    #expect(scene.fetcher.transferCount == 0)
    await scene.simulation.runToRest()
    #expect(scene.simulation.bodyCount == 0)
    #expect(scene.gate.waiterCount == 0)
    // Idle threads are kept for a while.
    try await until { scene.simulation.threadCount == 0 }
  }

  @Test("A minute of playback takes less than a minute: the clock advances once there is nothing left to do")
  func speed() async throws {
    let scene = SimulatedScene()
    let shown = try await scene.simulation.run {
      let player = try scene.makePlayer("a")
      player.actionAtItemEnd = .loop
      player.replaceCurrentItem(
        with: PlayerItem(.url(try #require(URL(string: "http://origin/hls-fmp4/master.m3u8")))))
      player.play()
      try await scene.simulation.sleep(for: .seconds(60))
      let shown = player.statistics.shownFrameCount
      await player.stopAndWait()
      return shown
    }
    #expect(shown > 1700)
    #expect(scene.simulation.now >= .seconds(60))
    // What the end has left to do would hold the simulation.
    await scene.simulation.runToRest()
  }
}
