internal import Foundation
public import ReelFFmpeg

/// As many permits as there are processors: however many sources are open, no more decode at a time.
public final class CoreGate: DecodingGate {
  private let semaphore: DispatchSemaphore

  /// - Parameter permits: nil for one a processor.
  public init(permits: Int? = nil) {
    semaphore = DispatchSemaphore(value: max(1, permits ?? ProcessInfo.processInfo.activeProcessorCount))
  }

  public func acquire() { semaphore.wait() }
  public func release() { semaphore.signal() }
}
