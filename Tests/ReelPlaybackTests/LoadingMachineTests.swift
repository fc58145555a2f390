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
      target: target, wantsAudio: true, loops: false,
      retry: ItemRetryPolicy(attempts: attempts, baseDelay: .seconds(1)))
    for event in events { _ = machine.handle(event) }
    return machine
  }

  private func time(_ seconds: Int64) -> MediaTime { MediaTime(value: seconds, timescale: 1) }

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
    #expect(!machine.wantsMore(of: .video))
    #expect(machine.handle(.resolved) == [.reached(.manifest), .wake(.reader)])
    #expect(machine.wantsMore(of: .video))
    #expect(!machine.wantsMore(of: .audio))
    _ = machine.handle(.opened(hasSeparateAudio: true))
    #expect(machine.wantsMore(of: .audio))
    _ = machine.handle(.stopped)
    #expect(!machine.wantsMore(of: .video))
  }

  @Test(
    "Preloading rests where its stage is reached",
    arguments: [
      (PreloadStage.none, [false, false, false]), (.manifest, [false, false, false]),
      (.initialization, [true, false, false]), (.firstFrame, [true, true, false]),
      (.buffered, [true, true, true]),
    ])
  func stages(stage: PreloadStage, wants: [Bool]) {
    var machine = machine(target: PreloadTarget(stage: stage), after: Self.openedApart)
    #expect(machine.wantsMore(of: .video) == wants[0])
    _ = machine.handle(.packetRead(.video, isNews: true))
    #expect(machine.wantsMore(of: .video) == wants[1])
    _ = machine.handle(.firstFrameShown)
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
    #expect(machine.handle(.resolvingFailed(network)) == [.log(network, .failed), .wake(.presenter)])
    #expect(machine.dueFailure == network)
  }

  @Test("What can't loop is final at once, and nothing is told of what was stopped")
  func finalFailure() {
    var failed = machine(after: [.began])
    #expect(failed.handle(.resolvingFailed(damage)) == [.log(damage, .failed), .wake(.presenter)])
    #expect(failed.dueFailure == damage)
    var stopped = machine(after: [.began, .stopped])
    #expect(stopped.handle(.resolvingFailed(network)) == [])
  }

  @Test("A loader that failed goes on where it stands; news restore its attempts")
  func loaderFails() {
    var machine = machine(after: Self.opened + [.packetRead(.video, isNews: true)])
    let place = MediaTime(value: 4, timescale: 1)
    let actions = machine.handle(.failed(.video, network, place: place))
    #expect(actions.last == .loadAgain(.video, at: place, after: .seconds(1)))
    #expect(machine.handle(.packetRead(.video, isNews: false)) == [])
    #expect(machine.handle(.packetRead(.video, isNews: true)) == [.publishRetries(remaining: 2)])
  }

  @Test("A final failure ends the buffer, and is told when what was loaded has been shown")
  func failureWhilePlaying() {
    var machine = machine(attempts: 0, after: Self.opened + [.packetRead(.video, isNews: true)])
    let actions = machine.handle(.failed(.video, network, place: nil))
    #expect(
      actions.contains(.endBuffer([.video, .audio], isBroken: true)))
    #expect(machine.failure == network)
    #expect(machine.dueFailure == nil)
    _ = machine.handle(.failureIsDue)
    #expect(machine.dueFailure == network)
    #expect(!machine.wantsMore(of: .video))
  }

  // MARK: Seeks

  @Test("A seek interrupts the loaders that have to go elsewhere, and wakes everybody")
  func seek() {
    var machine = machine(after: Self.openedApart)
    #expect(machine.handle(.sought(time(3), reload: [])) == [.wake(.loading)])
    let outside = machine.handle(.sought(time(9), reload: [.video, .audio]))
    #expect(outside == [.restart(.video, at: time(9)), .restart(.audio, at: time(9)), .wake(.loading)])
  }

  @Test("A seek tries again what has failed and may loop, from the source on where that is not known")
  func seekAfterFailure() {
    var machine = machine(attempts: 0, after: [.began, .resolvingFailed(network)])
    #expect(machine.startsOver)
    let actions = machine.handle(.sought(time(1), reload: [.video, .audio]))
    #expect(actions.contains(.resolve(after: .zero)))
    #expect(machine.failure == nil)
    // A failure that is final stays, where the place is one that was loaded.
    var ended = self.machine(attempts: 0, after: Self.opened)
    _ = ended.handle(.failed(.video, damage, place: nil))
    #expect(!ended.startsOver)
    _ = ended.handle(.sought(time(1), reload: []))
    #expect(ended.failure == damage)
  }

  // MARK: Audio

  @Test("Audio of its own is loaded after the first video, and left out where it fails")
  func separateAudio() {
    var machine = machine(attempts: 0, after: Self.openedApart)
    #expect(
      machine.handle(.packetRead(.video, isNews: true)) == [.reached(.initialization), .wake(.audioReader)])
    #expect(machine.playsSeparateAudio)
    let actions = machine.handle(.failed(.audio, network, place: nil))
    #expect(actions.contains(.setHasSeparateAudio(false)))
    #expect(actions.contains(.endBuffer([.audio], isBroken: false)))
    #expect(machine.failure == nil)
    #expect(machine.isOver(.audio))
    #expect(!machine.wantsMore(of: .audio))
  }

  @Test("Audio that does not come is given up; wanted again, it is loaded from where playback is")
  func missedAudio() {
    var machine = machine(after: Self.openedApart)
    let late = ReelError(.timedOut, "no sound")
    let actions = machine.handle(.audioMissed(late))
    let loss = MediaLoss(kind: .audio, reason: .missing, range: nil)
    #expect(actions.prefix(2) == [.log(late, .lost(loss)), .restart(.audio, at: nil)])
    let place = MediaTime(value: 7, timescale: 1)
    #expect(
      machine.handle(.audioWanted(true, place: place)) == [
        .restart(.audio, at: place), .setHasSeparateAudio(true), .wake(.loading),
      ])
  }

  @Test("The end of video is the end of what is muxed with it")
  func end() {
    var muxed = machine(after: Self.opened)
    #expect(
      muxed.handle(.ended(.video, fault: nil)).first
        == .endBuffer([.video, .audio], isBroken: false))
    var apart = machine(after: Self.openedApart)
    #expect(
      apart.handle(.ended(.video, fault: damage)).prefix(2) == [
        .log(damage, .failed), .endBuffer([.video], isBroken: false),
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
    #expect(silent.handle(.ended(.video, fault: nil)).contains(.tracksAreKnown))
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
