import Foundation
import ReelCore
import ReelFFmpeg
import ReelFiles
import ReelPool
import ReelLab
import ReelTesting
import ReelSimulation
import ReelTransport
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelReading
@testable import ReelSources

@Suite("What a player does", .hangLimit)
struct PlayerBehaviourTests {
  private static let clips: [String] = {
    let folder = Fixtures.folder.appending(path: "media")
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return names.sorted().map { "media/\($0)" }
  }()

  @Test("Every clip gives the frames that an extraction gives", arguments: clips)
  func clip(_ path: String) async throws {
    let expected = try await frames(of: path)
    let stage = try SimulatedStage.local(path)
    stage.begin(rate: .infinity)
    try await stage.end()
    let shown = stage.recording.all
    #expect(shown.map(\.md5) == expected.map(\.md5))
    #expect(shown.map(\.time) == shown.map(\.time).sorted())
    try await stage.close()
  }

  @Test("Every frame is shown at its time", arguments: [0.5, 1, 2])
  func pacing(rate: Double) async throws {
    let stage = try SimulatedStage("hls-fmp4/master.m3u8")
    let simulation = stage.simulation
    let shown = Locked<[(time: Duration, at: Duration)]>([])
    try stage.player.attach(
      CallbackOutput { frame in
        let time = frame.time.seconds
        shown.withLock { $0.append((.seconds(time), simulation.now)) }
      })
    stage.begin(rate: rate)
    try await stage.end()
    let frames = shown.withLock { $0 }
    let expected = try await ReelTestSupport.frames(of: "hls-fmp4/master.m3u8")
    #expect(stage.recording.all == expected)
    let begin = try #require(frames.first).at
    for frame in frames {
      let lateness = frame.at - begin - frame.time / rate
      #expect((.milliseconds(-1) ... .milliseconds(1)).contains(lateness), "\(frame)")
    }
    try await stage.close()
  }

  @Test("By the system's clock, playback takes as long as the media")
  func systemClock() async throws {
    let player = Player(fetcher: FixtureFetcher(), logger: silentLogger)
    let item = PlayerItem(try MediaSource(argument: "http://fixtures.test/hls-fmp4/master.m3u8"))
    let events = item.events
    player.setRate(2)
    let clock = ContinuousClock()
    let start = clock.now
    player.replaceCurrentItem(with: item)
    #expect(await events.first { $0.isEnd } != nil)
    #expect(clock.now - start > .seconds(1.45))
    let expected = try await frames(of: "hls-fmp4/master.m3u8")
    let statistics = player.statistics
    // A busy machine may drop frames.
    #expect(statistics.shownFrameCount + statistics.droppedFrameCount == expected.count)
    await player.stopAndWait()
  }

  static let seekable = [
    "hls-ts/master.m3u8", "hls-fmp4/master.m3u8", "dash-number/manifest.mpd", "dash-ondemand/manifest.mpd",
    "media/h264-gops.mp4", "media/hevc-gops.mp4", "media/h264.ts", "media/h264.mkv",
    "media/h264-fragmented.mp4",
    "media/hevc-open-gop.mp4", "media/h264-open-gop.ts", "media/h264-moov-last.mp4",
    "media/h264-fragmented-sidx.mp4", "media/h264.flv",
  ]

  @Test("A seek shows the frame at the time", arguments: seekable)
  func seeks(_ path: String) async throws {
    let expected = try await frames(of: path)
    let stage = try SimulatedStage(path)
    stage.player.replaceCurrentItem(with: stage.item)
    try await stage.run(untilLoaded: .firstFrame)
    var random = SplitMix(seed: 5)
    for _ in 0..<24 {
      let index = random.next(below: expected.count)
      #expect(try await stage.seek(to: expected[index].time))
      let shown = try #require(stage.recording.all.last)
      let found = expected.firstIndex { $0.md5 == shown.md5 } ?? -1
      #expect(
        shown.md5 == expected[index].md5,
        "frame \(index) at \(expected[index].time), shown \(found) at \(shown.time)")
    }
    try await stage.close()
  }

  @Test(
    "A seek inside what is loaded fetches nothing; one outside sends one request more",
    arguments: [
      "hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "dash-number/manifest.mpd", "dash-ondemand/manifest.mpd",
      "media/h264-gops.mp4",
    ])
  func requests(_ path: String) async throws {
    let fetcher = FixtureFetcher()
    // What is loaded ends in the first second.
    let stage = try SimulatedStage(path, fetcher: fetcher) { $0.thresholds.refillShare = 0.01 }
    let item = stage.item
    stage.player.setMuted(true)
    item.preferredForwardBufferDuration = .milliseconds(600)
    stage.player.replaceCurrentItem(with: item)
    try await stage.run { item.isPlaybackBufferFull.value && item.preloadStage.value >= .firstFrame }
    let before = fetcher.keys.count
    for time in [0.2, 0.3, 0.1] { #expect(try await stage.seek(to: MediaTime(seconds: time))) }
    #expect(fetcher.keys.count == before)
    #expect(try await stage.seek(to: MediaTime(seconds: path.hasPrefix("media") ? 1.6 : 2.5)))
    let sent = fetcher.keys[before...]
    #expect(sent.count == (path.hasPrefix("media") ? 0 : 1), "\(sent)")
    try await stage.close()
  }

  @Test("A seek of a cancelled task ends at once, and the player still goes to the position")
  func cancelledSeek() async throws {
    let fetcher = FixtureFetcher()
    let stage = try SimulatedStage("hls-ts/master.m3u8", fetcher: fetcher)
    let (player, item) = (stage.player, stage.item)
    item.preferredForwardBufferDuration = .milliseconds(600)
    player.replaceCurrentItem(with: item)
    try await stage.run { item.isPlaybackBufferFull.value && item.preloadStage.value >= .firstFrame }
    fetcher.setFault { _, _ in .hold }
    let seek = stage.simulation.throwingTask { try await player.seek(to: MediaTime(seconds: 2.5)) }
    try await stage.run { player.core.state.read { $0.item.playback.seek != nil } }
    seek.cancel()
    await #expect(throws: CancellationError.self) { try await stage.simulation.run { try await seek.value } }
    fetcher.release()
    try await stage.run { player.hasCurrentFrame }
    #expect(stage.recording.all.last.map { $0.time.seconds > 2.4 } == true)
    // One that was cancelled before changes nothing.
    let late = stage.simulation.throwingTask { try await player.seek(to: .zero) }
    late.cancel()
    await #expect(throws: CancellationError.self) { try await stage.simulation.run { try await late.value } }
    #expect(player.currentTime.seconds > 2.4)
    try await stage.close()
  }

  @Test("A linear player refuses to be sought, and one that allows no external output refuses it")
  func refusals() async throws {
    let stage = try SimulatedStage("media/h264-gops.mp4")
    stage.player.replaceCurrentItem(with: stage.item)
    stage.player.requiresLinearPlayback = true
    let error = await reelError { _ = try await stage.seek(to: .zero) }
    #expect(error?.kind == .usage)
    stage.player.requiresLinearPlayback = false
    #expect(try await stage.seek(to: .zero))
    stage.player.allowsExternalPlayback = false
    let output = CallbackOutput(isExternal: true) { _ in }
    #expect(throws: ReelError.self) { try stage.player.attach(output) }
    stage.player.allowsExternalPlayback = true
    try stage.player.attach(output)
    try await stage.close()
    let late = await reelError { _ = try await stage.seek(to: .zero) }
    #expect(late?.kind == .usage)
  }

  @Test("An item that another player has is refused, until that player lets it go")
  func itemInUse() async throws {
    let stage = try SimulatedStage("media/h264-gops.mp4")
    let (first, item) = (stage.player, stage.item)
    first.replaceCurrentItem(with: item)
    let second = Player(
      fetcher: FixtureFetcher(), configuration: first.core.configuration, logger: silentLogger)
    second.replaceCurrentItem(with: item)
    #expect(second.currentItem.value == nil)
    let error = try #require(await reelError { try await second.ready() })
    #expect(error.kind == .usage && error.reason == "the item is in use by another player")
    #expect(error.location == item.source.name)
    #expect(await reelError { try await second.seek(to: .zero) } == error)
    #expect(await reelError { for try await _ in second.frames {} } == error)
    for await event in second.events {
      #expect(event == .failed(error))
      break
    }
    try await stage.run(untilLoaded: .firstFrame)
    #expect(item.status.value == .readyToPlay && first.currentItem.value == item)
    // A player may begin its own item again.
    first.replaceCurrentItem(with: item)
    #expect(first.currentItem.value == item)
    first.replaceCurrentItem(with: nil)
    second.replaceCurrentItem(with: item)
    #expect(second.currentItem.value == item)
    try await stage.run(untilLoaded: .firstFrame)
    try await stage.simulation.run { await second.stopAndWait() }
    first.replaceCurrentItem(with: item)
    #expect(first.currentItem.value == item)
    try await stage.close()
  }

  @Test("An item that can't be loaded fails with its reason, and the next one plays")
  func replacement() async throws {
    let stage = try SimulatedStage.local("none.mp4")
    stage.begin(rate: .infinity)
    try await stage.end()
    if case .failed(let error) = stage.item.status.value {
      #expect(error.kind == .noSuchFile)
    } else {
      Issue.record("\(stage.item.status.value)")
    }
    let next = PlayerItem(try MediaSource(argument: Fixtures.path("media/h264-gops.mp4")))
    stage.player.replaceCurrentItem(with: next)
    try await stage.run { stage.eventNames.contains("playedToEnd") }
    let expected = try await frames(of: "media/h264-gops.mp4")
    #expect(stage.recording.all == expected)
    try await stage.close()
  }

  @Test("A player that plays as soon as an item is ready needs no call")
  func playsWhenReady() async throws {
    let stage = try SimulatedStage("media/h264-one-frame.mp4")
    stage.player.playsWhenReady = true
    stage.player.replaceCurrentItem(with: stage.item)
    try await stage.end()
    #expect(stage.recording.all.count == 1)
    try await stage.close()
  }

  @Test("A live presentation goes on without a gap or a repeat")
  func live() async throws {
    let launch = WallTime(nanosecondsSince1970: 1_769_860_800_000_000_000)
    let simulation = SimulatedRuntime()
    let wall = SimulatedWallClock(simulation, beginning: launch + MediaTime(value: 100, timescale: 1))
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: "hls-ts/master.m3u8"))
    let broadcast = try HLSLiveSimulation(material, start: launch, options: .init()) { wall.now }
    let url = try #require(URL(string: "http://origin\(broadcast.manifestPath)"))
    let stage = try SimulatedStage(.url(url), fetcher: SimulationFetcher(resource: broadcast), in: simulation)
    {
      $0.loading.clock = wall
    }
    stage.begin(rate: .infinity)
    try await stage.run { stage.recording.all.count >= 300 }
    try await stage.close()
    let shown = Array(stage.recording.all.prefix(300))
    for (first, second) in zip(shown, shown.dropFirst()) {
      #expect((second.time - first.time).seconds < 0.05)
    }
    let golden = try Golden("hls-ts-high").frames.map(\.md5)
    let start = try #require(golden.firstIndex(of: shown[0].md5))
    #expect(shown.map(\.md5) == (0..<300).map { golden[(start + $0) % golden.count] })
  }

  /// A player in a simulation, on a simulated broadcast that began long before.
  private func broadcast(
    at begin: Double, options: DASHLiveSimulation.Options
  ) throws -> SimulatedStage {
    let launch = WallTime(nanosecondsSince1970: 1_769_860_800_000_000_000)
    let simulation = SimulatedRuntime()
    let wall = SimulatedWallClock(simulation, beginning: launch + MediaTime(seconds: begin))
    let material = try LiveMaterial(manifest: Fixtures.folder.appending(path: "dash-number/manifest.mpd"))
    let broadcast = try DASHLiveSimulation(material, start: launch, options: options) { wall.now }
    let url = try #require(URL(string: "http://origin\(broadcast.manifestPath)"))
    return try SimulatedStage(.url(url), fetcher: SimulationFetcher(resource: broadcast), in: simulation) {
      $0.loading.clock = wall
    }
  }

  @Test(
    "A live item whose producer has stood still jumps once, and shows nothing twice",
    arguments: [5.0, 6, 7, 8, 12])
  func producerStall(length: Double) async throws {
    let stall = LiveDisturbances.Stall(
      after: MediaTime(value: 104, timescale: 1), length: MediaTime(seconds: length))
    let stage = try broadcast(
      at: 100,
      options: .init(
        addressing: .timeline, periods: .single, minimumUpdatePeriod: MediaTime(value: 1, timescale: 1),
        suggestedPresentationDelay: MediaTime(value: 2, timescale: 1),
        disturbances: LiveDisturbances(stalls: [stall])))
    let media = Locked(ShownMedia())
    try stage.player.attach(
      CallbackOutput { frame in
        let (time, length, leftOut, loss) = (frame.time, frame.displayTime, frame.skipped, frame.loss)
        media.withLock { $0.show(time, length: length, leftOut: leftOut, loss: loss) }
      })
    let witness = try StepWitness(of: stage)
    stage.begin()
    await stage.simulation.run(until: .seconds(10 + length))
    let shown = stage.recording.all
    #expect(zip(shown, shown.dropFirst()).allSatisfy { $0.time < $1.time })
    let jumps = stage.events.compactMap { event -> (from: MediaTime, to: MediaTime)? in
      if case .jumpedToLive(let from, let to) = event { (from, to) } else { nil }
    }
    #expect(jumps.count == 1, "\(stage.events)")
    let jump = try #require(jumps.first)
    // Media that was jumped over is not shown.
    #expect(!shown.contains { $0.time > jump.from && $0.time < jump.to })
    #expect(try #require(shown.last).time.seconds > 104 + length)
    // Shown and skipped media add up to the whole span, and every moment belongs to a phase.
    let (counted, statistics) = (media.withLock { $0 }, stage.player.statistics)
    let frames = Double(shown.count + statistics.droppedFrameCount)
    // A frame that was dropped just before the jump may count as skipped.
    #expect((Double(shown.count) / 30 - 0.01...frames / 30 + 0.01).contains(counted.played.seconds))
    #expect(counted.skipped[.jumped] ?? .zero > .zero, "\(counted.losses)")
    let span = try #require(shown.last).time - (try #require(shown.first).time)
    #expect(abs((counted.played + counted.allSkipped - span).seconds - 1.0 / 30) < 0.001)
    #expect(statistics.times.total == stage.simulation.now)
    #expect(statistics.times[.stalled] == statistics.stallDuration)
    #expect(statistics.times[.stalled] + statistics.times[.seeking] > .zero)
    try await stage.close()
    // After the jump, too, audio belongs to the frame beside it.
    try witness.expectStep()
  }

  @Test(
    "A live item that is to be a segment behind the edge does not stall",
    arguments: [100.1, 100.5, 100.9], [DASHLiveSimulation.Addressing.timeline, .number])
  func shortDistance(begin: Double, addressing: DASHLiveSimulation.Addressing) async throws {
    let stage = try broadcast(
      at: begin,
      options: .init(
        addressing: addressing, periods: .single, minimumUpdatePeriod: MediaTime(value: 1, timescale: 1),
        suggestedPresentationDelay: MediaTime(value: 1, timescale: 1)))
    stage.begin()
    await stage.simulation.run(until: .seconds(8))
    let last = try #require(stage.recording.all.last)
    // At least a segment and a second behind the edge, and hardly more than another segment.
    #expect((104.8..<106.2).contains(last.time.seconds - begin + 100), "\(last.time.seconds)")
    #expect(stage.player.statistics.stallCount == 0, "\(stage.events)")
    try await stage.close()
  }

  @Test(
    "Loops go round without a gap",
    arguments: ["hls-fmp4/master.m3u8", "media/h264-gops.mp4", "media/h264.ts"])
  func loop(_ path: String) async throws {
    let expected = try await frames(of: path)
    let stage = try SimulatedStage(path)
    stage.player.actionAtItemEnd = .loop
    stage.begin(rate: .infinity)
    try await stage.run { stage.eventNames.count(where: { $0 == "looped" }) >= 3 }
    stage.player.actionAtItemEnd = .pause
    try await stage.end()
    let shown = stage.recording.all
    #expect(shown.count % expected.count == 0)
    for (index, frame) in shown.enumerated() {
      #expect(frame == expected[index % expected.count])
      if frame != expected[index % expected.count] { break }
    }
    try await stage.close()
  }

  /// Counts the calls of `finish()`.
  private final class CountedFrames: FrameOutput {
    let isExternal = false
    let shown = Locked<[MediaTime]>([])
    let finishCount = Locked(0)

    func show(_ frame: VideoFrame) {
      let time = frame.time
      shown.withLock { $0.append(time) }
    }

    func finish() { finishCount.withLock { $0 += 1 } }
  }

  /// Counts the calls of `finish()`.
  private final class CountedSound: AudioOutput {
    let times = Locked<[MediaTime]>([])
    let finishCount = Locked(0)

    func write(_ audio: TimedAudio) { times.withLock { $0.append(audio.time) } }

    func finish() { finishCount.withLock { $0 += 1 } }
  }

  @Test(
    "An output that is attached twice gets everything once, and is finished once", arguments: [false, true])
  func attachedTwice(isDetached: Bool) async throws {
    let stage = try SimulatedStage.local("media/audio-ac3.mp4")
    let (frames, sound) = (CountedFrames(), CountedSound())
    for _ in 0..<2 {
      try stage.player.attach(frames)
      stage.player.attach(sound)
    }
    stage.begin(rate: .infinity)
    try await stage.end()
    if isDetached {
      try stage.player.detach(frames)
      try stage.player.detach(sound)
    }
    try await stage.close()
    #expect(frames.shown.withLock { $0 } == stage.recording.all.map(\.time))
    let times = sound.times.withLock { $0 }
    #expect(!times.isEmpty && zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
    #expect(frames.finishCount.withLock { $0 } == 1)
    #expect(sound.finishCount.withLock { $0 } == 1)
  }

  /// Where the sound begins and ends that comes to it.
  private final class SoundPlaces: AudioOutput {
    let all = Locked<[(start: MediaTime, end: MediaTime)]>([])
    /// Where the sound begins again.
    var firstOfSecondTime: Int? {
      all.withLock { all in all.indices.dropFirst().first { all[$0].start < all[$0 - 1].start } }
    }

    func write(_ audio: TimedAudio) {
      all.withLock { $0.append((audio.time, audio.time + audio.buffer.duration)) }
    }

    func finish() {}
  }

  @Test(
    "An item ends with its sound where that is longer, each time through it", arguments: [1.0, .infinity])
  func longerSound(rate: Double) async throws {
    let path = "media/audio-ac3.mp4"
    let stage = try SimulatedStage(path)
    let sound = SoundPlaces()
    stage.player.attach(sound)
    stage.begin(rate: rate)
    let end = try await stage.end()
    let last = try #require(sound.all.withLock { $0 }.last?.end)
    #expect(last > MediaTime(value: 2, timescale: 1))
    #expect(end == .playedToEnd(time: last))
    try await stage.close()
    let looping = try SimulatedStage(path)
    let loops = SoundPlaces()
    looping.player.attach(loops)
    looping.player.actionAtItemEnd = .loop
    looping.begin(rate: rate)
    try await looping.run { loops.firstOfSecondTime != nil }
    let (places, index) = (loops.all.withLock { $0 }, try #require(loops.firstOfSecondTime))
    // Whole at its end, and at its beginning.
    #expect(places[index - 1].end == last)
    #expect(places[index].start == .zero)
    #expect(places[index].end == places[0].end)
    try await looping.close()
  }

  @Test(
    "A missing segment is left out with an event, and nothing stands still for it",
    arguments: ["hls-fmp4/master.m3u8", "hls-ts/master.m3u8", "dash-number/manifest.mpd"], [1, .infinity])
  func missing(path: String, rate: Double) async throws {
    let fetcher = FixtureFetcher { request, _ in
      let second = ["segment-1.m4s", "segment-1.ts", "0/segment-00002.m4s", "1/segment-00002.m4s"]
      return second.contains { request.url.path.hasSuffix($0) } ? .error(Self.notFound) : .none
    }
    let stage = try SimulatedStage(path, fetcher: fetcher)
    stage.begin(rate: rate)
    let end = try await stage.end()
    let expected = try await frames(of: path)
    if case .failed(let error) = end { Issue.record("\(error)") }
    #expect(stage.eventNames.contains("segmentMissed"))
    let shown = stage.recording.all
    #expect(shown == Array(expected.prefix(30) + expected.dropFirst(60)))
    #expect(stage.events.count { if case .gapSkipped = $0 { true } else { false } } == 1, "\(stage.events)")
    let times = stage.player.statistics.times
    #expect(times[.frozen] == .zero)
    #expect(rate == .infinity || abs(times[.playing] / .seconds(1) - 2) < 0.1, "\(times[.playing])")
    try await stage.close()
  }

  private static let notFound = ReelError(.server, "404", status: 404)

  @Test("A rung whose segment is missing is left for another")
  func rungFallback() async throws {
    let fetcher = FixtureFetcher { request, _ in
      request.url.path.hasSuffix("high/segment-1.m4s") ? .error(Self.notFound) : .none
    }
    let stage = try SimulatedStage("hls-fmp4/master.m3u8", fetcher: fetcher)
    stage.begin(rate: .infinity)
    try await stage.end()
    let high = try await frames(of: "hls-fmp4/master.m3u8")
    let low = try await frames(of: "hls-fmp4/master.m3u8", peakBitRate: 500_000)
    #expect(stage.recording.all == Array(high.prefix(30) + low.dropFirst(30)))
    #expect(stage.events.contains { if case .rungSwitched = $0 { true } else { false } })
    try await stage.close()
  }

  @Test("All tracks are known once the audio is, which the first frame does not wait for")
  func tracks() async throws {
    for mutes in [false, true] {
      let fetcher = Self.fetcher(holding: "audio/index.m3u8")
      let stage = try SimulatedStage("hls-fmp4/master.m3u8", fetcher: fetcher)
      let item = stage.item
      stage.player.setMuted(mutes)
      stage.begin()
      try await stage.run { stage.eventNames.contains("firstFrame") }
      #expect(item.areTracksKnown.value == mutes)
      #expect(item.tracks.value.map(\.kind) == [.video])
      fetcher.release()
      try await stage.run { item.areTracksKnown.value }
      #expect(item.tracks.value.map(\.kind) == (mutes ? [.video] : [.video, .audio]))
      try await stage.close()
    }
  }

  private static let stalled = "hls-fmp4/master.m3u8"

  /// Holds back responses for paths that end with `name` until they are released.
  private static func fetcher(holding name: String) -> FixtureFetcher {
    FixtureFetcher { request, _ in request.url.path.hasSuffix(name) ? .hold : .none }
  }

  /// A stage of which the second segments are held back, at the stall that this makes.
  private func stalledStage(rate: Double) async throws -> (SimulatedStage, FixtureFetcher) {
    let fetcher = Self.fetcher(holding: "segment-1.m4s")
    let stage = try SimulatedStage(Self.stalled, fetcher: fetcher)
    stage.begin(rate: rate)
    try await stage.run {
      stage.player.timeControlStatus.value == .waitingToPlayAtSpecifiedRate(.toMinimizeStalls)
    }
    return (stage, fetcher)
  }

  @Test(
    "A server that stops sending causes a stall, after which playback resumes; also at an infinite rate",
    arguments: [1, .infinity])
  func stall(rate: Double) async throws {
    let (stage, fetcher) = try await stalledStage(rate: rate)
    let shown = stage.recording.all.count
    await stage.simulation.run(until: stage.simulation.now + .seconds(5))
    #expect(stage.recording.all.count == shown)
    fetcher.release()
    try await stage.end()
    #expect(stage.eventNames == ["firstFrame", "stalled", "resumed", "playedToEnd"])
    #expect(stage.recording.all == (try await frames(of: Self.stalled)))
    let statistics = stage.player.statistics
    #expect(statistics.stallCount == 1)
    // At an infinite rate, the stall counts from when media ran out, before it was reported as a stall.
    #expect(statistics.stallDuration >= (rate == .infinity ? .milliseconds(5250) : .seconds(5)))
    try await stage.close()
  }

  @Test("A stall that a seek ends counts, and is told to be over")
  func stallEndedBySeek() async throws {
    let (stage, fetcher) = try await stalledStage(rate: 1)
    await stage.simulation.run(until: stage.simulation.now + .seconds(5))
    #expect(try await stage.seek(to: .zero))
    let statistics = stage.player.statistics
    #expect(statistics.stallCount == 1)
    #expect(statistics.stallDuration >= .seconds(5) && statistics.stallDuration < .seconds(6))
    try await stage.run { stage.eventNames.contains("resumed") }
    for event in stage.events {
      if case .resumed(_, let length) = event { #expect(length == statistics.stallDuration) }
    }
    fetcher.release()
    try await stage.close()
  }

  private static let noHost = ReelError(.network, "no such host", isTemporary: false)

  @Test(
    "A server that fails for a time, or can't be reached, is tried again while an item plays",
    arguments: [ReelError(.server, "503", status: 503), noHost])
  func retry(error: ReelError) async throws {
    let failures = Locked(3)
    let fetcher = FixtureFetcher { request, _ in
      guard request.url.path.hasSuffix("segment-1.m4s") else { return .none }
      let fails = failures.withLock { failures in
        failures -= 1
        return failures >= 0
      }
      return fails ? .error(error) : .none
    }
    let stage = try SimulatedStage("hls-fmp4/high/index.m3u8", fetcher: fetcher) {
      $0.retryPolicy = ItemRetryPolicy()
    }
    stage.begin(rate: .infinity)
    let end = try await stage.end()
    if case .failed(let error) = end { Issue.record("\(error)") }
    #expect(stage.eventNames.count(where: { $0 == "retry" }) == 3)
    let expected = try await frames(of: "hls-fmp4/high/index.m3u8")
    #expect(stage.recording.all == expected)
    #expect(stage.item.remainingRetries.value == 5)
    try await stage.close()
  }

  @Test(
    "A server that can't be reached ends an item that is opened at once",
    arguments: ["index.m3u8", "segment-0.m4s"])
  func unreachable(name: String) async throws {
    let fetcher = FixtureFetcher { request, _ in
      request.url.path.hasSuffix(name) ? .error(Self.noHost) : .none
    }
    let stage = try SimulatedStage("hls-fmp4/high/index.m3u8", fetcher: fetcher) {
      $0.retryPolicy = ItemRetryPolicy()
    }
    stage.begin(rate: .infinity)
    let end = try await stage.end()
    if case .failed(let error) = end {
      #expect(error.reason == Self.noHost.reason && !error.isTemporary, "\(error)")
    } else {
      Issue.record("\(end)")
    }
    #expect(!stage.eventNames.contains("retry"))
    #expect(stage.item.remainingRetries.value == 5)
    try await stage.close()
  }

  @Test(
    "The audio of a presentation is written completely",
    arguments: ["hls-fmp4/master.m3u8", "dash-number/manifest.mpd"])
  func sound(_ path: String) async throws {
    let stage = try SimulatedStage(path)
    let file = FileManager.default.temporaryDirectory.appending(path: "sound-\(UUID().uuidString).wav")
    defer { try? FileManager.default.removeItem(at: file) }
    let wav = try WAVOutput(path: file.path)
    stage.player.attach(wav)
    stage.begin(rate: .infinity)
    try await stage.end()
    try await stage.close()
    // Three seconds of one channel, within one AAC frame, after the header.
    let sampleCount = (try Data(contentsOf: file).count - 80) / 2
    #expect(abs(sampleCount - 3 * 48000) <= 2048, "\(sampleCount) samples")
  }
}
