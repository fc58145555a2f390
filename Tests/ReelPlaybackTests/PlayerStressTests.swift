import Foundation
import ReelCore
import ReelFFmpeg
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite("Players under stress", .hangLimit)
struct PlayerStressTests {
  // MARK: Random operations

  @Test(
    "Random operations: the right frame after each seek, none of an earlier place or item, no hang",
    arguments: 1...4)
  func randomOperations(seed: UInt64) async throws {
    var span = try StressRun(seed: seed, clips: StressClip.all())
    for step in 0..<250 { try await span.perform(step) }
    try await span.finish()
  }

  /// In a process of its own: the counts are of nobody else.
  @Test("Threads, descriptors and memory are back after any operations")
  func resources() async {
    await #expect(processExitsWith: .success) {
      let clips = try StressClip.all()
      func round() async throws {
        for seed: UInt64 in 11...13 {
          var span = try StressRun(seed: seed, clips: clips)
          for step in 0..<120 { try await span.perform(step) }
          try await span.finish()
        }
      }
      func settled() async throws -> ProcessMemory {
        try await until { WorkerThreads.shared.count + WorkerThreads.prompt.count == 0 }
        return try #require(ProcessMemory.current)
      }
      try await round()
      let before = try await settled()
      try await round()
      var after = try await settled()
      // The thread of the system's clock ends by itself, a second after its last call.
      try await until({ "before: \(before)\nafter: \(after)" }) {
        after = try #require(ProcessMemory.current)
        return after.threadCount <= before.threadCount && after.descriptorCount <= before.descriptorCount
      }
      guard ProcessInfo.processInfo.environment["REEL_SANITIZER"] == nil else { return }
      #expect(after.residentByteCount - before.residentByteCount < 12 << 20, "memory is left")
    }
  }

  @Test("Several who operate one player at the same time leave it whole")
  func manyHands() async throws {
    let clips = try StressClip.all()
    let scene = try StressScene()
    try await scene.bounded("the end of all operations") {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for hand: UInt64 in 0..<4 {
          group.addTask {
            var random = SplitMix(seed: 100 + hand)
            for _ in 0..<80 {
              let clip = clips.randomElement(using: &random) ?? clips[0]
              switch Int.random(in: 0..<10, using: &random) {
              case 0..<2: scene.player.replaceCurrentItem(with: PlayerItem(try clip.source()))
              case 2: scene.player.pause()
              case 3: scene.player.setRate([1, 4, .infinity].randomElement(using: &random) ?? 1)
              case 4: scene.player.setMuted(.random(using: &random))
              case 5: scene.player.actionAtItemEnd = .random(using: &random) ? .loop : .pause
              default:
                _ = try? await scene.player.seek(to: MediaTime(seconds: .random(in: -1...6, using: &random)))
              }
            }
          }
        }
        try await group.waitForAll()
      }
    }
    // What it tells is what it does, whoever came last.
    scene.player.actionAtItemEnd = .pause
    let clip = clips[4]
    let item = PlayerItem(try clip.source())
    scene.player.replaceCurrentItem(with: item)
    #expect(scene.player.currentItem.value == item)
    let events = item.events
    scene.player.setRate(.infinity)
    _ = try await scene.bounded("the end of the item") { await events.first { $0.isEnd } }
    try await scene.until("pause at the end") { scene.player.timeControlStatus.value == .paused }
    #expect(scene.player.rate.value == 0)
    await scene.player.stopAndWait()
    #expect(scene.witness.lateCount == 0)
    try await scene.until("the end of all requests") { scene.fetcher.heldCount == 0 }
  }

  // MARK: Seeks

  @Test("A thousand seeks at once: each ends, one is on show", arguments: try StressClip.all())
  func thousandSeeks(_ clip: StressClip) async throws {
    let scene = try StressScene()
    scene.player.replaceCurrentItem(with: PlayerItem(try clip.source()))
    scene.player.play()
    let player = scene.player
    let end = clip.expected[clip.expected.count - 1].time.seconds
    let results = try await scene.bounded("the end of all seeks") {
      try await withThrowingTaskGroup(of: Bool.self) { group in
        for index in 0..<1000 {
          group.addTask {
            try await player.seek(to: MediaTime(seconds: end * Double(index * 7919 % 1000) / 1000))
          }
        }
        return try await group.reduce(into: [Bool]()) { $0.append($1) }
      }
    }
    #expect(results.count == 1000)
    #expect(results.contains(true))
    let target = clip.expected[clip.expected.count / 3].time
    _ = try await scene.seek(clip, to: target)
    await scene.player.stopAndWait()
    let isAllOfClip = scene.witness.all.allSatisfy { clip.index(of: $0) != nil }
    #expect(isAllOfClip)
  }

  @Test(
    "What follows a seek is whole, however much was loaded when it was made", arguments: try StressClip.all(),
    [1, 3])
  func nothingIsLost(_ clip: StressClip, threads: Int) async throws {
    var random = SplitMix(seed: 5)
    for round in 0..<6 {
      // Loading goes on while the seeks are made.
      let fetcher = FixtureFetcher(chunkByteCount: 700) { _, _ in .slow(.microseconds(200)) }
      let scene = try StressScene(
        fetcher: fetcher, configuration: StressScene.configuration(threads: threads))
      let item = PlayerItem(try clip.source())
      item.preferredForwardBufferDuration = .seconds(60)
      scene.player.replaceCurrentItem(with: item)
      try await scene.opened(item)
      let last = clip.expected[clip.expected.count - 1].time.seconds
      for _ in 0..<round {
        _ = try await scene.seek(clip, to: MediaTime(seconds: .random(in: 0...(last / 2), using: &random)))
      }
      let start = MediaTime(seconds: .random(in: 0...last, using: &random))
      let mark = scene.witness.count
      let shown = try await scene.seek(clip, to: start)
      #expect(shown.count <= 1)
      let events = item.events
      scene.player.setRate(.infinity)
      let end = try await scene.bounded("the end of \(clip.path)") { await events.first { $0.isEnd } }
      if case .playedToEnd = end {} else { Issue.record("\(String(describing: end))") }
      let rest = scene.witness.all[mark...].compactMap { clip.index(of: $0) }
      #expect(
        rest == Array(clip.index(at: start)..<clip.expected.count), "\(clip.path) from \(start.seconds)")
      await scene.player.stopAndWait()
    }
  }

  @Test(
    "A seek to where nothing is loaded plays on there",
    arguments: ["hls-fmp4/master.m3u8", "dash-gpac/multirate.mpd"])
  func playsOnAfterSeek(_ path: String) async throws {
    let clip = try #require(try StressClip.all().first { $0.path == path })
    let scene = try StressScene(
      fetcher: FixtureFetcher(chunkByteCount: 600) { _, _ in .slow(.milliseconds(2)) })
    let item = PlayerItem(try clip.source())
    item.preferredForwardBufferDuration = .milliseconds(600)
    scene.player.replaceCurrentItem(with: item)
    scene.player.play()
    try await scene.until("playing") { scene.player.timeControlStatus.value == .playing }
    for fraction in [0.7, 0.1, 0.5, 0.02] {
      let target = clip.expected[Int(Double(clip.expected.count) * fraction)].time
      _ = try await scene.seek(clip, to: target)
      let count = scene.witness.count
      try await scene.until("ten more frames") { scene.witness.count >= count + 10 }
    }
    await scene.player.stopAndWait()
  }

  @Test("Seeks of all kinds end while the source opens, after it has failed, and where it has ended")
  func seeksAtAllTimes() async throws {
    let clip = try #require(try StressClip.all().first { $0.path == "media/h264-gops.mp4" })
    let last = clip.expected[clip.expected.count - 1].time
    let scene = try StressScene()
    scene.player.replaceCurrentItem(with: PlayerItem(try clip.source()))
    // While it opens.
    for time in [MediaTime(value: 1, timescale: 2), .zero, MediaTime(value: -5, timescale: 1)] {
      _ = try await scene.seek(clip, to: time)
    }
    for time in [last, last + MediaTime(value: 1, timescale: 100), MediaTime(value: .max, timescale: 1)] {
      let shown = try await scene.seek(clip, to: time)
      #expect(shown.last?.md5 == clip.expected[clip.expected.count - 1].md5)
    }
    let item = try #require(scene.player.currentItem.value)
    let events = item.events
    scene.player.setRate(.infinity)
    _ = try await scene.bounded("the end") { await events.first { $0.isEnd } }
    // After its end.
    _ = try await scene.seek(clip, to: .zero)
    _ = try await scene.seek(clip, to: last)
    let none = PlayerItem(try MediaSource(argument: "http://fixtures.test/nothing.mp4"))
    scene.player.replaceCurrentItem(with: none)
    try await scene.opened(none)
    let player = scene.player
    for _ in 0..<3 {
      await #expect(throws: ReelError.self) {
        _ = try await scene.bounded("a seek in a failed item") { try await player.seek(to: .zero) }
      }
    }
    await scene.player.stopAndWait()
    await #expect(throws: ReelError.self) {
      _ = try await scene.bounded("a seek without an item") { try await player.seek(to: .zero) }
    }
  }

  @Test("An item that failed for want of a server is tried again by a seek", arguments: [0, 2])
  func seekAfterFailure(failingFrom first: Int) async throws {
    let clip = try #require(try StressClip.all().first { $0.path == "hls-ts/low/index.m3u8" })
    let isDown = Locked(true)
    let fetcher = FixtureFetcher { _, number in
      number >= first && isDown.withLock { $0 } ? .error(ReelError(.network, "no connection")) : .none
    }
    let scene = try StressScene(fetcher: fetcher)
    let item = PlayerItem(try clip.source())
    scene.player.setRate(.infinity)
    scene.player.replaceCurrentItem(with: item)
    try await scene.until("the failure") { if case .failed = item.status.value { true } else { false } }
    let player = scene.player
    for _ in 0..<2 {
      await #expect(throws: ReelError.self) {
        _ = try await scene.bounded("a seek while the server is down") {
          try await player.seek(to: MediaTime(value: 5, timescale: 2))
        }
      }
    }
    isDown.withLock { $0 = false }
    _ = try await scene.seek(clip, to: MediaTime(value: 1, timescale: 1))
    let events = item.events
    #expect(item.status.value == .readyToPlay)
    let end = try await scene.bounded("the end of the item") { await events.first { $0.isEnd } }
    if case .playedToEnd = end {} else { Issue.record("\(String(describing: end))") }
    #expect(scene.witness.all.last?.md5 == clip.expected[clip.expected.count - 1].md5)
    await scene.player.stopAndWait()
  }

  // MARK: Replacing and letting go

  @Test("Items that are replaced while they open leave nothing, and show nothing")
  func replaceWhileOpening() async throws {
    let clips = try StressClip.all()
    var random = SplitMix(seed: 77)
    let fetcher = FixtureFetcher { _, number in
      number % 5 == 0 ? .never : number % 3 == 0 ? .delay(.milliseconds(number % 7)) : .none
    }
    let scene = try StressScene(fetcher: fetcher)
    scene.player.play()
    var items: [WeakBox] = []
    for round in 0..<150 {
      let clip = clips[round % clips.count]
      let item = PlayerItem(try clip.source(isLocal: round % 4 == 0))
      items.append(WeakBox(item))
      let count = scene.witness.count
      scene.player.replaceCurrentItem(with: item)
      let wait = Int.random(in: 0..<4, using: &random)
      for _ in 0..<wait { try await Task.sleep(for: .microseconds(700)) }
      scene.player.replaceCurrentItem(with: nil)
      let shown = scene.witness.all
      #expect(shown[count...].allSatisfy { clip.index(of: $0) != nil }, "a frame of another item")
      #expect(scene.player.timeControlStatus.value == .waitingToPlayAtSpecifiedRate(.noItemToPlay))
      await Task.yield()
      #expect(scene.witness.count == shown.count, "a frame of an item that was taken away")
    }
    try await scene.until("the end of all requests") { fetcher.heldCount == 0 }
    let boxes = items
    try await scene.until("the end of all items") { boxes.allSatisfy { $0.value == nil } }
    await scene.player.stopAndWait()
  }

  @Test("The same item can be given to the player again, also while it plays")
  func sameItem() async throws {
    let clip = try #require(try StressClip.all().first { $0.path == "media/h264.mkv" })
    let scene = try StressScene()
    let item = PlayerItem(try clip.source())
    for _ in 0..<20 {
      scene.player.replaceCurrentItem(with: item)
      try await scene.opened(item)
    }
    let mark = scene.witness.count
    scene.player.replaceCurrentItem(with: item)
    let events = item.events
    scene.player.setRate(.infinity)
    _ = try await scene.bounded("the end") { await events.first { $0.isEnd } }
    let shown = scene.witness.all[mark...].compactMap { clip.index(of: $0) }
    #expect(shown == Array(clip.expected.indices))
    await scene.player.stopAndWait()
  }

  /// Counts what is heard.
  private final class Sound: AudioOutput {
    private let count = Locked(0)

    var sampleCount: Int { count.withLock { $0 } }

    func write(_ audio: TimedAudio) { count.withLock { $0 += audio.buffer.frameCount } }

    func finish() {}
  }

  /// A reference that does not hold.
  private final class WeakBox: Sendable {
    private let reference: Locked<Weak>
    private struct Weak { weak var value: PlayerItem? }

    init(_ value: PlayerItem) { reference = Locked(Weak(value: value)) }

    var value: PlayerItem? { reference.withLock { $0.value } }
  }

  @Test("A player that is let go ends what it has begun", arguments: 0..<6)
  func letGo(_ moment: Int) async throws {
    let clip = try #require(try StressClip.all().first { $0.path == "hls-fmp4/master.m3u8" })
    let fetcher = FixtureFetcher { _, number in
      moment == 0
        ? .never : moment == 1 && number > 2 ? .never : moment == 2 ? .slow(.milliseconds(3)) : .none
    }
    let item = PlayerItem(try clip.source())
    let seek = Locked<Task<Bool, any Error>?>(nil)
    let observers = Locked<[Task<Void, Never>]>([])
    let witness = StressScene.Witness()
    do {
      let player = Player(fetcher: fetcher, configuration: StressScene.configuration(), logger: silentLogger)
      try player.attach(witness)
      let (events, status) = (player.events, player.timeControlStatus.values)
      observers.withLock { list in
        list.append(Task { for await _ in events {} })
        list.append(Task { for await _ in status {} })
      }
      player.setRate(moment == 5 ? .infinity : 1)
      player.replaceCurrentItem(with: item)
      if moment > 2 {
        try await until { witness.count >= moment }
      }
      if moment == 4 { player.actionAtItemEnd = .loop }
      if moment == 2 {
        let core = player.seekHandle
        seek.withLock { $0 = Task { try await core() } }
        try await until { fetcher.underWayCount > 0 }
      }
    }
    let scene = try StressScene(fetcher: fetcher)
    try await scene.until("the end of the requests") { fetcher.heldCount == 0 }
    try await scene.until("the end of the output") { witness.isFinished }
    #expect(witness.lateCount == 0)
    let tasks = observers.withLock { $0 }
    try await scene.bounded("the end of the observers") { for task in tasks { await task.value } }
    if let task = seek.withLock({ $0 }) {
      _ = try await scene.bounded("the end of the seek") { try? await task.value }
    }
    await scene.player.stopAndWait()
  }

  // MARK: Outputs

  @Test("An output may use the player that shows to it", arguments: 0..<5)
  func outputUsesPlayer(_ what: Int) async throws {
    let clip = try #require(try StressClip.all().first { $0.path == "media/h264-gops.mp4" })
    let scene = try StressScene()
    let player = scene.player
    let count = Locked(0)
    let itself = Locked<CallbackOutput?>(nil)
    let other = PlayerItem(try clip.source())
    let output = CallbackOutput { [weak player] _ in
      let number = count.withLock { count in
        count += 1
        return count
      }
      guard number == 5, let player else { return }
      switch what {
      case 0: player.stop()
      case 1: if let output = itself.withLock({ $0 }) { try player.detach(output) }
      case 2: player.replaceCurrentItem(with: other)
      case 3: try player.attach(NullOutput())
      default:
        player.pause()
        Task { try await player.seek(to: .zero) }
      }
    }
    itself.withLock { $0 = output }
    try player.attach(output)
    player.setRate(.infinity)
    player.replaceCurrentItem(with: PlayerItem(try clip.source()))
    try await scene.until("five frames") { count.withLock { $0 } >= 5 }
    try await scene.bounded("the end of the player") { await player.stopAndWait() }
    if what < 2 { #expect(count.withLock { $0 } == 5, "shown to after it was detached") }
    itself.withLock { $0 = nil }
  }

  @Test("Outputs that come and go get frames in order, and none after they have gone")
  func outputsComeAndGo() async throws {
    let clip = try #require(try StressClip.all().first { $0.path == "hls-fmp4/master.m3u8" })
    let scene = try StressScene()
    scene.player.actionAtItemEnd = .loop
    scene.player.setRate(8)
    scene.player.replaceCurrentItem(with: PlayerItem(try clip.source()))
    for round in 0..<200 {
      let witness = StressScene.Witness()
      try scene.player.attach(witness)
      try await scene.until("frames of the output") { witness.count >= round % 3 }
      try scene.player.detach(witness)
      #expect(witness.isFinished)
      let shown = witness.all.map(\.time)
      let falls = zip(shown, shown.dropFirst()).filter { $1 <= $0 }
      // A late frame is dropped, the first one of a round as well.
      #expect(
        falls.allSatisfy { $1 == .zero } || scene.player.statistics.droppedFrameCount > 0,
        "only the first frame of a new round comes after a later one")
      await Task.yield()
      #expect(witness.lateCount == 0)
    }
    await scene.player.stopAndWait()
  }

  // MARK: Rates, buffers, sound, ends

  @Test("The rate may change between as fast as it goes and any other, at any time")
  func rates() async throws {
    let clip = try #require(try StressClip.all().first { $0.path == "dash-gpac/multirate.mpd" })
    let scene = try StressScene()
    scene.player.actionAtItemEnd = .loop
    scene.player.replaceCurrentItem(with: PlayerItem(try clip.source()))
    for rate: Double in [.infinity, 1, .infinity, 8, 0, 1, .infinity, 0, 2, 0.25, .infinity, 1] {
      scene.player.setRate(rate)
      let count = scene.witness.count
      if rate > 0 { try await scene.until("frames at rate \(rate)") { scene.witness.count >= count + 3 } }
    }
    await scene.player.stopAndWait()
  }

  @Test(
    "However little is to be loaded ahead, the item plays to its end", arguments: [0, 1, 20, 100],
    try StressClip.all())
  func smallBuffers(milliseconds: Int, clip: StressClip) async throws {
    let scene = try StressScene(configuration: StressScene.configuration(threads: 2))
    let item = PlayerItem(try clip.source())
    item.preferredForwardBufferDuration = .milliseconds(milliseconds)
    let events = item.events
    scene.player.replaceCurrentItem(with: item)
    scene.player.setRate(8)
    let end = try await scene.bounded("the end of \(clip.path)") { await events.first { $0.isEnd } }
    if case .playedToEnd = end {} else { Issue.record("\(String(describing: end))") }
    #expect(
      scene.player.statistics.shownFrameCount + scene.player.statistics.droppedFrameCount
        == clip.expected.count)
    await scene.player.stopAndWait()
  }

  /// Sound that can't be had, breaks off, or is something else.
  static let soundFaults: [FixtureFetcher.Fault] = [
    .error(ReelError(.server, "404", status: 404)), .error(ReelError(.network, "no connection")), .cut(700),
    .cut(0),
  ]

  @Test("An item whose sound breaks plays on without it", arguments: 0..<8)
  func brokenSound(_ index: Int) async throws {
    let clip = try #require(try StressClip.all().first { $0.path == "hls-fmp4/master.m3u8" })
    let fault = Self.soundFaults[index / 2]
    let part = index % 2 == 0 ? "audio/" : "audio/segment-1"
    let fetcher = FixtureFetcher { request, _ in request.url.path.contains(part) ? fault : .none }
    let scene = try StressScene(fetcher: fetcher)
    let item = PlayerItem(try clip.source())
    let events = item.events
    scene.player.setRate(index < 4 ? 8 : .infinity)
    scene.player.replaceCurrentItem(with: item)
    let end = try await scene.bounded("the end of the item") { await events.first { $0.isEnd } }
    if case .playedToEnd = end {} else { Issue.record("\(String(describing: end))") }
    let statistics = scene.player.statistics
    #expect(statistics.shownFrameCount + statistics.droppedFrameCount == clip.expected.count)
    await scene.player.stopAndWait()
  }

  @Test(
    "Muting and unmuting at any time holds up neither the frame nor the end",
    arguments: ["hls-fmp4/master.m3u8", "hls-ts/low/index.m3u8", "dash-gpac/multirate.mpd"])
  func muting(_ path: String) async throws {
    let clip = try #require(try StressClip.all().first { $0.path == path })
    let scene = try StressScene()
    let item = PlayerItem(try clip.source())
    let events = item.events
    scene.player.replaceCurrentItem(with: item)
    scene.player.setRate(4)
    let toggling = Task {
      var isMuted = false
      while !Task.isCancelled {
        isMuted.toggle()
        scene.player.setMuted(isMuted)
        let count = scene.witness.count
        do { try await until { scene.witness.count > count } } catch { break }
      }
      scene.player.setMuted(false)
    }
    let end = try await scene.bounded("the end of the item") { await events.first { $0.isEnd } }
    toggling.cancel()
    if case .playedToEnd = end {} else { Issue.record("\(String(describing: end))") }
    let statistics = scene.player.statistics
    #expect(statistics.shownFrameCount + statistics.droppedFrameCount == clip.expected.count)
    await toggling.value
    await scene.player.stopAndWait()
  }

  @Test(
    "Sound that is muted or wanted again when all is loaded holds up no end", arguments: try StressClip.all(),
    0..<4)
  func mutingWhenLoaded(_ clip: StressClip, way: Int) async throws {
    let scene = try StressScene()
    let item = PlayerItem(try clip.source())
    item.preferredForwardBufferDuration = .seconds(60)
    let events = item.events
    scene.player.replaceCurrentItem(with: item)
    try await scene.until("all of \(clip.path)") {
      item.isPlaybackBufferFull.value && item.status.value == .readyToPlay
    }
    scene.player.setMuted(true)
    if way % 2 == 0 { scene.player.setMuted(false) }
    let heard = Sound()
    scene.player.attach(heard)
    scene.player.setRate(way < 2 ? .infinity : 8)
    let end = try await scene.bounded("the end of \(clip.path)") { await events.first { $0.isEnd } }
    if case .playedToEnd = end {} else { Issue.record("\(String(describing: end))") }
    // Sound of its own stream is loaded again.
    let hasStream = clip.path == "hls-fmp4/master.m3u8" || clip.path == "dash-gpac/multirate.mpd"
    #expect((heard.sampleCount > 20_000) == (hasStream && way % 2 == 0), "\(heard.sampleCount) samples")
    await scene.player.stopAndWait()
  }

  @Test("Looping may be asked for and given up at any time", arguments: try StressClip.all())
  func loops(_ clip: StressClip) async throws {
    let scene = try StressScene()
    let item = PlayerItem(try clip.source())
    scene.player.replaceCurrentItem(with: item)
    scene.player.setRate(.infinity)
    var random = SplitMix(seed: 3)
    for _ in 0..<40 {
      scene.player.actionAtItemEnd = .random(using: &random) ? .loop : .pause
      let count = scene.witness.count
      scene.player.play()
      let wanted = count + Int.random(in: 0..<20, using: &random)
      try await scene.until("more frames, or the end") {
        scene.witness.count >= wanted || scene.player.timeControlStatus.value == .paused
      }
      if Int.random(in: 0..<3, using: &random) == 0 {
        // The last one only: the order from there is checked.
        let last = clip.expected[clip.expected.count - 1].time.seconds
        let target = MediaTime(seconds: .random(in: 0...last, using: &random))
        _ = try await scene.seek(clip, to: target)
      }
    }
    scene.player.actionAtItemEnd = .pause
    let target = clip.expected[clip.expected.count / 2].time
    let mark = scene.witness.count
    _ = try await scene.seek(clip, to: target)
    scene.player.play()
    try await scene.until("the end") {
      scene.witness.all[mark...].last?.md5 == clip.expected[clip.expected.count - 1].md5
        && scene.player.timeControlStatus.value == .paused
    }
    await scene.player.stopAndWait()
  }

  @Test("An item that ends while it is asked to play is played again, or pauses")
  func playsAtTheEnd() async throws {
    let scene = try StressScene()
    scene.player.replaceCurrentItem(
      with: PlayerItem(try MediaSource(argument: "http://fixtures.test/media/h264-one-frame.mp4")))
    scene.player.setRate(.infinity)
    var random = SplitMix(seed: 5)
    for _ in 0..<4000 {
      let count = scene.witness.count
      scene.player.play()
      // The second call comes about when the item ends.
      for _ in 0..<Int.random(in: 0..<200, using: &random) { _ = scene.player.currentTime }
      scene.player.play()
      try await scene.until("the frame, and the end") {
        scene.witness.count > count && scene.player.timeControlStatus.value == .paused
      }
    }
    await scene.player.stopAndWait()
  }

  @Test("A server that fails now and then is held out against, in any place", arguments: 1...6)
  func failingServer(seed: UInt64) async throws {
    let clip = try #require(try StressClip.all().first { $0.path == "hls-ts/low/index.m3u8" })
    let fetcher = FixtureFetcher { _, number in
      var random = SplitMix(seed: seed &* 1000 &+ UInt64(number))
      return switch Int.random(in: 0..<6, using: &random) {
      case 0: .error(ReelError(.server, "503", status: 503))
      case 1: .cut(Int.random(in: 0..<9000, using: &random))
      case 2: .delay(.milliseconds(2))
      default: .none
      }
    }
    var configuration = StressScene.configuration()
    configuration.retryPolicy = ItemRetryPolicy(
      attempts: 40, baseDelay: .microseconds(100), maximumDelay: .milliseconds(1))
    let scene = try StressScene(fetcher: fetcher, configuration: configuration)
    let item = PlayerItem(try clip.source())
    scene.player.replaceCurrentItem(with: item)
    var random = SplitMix(seed: seed)
    for _ in 0..<12 {
      _ = try await scene.seek(clip, to: MediaTime(seconds: .random(in: 0...3, using: &random)))
    }
    let start = MediaTime(seconds: 0.4)
    let mark = scene.witness.count
    _ = try await scene.seek(clip, to: start)
    let events = item.events
    scene.player.setRate(.infinity)
    let end = try await scene.bounded("the end") { await events.first { $0.isEnd } }
    if case .playedToEnd = end {} else { Issue.record("\(String(describing: end))") }
    let shown = scene.witness.all[mark...].drop { clip.index(of: $0) != clip.index(at: start) }
    #expect(
      shown.map(\.md5) == clip.expected[clip.index(at: start)...].map(\.md5), "\(clip.indices(of: shown))")
    #expect(scene.player.statistics.damagedFrameCount == 0)
    await scene.player.stopAndWait()
  }
}

extension Player {
  /// Seeks without keeping the player.
  fileprivate var seekHandle: @Sendable () async throws -> Bool {
    { [weak self] in try await self?.seek(to: .zero) ?? false }
  }
}
