import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback

@Suite("The order of events", .hangLimit)
struct EventOrderTests {
  /// Of several threads.
  private static let events =
    [[PlaybackMachine.Event]](repeating: [.ranDry, .buffer(isLikelyToKeepUp: true)], count: 4).flatMap { $0 }

  @Test("A stall and its end are told in this order, whichever threads bring them", arguments: 0..<20)
  func stalls(round: Int) async throws {
    let player = Player(
      fetcher: FixtureFetcher(), configuration: PlayerConfiguration(), logger: silentLogger)
    let core = player.core
    let events = player.events
    for event in [.itemReplaced(hasItem: true), .play, .frameShown, .buffer(isLikelyToKeepUp: true)]
      as [PlaybackMachine.Event]
    {
      core.handle(event)
    }
    await withTaskGroup(of: Void.self) { group in
      for event in Self.events {
        group.addTask { for _ in 0..<2000 { core.handle(event) } }
      }
    }
    core.events.finish()
    var names: [String] = []
    for await event in events { names.append(String("\(event)".prefix { $0 != "(" })) }
    for (name, next) in zip(names, names.dropFirst()) { #expect(name != next) }
  }
}

extension PlayerCore {
  fileprivate func handle(_ event: PlaybackMachine.Event) { change { $0.handle(event, at: clock.now, &$1) } }
}
