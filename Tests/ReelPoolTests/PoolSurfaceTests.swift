import Foundation
import ReelCore
import ReelFFmpeg
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelPool
@testable import ReelReading

@Suite("The surface of a pool", .hangLimit) struct PoolSurfaceTests {
  static let paths = [
    "hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "media/h264-bframes.mp4", "media/h264.ts",
  ]

  @Test(
    "Goes from item to item: left before the next one is entered, and each frame to the item that has it",
    arguments: PoolScene.Runtime.allCases)
  func order(on runtime: PoolScene.Runtime) async throws {
    let scene = try PoolScene(Self.paths, runtime: runtime)
    var expected: [Int: [Shown]] = [:]
    for (index, path) in Self.paths.enumerated() { expected[index] = try await plainFrames(path) }
    for index in [0, 1, 2, 1, 2, 3, 0, 2] {
      // A busy machine may show the first frame and the last one alone.
      let count = scene.shown.count
      try scene.show(index)
      try await scene.until { scene.pool.surfaceItem == scene.id(index) && scene.shown.count > count + 1 }
    }
    try await scene.close()
    var attached: Int?
    var last: MediaTime?
    for line in scene.lines {
      switch line {
      case .attached(let index):
        #expect(attached == nil)
        (attached, last) = (index, nil)
      case .detached(let index):
        #expect(attached == index)
        attached = nil
      case .frame(let shown):
        let frames = try #require(attached.flatMap { expected[$0] })
        #expect(frames.contains(shown))
        if let last { #expect(shown.time > last) }
        last = shown.time
      case .poster: Issue.record("there are no posters")
      }
    }
    #expect(attached == nil)
    #expect(scene.pool.surfaceItem == nil)
  }

  @Test("An output that is set later gets the frame on show; the one before is finished")
  func exchange() async throws {
    let scene = try PoolScene(Self.paths)
    scene.pool.setPlaying(false)
    try await scene.rest(at: 0)
    let first = EndingOutput()
    scene.forgetLines()
    try scene.pool.setSurface(first)
    #expect(scene.lines == [.detached(0), .attached(0)])
    #expect(first.count == 1)
    let second = EndingOutput()
    try scene.pool.setSurface(second)
    #expect(first.ends == 1)
    #expect(second.count == 1)
    try scene.pool.setSurface(nil)
    #expect(second.ends == 1)
    #expect(scene.pool.surfaceItem == nil)
    try await scene.rest(at: 1)
    #expect((first.count, second.count) == (1, 1))
    try scene.pool.setSurface(first)
    #expect(first.count == 2)
    try await scene.close()
  }

  @Test("An output that fails is let go, finished once, and the failure is told; playing goes on")
  func failure() async throws {
    let scene = try PoolScene(Self.paths)
    let output = EndingOutput(failsAt: 3)
    try scene.pool.setSurface(output)
    try scene.show(0)
    let failure = PoolEvent.player(scene.id(0), .outputFailed(EndingOutput.failure))
    try await scene.until { scene.events.contains(failure) }
    #expect(output.count == 3)
    #expect(output.ends == 1)
    #expect(scene.pool.surfaceItem == nil)
    #expect(scene.lines == [.attached(0), .detached(0)])
    let shown = scene.pool.currentPlayer?.statistics.shownFrameCount ?? 0
    try await scene.until { scene.pool.currentPlayer?.statistics.shownFrameCount ?? 0 > shown + 2 }
    try scene.show(1)
    #expect(output.count == 3)
    try scene.pool.setSurface(scene.makeOutput())
    try await scene.until { !scene.shown.isEmpty }
    #expect(scene.pool.surfaceItem == scene.id(1))
    try await scene.close()
  }

  @Test("An external output is refused by a player that does not allow it, and said nothing of")
  func external() async throws {
    let scene = try PoolScene(Self.paths)
    scene.pool.setPlaying(false)
    try await scene.rest(at: 0)
    let player = try #require(scene.pool.currentPlayer)
    player.allowsExternalPlayback = false
    scene.forgetLines()
    let output = EndingOutput(isExternal: true)
    try scene.pool.setSurface(output)
    #expect(scene.lines == [.detached(0)])
    #expect(output.count == 0)
    // The next one does.
    try scene.show(1)
    #expect(scene.lines == [.detached(0), .attached(1)])
    #expect(output.count == 1)
    try await scene.close()
  }

  @Test("An output may swipe while it is shown a frame", arguments: [false, true])
  func swipingOutput(withOthers: Bool) async throws {
    let scene = try PoolScene(Self.paths, runtime: withOthers ? .system : .simulated)
    let service = PlayerService(pool: scene.pool, feeds: [scene.feed])
    let swipes = Locked(0)
    scene.setOnFrame { _ in
      let count = swipes.withLock { count in
        count += 1
        return count
      }
      guard count <= 40 else { return }
      if service.next() == nil { service.playFirst() }
    }
    service.playFirst()
    if withOthers {
      await withTaskGroup(of: Void.self) { group in
        for index in 0..<4 {
          group.addTask { for _ in 0..<50 { service.go(to: index) } }
        }
      }
    }
    try await scene.until { swipes.withLock { $0 > 45 } }
    scene.setOnFrame(nil)
    try await scene.rest()
    #expect(scene.pool.surfaceItem == service.nowPlaying.value?.item.id)
    try await scene.close()
  }

  // MARK: Posters

  private static func poster(_ index: Int, _ item: inout FeedItem) {
    item.poster = URL(string: "http://fixtures.test/posters/\(index == 1 ? "portrait" : "poster").jpg")
  }

  @Test("An item's poster is shown on a miss, once, until its first frame is there")
  func posters() async throws {
    let fetcher = FixtureFetcher { request, _ in request.url.path.contains("hls-fmp4") ? .hold : .none }
    let scene = try PoolScene(Self.paths, fetcher: fetcher, describe: Self.poster)
    scene.pool.setPlaying(false)
    try scene.show(1)
    try await scene.until { scene.lines.contains(.poster(PixelSize(width: 54, height: 96))) }
    #expect(scene.lines == [.attached(1), .poster(PixelSize(width: 54, height: 96))])
    #expect(scene.events.filter { $0 == .posterShown(scene.id(1)) }.count == 1)
    // Its neighbours' are there already.
    try await scene.until { fetcher.requests.filter { $0.url.path.contains("posters") }.count == 2 }
    fetcher.release()
    try await scene.until { !scene.shown.isEmpty }
    try await scene.rest()
    #expect(scene.lines.count == 3)
    // No poster on a hit.
    try await scene.rest(at: 2)
    try await scene.rest(at: 1)
    #expect(!scene.lines.dropFirst(2).contains { if case .poster = $0 { true } else { false } })
    try await scene.close()
  }

  @Test("Swiping back to an item that is still missing shows its poster again")
  func posterAgain() async throws {
    let fetcher = FixtureFetcher { request, _ in request.url.path.contains("hls") ? .hold : .none }
    let scene = try PoolScene(Self.paths, fetcher: fetcher, describe: Self.poster)
    try scene.show(0)
    try await scene.until { scene.lines.last == .poster(PixelSize(width: 96, height: 54)) }
    try scene.show(1)
    try await scene.until { scene.lines.last == .poster(PixelSize(width: 54, height: 96)) }
    try scene.show(0)
    try await scene.until { scene.lines.last == .poster(PixelSize(width: 96, height: 54)) }
    try await scene.close()
  }

  @Test(
    "A poster that is no frame, or is not to be had, is passed over", arguments: ["cut.png", "none.jpg"])
  func brokenPoster(_ name: String) async throws {
    let fetcher = FixtureFetcher { request, _ in request.url.path.contains("hls") ? .hold : .none }
    let scene = try PoolScene(
      Self.paths, fetcher: fetcher,
      describe: { $1.poster = URL(string: "http://fixtures.test/posters/\(name)") })
    try scene.show(0)
    try await scene.until { fetcher.requests.contains { $0.url.lastPathComponent == name } }
    fetcher.release()
    try await scene.until { scene.shown.count > 2 }
    #expect(!scene.events.contains { if case .posterShown = $0 { true } else { false } })
    try await scene.close()
  }

  @Test(
    "Over a slow link, a miss shows the poster before the first frame, and at once when the viewer comes back",
    arguments: ["hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "dash-number/manifest.mpd"])
  func posterOverSlowLink(_ path: String) async throws {
    // As large as posters are: what follows the end of a JPEG is ignored.
    let poster = try Fixtures.bytes("posters/poster.jpg") + [UInt8](repeating: 0, count: 20_000)
    let fetcher = FixtureFetcher { request, _ in
      request.url.path.hasPrefix("/posters") ? .bytes(poster) : .none
    }
    let scene = try PoolScene(
      Array(repeating: path, count: 9), fetcher: fetcher, link: .threeG,
      describe: { $1.poster = URL(string: "http://fixtures.test/posters/\($0).jpg") })
    let size = PixelSize(width: 96, height: 54)
    @Sendable func isPoster(_ line: PoolScene.Line) -> Bool { line == .poster(size) }
    for index in [0, 4, 8] {
      scene.forgetLines()
      #expect(try scene.show(index).hasFrame == false)
      try await scene.until { !scene.shown.isEmpty }
      let lines = scene.lines.filter { if case .frame = $0 { true } else { isPoster($0) } }
      #expect(lines.first.map(isPoster) == true, "\(index): \(lines)")
      #expect(lines.count(where: isPoster) == 1)
    }
    scene.forgetLines()
    let swiped = scene.simulation.now
    try scene.show(0)
    try await scene.until { scene.lines.contains(where: isPoster) }
    #expect(scene.simulation.now == swiped && scene.shown.isEmpty)
    #expect(fetcher.requests.count { $0.url.path == "/posters/0.jpg" } == 1)
    try await scene.close()
  }

  @Test("Kept posters are bounded, the latest stay, and those of a window without surface are not fetched")
  func keptPosters() async throws {
    let poster = try Fixtures.bytes("posters/poster.jpg") + [UInt8](repeating: 0, count: 1 << 20)
    let fetcher = FixtureFetcher { request, _ in
      request.url.path.hasPrefix("/posters") ? .bytes(poster) : .none
    }
    let scene = try PoolScene(
      Array(repeating: "media/h264.ts", count: 12), policy: NoPreload(), fetcher: fetcher,
      describe: { $1.poster = URL(string: "http://fixtures.test/posters/\($0).jpg") })
    @Sendable func count(_ index: Int) -> Int {
      fetcher.requests.count { $0.url.path == "/posters/\(index).jpg" }
    }
    for index in 0..<6 { try await scene.rest(at: index) }
    // Three of 1 MiB and a little more, and that of the window.
    try await scene.rest(at: 3)
    #expect(count(3) == 1)
    try await scene.rest(at: 0)
    #expect(count(0) == 2)
    try scene.pool.setSurface(nil)
    try await scene.rest(at: 9)
    #expect(count(9) == 0)
    try scene.pool.setSurface(scene.makeOutput())
    try await scene.until { count(9) == 1 }
    try await scene.close()
  }

  @Test("Posters can be left out")
  func withoutPosters() async throws {
    let scene = try PoolScene(Self.paths, describe: Self.poster, configure: { $0.showsPosters = false })
    try await scene.rest(at: 1)
    #expect(!scene.fetcher.requests.contains { $0.url.path.contains("posters") })
    try await scene.close()
  }
}

/// Counts what it is shown and its ends, and may fail.
final class EndingOutput: FrameOutput {
  static let failure = ReelError(.cannotWriteOutput, "full")

  let isExternal: Bool
  private let failsAt: Int
  private let counts = Locked((shown: 0, ends: 0))

  init(isExternal: Bool = false, failsAt: Int = .max) {
    self.isExternal = isExternal
    self.failsAt = failsAt
  }

  var count: Int { counts.withLock { $0.shown } }
  var ends: Int { counts.withLock { $0.ends } }

  func show(_ frame: VideoFrame) throws {
    let count = counts.withLock { counts in
      counts.shown += 1
      return counts.shown
    }
    if count >= failsAt { throw Self.failure }
  }

  func finish() throws { counts.withLock { $0.ends += 1 } }
}
