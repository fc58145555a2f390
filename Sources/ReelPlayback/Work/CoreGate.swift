internal import Foundation
import ReelFFmpeg

/// Has one permit per processor, so that however many sources are open, no more of them decode at a time.
package final class CoreGate: DecodingGate {
  private let semaphore: DispatchSemaphore

  /// - Parameter permits: Nil for one per processor.
  package init(permits: Int? = nil) {
    semaphore = DispatchSemaphore(value: max(1, permits ?? ProcessInfo.processInfo.activeProcessorCount))
  }

  package func acquire() { semaphore.wait() }
  package func release() { semaphore.signal() }
}
