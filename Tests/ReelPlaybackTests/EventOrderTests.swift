import ReelCore
import ReelTestSupport
import Testing

@testable import ReelPlayback

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
}
