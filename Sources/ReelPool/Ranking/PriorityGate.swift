internal import Foundation
package import ReelCore
internal import ReelFFmpeg
package import ReelPlayback

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
  /// What a call takes on `clock` besides what it really takes.
  private let cost: DecodeCost?
  private let clock: any MonotonicClock
  private let runtime: any PlayerRuntime
  private let state: Locked<State>

  /// Permits for real cores.
  ///
  /// - Parameter permits: at least 1; nil for one a processor.
  package convenience init(permits: Int? = nil) {
    self.init(
      permits: permits ?? ProcessInfo.processInfo.activeProcessorCount, cost: nil,
      clock: SystemMonotonicClock(), runtime: SystemRuntime.shared)
  }

  package init(permits: Int, cost: DecodeCost?, clock: any MonotonicClock, runtime: any PlayerRuntime) {
    permitCount = max(permits, 1)
    self.cost = cost
    self.clock = clock
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

  /// True if opening a decoder takes a core for a while.
  var gatesOpening: Bool { cost?.chargesOpening ?? false }

  func release(after work: DecodingWork) {
    let duration = cost?.duration(of: work) ?? .zero
    if duration > .zero { pass(duration) }
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

  // MARK: - Private

  /// Waits, with the permit in hand.
  private func pass(_ duration: Duration) {
    let signal = runtime.makeSemaphore()
    clock.schedule(at: clock.now + duration) { signal.signal() }
    signal.wait()
  }
}
