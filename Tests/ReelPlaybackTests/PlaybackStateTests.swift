import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback
import ReelSources

@Suite("How an item is played", .hangLimit)
struct PlaybackStateTests {
  private enum Event: Sendable, Equatable {
    case play, pause, replace, unload
    /// The first frame of the item, or of a seek, is on show.
    case begin
    case seek
    /// The buffer is likely to keep up.
    case keepUp
    case stall, end, fail
  }

  private static let waiting = TimeControlStatus.waitingToPlayAtSpecifiedRate(.evaluatingBufferingRate)
  private static let playing: [Event] = [.play, .begin, .keepUp]
  private static let stalled = playing + [.stall]

  /// A player with an item before loading, and the effects of events.
  private final class Scene {
    let core: PlayerCore
    private var names: [String] = []
    private let error = ReelError(.badMedia, "not media")

    init(waits: Bool = true, after events: [Event] = []) {
      core = makeHandTurnedSession(loops: false).core
      core.change { state, _ in state.settings.waitsToMinimizeStalls = waits }
      core.setObserver { [told] signal in
        if case .event(let event, _) = signal { told.withLock { $0.append("\(event)") } }
      }
      handle(events)
      told.withLock { $0 = [] }
    }

    private let told = Locked<[String]>([])

    /// The names of the events that observers were told since the scene was made.
    var events: [String] { told.withLock { $0 }.map { String($0.prefix { $0 != "(" }) } }

    var status: TimeControlStatus { core.timeControlStatus.value }
    var isRunning: Bool { core.state.read { $0.item.clock.rate > 0 } }
    var isStalled: Bool { core.state.read { $0.item.playback.stalledAt != nil } }
    var isOpening: Bool { core.state.read { $0.item.playback.isOpening } }

    func handle(_ events: [Event]) { for event in events { handle(event) } }

    func handle(_ event: Event) {
      core.change { state, out in
        switch event {
        case .play: state.play(at: .zero, &out)
        case .pause: state.pause(at: .zero, &out)
        case .replace:
          let session = ItemSession(PlayerItem(.standardInput), core: core)
          _ = state.replace(with: session, start: nil, detaches: false, at: .zero, &out)
          state.publish(&out)
        case .unload:
          _ = state.replace(with: nil, start: nil, detaches: false, at: .zero, &out)
          state.publish(&out)
        case .begin:
          guard state.item.session != nil, state.item.playback.isOpening else { break }
          state.beginPlaying(at: .zero, &out)
        case .seek: _ = state.seek(to: .zero, at: .zero, &out)
        case .keepUp: state.keepUp(at: .zero, &out)
        case .stall: state.stall(since: .zero, at: .zero, &out)
        case .end: if state.status == .playing { state.end(at: .zero, &out) }
        case .fail: state.fail(error, at: .zero, &out)
        }
      }
    }
  }

  /// What observers are told of an event after others, and the status then.
  private func last(_ events: [Event], waits: Bool = true) -> (told: [String], status: TimeControlStatus) {
    let scene = Scene(waits: waits, after: events.dropLast())
    scene.handle(Array(events.suffix(1)))
    return (scene.events, scene.status)
  }

  @Test("It is paused before anything is asked of it, and waits for an item")
  func idle() {
    #expect(last([]).status == .paused)
    #expect(last([.unload, .play]).status == .waitingToPlayAtSpecifiedRate(.noItemToPlay))
    #expect(last([.unload, .play, .keepUp]).status == .waitingToPlayAtSpecifiedRate(.noItemToPlay))
  }

  @Test("It begins with the first frame and enough behind it, whenever it is asked to play")
  func start() {
    for events in [[.play, .begin, .keepUp], [.begin, .play, .keepUp], [.begin, .keepUp, .play]] as [[Event]]
    {
      let scene = Scene(after: events)
      #expect(scene.status == .playing && scene.isRunning)
    }
    #expect(last([.play, .begin]).status == Self.waiting)
    // Without a frame, the level of the buffer is not asked for.
    #expect(last([.play, .keepUp]).status == Self.waiting)
  }

  @Test("Without waiting it begins with the first frame, also if that is said later")
  func startAtOnce() {
    #expect(last([.play, .begin], waits: false).status == .playing)
    let scene = Scene(after: [.play, .begin])
    scene.core.updateSettings { $0.waitsToMinimizeStalls = false }
    #expect(scene.status == .playing && scene.isRunning)
  }

  @Test("It stalls when it has run dry, and goes on when the buffer keeps up again")
  func stall() {
    let scene = Scene(after: Self.playing)
    scene.handle([.stall, .stall])
    #expect(scene.status == .waitingToPlayAtSpecifiedRate(.toMinimizeStalls))
    #expect(scene.isStalled && !scene.isRunning)
    scene.handle(.keepUp)
    #expect(scene.status == .playing && scene.isRunning)
    #expect(scene.events == ["stalled", "resumed"])
  }

  @Test("Without waiting it pauses where it would stall")
  func stallWithoutWaiting() {
    let scene = Scene(waits: false, after: Self.playing)
    scene.handle(.stall)
    #expect(scene.status == .paused && !scene.isStalled)
    scene.handle(.play)
    #expect(scene.status == .playing && scene.isRunning)
    #expect(scene.events == ["stalled"])
  }

  @Test("Running dry is nothing where it does not play")
  func dryWithoutPlaying() {
    for events in [[.stall], [.play, .stall], Self.playing + [.pause, .stall]] as [[Event]] {
      #expect(last(events).told == [])
    }
  }

  @Test("A pause stops the clock, also in a stall, which is over when the buffer keeps up")
  func pause() {
    let scene = Scene(after: Self.playing + [.pause])
    #expect(scene.status == .paused && !scene.isRunning)
    scene.handle(.play)
    #expect(scene.status == .playing && scene.isRunning)
    #expect(last(Self.stalled + [.pause]).status == .paused)
    #expect(last(Self.stalled + [.pause, .play]).status == .waitingToPlayAtSpecifiedRate(.toMinimizeStalls))
    #expect(last(Self.stalled + [.pause, .keepUp]).told == ["resumed"])
    #expect(last(Self.stalled + [.pause, .keepUp, .play]).status == .playing)
  }

  @Test("After a seek it waits for its frame and for the buffer, and no stall is left")
  func seek() {
    #expect(last(Self.playing + [.seek]).status == Self.waiting)
    let stalled = last(Self.stalled + [.seek])
    #expect(stalled.told == ["resumed"] && stalled.status == Self.waiting)
    #expect(last(Self.playing + [.seek, .begin]).status == Self.waiting)
    #expect(last(Self.playing + [.seek, .begin, .keepUp]).status == .playing)
  }

  @Test("The end pauses it, a failure too until there is another item, or a seek")
  func ends() {
    let ended = last(Self.playing + [.end])
    #expect(ended.status == .paused && ended.told == ["playedToEnd"])
    // Playing starts over.
    #expect(last(Self.playing + [.end, .play]).status == Self.waiting)
    let failed = last(Self.playing + [.fail])
    #expect(failed.status == .paused && failed.told == ["failed"])
    #expect(last(Self.playing + [.fail, .play]).status == .paused)
    #expect(last(Self.playing + [.fail, .replace]).status == Self.waiting)
    #expect(last(Self.playing + [.fail, .seek]).status == Self.waiting)
    #expect(last(Self.stalled + [.unload]).status == .waitingToPlayAtSpecifiedRate(.noItemToPlay))
  }

  @Test("At an end that does not pause, it plays on without a clock")
  func endWithoutPause() {
    let scene = Scene(after: Self.playing)
    scene.core.updateSettings { $0.actionAtItemEnd = .none }
    scene.handle(.end)
    #expect(scene.status == .playing && !scene.isRunning)
    scene.handle([.pause, .play])
    #expect(scene.status == .playing && !scene.isRunning)
  }

  @Test("Whatever happens, the clock runs while it plays, and only then", arguments: 0..<50)
  func invariants(seed: Int) {
    let events: [Event] = [
      .play, .play, .play, .pause, .replace, .unload, .begin, .begin, .begin, .seek, .keepUp, .keepUp,
      .keepUp,
      .stall, .end, .fail,
    ]
    var random = SplitMix(seed: seed)
    let scene = Scene()
    var hasItem = true
    var hasFailed = false
    for _ in 0..<500 {
      if Int.random(in: 0..<50, using: &random) == 0 {
        scene.core.updateSettings { $0.waitsToMinimizeStalls.toggle() }
      }
      guard let event = events.randomElement(using: &random) else { return }
      let (was, wasStalled) = (scene.status, scene.isStalled)
      let toldCount = scene.events.count
      scene.handle(event)
      for told in scene.events.dropFirst(toldCount) {
        if told == "stalled" { #expect(event == .stall && was == .playing) }
        if told == "resumed" { #expect(wasStalled && !scene.isStalled) }
      }
      switch event {
      case .replace, .unload: (hasItem, hasFailed) = (event == .replace, false)
      case .fail: hasFailed = true
      // A seek tries a failed item again.
      case .seek: hasFailed = false
      case .play, .pause, .begin, .keepUp, .stall, .end: break
      }
      let hasEnded = scene.core.state.read { $0.item.playback.hasEnded }
      #expect(scene.status == scene.core.state.read { $0.status })
      #expect(scene.isRunning == (scene.status == .playing && !hasEnded))
      #expect(!(scene.isRunning && scene.isStalled))
      if scene.isRunning { #expect(hasItem && !hasFailed && !scene.isOpening) }
    }
  }
}

extension PlayerCore {
  fileprivate func setObserver(_ observer: @escaping @Sendable (PlayerSignal) -> Void) {
    self.observer.withLock { $0.call = observer }
  }
}
