import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite("Deciding how loading goes on")
struct LoadingMachineTests {
  private typealias Event = LoadingMachine.Event
  private typealias Action = LoadingMachine.Action

  private let network = ReelError(.network, "the line is cut")
  private let damage = ReelError(.badMedia, "not media")
  private let video = PlayerItem.Track(kind: .video, codec: "h264")
  private let audio = PlayerItem.Track(kind: .audio, codec: "aac")

  private func machine(
    target: PreloadTarget? = nil, attempts: Int = 2, after events: [Event] = []
  ) -> LoadingMachine {
    var machine = LoadingMachine(
      target: target, wantsAudio: true, loops: false, prefersThroughput: false,
      retry: ItemRetryPolicy(attempts: attempts, baseDelay: .seconds(1)))
    for event in events { _ = machine.handle(event) }
    return machine
  }

  /// The order of a seek.
  private func order(to seconds: Int64, bufferGeneration: Int) -> VideoPipeline.Order {
    var order = VideoPipeline.Order()
    order.bufferGeneration = bufferGeneration
    order.generation = bufferGeneration
    order.target = MediaTime(value: seconds, timescale: 1)
    return order
  }

  private static let opened: [Event] = [.began, .resolved, .opened(hasSeparateAudio: false)]
  private static let openedApart: [Event] = [.began, .resolved, .opened(hasSeparateAudio: true)]

  // MARK: Beginning

  @Test("Loading begins once, when anything is wanted")
  func beginning() {
    var playing = machine()
    #expect(playing.handle(.began) == [.resolve(after: .zero)])
    #expect(playing.handle(.began) == [])
    var idle = machine(target: PreloadTarget.none)
    #expect(idle.handle(.began) == [])
    #expect(idle.handle(.targetChanged(.buffered)).contains(.resolve(after: .zero)))
    #expect(!idle.handle(.targetChanged(nil)).contains(.resolve(after: .zero)))
    #expect(idle.handle(.targetChanged(nil)) == [])
  }

  @Test("Nothing is read before it is known what the source is, and nothing once it is stopped")
  func assignments() {
    var machine = machine(after: [.began])
    #expect(machine.assignment(of: .video) == nil)
    #expect(machine.handle(.resolved) == [.reached(.manifest), .wake(.reader)])
    #expect(machine.assignment(of: .video) == LoadingMachine.Assignment(seek: nil, dropsAudio: false))
    #expect(machine.assignment(of: .audio) == nil)
    _ = machine.handle(.opened(hasSeparateAudio: true))
    #expect(machine.assignment(of: .audio) != nil)
    _ = machine.handle(.stopped)
    #expect(machine.assignment(of: .video) == nil)
  }

  @Test("Where it is to begin elsewhere, each loader is sent there once")
  func start() {
    var machine = machine(after: [])
    let place = MediaTime(value: 5, timescale: 1)
    machine.start(at: place, bufferGeneration: 3)
    for event in Self.openedApart { _ = machine.handle(event) }
    #expect(machine.order.target == place)
    for loader in [LoadingMachine.Loader.video, .audio] {
      #expect(machine.assignment(of: loader)?.seek == LoadingMachine.Seek(bufferGeneration: 3, time: place))
      #expect(machine.assignment(of: loader)?.seek == nil)
    }
  }

  @Test(
    "Preloading rests where its stage is reached",
    arguments: [
      (PreloadStage.none, [false, false, false]), (.manifest, [false, false, false]),
      (.initialization, [true, false, false]), (.firstFrame, [true, true, false]),
      (.buffered, [true, true, true]),
    ])
  func stages(stage: PreloadStage, wants: [Bool]) {
    var machine = machine(target: PreloadTarget(stage: stage), after: Self.opened)
    #expect(machine.wantsMore(of: .video) == wants[0])
    _ = machine.handle(.packetRead(.video, isNews: true))
    #expect(machine.wantsMore(of: .video) == wants[1])
    _ = machine.handle(.firstFrameDecoded)
    #expect(machine.wantsMore(of: .video) == wants[2])
    #expect(machine.wantsMore(of: .audio) == (stage == .buffered))
  }

  // MARK: Failures

  @Test("What may loop is tried again after longer and longer pauses, then it is final")
  func resolvingFails() {
    var machine = machine(after: [.began])
    for (attempt, pause) in [(1, Duration.seconds(1)), (2, .seconds(2))] {
      #expect(
        machine.handle(.resolvingFailed(network)) == [
          .log(network, .retried), .publishRetries(remaining: 2 - attempt),
          .announceRetry(attempt: attempt, of: 2, after: pause, network), .resolve(after: pause),
        ])
    }
    #expect(machine.handle(.resolvingFailed(network)) == [.log(network, .failed), .wakePlayer])
    #expect(machine.dueFailure == network)
  }

  @Test("What can't loop is final at once, and nothing is told of what was stopped")
  func finalFailure() {
    var failed = machine(after: [.began])
    #expect(failed.handle(.resolvingFailed(damage)) == [.log(damage, .failed), .wakePlayer])
    #expect(failed.dueFailure == damage)
    var stopped = machine(after: [.began, .stopped])
    #expect(stopped.handle(.resolvingFailed(network)) == [])
  }

  @Test("A loader that failed goes on where it stands; news restore its attempts")
  func loaderFails() {
    var machine = machine(after: Self.opened + [.packetRead(.video, isNews: true)])
    let place = MediaTime(value: 4, timescale: 1)
    let actions = machine.handle(.failed(.video, network, bufferGeneration: 0, place: place))
    #expect(actions.last == .loadAgain(.video, after: .seconds(1)))
    #expect(machine.assignment(of: .video)?.seek == LoadingMachine.Seek(bufferGeneration: 0, time: place))
    #expect(machine.handle(.packetRead(.video, isNews: false)) == [])
    #expect(machine.handle(.packetRead(.video, isNews: true)) == [.publishRetries(remaining: 2)])
  }

  @Test("A final failure ends the buffer, and is told when what was loaded has been shown")
  func failureWhilePlaying() {
    var machine = machine(attempts: 0, after: Self.opened + [.packetRead(.video, isNews: true)])
    let actions = machine.handle(.failed(.video, network, bufferGeneration: 2, place: nil))
    #expect(
      actions.contains(.endBuffer([.video, .audio], from: .video, bufferGeneration: 2, isBroken: true)))
    #expect(machine.failure == network)
    #expect(machine.dueFailure == nil)
    _ = machine.handle(.failureIsDue)
    #expect(machine.dueFailure == network)
    #expect(machine.assignment(of: .video) == nil)
  }

  @Test("A failure of the place before is nobody's")
  func failureBeforeSeek() {
    var machine = machine(attempts: 0, after: Self.opened)
    _ = machine.handle(.sought(order(to: 3, bufferGeneration: 1), reload: [.video]))
    #expect(machine.isSent(.video))
    #expect(
      machine.handle(.failed(.video, network, bufferGeneration: 0, place: nil)) == [
        .loadAgain(.video, after: .zero)
      ])
    #expect(machine.failure == nil)
  }

  // MARK: Seeks

  @Test("A seek interrupts the loaders that have to go elsewhere, and wakes everybody")
  func seek() {
    var machine = machine(after: Self.openedApart)
    let inside = machine.handle(.sought(order(to: 3, bufferGeneration: 1), reload: []))
    #expect(inside == ItemSession.LoopKind.allCases.map(Action.wake))
    let outside = machine.handle(.sought(order(to: 9, bufferGeneration: 2), reload: [.video, .audio]))
    #expect(outside.prefix(2) == [.interrupt(.video), .interrupt(.audio)])
    #expect(machine.order.bufferGeneration == 2)
    #expect(
      machine.assignment(of: .audio)?.seek
        == LoadingMachine.Seek(bufferGeneration: 2, time: MediaTime(value: 9, timescale: 1)))
  }

  @Test("A seek tries again what has failed and may loop, from the source on where that is not known")
  func seekAfterFailure() {
    var machine = machine(attempts: 0, after: [.began, .resolvingFailed(network)])
    #expect(machine.startsOver)
    let actions = machine.handle(.sought(order(to: 1, bufferGeneration: 1), reload: [.video, .audio]))
    #expect(actions.contains(.resolve(after: .zero)))
    #expect(machine.failure == nil)
    // A failure that is final stays, where the place is one that was loaded.
    var ended = self.machine(attempts: 0, after: Self.opened)
    _ = ended.handle(.failed(.video, damage, bufferGeneration: 0, place: nil))
    #expect(!ended.startsOver)
    _ = ended.handle(.sought(order(to: 1, bufferGeneration: 1), reload: []))
    #expect(ended.failure == damage)
  }

  // MARK: Audio

  @Test("Audio of its own is loaded after the first video, and left out where it fails")
  func separateAudio() {
    var machine = machine(attempts: 0, after: Self.openedApart)
    #expect(
      machine.handle(.packetRead(.video, isNews: true)) == [.reached(.initialization), .wake(.audioReader)])
    #expect(machine.playsSeparateAudio)
    let actions = machine.handle(.failed(.audio, network, bufferGeneration: 0, place: nil))
    #expect(actions.contains(.setHasSeparateAudio(false)))
    #expect(actions.contains(.endBuffer([.audio], from: .audio, bufferGeneration: 0, isBroken: false)))
    #expect(machine.failure == nil)
    #expect(machine.isOver(.audio))
    #expect(machine.assignment(of: .audio) == nil)
  }

  @Test("Audio that does not come is given up; wanted again, it is loaded from where playback is")
  func missedAudio() {
    var machine = machine(after: Self.openedApart)
    let late = ReelError(.timedOut, "no sound")
    let actions = machine.handle(.audioMissed(late, bufferGeneration: 4))
    let loss = MediaLoss(kind: .audio, reason: .missing, range: nil)
    #expect(actions.prefix(2) == [.log(late, .lost(loss)), .interrupt(.audio)])
    let place = MediaTime(value: 7, timescale: 1)
    #expect(
      machine.handle(.audioWanted(true, bufferGeneration: 5, place: place)).contains(
        .setHasSeparateAudio(true)))
    #expect(machine.assignment(of: .audio)?.seek == LoadingMachine.Seek(bufferGeneration: 5, time: place))
  }

  @Test("The end of video is the end of what is muxed with it")
  func end() {
    var muxed = machine(after: Self.opened)
    #expect(
      muxed.handle(.ended(.video, bufferGeneration: 1, fault: nil)).first
        == .endBuffer([.video, .audio], from: .video, bufferGeneration: 1, isBroken: false))
    var apart = machine(after: Self.openedApart)
    #expect(
      apart.handle(.ended(.video, bufferGeneration: 1, fault: damage)).prefix(2) == [
        .log(damage, .failed), .endBuffer([.video], from: .video, bufferGeneration: 1, isBroken: false),
      ])
    #expect(apart.failure == damage)
  }

  // MARK: Tracks

  @Test("Tracks are told when they change, and once when all are known")
  func tracks() {
    var muxed = machine(after: Self.opened)
    #expect(muxed.record([video], of: .video, areAll: false).changed == [video])
    #expect(muxed.record([video], of: .video, areAll: false).changed == nil)
    let both = muxed.record([video, audio], of: .video, areAll: false)
    #expect(both.changed == [video, audio])
    #expect(both.actions == [.tracksAreKnown])
    #expect(muxed.record([video, audio], of: .video, areAll: false).actions == [])

    var apart = machine(after: Self.openedApart)
    #expect(apart.record([video], of: .video, areAll: true).actions == [])
    #expect(apart.record([audio], of: .audio, areAll: true).actions == [.tracksAreKnown])

    var silent = machine(after: Self.opened)
    _ = silent.record([video], of: .video, areAll: false)
    #expect(silent.handle(.ended(.video, bufferGeneration: 0, fault: nil)).contains(.tracksAreKnown))
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
    let found = iterations.setLoops(false, iteration: 0, sent: [])
    let cut = try #require(found)
    #expect(cut.iteration == 0)
    #expect(cut.ended == [.video])
    #expect(iterations.returnFromCut(.audio) == nil)
    #expect(iterations.returnFromCut(.video) == 0)
    #expect(iterations.returnFromCut(.video) == nil)
    #expect(iterations.setLoops(false, iteration: 0, sent: []) == nil)
    // Begun anew, a later pass has a later number than what was called off.
    #expect(iterations.setLoops(true, iteration: 0, sent: []) == nil)
    let again = iterations.next(after: 0, of: .video, videoEnd: time(3), audioEnd: nil)
    #expect(again.map { $0.generation > cut.generation } == true)
    #expect(iterations.returnFromCut(.video) == nil)
  }
}
