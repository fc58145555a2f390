import ReelCore
import ReelFFmpeg
import ReelTestSupport
import ReelTesting
import Testing

@testable import ReelPlayback

@Suite("How the loading of an item goes on", .hangLimit)
struct LoadingStateTests {
  private let network = ReelError(.network, "the line is cut")
  private let damage = ReelError(.badMedia, "not media")
  private let packets: [MediaPacket]
  private let streams: ReaderStreams
  private let clock = ManualMonotonicClock()

  init() throws {
    packets = try readPackets("media/audio-aac.mp4", wantsAudio: true)
    var streams = ReaderStreams()
    streams.video = packets.first { $0.kind == .video }?.span.stream
    self.streams = streams
  }

  /// An item whose source is resolved: the first reader begins.
  private func session(
    target: PreloadTarget? = nil, attempts: Int = 2, hasSeparateAudio: Bool = false, isOpen: Bool = true
  ) -> ItemSession {
    let session = makeHandTurnedSession(
      target: target, loops: false, retryPolicy: ItemRetryPolicy(attempts: attempts, baseDelay: .seconds(1)),
      clock: clock)
    guard isOpen else { return session }
    session.change { state, out in
      state.sourceOpened(makeSource(of: session), &out)
      state.hasSeparateAudio = hasSeparateAudio
      state.packets.setAudioLoader(hasSeparateAudio ? .audio : nil)
    }
    return session
  }

  private func makeSource(of session: ItemSession) -> OpenSource {
    let (fetcher, scope) = (FixtureFetcher(), session.scope)
    let context = TrackContext(
      name: "test", fetcher: fetcher, configuration: LoadingConfiguration(), scope: scope,
      recorder: session.recorder, gate: nil, logger: silentLogger, readsAhead: false)
    let resolver = SourceResolver(
      fetcher: fetcher, configuration: LoadingConfiguration(), scope: scope, recorder: session.recorder,
      record: nil)
    let resource = MediaResource(
      name: "test", format: .mp4, layout: .unknown, access: .file(path: "/none"))
    return OpenSource(source: .resource(resource), resolver: resolver, context: context)
  }

  /// The first packet of a kind is read.
  private func read(_ kind: MediaPacket.Kind, in session: ItemSession, at index: Int = 0) {
    let packet = packets.filter { $0.kind == kind }[index]
    session.change { state, out in
      state.packetRead(
        packet, by: kind == .audio && state.hasSeparateAudio == true ? .audio : .video, of: streams,
        at: .zero, &out)
    }
  }

  private func fail(_ loader: MediaPacket.Kind, _ error: ReelError, in session: ItemSession) -> Duration? {
    session.change { state, out in state.readingFailed(loader, error, place: time(4), &out) } ?? nil
  }

  private func time(_ seconds: Int64) -> MediaTime { MediaTime(value: seconds, timescale: 1) }

  private func wants(_ loader: MediaPacket.Kind, in session: ItemSession) -> Bool {
    session.look { $0.wantsMore(of: loader) }
  }

  // MARK: Beginning

  @Test("Loading begins once, when anything is wanted")
  func beginning() {
    let idle = session(target: PreloadTarget.notLoaded, isOpen: false)
    idle.change { state, out in state.begin(&out) }
    #expect(idle.look { $0.source.isUnbegun })
    idle.change { state, out in state.setTarget(.buffered, &out) }
    #expect(!idle.look { $0.source.isUnbegun })
  }

  @Test("Nothing is read before it is known what the source is")
  func assignments() {
    #expect(!wants(.video, in: session(isOpen: false)))
    let muxed = session()
    #expect(muxed.item.preloadStage.value == .manifest)
    #expect(wants(.video, in: muxed) && !wants(.audio, in: muxed))
    #expect(wants(.audio, in: session(hasSeparateAudio: true)))
  }

  @Test(
    "Preloading rests where its stage is reached",
    arguments: [
      (PreloadStage.notLoaded, [false, false, false]), (.manifest, [false, false, false]),
      (.initialization, [true, false, false]), (.firstFrame, [true, true, false]),
      (.buffered, [true, true, true]),
    ])
  func stages(stage: PreloadStage, expected: [Bool]) {
    let session = session(target: PreloadTarget(stage: stage), hasSeparateAudio: true)
    #expect(wants(.video, in: session) == expected[0])
    read(.video, in: session)
    #expect(wants(.video, in: session) == expected[1])
    session.change { state, _ in state.onShow.time = .zero }
    #expect(wants(.video, in: session) == expected[2])
    #expect(wants(.audio, in: session) == (stage == .buffered))
  }

  // MARK: Failures

  @Test("What may pass is tried again after longer and longer pauses, then it is final")
  func resolvingFails() {
    let session = session(isOpen: false)
    let retries = Locked<[String]>([])
    session.core.observer.withLock {
      $0.call = { signal in
        if case .event(.retry(let attempt, let count, let pause, _), _) = signal {
          retries.withLock { $0.append("\(attempt) of \(count) after \(pause)") }
        }
      }
    }
    for remaining in [1, 0] {
      session.change { state, out in state.sourceFailed(network, &out) }
      #expect(session.item.remainingRetries.value == remaining)
      #expect(session.look { $0.failure } == nil)
    }
    session.change { state, out in state.sourceFailed(network, &out) }
    #expect(session.look { $0.dueFailure } == network)
    #expect(retries.withLock { $0 } == ["1 of 2 after 1.0 seconds", "2 of 2 after 2.0 seconds"])
    #expect(session.item.errorLog.map(\.outcome) == [.retried, .retried, .failed])
  }

  @Test("What can't pass is final at once")
  func finalFailure() {
    let session = session(isOpen: false)
    session.change { state, out in state.sourceFailed(damage, &out) }
    #expect(session.look { $0.dueFailure } == damage)
    #expect(session.item.errorLog.map(\.outcome) == [.failed])
  }

  @Test("A loader that failed goes on where it stands; news restore its attempts")
  func loaderFails() {
    let session = session()
    read(.video, in: session)
    let (job, scope) = session.look { ($0.readingJobs[.video], $0.readingJobs[.video]?.scope) }
    #expect(fail(.video, network, in: session) == .seconds(1))
    let other = session.look { $0.readingJobs[.video] }
    #expect(other !== job && other?.start == time(4) && other?.scope === scope)
    // Packets that are read again are no news.
    read(.video, in: session)
    #expect(session.item.remainingRetries.value == 1)
    read(.video, in: session, at: 1)
    #expect(session.item.remainingRetries.value == 2)
  }

  @Test("A final failure ends the buffer, and is told when what was loaded has been shown")
  func failureWhilePlaying() {
    let session = session(attempts: 0)
    read(.video, in: session)
    #expect(fail(.video, network, in: session) == nil)
    #expect(session.look { $0.packets.level.isComplete })
    // What could not be reached may be reached later: the item had its servers.
    let failure = session.look { $0.failure }
    #expect(failure?.kind == .network && failure?.isTemporary == true)
    #expect(session.look { $0.dueFailure } == nil)
    session.core.change { state, out in state.fail(network, at: .zero, &out) }
    #expect(session.look { $0.dueFailure } == failure)
    #expect(!wants(.video, in: session))
  }

  // MARK: Seeks

  @Test("A seek interrupts the loaders that have to go elsewhere, and no others")
  func seek() throws {
    let session = session(hasSeparateAudio: true)
    for packet in packets { session.append(packet) }
    let before = session.look { $0.readingJobs }
    session.change { state, out in _ = state.seek(to: .zero, tolerance: .zero, &out) }
    #expect(session.look { $0.readingJobs[.video] } === before[.video])
    session.change { state, out in _ = state.seek(to: time(900), tolerance: .zero, &out) }
    for kind in MediaPacket.Kind.allCases {
      let job = session.look { $0.readingJobs[kind] }
      #expect(try #require(job).start.map { $0 > time(899) } == true)
      #expect(before[kind]?.scope.isCancelled == true)
    }
  }

  @Test("A seek tries again what has failed and may pass; what can't stays, where the place was loaded")
  func seekAfterFailure() {
    let session = session(attempts: 0)
    for packet in packets { session.append(packet) }
    _ = fail(.video, damage, in: session)
    session.change { state, out in _ = state.seek(to: .zero, tolerance: .zero, &out) }
    #expect(session.look { $0.failure } == damage)
    let other = self.session(attempts: 0, isOpen: false)
    // Looked at within the change: afterwards the source is opened anew, which fails at once.
    let failures = other.change { state, out in
      state.sourceFailed(network, &out)
      let before = state.failure
      _ = state.seek(to: time(1), tolerance: .zero, &out)
      return [before, state.failure]
    }
    #expect(failures == [network, nil])
  }

  // MARK: Audio

  @Test("Audio of its own is left out where it fails")
  func separateAudio() {
    let session = session(attempts: 0, hasSeparateAudio: true)
    read(.video, in: session)
    #expect(session.look { $0.playsSeparateAudio })
    #expect(fail(.audio, network, in: session) == nil)
    #expect(session.look { $0.failure } == nil)
    #expect(session.look { $0.isOver(.audio) && !$0.playsSeparateAudio && !$0.packets.hasSeparateAudio })
    #expect(!wants(.audio, in: session) && wants(.video, in: session))
    let loss = MediaLoss(kind: .audio, reason: .missing, range: nil)
    #expect(session.item.errorLog.map(\.outcome) == [.lost(loss)])
  }

  @Test("Audio that was given up, wanted again, is loaded from where playback is")
  func wantedAgain() {
    let session = session(hasSeparateAudio: true)
    session.change { state, out in
      state.giveUpAudio(after: network, &out)
      state.packets.setPosition(time(7))
      state.setWantsAudio(true, &out)
    }
    #expect(session.look { $0.playsSeparateAudio && $0.packets.hasSeparateAudio })
    #expect(session.look { $0.readingJobs[.audio]?.start } == time(7))
  }

  @Test("The end of video is the end of what is muxed with it")
  func end() {
    let muxed = session()
    muxed.change { state, out in state.readingEnded(.video, fault: nil, &out) }
    #expect(isAtEnd(.audio, in: muxed))
    let apart = session(hasSeparateAudio: true)
    apart.change { state, out in state.readingEnded(.video, fault: damage, &out) }
    #expect(isAtEnd(.video, in: apart) && !isAtEnd(.audio, in: apart))
    #expect(apart.look { $0.failure } == damage)
  }

  private func isAtEnd(_ kind: MediaPacket.Kind, in session: ItemSession) -> Bool {
    if case .end = session.look({ $0.packets.peekNext(kind) }) { true } else { false }
  }

  // MARK: Tracks

  @Test("Tracks are told when they change, and once when all are known")
  func tracks() throws {
    let audio = try #require(packets.first { $0.kind == .audio }).span.stream
    let muxed = session()
    read(.video, in: muxed)
    #expect(muxed.item.tracks.value.map(\.kind) == [.video])
    #expect(!muxed.item.areTracksKnown.value)
    var both = streams
    both.audio = audio
    muxed.change { state, out in
      state.packetRead(packets[0], by: .video, of: both, at: .zero, &out)
    }
    #expect(muxed.item.tracks.value.map(\.kind) == [.video, .audio])
    #expect(muxed.item.areTracksKnown.value)

    let apart = session(hasSeparateAudio: true)
    read(.video, in: apart)
    #expect(!apart.item.areTracksKnown.value)
    var own = ReaderStreams()
    own.audio = audio
    let packet = try #require(packets.first { $0.kind == .audio })
    apart.change { state, out in state.packetRead(packet, by: .audio, of: own, at: .zero, &out) }
    #expect(apart.item.areTracksKnown.value)

    let silent = session()
    read(.video, in: silent)
    silent.change { state, out in state.readingEnded(.video, fault: nil, &out) }
    #expect(silent.item.areTracksKnown.value)
  }
}

@Suite("The times through an item")
struct LoopIterationsTests {
  private func time(_ seconds: Int64) -> MediaTime { MediaTime(value: seconds, timescale: 1) }
  private let instant = MediaTime(value: 1, timescale: 1_000_000)

  @Test("Each loop lies behind the one before it, and behind its longer sound")
  func iterations() throws {
    var iterations = LoopIterations(loops: true)
    #expect(iterations.begin(at: nil, of: .video).iteration == 0)
    #expect(iterations.next(after: 0, of: .audio, videoEnd: time(3), audioEnd: time(4)) == nil)
    let found = iterations.next(after: 0, of: .video, videoEnd: time(3), audioEnd: time(4))
    let second = try #require(found)
    #expect(second.iteration == 1)
    #expect(second.shift == time(4))
    #expect(iterations.next(after: 0, of: .audio, videoEnd: nil, audioEnd: nil)?.shift == time(4))
    #expect(iterations.begin(at: time(5), of: .video).iteration == 1)
    #expect(iterations.begin(at: time(2), of: .video).iteration == 0)
  }

  @Test("Nothing goes round that does not loop, or that is empty")
  func noPasses() {
    var once = LoopIterations(loops: false)
    #expect(once.next(after: 0, of: .video, videoEnd: time(3), audioEnd: nil) == nil)
    var empty = LoopIterations(loops: true)
    #expect(empty.next(after: 0, of: .video, videoEnd: nil, audioEnd: nil) == nil)
    #expect(empty.next(after: 0, of: .video, videoEnd: .zero, audioEnd: nil) == nil)
  }

  @Test("A seek stays in the loop that is on show")
  func place() {
    var iterations = LoopIterations(loops: true)
    _ = iterations.next(after: 0, of: .video, videoEnd: time(3), audioEnd: nil)
    #expect(iterations.place(of: time(2), iteration: 0, instant: instant) == time(2) + instant)
    #expect(iterations.place(of: .zero, iteration: 0, instant: instant) == .zero)
    #expect(iterations.place(of: time(9), iteration: 0, instant: instant) == time(3) - instant)
    #expect(iterations.place(of: time(9), iteration: 1, instant: instant) == time(9) + instant)
  }

  @Test("When looping is given up, loaders that were ahead go back to the end, once")
  func cut() throws {
    var iterations = LoopIterations(loops: true)
    _ = iterations.begin(at: nil, of: .audio)
    _ = iterations.next(after: 0, of: .video, videoEnd: time(3), audioEnd: nil)
    #expect(iterations.last == .max)
    let found = iterations.setLoops(false, iteration: 0)
    let cut = try #require(found)
    #expect(cut.loop == LoopIteration())
    #expect(cut.ahead == [.video])
    #expect(iterations.last == 0)
    #expect(iterations.setLoops(false, iteration: 0) == nil)
    // No reader is ahead when looping begins again.
    #expect(iterations.setLoops(true, iteration: 0) == nil)
    #expect(iterations.setLoops(false, iteration: 0) == nil)
  }
}
