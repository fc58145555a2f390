import Dispatch
import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback
@testable import ReelSources

@Suite("The order of events", .hangLimit)
struct EventOrderTests {
  @Test("A stall and its end are told in this order, whichever threads bring them", arguments: 0..<20)
  func stalls(round: Int) async throws {
    let core = makeHandTurnedSession().core
    let events = core.events.events
    core.change { state, out in
      state.play(at: .zero, &out)
      state.beginPlaying(at: .zero, &out)
      state.keepUp(at: .zero, &out)
    }
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask {
          for _ in 0..<2000 {
            core.change { state, out in state.stall(since: .zero, at: .zero, &out) }
            core.change { state, out in state.keepUp(at: .zero, &out) }
          }
        }
      }
    }
    core.events.finish()
    var names: [String] = []
    for await event in events { names.append(String("\(event)".prefix { $0 != "(" })) }
    #expect(names.count > 1000)
    for (name, next) in zip(names, names.dropFirst()) { #expect(name != next) }
  }

  private static func name(_ value: some Any) -> String { String("\(value)".prefix { $0 != "(" }) }

  @Test(
    "One observer of events and properties gets them in the order of the changes, before the call returns")
  func oneStream() {
    let core = makeHandTurnedSession().core
    core.change { state, out in
      state.play(at: .zero, &out)
      state.beginPlaying(at: .zero, &out)
      state.keepUp(at: .zero, &out)
    }
    let seen = Locked<[String]>([])
    core.events.observe { event in seen.withLock { $0.append(Self.name(event)) } }
    let end = core.timeControlStatus.property.observe { status in
      seen.withLock { $0.append(Self.name(status)) }
    }
    core.change { state, out in state.stall(since: .zero, at: .zero, &out) }
    core.change { state, out in state.keepUp(at: .zero, &out) }
    end()
    core.change { state, out in state.pause(at: .zero, &out) }
    #expect(
      seen.withLock { $0 }
        == ["playing", "stalled", "waitingToPlayAtSpecifiedRate", "resumed", "playing"])
  }

  @Test("The owner gets events one after the other, although others come from another thread and from within")
  func owner() {
    let core = makeHandTurnedSession().core
    let seen = Locked<[String]>([])
    core.observer.withLock { observer in
      observer.call = { [weak core] signal in
        guard case .event(let event, _) = signal, let core else { return }
        if case .stalled = event {
          let hasTold = DispatchSemaphore(value: 0)
          DispatchQueue.global().async {
            core.emit(.gapSkipped(from: .zero, to: .zero), of: nil)
            hasTold.signal()
          }
          hasTold.wait()
          core.emit(.looped(gap: .zero), of: nil)
        }
        seen.withLock { $0.append(Self.name(event)) }
      }
    }
    core.emit(.stalled(time: .zero), of: nil)
    #expect(seen.withLock { $0 } == ["stalled", "gapSkipped", "looped"])
  }

  @Test("An item that another one replaces at its end was played to its end")
  func replacedAtEnd() async throws {
    let player = Player(
      fetcher: FixtureFetcher(), configuration: PlayerConfiguration(), logger: silentLogger)
    player.setObserver { [weak player] signal in
      if case .event(.playedToEnd, _) = signal { player?.replaceCurrentItem(with: nil) }
    }
    player.setRate(.infinity)
    player.pause()
    let source = try MediaSource(argument: "http://fixtures.test/media/h264-one-frame.mp4")
    for _ in 0..<200 {
      player.replaceCurrentItem(with: PlayerItem(source))
      try await player.playToEnd()
      try await until { player.currentItem.value == nil }
    }
    await player.stopAndWait()
  }
}
