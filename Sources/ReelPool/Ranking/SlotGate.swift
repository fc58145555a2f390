internal import ReelCore
package import ReelFFmpeg
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

  package func release() { release(afterPacket: true) }

  package func release(afterPacket: Bool) {
    release(after: afterPacket ? .packet(nil, pixelCount: 0) : .receiving)
  }

  package func release(after work: DecodingWork) { gate.release(after: work) }

  package var gatesOpening: Bool { gate.gatesOpening }
}
