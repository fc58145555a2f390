internal import DequeModule
internal import ReelCore
internal import ReelPlayback

/// A semaphore of a virtual world.
final class VirtualSignal: WorkSignal {
  private struct State {
    var count = 0
    var waiting: Deque<VirtualBody> = []
  }

  private let world: VirtualWorld
  private let state = Locked(State())

  init(world: VirtualWorld) { self.world = world }

  func wait() {
    let body = world.running
    let waits = state.withLock { state in
      if state.count > 0 {
        state.count -= 1
        return false
      }
      state.waiting.append(body)
      return true
    }
    if waits { world.park(body) }
  }

  func signal() {
    let body = state.withLock { state in
      if let first = state.waiting.popFirst() { return first as VirtualBody? }
      state.count += 1
      return nil
    }
    if let body { world.makeReady(body) }
  }
}
