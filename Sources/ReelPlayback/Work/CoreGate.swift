internal import Foundation
import ReelFFmpeg

/// As many permits as there are processors: however many sources are open, no more decode at a time.
package final class CoreGate: DecodingGate {
  private let semaphore: DispatchSemaphore

  /// - Parameter permits: nil for one a processor.
  package init(permits: Int? = nil) {
    semaphore = DispatchSemaphore(value: max(1, permits ?? ProcessInfo.processInfo.activeProcessorCount))
  }

  package func acquire() { semaphore.wait() }
  package func release() { semaphore.signal() }
}
