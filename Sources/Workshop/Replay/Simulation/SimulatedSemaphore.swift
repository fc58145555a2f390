internal import DequeModule
internal import ReelCore
internal import ReelPlayback

/// A semaphore of a simulation.
final class SimulatedSemaphore: BlockingSemaphore {
  private struct State {
    var count = 0
    var waiting: Deque<BlockingJob> = []
  }

  private let simulation: SimulatedRuntime
  private let state = Locked(State())

  init(simulation: SimulatedRuntime) { self.simulation = simulation }

  func wait() {
    let body = simulation.running
    let waits = state.withLock { state in
      if state.count > 0 {
        state.count -= 1
        return false
      }
      state.waiting.append(body)
      return true
    }
    if waits { simulation.park(body) }
  }

  func signal() {
    let body = state.withLock { state in
      if let first = state.waiting.popFirst() { return first as BlockingJob? }
      state.count += 1
      return nil
    }
    if let body { simulation.makeReady(body) }
  }
}
