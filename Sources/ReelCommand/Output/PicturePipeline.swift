import Dispatch
import Foundation
import ReelCore
import ReelPlayback

/// Converts and writes pictures on a thread of its own while the next ones are decoded. A few pictures wait at most.
final class PicturePipeline: Sendable {
  private let queue = DispatchQueue(label: "reel.write")
  private let places = DispatchSemaphore(value: 4)
  private let failure = Locked<(any Error)?>(nil)
  private let process: @Sendable (borrowing TimedPicture) throws -> Void

  /// `process` is called with one picture after the other.
  init(process: @escaping @Sendable (borrowing TimedPicture) throws -> Void) { self.process = process }

  /// Hands over another owner of the picture. Throws what an earlier one failed with.
  func submit(_ picture: borrowing TimedPicture) throws {
    places.wait()
    if let error = failure.withLock({ $0 }) {
      places.signal()
      throw error
    }
    let box = Box(try picture.clone())
    queue.async { [self] in
      defer { places.signal() }
      guard failure.withLock({ $0 == nil }) else { return }
      do { try process(box.picture) } catch { failure.withLock { $0 = error } }
    }
  }

  /// Waits until all pictures are written. Throws what one failed with.
  func drain() async throws {
    await withCheckedContinuation { continuation in
      queue.async { continuation.resume() }
    }
    if let error = failure.withLock({ $0 }) { throw error }
  }

  /// A picture that a closure can carry.
  private final class Box: Sendable {
    let picture: TimedPicture

    init(_ picture: consuming TimedPicture) { self.picture = picture }
  }
}
