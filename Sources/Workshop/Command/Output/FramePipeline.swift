import Dispatch
import Foundation
import ReelCore
import ReelPlayback

/// Converts and writes frames on its own thread while the next ones are decoded. Only a few frames wait.
final class FramePipeline: Sendable {
  private let queue = DispatchQueue(label: "reel.write")
  private let places = DispatchSemaphore(value: 4)
  private let failure = Locked<(any Error)?>(nil)
  private let process: @Sendable (borrowing TimedFrame) throws -> Void

  /// `process` is called with each frame in order.
  init(process: @escaping @Sendable (borrowing TimedFrame) throws -> Void) { self.process = process }

  /// Passes a clone of the frame. Throws the error of an earlier one.
  func submit(_ frame: borrowing TimedFrame) throws {
    places.wait()
    if let error = failure.withLock({ $0 }) {
      places.signal()
      throw error
    }
    let box = SharedFrame(try frame.clone())
    queue.async { [self] in
      defer { places.signal() }
      guard failure.withLock({ $0 == nil }) else { return }
      do { try process(box.frame) } catch { failure.withLock { $0 = error } }
    }
  }

  /// Waits until all frames are written. Throws the first error.
  func drain() async throws {
    await withCheckedContinuation { continuation in
      queue.async { continuation.resume() }
    }
    if let error = failure.withLock({ $0 }) { throw error }
  }
}
