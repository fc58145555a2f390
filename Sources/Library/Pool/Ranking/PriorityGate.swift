internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
package import ReelSources
internal import Synchronization

/// Permits to decode, one per core, granted to the waiter of the best rank, and among equal ranks to the
/// earliest.
///
/// Each decoder has its own `SlotGate` to it. A changed rank takes effect at once, also for waiters. A
/// granted permit is not revoked: it is held for one call into a decoder.
package final class PriorityGate: Sendable {
  private struct Waiter {
    let gate: SlotGate
    let signal: any BlockingSemaphore
  }

  private struct State {
    var freeCount: Int
    /// The waiters in order of arrival.
    var waiters: [Waiter] = []
  }

  package let permitCount: Int
  private let runtime: any PlayerRuntime
  private let state: Locked<State>

  /// - Parameters:
  ///   - permits: The number of permits, at least 1; nil for one per processor.
  ///   - runtime: The runtime of the threads that wait.
  package init(permits: Int? = nil, runtime: any PlayerRuntime = SystemRuntime.shared) {
    permitCount = max(permits ?? ProcessInfo.processInfo.activeProcessorCount, 1)
    self.runtime = runtime
    state = Locked(State(freeCount: permitCount))
  }

  /// The number of waiters for a permit.
  package var waiterCount: Int { state.withLock { $0.waiters.count } }

  // MARK: - Internal

  func acquire(for gate: SlotGate) {
    let signal = state.withLock { state -> (any BlockingSemaphore)? in
      if state.freeCount > 0 {
        state.freeCount -= 1
        return nil
      }
      let signal = runtime.makeSemaphore()
      state.waiters.append(Waiter(gate: gate, signal: signal))
      return signal
    }
    signal?.wait()
  }

  func release() {
    let next = state.withLock { state -> (any BlockingSemaphore)? in
      var best: (index: Int, rank: Int)?
      for (index, waiter) in state.waiters.enumerated() {
        let rank = waiter.gate.rank
        if best.map({ rank < $0.rank }) ?? true { best = (index, rank) }
      }
      guard let best else {
        state.freeCount += 1
        return nil
      }
      // The permit is passed on directly, so no other waiter gets it in between.
      return state.waiters.remove(at: best.index).signal
    }
    next?.signal()
  }
}

/// The access of one slot's decoders to a `PriorityGate`. Its rank may be changed at any time.
package final class SlotGate: DecodingGate {
  private let gate: PriorityGate
  private let value: Atomic<Int>

  /// - Parameter rank: 0 is the best.
  package init(_ gate: PriorityGate, rank: Int = 0) {
    self.gate = gate
    value = Atomic(rank)
  }

  /// The rank; 0 is the best.
  package var rank: Int {
    get { value.load(ordering: .relaxed) }
    set { value.store(newValue, ordering: .relaxed) }
  }

  package func acquire() { gate.acquire(for: self) }

  package func release() { gate.release() }
}
