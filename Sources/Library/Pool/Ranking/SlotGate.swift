internal import ReelCore
import ReelFFmpeg
internal import Synchronization

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
