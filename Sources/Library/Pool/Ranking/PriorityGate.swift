internal import Foundation
internal import ReelCore
internal import ReelFFmpeg
package import ReelPlayback
internal import Synchronization

/// Permits to decode, as many as there are cores, given to who has the best rank, and of these to who came first.
///
/// Decoders reach it through a `SlotGate` each. A rank that changes counts at once, also for who waits already. A
/// permit that was given is not taken back: it is held for one call into a decoder.
package final class PriorityGate: Sendable {
  private struct Waiter {
    let gate: SlotGate
    let signal: any BlockingSemaphore
  }

  private struct State {
    var freeCount: Int
    /// In the order in which they came.
    var waiters: [Waiter] = []
  }

  package let permitCount: Int
  private let runtime: any PlayerRuntime
  private let state: Locked<State>

  /// - Parameters:
  ///   - permits: At least 1; nil for one a processor.
  ///   - runtime: The runtime of the threads that wait.
  package init(permits: Int? = nil, runtime: any PlayerRuntime = SystemRuntime.shared) {
    permitCount = max(permits ?? ProcessInfo.processInfo.activeProcessorCount, 1)
    self.runtime = runtime
    state = Locked(State(freeCount: permitCount))
  }

  /// Those who wait for a permit.
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
      // The permit goes from hand to hand: nobody comes in between.
      return state.waiters.remove(at: best.index).signal
    }
    next?.signal()
  }
}

/// The way of one slot's decoders to a `PriorityGate`: its rank may be changed at any time.
package final class SlotGate: DecodingGate {
  private let gate: PriorityGate
  private let value: Atomic<Int>

  /// - Parameter rank: 0 is the best.
  package init(_ gate: PriorityGate, rank: Int = 0) {
    self.gate = gate
    value = Atomic(rank)
  }

  /// 0 is the best.
  package var rank: Int {
    get { value.load(ordering: .relaxed) }
    set { value.store(newValue, ordering: .relaxed) }
  }

  package func acquire() { gate.acquire(for: self) }

  package func release() { gate.release() }
}
