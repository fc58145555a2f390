import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite("Running a player's clock")
struct PlaybackMachineTests {
  private typealias Event = PlaybackMachine.Event
  private typealias Action = PlaybackMachine.Action

  /// The actions of the last of some events.
  private func last(_ events: [Event], waits: Bool = true) -> (actions: [Action], machine: PlaybackMachine) {
    var machine = PlaybackMachine()
    machine.waitsToMinimizeStalls = waits
    var actions: [Action] = []
    for event in events { actions = machine.handle(event) }
    return (actions, machine)
  }

  private static let playing: [Event] = [
    .itemReplaced(hasItem: true), .play, .frameShown, .buffer(isLikelyToKeepUp: true),
  ]
  private static let stalled = playing + [.ranDry]

  @Test("It is paused before anything is asked of it, and waits for an item")
  func idle() {
    #expect(PlaybackMachine().status == .paused)
    let (actions, machine) = last([.play])
    #expect(actions == [.changed(.waitingToPlay(.noItemToPlay))])
    #expect(machine.status == .waitingToPlay(.noItemToPlay))
    #expect(last([.play, .frameShown, .buffer(isLikelyToKeepUp: true)]).actions == [])
  }

  @Test("It begins with the first frame and enough behind it, in any order")
  func start() {
    let parts: [Event] = [.play, .frameShown, .buffer(isLikelyToKeepUp: true)]
    for first in 0..<3 {
      for second in 0..<3 where second != first {
        let order = [parts[first], parts[second], parts[3 - first - second]]
        #expect(last([.itemReplaced(hasItem: true)] + order).actions == [.startClock, .changed(.playing)])
      }
    }
    #expect(
      last([.itemReplaced(hasItem: true), .play, .frameShown]).machine.status
        == .waitingToPlay(.evaluatingBufferingRate))
    #expect(
      last([.itemReplaced(hasItem: true), .play, .buffer(isLikelyToKeepUp: true)]).machine.status
        == .waitingToPlay(.evaluatingBufferingRate))
  }

  @Test("Without waiting it begins with the first frame")
  func startAtOnce() {
    let (actions, _) = last([.itemReplaced(hasItem: true), .play, .frameShown], waits: false)
    #expect(actions == [.startClock, .changed(.playing)])
  }

  @Test("Once begun, a buffer that falls short stops nothing until it has span dry")
  func fallingShort() {
    #expect(last(Self.playing + [.buffer(isLikelyToKeepUp: false)]).actions == [])
    #expect(
      last(Self.playing + [.buffer(isLikelyToKeepUp: false), .pause, .play]).machine.status == .playing)
  }

  @Test("It stalls when it has span dry, and goes on when the buffer keeps up again")
  func stall() {
    let (actions, machine) = last(Self.stalled)
    #expect(actions == [.stalled, .stopClock, .changed(.waitingToPlay(.toMinimizeStalls))])
    #expect(machine.isStalled && machine.isAfterStall)
    #expect(last(Self.stalled + [.ranDry]).actions == [])
    #expect(last(Self.stalled + [.buffer(isLikelyToKeepUp: false)]).actions == [])
    #expect(last(Self.stalled + [.frameShown]).actions == [])
    #expect(
      last(Self.stalled + [.buffer(isLikelyToKeepUp: true)]).actions
        == [.resumed, .startClock, .changed(.playing)])
  }

  @Test("Without waiting it pauses where it would stall")
  func stallWithoutWaiting() {
    let (actions, machine) = last(Self.stalled, waits: false)
    #expect(actions == [.stalled, .stopClock, .changed(.paused)])
    #expect(!machine.isStalled && !machine.isPlayWanted)
    #expect(last(Self.stalled + [.play], waits: false).actions == [.startClock, .changed(.playing)])
  }

  @Test("Running dry is nothing where it does not play")
  func dryWithoutPlaying() {
    #expect(last([.ranDry]).actions == [])
    #expect(last([.itemReplaced(hasItem: true), .play, .ranDry]).actions == [])
    #expect(last(Self.playing + [.pause, .ranDry]).actions == [])
  }

  @Test("A pause stops the clock, also in a stall, which is over when the buffer keeps up")
  func pause() {
    #expect(last(Self.playing + [.pause]).actions == [.stopClock, .changed(.paused)])
    #expect(last(Self.playing + [.pause, .play]).actions == [.startClock, .changed(.playing)])
    #expect(last(Self.stalled + [.pause]).actions == [.changed(.paused)])
    #expect(last(Self.stalled + [.pause, .play]).machine.status == .waitingToPlay(.toMinimizeStalls))
    #expect(last(Self.stalled + [.pause, .buffer(isLikelyToKeepUp: true)]).actions == [.resumed])
  }

  @Test("After a seek it waits for its frame and for the buffer, and no stall is left")
  func seek() {
    let waiting = TimeControlStatus.waitingToPlay(.evaluatingBufferingRate)
    #expect(last(Self.playing + [.seekBegan]).actions == [.stopClock, .changed(waiting)])
    #expect(last(Self.stalled + [.seekBegan]).actions == [.resumed, .changed(waiting)])
    #expect(last(Self.playing + [.seekBegan, .frameShown]).machine.status == waiting)
    #expect(
      last(Self.playing + [.seekBegan, .frameShown, .buffer(isLikelyToKeepUp: true)]).actions
        == [.startClock, .changed(.playing)])
  }

  @Test("The end pauses it, a failure too until there is another item")
  func ends() {
    #expect(last(Self.playing + [.reachedEnd]).actions == [.stopClock, .changed(.paused)])
    #expect(last(Self.playing + [.failed]).actions == [.stopClock, .changed(.paused)])
    #expect(last(Self.playing + [.failed, .play]).actions == [])
    #expect(
      last(Self.playing + [.failed, .itemReplaced(hasItem: true)]).actions
        == [.changed(.waitingToPlay(.evaluatingBufferingRate))])
    #expect(
      last(Self.stalled + [.itemReplaced(hasItem: false)]).actions
        == [.changed(.waitingToPlay(.noItemToPlay))])
  }

  @Test("Whatever happens, the clock spans while it plays, and only then", arguments: 0..<200)
  func invariants(seed: Int) {
    let events: [Event] = [
      .play, .play, .pause, .itemReplaced(hasItem: true), .itemReplaced(hasItem: false), .frameShown,
      .frameShown, .seekBegan, .buffer(isLikelyToKeepUp: true), .buffer(isLikelyToKeepUp: true),
      .buffer(isLikelyToKeepUp: false), .ranDry, .reachedEnd, .failed,
    ]
    var random = SplitMix(seed: seed)
    var machine = PlaybackMachine()
    var isRunning = false
    var hasItem = false
    var hasFailed = false
    var known = machine.status
    for _ in 0..<500 {
      if Int.random(in: 0..<50, using: &random) == 0 { machine.waitsToMinimizeStalls.toggle() }
      guard let event = events.randomElement(using: &random) else { return }
      let wasStalled = machine.isStalled
      for action in machine.handle(event) {
        switch action {
        case .startClock:
          #expect(!isRunning)
          isRunning = true
        case .stopClock:
          #expect(isRunning)
          isRunning = false
        case .changed(let status):
          #expect(status != known)
          known = status
        case .stalled:
          #expect(event == .ranDry && !wasStalled)
        case .resumed:
          #expect(wasStalled && !machine.isStalled)
        }
      }
      if case .itemReplaced(let replacement) = event {
        hasItem = replacement
        hasFailed = false
      }
      if event == .failed { hasFailed = true }
      // A seek tries a failed item again.
      if event == .seekBegan { hasFailed = false }
      #expect(known == machine.status)
      #expect(isRunning == (machine.status == .playing))
      #expect(!(isRunning && machine.isStalled))
      if isRunning { #expect(hasItem && !hasFailed && machine.isPlayWanted) }
      if !machine.isPlayWanted || hasFailed { #expect(machine.status == .paused) }
    }
  }
}
