import Foundation
import ReelCore
import ReelFFmpeg
import ReelPlayback
import ReelLab
import ReelSimulation
import ReelTestSupport
import Testing

@testable import ReelPool
import ReelReading
import ReelSources

@Suite("The frames of a pool", .hangLimit) struct PoolFramesTests {
  static let paths = ["hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "media/h264-bframes.mp4"]

  @Test("A slow reader gets the newest frame, and the end when the pool is closed")
  func newest() async throws {
    let scene = try PoolScene(Self.paths)
    scene.pool.setPlaying(false)
    var reader = scene.pool.frames.makeAsyncIterator()
    try scene.show(0)
    try await scene.until { scene.pool.core.isSteady }
    try await scene.playOut()
    let last = try #require(scene.shown.last)
    let frame = try #require(await reader.next())
    #expect(frame.item == scene.id(0))
    #expect(frame.time == last.time)
    #expect(try frame.md5() == last.md5)
    #expect(frame.presentationSize == scene.item(0)?.presentationSize.value)
    try await scene.close()
    #expect(await reader.next() == nil)
    // It is there for as long as somebody has it.
    #expect(try frame.md5() == last.md5)
    var late = scene.pool.frames.makeAsyncIterator()
    #expect(await late.next() == nil)
  }

  @Test("A reader gets each frame once, if it keeps up")
  func each() async throws {
    let scene = try PoolScene(Self.paths)
    scene.pool.setPlaying(false)
    let reading = scene.begin { [frames = scene.pool.frames] in
      var times: [MediaTime] = []
      for await frame in frames { times.append(frame.time) }
      return times
    }
    try await scene.rest(at: 0)
    scene.pool.setPlaying(true)
    try await scene.until { scene.shown.count > 5 }
    try await scene.close()
    #expect(try await reading.value == scene.shown.map(\.time))
  }

  @Test("Readers follow the current item; one that comes later begins with the frame on show")
  func following() async throws {
    let scene = try PoolScene(Self.paths)
    scene.pool.setPlaying(false)
    var (first, second) = (scene.pool.frames.makeAsyncIterator(), scene.pool.frames.makeAsyncIterator())
    for index in [0, 1, 2, 1] {
      try await scene.rest(at: index)
      let time = scene.shown.last?.time
      let frames = [await first.next(), await second.next()]
      #expect(frames.map { $0?.item } == [scene.id(index), scene.id(index)])
      #expect(frames.map { $0?.time } == [time, time])
      var late = scene.pool.frames.makeAsyncIterator()
      let frame = await late.next()
      #expect(frame?.item == scene.id(index))
      #expect(frame?.time == time)
    }
    try await scene.close()
  }

  @Test("Without a reader no output is attached; with one, the program's own surface says the same as ever")
  func attaching() async throws {
    let scene = try PoolScene(Self.paths)
    try scene.pool.setSurface(nil)
    scene.pool.setPlaying(false)
    try await scene.rest(at: 0)
    #expect(scene.pool.currentPlayer?.statistics.hasOutput == false)
    scene.forgetLines()
    var reader = scene.pool.frames.makeAsyncIterator()
    #expect(await reader.next()?.item == scene.id(0))
    #expect(scene.pool.currentPlayer?.statistics.hasOutput == true)
    #expect(scene.pool.surfaceItem == nil)
    #expect(scene.lines.isEmpty)
    try await scene.close()
  }

  @Test("A pinned item's frames are not among them")
  func pinning() async throws {
    let scene = try PoolScene(Self.paths)
    scene.pool.setPlaying(false)
    var reader = scene.pool.frames.makeAsyncIterator()
    try await scene.rest(at: 0)
    #expect(await reader.next()?.item == scene.id(0))
    let window = NullOutput()
    let pinned = try scene.pool.startPictureInPicture(to: window)
    try await scene.until { window.frameCount > 3 }
    try await scene.rest(at: 1)
    #expect(await reader.next()?.item == scene.id(1))
    pinned.stop()
    try await scene.close()
  }

  @Test("A pool of a feed shows its first item, paused, and plays from then on")
  func feed() async throws {
    let urls = try Self.paths.map { try #require(URL(string: "http://fixtures.test/\($0)")) }
    let feed = Feed(urls: urls)
    #expect(feed.items.map(\.source) == urls.map { .url($0) })
    let simulation = SimulatedRuntime()
    var configuration = PoolConfiguration()
    configuration.enter(simulation)
    let pool = PlayerPool(
      feed: feed, fetcher: FixtureFetcher(), configuration: configuration, logger: silentLogger)
    var reader = pool.frames.makeAsyncIterator()
    #expect(pool.currentItem == feed.items[0])
    try await simulation.run { try await pool.ready(0) }
    await simulation.runToRest()
    #expect(await reader.next()?.item == feed.items[0].id)
    #expect(pool.currentPlayer?.timeControlStatus.value == .paused)
    #expect(pool.currentPlayer?.statistics.shownFrameCount == 1)
    pool.play()
    await simulation.run { pool.currentPlayer?.statistics.shownFrameCount == 2 }
    #expect(await reader.next()?.item == feed.items[0].id)
    pool.pause()
    await simulation.run { pool.currentPlayer?.timeControlStatus.value == .paused }
    #expect(pool.currentPlayer?.timeControlStatus.value == .paused)
    #expect(pool.memory.total.byteCount > 10_000)
    pool.close()
    await simulation.runToRest()
    let empty = PlayerPool(feed: Feed(urls: []), fetcher: FixtureFetcher(), logger: silentLogger)
    #expect(empty.currentItem == nil)
    #expect(empty.show(0).error?.kind == .usage)
    empty.close()
  }
}
